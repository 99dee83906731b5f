/* inner_packet.c - see inner_packet.h. */
#include "test/support/inner_packet.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define V4_HEADER   20
#define V6_HEADER   40
#define EXTENSION   8
#define DESTINATION 60
#define FRAGMENT    44

static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v & 0xffff);
}

/* TCP, UDP or ICMP, or nothing of another protocol. */
static size_t put_payload(const struct inner_packet *of, uint8_t *p)
{
    size_t header = of->protocol == 6 ? 20 : 8;

    if (of->offset == 0 && (of->protocol == 6 || of->protocol == 17)) {
        put16(p, of->from_port);
        put16(p + 2, of->to_port);
        if (of->protocol == 6) {
            p[12] = 5 << 4;
            p[13] = of->flags;
        }
    } else if (of->offset == 0 && (of->protocol == 1 || of->protocol == 58)) {
        p[0] = of->type;
        put16(p + 4, of->id);
    }
    if (of->n_quoted > 0)
        memcpy(p + header, of->quoted, of->n_quoted);
    return header + of->payload + of->n_quoted;
}

static size_t make_v4(const struct inner_packet *of, uint8_t *p)
{
    size_t len = V4_HEADER + put_payload(of, p + V4_HEADER) - of->cut;

    p[0] = 0x45;
    put16(p + 2, (unsigned)len);
    put16(p + 4, of->datagram);
    put16(p + 6, (of->has_more ? 0x2000u : 0) | of->offset / 8u);
    p[8] = 64;
    p[9] = of->protocol;
    assert_int_equal(inet_pton(AF_INET, of->src, p + 12), 1);
    assert_int_equal(inet_pton(AF_INET, of->dst, p + 16), 1);
    return len;
}

static size_t make_v6(const struct inner_packet *of, uint8_t *p)
{
    uint8_t *next = p + 6; /* where the number of the next header belongs */
    size_t len = V6_HEADER;

    p[0] = 0x60;
    p[7] = 64;
    if (of->is_fragment) {
        *next = FRAGMENT;
        next = p + len;
        put16(p + len + 2, of->offset | (of->has_more ? 1u : 0));
        put32(p + len + 4, of->datagram);
        len += EXTENSION;
    }
    for (unsigned i = 0; i < of->n_extended; i++) {
        *next = DESTINATION;
        next = p + len;
        len += EXTENSION;
    }
    *next = of->protocol;
    len += put_payload(of, p + len);
    len -= of->cut;
    put16(p + 4, (unsigned)(len - V6_HEADER));
    assert_int_equal(inet_pton(AF_INET6, of->src, p + 8), 1);
    assert_int_equal(inet_pton(AF_INET6, of->dst, p + 24), 1);
    return len;
}

size_t inner_packet_make(const struct inner_packet *of, uint8_t ret[static INNER_PACKET_MAX])
{
    memset(ret, 0, INNER_PACKET_MAX);
    return strchr(of->src, ':') ? make_v6(of, ret) : make_v4(of, ret);
}
