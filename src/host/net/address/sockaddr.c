/* sockaddr.c - see sockaddr.h. */
#include "net/address/sockaddr.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "os/file.h"

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

int sockaddr_local(int fd, struct endpoint *ret)
{
    union sockaddr_inet sa;
    socklen_t len = sizeof(sa);

    if (getsockname(fd, &sa.any, &len) < 0)
        return -errno;
    return sockaddr_to_endpoint(&sa, ret) ? 0 : -EAFNOSUPPORT;
}

int sockaddr_source(const struct endpoint *to, uint32_t mark, struct ip_addr *ret)
{
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, to);
    _cleanup_(closep) int fd = socket(sa.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct endpoint source;
    int r;

    if (fd >= 0 && mark)
        (void)setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
    if (fd < 0 || connect(fd, &sa.any, len) < 0)
        return -errno;
    r = sockaddr_local(fd, &source);
    if (r == 0)
        *ret = source.addr;
    return r;
}
