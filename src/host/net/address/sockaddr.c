/* sockaddr.c - see sockaddr.h. */
#include "net/address/sockaddr.h"

#include <string.h>

socklen_t sockaddr_from_endpoint(union sockaddr_inet *ret, const struct endpoint *ep)
{
    if (ip_addr_is_v4(&ep->addr)) {
        ret->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(ep->port)};
        memcpy(&ret->v4.sin_addr, &ep->addr.b[12], 4);
        return sizeof(ret->v4);
    }
    ret->v6 = (struct sockaddr_in6){
        .sin6_family = AF_INET6, .sin6_port = htons(ep->port), .sin6_scope_id = ep->scope};
    memcpy(&ret->v6.sin6_addr, ep->addr.b, 16);
    return sizeof(ret->v6);
}

bool sockaddr_to_endpoint(const union sockaddr_inet *sa, struct endpoint *ret)
{
    struct endpoint ep = {0};

    if (sa->any.sa_family == AF_INET) {
        uint8_t b[4];

        memcpy(b, &sa->v4.sin_addr, sizeof(b));
        ep.addr = ip_addr_v4(b);
        ep.port = ntohs(sa->v4.sin_port);
    } else if (sa->any.sa_family == AF_INET6) {
        memcpy(ep.addr.b, &sa->v6.sin6_addr, 16);
        ep.port = ntohs(sa->v6.sin6_port);
        ep.scope = ip_addr_is_link_local(&ep.addr) ? sa->v6.sin6_scope_id : 0;
    } else {
        return false;
    }
    *ret = ep;
    return true;
}
