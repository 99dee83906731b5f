/* icmp.c - see icmp.h. */
#include "packet/icmp.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/ip.h"

#define ICMP_HEADER            8
#define ICMP_DEST_UNREACHABLE  3
#define ICMP_HOST_UNREACHABLE  1
#define ICMP_FRAG_NEEDED       4
#define ICMP_PROHIBITED        13
#define ICMP6_DEST_UNREACHABLE 1
#define ICMP6_PROHIBITED       1
#define ICMP6_ADDR_UNREACHABLE 3
#define ICMP6_PACKET_TOO_BIG   2
#define ICMP6_INFO_FIRST       128 /* types from here on are no errors */

/* RFC 1812 4.3.2.3: as much of the packet as fits 576 bytes; RFC 4443 2.4 c: the minimum MTU. */
#define ICMP_V4_MAX 576
#define ICMP_V6_MAX IP_V6_MTU_MIN

/** What a message says. */
struct icmp_word {
    uint8_t type;
    uint8_t code;
    uint16_t mtu; /* 0: it is not about that */
};

static bool is_v4_error(const uint8_t *p, const struct ip_info *ip)
{
    uint8_t type = p[ip->l4_off];

    /* Destination unreachable, source quench, redirect, time exceeded, parameter problem. */
    return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

static bool may_answer(const uint8_t *p, const struct ip_info *ip)
{
    bool has_type = ip->len > ip->l4_off;

    if (ip_addr_is_none(&ip->src) || (ip->version == 4 && ip->src.b[12] == 0))
        return false;
    if (ip->version == 4) {
        bool is_inner_fragment = (p[6] & 0x1f) != 0 || p[7] != 0;
        bool broadcast = ip->dst.b[12] >= 224 || ip->src.b[12] >= 224;

        return !is_inner_fragment && !broadcast &&
               !(ip->proto == IP_PROTO_ICMP && (!has_type || is_v4_error(p, ip)));
    }
    return ip->dst.b[0] != 0xff && ip->src.b[0] != 0xff &&
           !(ip->proto == IP_PROTO_ICMPV6 && (!has_type || p[ip->l4_off] < ICMP6_INFO_FIRST));
}

static size_t make_v4(
    const uint8_t *p, const struct ip_info *ip, const struct icmp_word *word, uint8_t *ret)
{
    size_t space = ICMP_V4_MAX - IP_V4_HEADER_MIN - ICMP_HEADER;
    size_t quoted = ip->len < space ? ip->len : space;
    size_t len = IP_V4_HEADER_MIN + ICMP_HEADER + quoted;
    uint8_t *icmp = ret + IP_V4_HEADER_MIN;

    memset(ret, 0, IP_V4_HEADER_MIN + ICMP_HEADER);
    ret[0] = 0x45;
    ret[1] = 0xc0; /* RFC 1812 4.3.2.5: precedence internetwork control */
    be16_store(ret + 2, (uint16_t)len);
    ret[8] = 64;
    ret[9] = IP_PROTO_ICMP;
    memcpy(ret + 12, p + 16, 4);
    memcpy(ret + 16, p + 12, 4);
    ip_v4_set_checksum(ret, IP_V4_HEADER_MIN);
    icmp[0] = word->type;
    icmp[1] = word->code;
    be16_store(icmp + 6, word->mtu); /* RFC 1191 section 4 */
    memcpy(icmp + ICMP_HEADER, p, quoted);
    be16_store(icmp + 2, (uint16_t)~ip_sum_fold(ip_sum_add(0, icmp, ICMP_HEADER + quoted)));
    return len;
}

static size_t make_v6(
    const uint8_t *p, const struct ip_info *ip, const struct icmp_word *word, uint8_t *ret)
{
    size_t space = ICMP_V6_MAX - IP_V6_HEADER - ICMP_HEADER;
    size_t quoted = ip->len < space ? ip->len : space;
    size_t icmp_len = ICMP_HEADER + quoted;
    uint8_t *icmp = ret + IP_V6_HEADER;
    uint64_t sum = ip_sum_pseudo(&ip->dst, &ip->src, IP_PROTO_ICMPV6, (uint32_t)icmp_len);

    memset(ret, 0, IP_V6_HEADER + ICMP_HEADER);
    ret[0] = 0x60;
    be16_store(ret + 4, (uint16_t)icmp_len);
    ret[6] = IP_PROTO_ICMPV6;
    ret[7] = 64;
    memcpy(ret + 8, p + 24, 16);
    memcpy(ret + 24, p + 8, 16);
    icmp[0] = word->type;
    icmp[1] = word->code;
    be16_store(icmp + 6, word->mtu); /* RFC 4443 3.2: the lower half of 32 bits */
    memcpy(icmp + ICMP_HEADER, p, quoted);
    be16_store(icmp + 2, (uint16_t)~ip_sum_fold(ip_sum_add(sum, icmp, icmp_len)));
    return IP_V6_HEADER + icmp_len;
}

size_t icmp_make(const uint8_t *p, size_t len, enum icmp_why why, uint16_t mtu,
    uint8_t ret[static ICMP_MESSAGE_MAX])
{
    static const struct icmp_word v4[] = {
        [ICMP_NO_ROUTE] = {ICMP_DEST_UNREACHABLE, ICMP_HOST_UNREACHABLE, 0},
        [ICMP_TOO_BIG] = {ICMP_DEST_UNREACHABLE, ICMP_FRAG_NEEDED, 0},
        [ICMP_REFUSED] = {ICMP_DEST_UNREACHABLE, ICMP_PROHIBITED, 0},
    };
    static const struct icmp_word v6[] = {
        [ICMP_NO_ROUTE] = {ICMP6_DEST_UNREACHABLE, ICMP6_ADDR_UNREACHABLE, 0},
        [ICMP_TOO_BIG] = {ICMP6_PACKET_TOO_BIG, 0, 0},
        [ICMP_REFUSED] = {ICMP6_DEST_UNREACHABLE, ICMP6_PROHIBITED, 0},
    };
    struct icmp_word word;
    struct ip_info ip;

    if (ip_parse(p, len, &ip) != 0 || !may_answer(p, &ip))
        return 0;
    word = ip.version == 6 ? v6[why] : v4[why];
    word.mtu = mtu;
    if (ip.version == 6)
        return make_v6(p, &ip, &word, ret);
    return why == ICMP_TOO_BIG && ip_v4_may_fragment(p) ? 0 : make_v4(p, &ip, &word, ret);
}

/* ---- cutting IPv6 packets; section numbers are those of RFC 8200 ---- */

/* 4.5: the fragment header: next header, zero, offset in units of 8 with M in the lowest bit, id */
#define FRAGMENT_HEADER 8
#define OFF_NEXT        6 /* in the IPv6 header */
#define MORE            1
#define UNIT            8

#define HOP_BY_HOP  0
#define ROUTING     43
#define FRAGMENT    44
#define DESTINATION 60

_Static_assert(V6_CUT_HEADERS == IP_V6_HEADER + FRAGMENT_HEADER, "both headers");

/* Bytes of headers before what is shared out. */
static uint32_t headers_of(const uint8_t *p)
{
    return p[OFF_NEXT] == FRAGMENT ? V6_CUT_HEADERS : IP_V6_HEADER;
}

unsigned v6_cut_count(const uint8_t *p, uint32_t len, uint16_t mtu)
{
    uint32_t most = (uint32_t)(mtu - V6_CUT_HEADERS) / UNIT * UNIT;
    uint8_t next = p[OFF_NEXT];

    if (len <= mtu || mtu >= IP_V6_MTU_MIN || next == HOP_BY_HOP || next == ROUTING ||
        next == DESTINATION || len <= headers_of(p))
        return 1;
    return (len - headers_of(p) + most - 1) / most;
}

uint32_t v6_cut(const uint8_t *p, uint32_t len, uint32_t id, unsigned i, unsigned n, uint8_t *dst)
{
    bool is_fragment = p[OFF_NEXT] == FRAGMENT;
    uint32_t from = headers_of(p);
    /* All shares but the last have as many bytes: a multiple of UNIT. */
    uint32_t share = ((len - from + n - 1) / n + UNIT - 1) / UNIT * UNIT;
    uint32_t off = i * share;
    uint32_t here = i + 1 < n ? share : len - from - off;
    uint8_t *fragment = dst + IP_V6_HEADER;
    /* What the packet itself has, where it is a fragment: its place, and whether others follow. */
    uint16_t place = is_fragment ? be16_load(p + IP_V6_HEADER + 2) : 0;

    memcpy(dst, p, IP_V6_HEADER);
    be16_store(dst + 4, (uint16_t)(FRAGMENT_HEADER + here));
    dst[OFF_NEXT] = FRAGMENT;
    fragment[0] = is_fragment ? p[IP_V6_HEADER] : p[OFF_NEXT];
    fragment[1] = 0;
    if (i + 1 < n)
        place |= MORE;
    /* Offsets are units of 8 in the upper 13 bits, so bytes, which are such multiples, add. */
    be16_store(fragment + 2, (uint16_t)(place + off));
    be32_store(fragment + 4, is_fragment ? be32_load(p + IP_V6_HEADER + 4) : id);
    memcpy(fragment + FRAGMENT_HEADER, p + from + off, here);
    return V6_CUT_HEADERS + here;
}
