/* v6_cut.c - see v6_cut.h. Section numbers are those of RFC 8200. */
#include "packet/v6_cut.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/ip.h"

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

/* All shares but the last have as many bytes: a multiple of UNIT. */
static uint32_t share_of(uint32_t payload, unsigned n)
{
    return (payload / n + (payload % n != 0) + UNIT - 1) / UNIT * UNIT;
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
    uint32_t share = share_of(len - from, n);
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
