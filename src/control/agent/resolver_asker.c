/* resolver_asker.c - see resolver_asker.h. */
#include "agent/resolver_asker.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"

#define LOOPBACK 1 /* number of the loopback in every namespace */
#define PORT     53
#define TRIES    3 /* to read a bridge's ports while links come and go */

static bool is_one_of(const char *kind, const char *const *kinds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

bool resolver_asker_is_port_inside(const char *kind)
{
    /* "tun" is a tap, of a virtual machine; libvirt keeps a "dummy" on each of its bridges. */
    static const char *const kinds[] = {"veth", "netkit", "tun", "dummy"};

    return is_one_of(kind, kinds, sizeof(kinds) / sizeof(*kinds));
}

static int take_port(const struct rtnl_link *port, void *ctx)
{
    bool *is_inside = ctx;

    *is_inside = *is_inside && resolver_asker_is_port_inside(port->kind);
    return 0;
}

static bool has_ports_inside_alone(struct netlink *nl, unsigned bridge)
{
    bool is_inside = true;
    int r = -EINTR;

    for (int i = 0; i < TRIES && r == -EINTR; i++)
        r = rtnl_each_port(nl, bridge, take_port, &is_inside);
    return r == 0 && is_inside;
}

/* Links at whose other end containers are. A tap may be a machine's, and a tun another overlay's.
 */
static bool leads_to_containers(struct netlink *nl, unsigned ifindex)
{
    static const char *const kinds[] = {"veth", "netkit", "openvswitch"};
    struct rtnl_link link;
    char name[IFNAMSIZ];

    if (!if_indextoname(ifindex, name) || rtnl_find_link(nl, name, &link) != 0)
        return false;
    if (strcmp(link.kind, "bridge") == 0)
        return has_ports_inside_alone(nl, ifindex);
    return is_one_of(link.kind, kinds, sizeof(kinds) / sizeof(*kinds));
}

/* Addresses that nobody has (RFC 5737, RFC 3849) go by the default route. */
static struct ip_addr elsewhere(bool v4)
{
    return v4 ? ip_addr_v4((const uint8_t[4]){192, 0, 2, 1})
              : ip_addr_v6((const uint8_t[16]){0x20, 0x01, 0x0d, 0xb8, [15] = 1});
}

enum resolver_asker resolver_asker_find(
    struct netlink *nl, const struct endpoint *asker, const struct ip_addr *asked)
{
    struct rtnl_flow flow = {.to = *asker, .from = *asked, .from_port = PORT};
    unsigned uplink = 0;
    unsigned out;

    if (ip_addr_equal(&asker->addr, asked))
        return RESOLVER_ASKER_MACHINE;
    if (rtnl_way_out(nl, &flow, &out) != 0)
        return RESOLVER_ASKER_STRANGER;
    if (out == LOOPBACK)
        return RESOLVER_ASKER_MACHINE;
    flow.to.addr = elsewhere(ip_addr_is_v4(asked));
    if (rtnl_way_out(nl, &flow, &uplink) == 0 && uplink == out)
        return RESOLVER_ASKER_STRANGER;
    return leads_to_containers(nl, out) ? RESOLVER_ASKER_CONTAINER : RESOLVER_ASKER_STRANGER;
}
