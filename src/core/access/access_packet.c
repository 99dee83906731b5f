/* access_packet.c - see access_packet.h. */
#include "access/access_packet.h"

#include <string.h>

#include "base/bytes.h"

_Static_assert(sizeof(struct access_key) == 40, "no padding: it is hashed and compared whole");

/* Next headers (RFC 8200 section 4, RFC 4302). */
#define HOP_BY_HOP     0
#define ROUTING        43
#define FRAGMENT       44
#define AUTHENTICATION 51
#define DESTINATION    60

/* More extension headers than any stack sends. */
#define EXTENSIONS_MAX 8

#define FRAGMENT_HEADER 8
#define FRAGMENT_UNIT   8
#define V4_MORE         0x2000
#define V4_OFFSET_MASK  0x1fff
#define V6_MORE         1

#define TCP_HEADER    20
#define UDP_HEADER    8
#define ICMP_HEADER   8
#define TCP_OFF_FLAGS 13
#define TCP_FLAG_FIN  0x01
#define TCP_FLAG_SYN  0x02
#define TCP_FLAG_RST  0x04
#define TCP_FLAG_ACK  0x10
#define ICMP_OFF_ID   4
#define ICMP_REPLY    0
#define ICMP_REQUEST  8
#define ICMP6_REQUEST 128
#define ICMP6_REPLY   129

/** Where the payload of IP begins, behind all extension headers, and of what fragment. */
struct payload {
    size_t off;
    uint8_t protocol;
    bool is_fragment;
    uint32_t fragment_off; /* bytes */
    uint32_t fragment_id;
};

static bool find_v4(struct payload *ret, const uint8_t *p, const struct ip_info *ip)
{
    uint16_t word = be16_load(p + 6);

    *ret = (struct payload){.off = ip->l4_off, .protocol = ip->proto};
    ret->is_fragment = ip->is_fragment;
    ret->fragment_off = (uint32_t)(word & V4_OFFSET_MASK) * FRAGMENT_UNIT;
    ret->fragment_id = be16_load(p + 4);
    return true;
}

/* False: a header is cut off, or there are too many. */
static bool find_v6(struct payload *ret, const uint8_t *p, size_t len, uint8_t next, size_t off)
{
    *ret = (struct payload){.off = off, .protocol = next};
    for (unsigned i = 0; i < EXTENSIONS_MAX; i++) {
        const uint8_t *h = p + ret->off;

        next = ret->protocol;
        if (next != HOP_BY_HOP && next != ROUTING && next != FRAGMENT && next != AUTHENTICATION &&
            next != DESTINATION)
            return true;
        if (len < ret->off + FRAGMENT_HEADER)
            return false;
        ret->protocol = h[0];
        if (next == FRAGMENT) {
            uint16_t word = be16_load(h + 2);

            ret->off += FRAGMENT_HEADER;
            ret->fragment_off = word & ~7u;
            ret->fragment_id = be32_load(h + 4);
            /* One that is alone is a whole datagram (RFC 6946). */
            ret->is_fragment = ret->fragment_off != 0 || (word & V6_MORE) != 0;
            /* What follows in a later one is no header. */
            if (ret->fragment_off != 0)
                return true;
        } else if (next == AUTHENTICATION) {
            ret->off += ((size_t)h[1] + 2) * 4;
        } else {
            ret->off += ((size_t)h[1] + 1) * 8;
        }
    }
    return false;
}

static void set_ends(struct access_key *key, const struct ip_addr *src, const struct ip_addr *dst,
    enum access_way way)
{
    key->local = way == ACCESS_OUT ? *src : *dst;
    key->remote = way == ACCESS_OUT ? *dst : *src;
}

static void set_ports(struct access_key *key, const uint8_t *l4, enum access_way way)
{
    key->local_port = be16_load(l4 + (way == ACCESS_OUT ? 0 : 2));
    key->remote_port = be16_load(l4 + (way == ACCESS_OUT ? 2 : 0));
}

/* False: it is neither question nor answer. */
static bool set_echo(struct access_key *key, const uint8_t *l4, bool v4, enum access_way way)
{
    bool asks = l4[0] == (v4 ? ICMP_REQUEST : ICMP6_REQUEST);

    if (!asks && l4[0] != (v4 ? ICMP_REPLY : ICMP6_REPLY))
        return false;
    key->local_port = be16_load(l4 + ICMP_OFF_ID);
    key->remote_port = asks == (way == ACCESS_OUT) ? ACCESS_ASKED_BY_US : ACCESS_ASKED_BY_THEM;
    return true;
}

static bool is_own_icmp(uint8_t protocol, bool v4)
{
    return protocol == (v4 ? IP_PROTO_ICMP : IP_PROTO_ICMPV6);
}

/* Destination unreachable, source quench, time exceeded, parameter problem (RFC 792); all below 128
 * (RFC 4443 2.1). A redirect has no use in a tunnel. */
static bool is_error(uint8_t type, bool v4)
{
    return v4 ? type == 3 || type == 4 || type == 11 || type == 12 : type < ICMP6_REQUEST;
}

/* The connection of the packet that an ICMP error quotes, which went the other way. Nothing is set
 * when it cannot be told. */
static void read_quoted(
    struct access_key *ret, const uint8_t *p, size_t len, bool v4, enum access_way way)
{
    enum access_way its_way = way == ACCESS_OUT ? ACCESS_IN : ACCESS_OUT;
    struct access_key key = {.zero = {0}};
    struct ip_addr src, dst;
    struct ip_info ip = {0};
    struct payload in;
    const uint8_t *l4;

    if (len < (size_t)(v4 ? IP_V4_HEADER_MIN : IP_V6_HEADER) || p[0] >> 4 != (v4 ? 4 : 6))
        return;
    src = v4 ? ip_addr_v4(p + 12) : ip_addr_v6(p + 8);
    dst = v4 ? ip_addr_v4(p + 16) : ip_addr_v6(p + 24);
    if (v4) {
        ip.l4_off = (uint16_t)((p[0] & 15) * 4);
        ip.proto = p[9];
        (void)find_v4(&in, p, &ip);
    } else if (!find_v6(&in, p, len, p[6], IP_V6_HEADER)) {
        return;
    }
    /* Only the first fragment has ports, and RFC 792 quotes eight bytes behind the header. */
    if (in.off < (size_t)(v4 ? IP_V4_HEADER_MIN : IP_V6_HEADER) || len < in.off + ICMP_HEADER ||
        in.fragment_off != 0)
        return;
    l4 = p + in.off;
    set_ends(&key, &src, &dst, its_way);
    key.protocol = in.protocol;
    if (in.protocol == IP_PROTO_TCP || in.protocol == IP_PROTO_UDP)
        set_ports(&key, l4, its_way);
    else if (is_own_icmp(in.protocol, v4) && !set_echo(&key, l4, v4, its_way))
        return;
    *ret = key;
}

static void read_tcp(struct access_packet *ret, const uint8_t *l4)
{
    uint8_t flags = l4[TCP_OFF_FLAGS];

    ret->begins = (flags & (TCP_FLAG_SYN | TCP_FLAG_ACK | TCP_FLAG_RST)) == TCP_FLAG_SYN;
    ret->ends = (flags & TCP_FLAG_FIN) != 0;
    ret->resets = (flags & TCP_FLAG_RST) != 0;
}

/* How much of its header a protocol's first fragment has to have. */
static size_t header_of(uint8_t protocol, bool v4)
{
    if (protocol == IP_PROTO_TCP)
        return TCP_HEADER;
    if (protocol == IP_PROTO_UDP)
        return UDP_HEADER;
    return is_own_icmp(protocol, v4) ? ICMP_HEADER : 0;
}

/* Behind the headers of IP there are @len bytes. */
static void read_payload(struct access_packet *ret, const uint8_t *l4, size_t len, bool v4)
{
    uint8_t protocol = ret->key.protocol;

    ret->is_connected = true;
    if (protocol == IP_PROTO_TCP || protocol == IP_PROTO_UDP) {
        set_ports(&ret->key, l4, ret->way);
        ret->port = be16_load(l4 + 2);
        if (protocol == IP_PROTO_TCP)
            read_tcp(ret, l4);
    } else if (is_own_icmp(protocol, v4)) {
        ret->is_connected = set_echo(&ret->key, l4, v4, ret->way);
        if (is_error(l4[0], v4))
            read_quoted(&ret->related, l4 + ICMP_HEADER, len - ICMP_HEADER, v4, ret->way);
    }
}

void access_packet_read(struct access_packet *ret, const uint8_t *p, size_t len,
    const struct ip_info *ip, enum access_way way)
{
    bool v4 = ip->version == 4;
    struct payload in;
    size_t header;

    *ret = (struct access_packet){.kind = ACCESS_PACKET_BROKEN, .way = way};
    set_ends(&ret->key, &ip->src, &ip->dst, way);
    ret->key.protocol = ip->proto;
    if (len > ip->len)
        len = ip->len;
    if (v4 ? !find_v4(&in, p, ip) : !find_v6(&in, p, len, ip->proto, ip->l4_off))
        return;
    ret->key.protocol = in.protocol;
    ret->is_icmp = in.protocol == IP_PROTO_ICMP || in.protocol == IP_PROTO_ICMPV6;
    ret->fragment_id = in.fragment_id;
    header = header_of(in.protocol, v4);
    if (in.fragment_off != 0) {
        /* Its bytes would come in the place of the first one's header. */
        if (in.fragment_off >= header)
            ret->kind = ACCESS_PACKET_FOLLOWING;
        return;
    }
    if (len < in.off + header)
        return;
    ret->kind = in.is_fragment ? ACCESS_PACKET_FIRST : ACCESS_PACKET_WHOLE;
    read_payload(ret, p + in.off, len - in.off, v4);
}
