/* resolver_asker.c - see resolver_asker.h. */
#include "agent/resolver_asker.h"

#include <net/if.h>
#include <string.h>

#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"

#define LOOPBACK 1 /* number of the loopback in every namespace */
#define PORT     53

/* Links at whose other end containers are. A tap may be a machine's, and a tun another overlay's.
 */
static bool leads_to_containers(struct netlink *nl, unsigned ifindex)
{
    static const char *const kinds[] = {"bridge", "veth", "netkit", "openvswitch"};
    struct rtnl_link link;
    char name[IFNAMSIZ];

    if (!if_indextoname(ifindex, name) || rtnl_find_link(nl, name, &link) != 0)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(link.kind, kinds[i]) == 0)
            return true;
    return false;
}

/* Addresses that nobody has (RFC 5737, RFC 3849) go by the default route. */
static struct ip_addr elsewhere(bool v4)
{
    return v4 ? ip_addr_v4((const uint8_t[4]){192, 0, 2, 1})
              : ip_addr_v6((const uint8_t[16]){0x20, 0x01, 0x0d, 0xb8, [15] = 1});
}

bool resolver_asker_is_local(
    struct netlink *nl, const struct endpoint *asker, const struct ip_addr *asked)
{
    struct rtnl_flow flow = {.to = *asker, .from = *asked, .from_port = PORT};
    unsigned uplink = 0;
    unsigned out;

    if (ip_addr_equal(&asker->addr, asked))
        return true;
    if (rtnl_way_out(nl, &flow, &out) != 0)
        return false;
    if (out == LOOPBACK)
        return true;
    flow.to.addr = elsewhere(ip_addr_is_v4(asked));
    return leads_to_containers(nl, out) && (rtnl_way_out(nl, &flow, &uplink) != 0 || uplink != out);
}
