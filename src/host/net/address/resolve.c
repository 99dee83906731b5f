/* resolve.c - see resolve.h. */
#include "resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "net/address/sockaddr.h"

#define HOST_MAX 253 /* RFC 1035 section 2.3.4, without the root's dot */

/* "HOST:PORT" into its parts; a host with two colons is an IPv6 address without a port. */
static int split(const char *text, char host[HOST_MAX + 1], uint16_t *port, struct err *e)
{
    const char *colon = strrchr(text, ':');
    size_t len = strlen(text);
    uint64_t n;

    if (colon && strchr(text, ':') == colon) {
        if (parse_u64(&n, colon + 1, 1, UINT16_MAX, "port", e) < 0)
            return -EINVAL;
        *port = (uint16_t)n;
        len = (size_t)(colon - text);
    }
    if (len == 0 || len > HOST_MAX)
        return err_set(e, -EINVAL, "\"%.80s\" is not HOST or HOST:PORT", text);
    memcpy(host, text, len);
    host[len] = '\0';
    return 0;
}

static int look_up(const char *host, uint16_t port, struct endpoint *ret, unsigned cap,
    unsigned *ret_n, struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *list = NULL;
    unsigned n = 0;
    int r = getaddrinfo(host, NULL, &hints, &list);

    if (r != 0)
        return err_set(e, -EHOSTUNREACH, "host \"%s\": %s", host, gai_strerror(r));
    for (struct addrinfo *ai = list; ai && n < cap; ai = ai->ai_next) {
        union sockaddr_inet sa;

        if (ai->ai_addrlen > sizeof(sa))
            continue;
        memcpy(&sa, ai->ai_addr, ai->ai_addrlen);
        if (!sockaddr_to_endpoint(&sa, &ret[n]))
            continue;
        ret[n++].port = port;
    }
    freeaddrinfo(list);
    if (n == 0)
        return err_set(e, -EHOSTUNREACH, "host \"%s\" has no address", host);
    *ret_n = n;
    return 0;
}

/* @text's parts: an address with its port, or only a name and the port. */
static int parse(const char *text, struct endpoint *ret, char host[static HOST_MAX + 1],
    uint16_t *port, struct err *e)
{
    struct endpoint ep = {.port = *port};
    int r;

    if (endpoint_parse(&ep, text, NULL) == 0 && ep.port != 0) {
        *ret = ep;
        return 0;
    }
    r = split(text, host, port, e);
    if (r == 0 && ip_addr_parse(&ep.addr, host, NULL) == 0)
        *ret = (struct endpoint){.addr = ep.addr, .port = *port};
    return r;
}

int resolve_check(const char *text, struct ip_addr *ret, struct err *e)
{
    struct endpoint ep = {.port = 0};
    char host[HOST_MAX + 1];
    uint16_t port = 1;
    int r = parse(text, &ep, host, &port, e);

    if (r == 0)
        *ret = ep.addr;
    return r;
}

int resolve_host(const char *text, uint16_t dflt_port, struct endpoint *ret, unsigned cap,
    unsigned *ret_n, struct err *e)
{
    struct endpoint ep = {.port = 0};
    char host[HOST_MAX + 1];
    uint16_t port = dflt_port;
    int r = parse(text, &ep, host, &port, e);

    if (r < 0)
        return r;
    if (ip_addr_is_none(&ep.addr))
        return look_up(host, port, ret, cap, ret_n, e);
    ret[0] = ep;
    *ret_n = 1;
    return 0;
}

/* The source that the kernel would take towards @to; false when there is no route. */
static bool source_towards(const char *to, struct ip_addr *ret)
{
    union sockaddr_inet sa;
    struct endpoint ep;
    socklen_t len;
    bool ok;
    int fd;

    if (endpoint_parse(&ep, to, NULL) < 0)
        return false;
    len = sockaddr_from_endpoint(&sa, &ep);
    fd = socket(sa.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    ok = connect(fd, &sa.any, len) == 0;
    len = sizeof(sa);
    ok = ok && getsockname(fd, &sa.any, &len) == 0 && sockaddr_to_endpoint(&sa, &ep);
    (void)close(fd);
    if (ok)
        *ret = ep.addr;
    return ok;
}

unsigned resolve_own(struct ip_addr ret[static 2])
{
    unsigned n = 0;

    /* Blocks for documentation (RFC 5737, RFC 3849): only the default route leads there. */
    if (source_towards("198.51.100.1:9", &ret[n]))
        n++;
    if (source_towards("[2001:db8::1]:9", &ret[n]) && !ip_addr_is_link_local(&ret[n]))
        n++;
    return n;
}
