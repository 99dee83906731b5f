/* options.c - see options.h. */
#include "shared/options.h"

#include "base/bytes.h"
#include "wire/ip.h"

bool device_accept_has(const struct device_accept *a, const uint8_t *p, const struct ip_info *ip)
{
    if (ip_addr_is_none(&a->at[0].to))
        return true;
    for (unsigned i = 0; i < 2; i++)
        if (ip_addr_equal(&a->at[i].to, &ip->dst))
            return a->at[i].tcp_port == 0 ||
                   (ip->proto == IP_PROTO_TCP && !ip->is_fragment && ip->len >= ip->l4_off + 4u &&
                       be16_load(p + ip->l4_off + 2) == a->at[i].tcp_port); /* RFC 9293 3.1 */
    return false;
}
