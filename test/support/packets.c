/* packets.c - see packets.h. */
#include "test/support/packets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v);
}

static uint32_t get16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

/* RFC 1071, one 16-bit word at a time. */
static uint32_t slow_sum(uint32_t sum, const uint8_t *p, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

static uint32_t pseudo_sum(const uint8_t *p, uint32_t l4_len)
{
    bool v6 = p[0] >> 4 == 6;
    uint32_t sum = v6 ? slow_sum(0, p + 8, 32) : slow_sum(0, p + 12, 8);

    return sum + (v6 ? p[6] : p[9]) + l4_len;
}

static uint32_t write_ip(struct test_flow *f, uint8_t *p, uint32_t l4_len)
{
    uint8_t proto = f->udp ? 17 : 6;

    if (f->v6) {
        memset(p, 0, 40);
        p[0] = (uint8_t)(0x60 | f->tos >> 4);
        p[1] = (uint8_t)(f->tos << 4);
        put16(p + 4, l4_len);
        p[6] = proto;
        p[7] = 64;
        p[8] = p[24] = 0xfd;
        p[23] = f->host;
        p[39] = 2;
        return 40;
    }
    memset(p, 0, 20);
    p[0] = 0x45;
    p[1] = f->tos;
    put16(p + 2, 20 + l4_len);
    put16(p + 4, f->id++);
    p[6] = 0x40;
    p[8] = 64;
    p[9] = proto;
    p[12] = p[16] = 10;
    p[15] = f->host;
    p[19] = 2;
    put16(p + 10, ~slow_sum(0, p, 20) & 0xffff);
    return 20;
}

static uint32_t write_l4(struct test_flow *f, uint8_t *l4, uint32_t payload, uint8_t flags)
{
    put16(l4, f->port);
    put16(l4 + 2, 5201);
    if (f->udp) {
        put16(l4 + 4, 8 + payload);
        put16(l4 + 6, 0);
        return 8;
    }
    memset(l4 + 4, 0, 16);
    put32(l4 + 4, f->seq);
    put32(l4 + 8, f->ack);
    l4[12] = f->timestamps ? 0x80 : 0x50;
    l4[13] = flags;
    put16(l4 + 14, 502);
    if (!f->timestamps)
        return 20;
    memcpy(l4 + 20, "\1\1\10\12tsvltsec", 12);
    return 32;
}

uint32_t test_packet(struct test_flow *f, uint32_t payload, uint8_t flags, uint8_t *ret)
{
    uint32_t l4_header = f->udp ? 8 : f->timestamps ? 32 : 20;
    uint32_t ip = write_ip(f, ret, l4_header + payload);
    uint8_t *l4 = ret + ip;
    uint32_t sum;

    (void)write_l4(f, l4, payload, flags);
    for (uint32_t i = 0; i < payload; i++)
        l4[l4_header + i] = (uint8_t)((f->seq + i) * 31 + ((f->seq + i) >> 8) + f->port);
    sum = ~slow_sum(pseudo_sum(ret, l4_header + payload), l4, l4_header + payload) & 0xffff;
    if (f->udp && sum == 0)
        sum = 0xffff;
    put16(l4 + (f->udp ? 6 : 16), sum);
    f->seq += payload;
    return ip + l4_header + payload;
}

uint32_t test_header_len(const uint8_t *p)
{
    uint32_t ip = p[0] >> 4 == 6 ? 40 : 20;
    uint8_t proto = ip == 40 ? p[6] : p[9];

    return ip + (proto == 17 ? 8 : (uint32_t)(p[ip + 12] >> 4) * 4);
}

void test_check(const uint8_t *p, uint32_t len)
{
    bool v6 = p[0] >> 4 == 6;
    uint32_t ip = v6 ? 40 : 20;
    uint8_t proto = v6 ? p[6] : p[9];

    if (v6) {
        assert_int_equal(get16(p + 4), len - 40);
    } else {
        assert_int_equal(get16(p + 2), len);
        assert_int_equal(slow_sum(0, p, 20), 0xffff);
    }
    if (proto == 17)
        assert_int_equal(get16(p + ip + 4), len - ip);
    assert_int_equal(slow_sum(pseudo_sum(p, len - ip), p + ip, len - ip), 0xffff);
}
