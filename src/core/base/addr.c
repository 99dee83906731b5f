/* addr.c - see addr.h. inet_pton() and inet_ntop() are pure functions over text. */
#include "addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/parse.h"

static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

struct ip_addr ip_addr_v4(const uint8_t b[static 4])
{
    struct ip_addr a;

    memcpy(a.b, v4_mapped, 12);
    memcpy(a.b + 12, b, 4);
    return a;
}

struct ip_addr ip_addr_v6(const uint8_t b[static 16])
{
    struct ip_addr a;

    memcpy(a.b, b, 16);
    return a;
}

bool ip_addr_is_v4(const struct ip_addr *a)
{
    return memcmp(a->b, v4_mapped, 12) == 0;
}

bool ip_addr_is_none(const struct ip_addr *a)
{
    static const struct ip_addr none;

    return ip_addr_equal(a, &none);
}

bool ip_addr_equal(const struct ip_addr *a, const struct ip_addr *b)
{
    return memcmp(a->b, b->b, 16) == 0;
}

struct ip_addr ip_addr_block(const struct ip_addr *a)
{
    struct ip_addr block = *a;

    if (!ip_addr_is_v4(a))
        memset(block.b + 8, 0, 8);
    return block;
}

bool ip_addr_is_link_local(const struct ip_addr *a)
{
    if (ip_addr_is_v4(a))
        return a->b[12] == 169 && a->b[13] == 254;
    return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

int ip_addr_parse(struct ip_addr *ret, const char *text, struct err *e)
{
    uint8_t b[16];

    if (inet_pton(AF_INET, text, b) == 1) {
        *ret = ip_addr_v4(b);
        return 0;
    }
    if (inet_pton(AF_INET6, text, b) == 1) {
        *ret = ip_addr_v6(b);
        return 0;
    }
    return err_set(e, -EINVAL, "\"%.60s\" is not an IPv4 or IPv6 address", text);
}

/* Writes @v in decimal and a zero; returns where the zero is. printf() would take longer than all
 * else that formats an address, and an engine's answer has thousands of them. */
static char *put_number(char *p, unsigned v)
{
    char digits[] = "4294967295";
    char *first = digits + sizeof(digits) - 1;
    size_t len;

    do
        *--first = (char)('0' + v % 10);
    while (v /= 10);
    len = strlen(first);
    memcpy(p, first, len + 1);
    return p + len;
}

const char *ip_addr_format(const struct ip_addr *a, char buf[static IP_ADDR_TEXT_MAX])
{
    char *p = buf;

    if (!ip_addr_is_v4(a))
        return inet_ntop(AF_INET6, a->b, buf, IP_ADDR_TEXT_MAX);
    for (unsigned i = 12; i < 16; i++) {
        if (i > 12)
            *p++ = '.';
        p = put_number(p, a->b[i]);
    }
    return buf;
}

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
    return a->port == b->port && a->scope == b->scope && ip_addr_equal(&a->addr, &b->addr);
}

bool endpoint_is_none(const struct endpoint *ep)
{
    return ep->port == 0;
}

/* "fe80::1%3": the scope as a number, as the UAPI of WireGuard carries it. */
static int parse_scoped(struct endpoint *ep, char *host, struct err *e)
{
    char *percent = strchr(host, '%');
    uint64_t scope;
    int r;

    if (percent) {
        *percent = '\0';
        r = parse_u64(&scope, percent + 1, 0, UINT32_MAX, "interface index", e);
        if (r < 0)
            return r;
        ep->scope = (uint32_t)scope;
    }
    return ip_addr_parse(&ep->addr, host, e);
}

int endpoint_parse(struct endpoint *ret, const char *text, struct err *e)
{
    struct endpoint ep = {0};
    char host[IP_ADDR_TEXT_MAX + 12];
    const char *colon = strrchr(text, ':');
    const char *from = text;
    size_t len;
    uint64_t port;
    int r;

    if (!colon)
        return err_set(e, -EINVAL, "\"%.80s\" is not ADDRESS:PORT", text);
    len = (size_t)(colon - text);
    if (len >= 2 && text[0] == '[' && colon[-1] == ']') {
        from++;
        len -= 2;
    } else if (memchr(text, ':', len)) {
        return err_set(
            e, -EINVAL, "\"%.80s\": an IPv6 address needs brackets, [ADDRESS]:PORT", text);
    }
    if (len >= sizeof(host))
        return err_set(e, -EINVAL, "\"%.80s\" is not ADDRESS:PORT", text);
    memcpy(host, from, len);
    host[len] = '\0';
    r = parse_scoped(&ep, host, e);
    if (r < 0)
        return r;
    r = parse_u64(&port, colon + 1, 1, 65535, "port", e);
    if (r < 0)
        return r;
    ep.port = (uint16_t)port;
    *ret = ep;
    return 0;
}

int host_port_check(const char *text, struct err *e)
{
    const char *colon = strrchr(text, ':');
    struct endpoint ep;
    uint64_t port;

    if (strnlen(text, HOST_PORT_MAX + 1) > HOST_PORT_MAX || !colon || colon == text)
        return err_set(e, -EINVAL, "\"%.80s\" is not HOST:PORT", text);
    if (text[0] == '[')
        return endpoint_parse(&ep, text, e);
    if (parse_u64(&port, colon + 1, 1, UINT16_MAX, "port", e) != 0)
        return -EINVAL;
    for (const char *p = text; p < colon; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                *p == '.' || *p == '-' || *p == '_'))
            return err_set(e, -EINVAL, "\"%.80s\" is not HOST:PORT", text);
    return 0;
}

int host_port_complete(
    char ret[static HOST_PORT_MAX + 1], const char *text, uint16_t port, struct err *e)
{
    struct ip_addr a;
    bool is_bare_v6 = ip_addr_parse(&a, text, NULL) == 0 && !ip_addr_is_v4(&a);
    const char *after = text[0] == '[' ? strchr(text, ']') : text;
    bool has_port = after && strchr(after, ':');
    int n;

    if (is_bare_v6)
        n = snprintf(ret, HOST_PORT_MAX + 1, "[%s]:%u", text, port);
    else if (has_port)
        n = snprintf(ret, HOST_PORT_MAX + 1, "%s", text);
    else
        n = snprintf(ret, HOST_PORT_MAX + 1, "%s:%u", text, port);
    if (n < 0 || n > HOST_PORT_MAX)
        return err_set(e, -EINVAL, "\"%.80s\" is longer than a name may be", text);
    return host_port_check(ret, e);
}

const char *endpoint_format(const struct endpoint *ep, char buf[static ENDPOINT_TEXT_MAX])
{
    char a[IP_ADDR_TEXT_MAX];

    if (endpoint_is_none(ep))
        (void)snprintf(buf, ENDPOINT_TEXT_MAX, "(none)");
    else if (ip_addr_is_v4(&ep->addr))
        (void)snprintf(buf, ENDPOINT_TEXT_MAX, "%s:%u", ip_addr_format(&ep->addr, a), ep->port);
    else if (ep->scope)
        (void)snprintf(buf, ENDPOINT_TEXT_MAX, "[%s%%%u]:%u", ip_addr_format(&ep->addr, a),
            ep->scope, ep->port);
    else
        (void)snprintf(buf, ENDPOINT_TEXT_MAX, "[%s]:%u", ip_addr_format(&ep->addr, a), ep->port);
    return buf;
}

int ip_prefix_parse(struct ip_prefix *ret, const char *text, struct err *e)
{
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    char host[IP_ADDR_TEXT_MAX];
    struct ip_prefix p;
    uint64_t bits;
    unsigned max;
    int r;

    if (len >= sizeof(host))
        return err_set(e, -EINVAL, "\"%.60s\" is not ADDRESS/LENGTH", text);
    memcpy(host, text, len);
    host[len] = '\0';
    r = ip_addr_parse(&p.addr, host, e);
    if (r < 0)
        return r;
    max = ip_addr_is_v4(&p.addr) ? 32 : 128;
    bits = max;
    if (slash) {
        r = parse_u64(&bits, slash + 1, 0, max, "prefix length", e);
        if (r < 0)
            return r;
    }
    p.len = (uint8_t)bits;
    *ret = p;
    return 0;
}

const char *ip_prefix_format(const struct ip_prefix *p, char buf[static IP_PREFIX_TEXT_MAX])
{
    char *end;

    (void)ip_addr_format(&p->addr, buf);
    end = buf + strlen(buf);
    *end++ = '/';
    (void)put_number(end, p->len);
    return buf;
}

/* The length counted over all 128 bits. */
static unsigned mapped_len(const struct ip_prefix *p)
{
    return ip_addr_is_v4(&p->addr) ? p->len + 96u : p->len;
}

struct ip_prefix ip_prefix_mask(const struct ip_prefix *p)
{
    struct ip_prefix m = *p;
    unsigned len = mapped_len(p);

    for (unsigned i = 0; i < 16; i++) {
        if (len >= (i + 1) * 8)
            continue;
        m.addr.b[i] = len > i * 8 ? (uint8_t)(m.addr.b[i] & (0xff00 >> (len - i * 8))) : 0;
    }
    return m;
}

bool ip_prefix_equal(const struct ip_prefix *a, const struct ip_prefix *b)
{
    return a->len == b->len && ip_addr_equal(&a->addr, &b->addr);
}

bool ip_prefix_has(const struct ip_prefix *p, const struct ip_addr *a)
{
    struct ip_prefix x = {.addr = *a, .len = p->len};
    struct ip_prefix net = ip_prefix_mask(p);

    if (ip_addr_is_v4(a) != ip_addr_is_v4(&p->addr))
        return false;
    x = ip_prefix_mask(&x);
    return ip_addr_equal(&x.addr, &net.addr);
}

bool ip_prefix_overlaps(const struct ip_prefix *a, const struct ip_prefix *b)
{
    return a->len <= b->len ? ip_prefix_has(a, &b->addr) : ip_prefix_has(b, &a->addr);
}

uint64_t ip_prefix_size(const struct ip_prefix *p)
{
    unsigned host_bits = 128 - mapped_len(p);

    return host_bits >= 64 ? UINT64_MAX : (uint64_t)1 << host_bits;
}

bool ip_prefix_nth(const struct ip_prefix *p, uint64_t n, struct ip_addr *ret)
{
    struct ip_prefix net = ip_prefix_mask(p);
    struct be64 low;

    if (n >= ip_prefix_size(p))
        return false;
    memcpy(&low, net.addr.b + 8, sizeof(low));
    low = be64_make(be64_get(low) | n);
    memcpy(net.addr.b + 8, &low, sizeof(low));
    *ret = net.addr;
    return true;
}
