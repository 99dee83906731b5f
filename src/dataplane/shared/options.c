/* options.c - see options.h. */
#include "shared/options.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/ip.h"

static bool is_to_tcp_port(const uint8_t *p, const struct ip_info *ip, uint16_t want)
{
    struct be16 port;

    if (ip->proto != IP_PROTO_TCP || ip->is_fragment || ip->len < (uint32_t)ip->l4_off + 4)
        return false;
    memcpy(&port, p + ip->l4_off + 2, sizeof(port)); /* RFC 9293 section 3.1 */
    return be16_get(port) == want;
}

bool device_accept_has(const struct device_accept *a, const uint8_t *p, const struct ip_info *ip)
{
    if (ip_addr_is_none(&a->at[0].to))
        return true;
    for (unsigned i = 0; i < 2; i++)
        if (ip_addr_equal(&a->at[i].to, &ip->dst))
            return a->at[i].tcp_port == 0 || is_to_tcp_port(p, ip, a->at[i].tcp_port);
    return false;
}
