/* test-v6-cut.c - IPv6 packets in pieces, and put together again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "packet/icmp.h"
#include "wire/ip.h"

#define HEADER   IP_V6_HEADER
#define FRAGMENT 44

struct packet6 {
    uint8_t b[1500];
};

static struct packet6 make(uint32_t len, uint8_t next)
{
    struct packet6 p;

    for (uint32_t i = 0; i < sizeof(p.b); i++)
        p.b[i] = (uint8_t)(i * 7 + i / 251);
    p.b[0] = 0x60;
    be16_store(p.b + 4, (uint16_t)(len - HEADER));
    p.b[6] = next;
    return p;
}

/* Cuts, checks each piece, and puts the payload into @whole from the place that the piece names.
 * Return: how many pieces there were. */
static unsigned cut_all(const struct packet6 *p, uint32_t len, uint16_t mtu, uint8_t *whole)
{
    unsigned n = v6_cut_count(p->b, len, mtu);
    uint32_t end = 0;

    for (unsigned i = 0; i < n; i++) {
        uint8_t got[1500];
        uint32_t got_len = v6_cut(p->b, len, 0xabcd1234, i, n, got);
        uint16_t place = be16_load(got + HEADER + 2);
        struct ip_info ip;

        assert_true(got_len <= mtu);
        assert_int_equal(ip_parse(got, got_len, &ip), 0);
        assert_int_equal(ip.len, got_len);
        assert_true(ip.is_fragment);
        assert_memory_equal(got + 8, p->b + 8, 32);
        assert_int_equal(got[6], FRAGMENT);
        if (i + 1 < n)
            assert_int_equal((got_len - V6_CUT_HEADERS) % 8, 0);
        assert_int_equal(place & 1, i + 1 < n || (p->b[6] == FRAGMENT && (p->b[HEADER + 3] & 1)));
        if (i > 0)
            assert_int_equal(place & ~7u, end);
        end = (place & ~7u) + got_len - V6_CUT_HEADERS;
        memcpy(whole + (place & ~7u), got + V6_CUT_HEADERS, got_len - V6_CUT_HEADERS);
    }
    return n;
}

static void test_cut(void **state)
{
    static const uint32_t lengths[] = {1121, 1233, 1279, 1280};
    static const uint16_t mtus[] = {576, 1120, 1136, 1216};

    (void)state;
    for (size_t k = 0; k < 4; k++)
        for (size_t m = 0; m < 4; m++) {
            struct packet6 p = make(lengths[k], IP_PROTO_UDP);
            uint8_t whole[1500];

            if (lengths[k] <= mtus[m])
                continue;
            assert_int_equal(cut_all(&p, lengths[k], mtus[m], whole), mtus[m] == 576 ? 3 : 2);
            assert_memory_equal(whole, p.b + HEADER, lengths[k] - HEADER);
        }
}

/* What the kernel has cut to 1280 already keeps its name, and its pieces their places. */
static void test_cut_a_fragment(void **state)
{
    struct packet6 p = make(1280, FRAGMENT);
    uint8_t whole[4096], piece[1500];

    (void)state;
    p.b[HEADER] = IP_PROTO_UDP;
    be16_store(p.b + HEADER + 2, 1232 | 1);
    be32_store(p.b + HEADER + 4, 99);
    assert_int_equal(cut_all(&p, 1280, 1120, whole), 2);
    assert_memory_equal(whole + 1232, p.b + V6_CUT_HEADERS, 1280 - V6_CUT_HEADERS);
    (void)v6_cut(p.b, 1280, 5, 1, 2, piece);
    assert_int_equal(be32_load(piece + HEADER + 4), 99);
    assert_int_equal(piece[HEADER], IP_PROTO_UDP);
    /* The last of all. */
    be16_store(p.b + HEADER + 2, 1232);
    assert_int_equal(cut_all(&p, 1280, 1120, whole), 2);
}

static void test_left_alone(void **state)
{
    struct packet6 fits = make(1120, IP_PROTO_TCP);
    struct packet6 options = make(1280, 0);
    struct packet6 large = make(1500, IP_PROTO_UDP);

    (void)state;
    assert_int_equal(v6_cut_count(fits.b, 1120, 1120), 1);
    assert_int_equal(v6_cut_count(options.b, 1280, 1120), 1);
    /* Its sender is told so. The MTU may have changed since nobody was to be told anything. */
    assert_int_equal(v6_cut_count(large.b, 1500, 1400), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_a_fragment),
        cmocka_unit_test(test_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
