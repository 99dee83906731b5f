/* test-wire.c - message sizes, inner headers, ECN and checksums, a line per case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "wire/ip.h"
#include "wire/wg.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static void test_type(void **state)
{
    static const struct {
        uint8_t head[4];
        size_t len;
        unsigned type; /* 0: refused */
    } cases[] = {
        {{1}, 148, WG_TYPE_INITIATION},
        {{1}, 147, 0},
        {{1}, 149, 0},
        {{2}, 92, WG_TYPE_RESPONSE},
        {{2}, 148, 0},
        {{3}, 64, WG_TYPE_COOKIE_REPLY},
        {{3}, 63, 0},
        {{4}, 32, WG_TYPE_DATA},
        {{4}, 31, 0},
        {{4}, 1500, WG_TYPE_DATA},
        {{4, 0, 0, 1}, 1500, 0}, /* the reserved bytes are zero */
        {{4, 1, 0, 0}, 1500, 0},
        {{0}, 148, 0},
        {{5}, 148, 0},
        {{0x80}, 148, 0},
        {{1}, 3, 0},
        {{1}, 0, 0},
    };
    uint8_t buf[1500] = {0};

    for (size_t i = 0; i < COUNT(cases); i++) {
        memcpy(buf, cases[i].head, 4);
        assert_int_equal(wg_type_of(buf, cases[i].len), cases[i].type);
    }
}

static void test_padding(void **state)
{
    static const struct {
        size_t len, mtu, padded;
    } cases[] = {
        {0, 1420, 0}, {1, 1420, 16}, {16, 1420, 16}, {17, 1420, 32}, {1408, 1420, 1408},
        {1409, 1420, 1420},                     /* not above the MTU */
        {1420, 1420, 1420}, {1421, 1420, 1424}, /* the MTU was lowered meanwhile */
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(wg_padded(cases[i].len, cases[i].mtu), cases[i].padded);
}

/* 10.0.0.1 to 10.0.0.2, UDP 1000 to 2000, two bytes. */
static const uint8_t v4_udp[] = {0x45, 0x02, 0, 30, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0,
    2, 0x03, 0xe8, 0x07, 0xd0, 0, 10, 0, 0, 'h', 'i'};

/* fd00::1 to fd00::2, TCP, traffic class 0xb9. */
static const uint8_t v6_tcp[60] = {0x6b, 0x90, 0, 0, 0, 20, 6, 64,
    0xfd, [23] = 1, [24] = 0xfd, [39] = 2, [40] = 0x03, [41] = 0xe8, [42] = 0x07, [43] = 0xd0};

static void test_parse_fields(void **state)
{
    struct ip_info info;

    assert_int_equal(ip_parse(v4_udp, sizeof(v4_udp), &info), 0);
    assert_int_equal(info.version, 4);
    assert_int_equal(info.tos, 2);
    assert_int_equal(info.proto, IP_PROTO_UDP);
    assert_int_equal(info.l4_off, 20);
    assert_int_equal(info.len, 30);
    assert_false(info.is_fragment);
    assert_true(ip_addr_is_v4(&info.src));
    assert_int_equal(info.src.b[15], 1);
    assert_int_equal(info.dst.b[15], 2);

    assert_int_equal(ip_parse(v6_tcp, sizeof(v6_tcp), &info), 0);
    assert_int_equal(info.version, 6);
    assert_int_equal(info.tos, 0xb9);
    assert_int_equal(info.proto, IP_PROTO_TCP);
    assert_int_equal(info.l4_off, 40);
    assert_int_equal(info.len, 60);
    assert_int_equal(info.dst.b[0], 0xfd);
    assert_int_equal(info.dst.b[15], 2);
}

/* "More fragments" or an offset makes one; "don't fragment" does not. */
static void test_fragments(void **state)
{
    static const struct {
        uint8_t bytes[2];
        bool is_fragment;
    } cases[] = {{{0, 0}, false}, {{0x40, 0}, false}, {{0x80, 0}, false}, {{0x20, 0}, true},
        {{0, 1}, true}, {{0x01, 0}, true}, {{0x10, 0}, true}};
    uint8_t p4[sizeof(v4_udp)];
    uint8_t p6[sizeof(v6_tcp)];
    struct ip_info info;

    memcpy(p4, v4_udp, sizeof(p4));
    for (size_t i = 0; i < COUNT(cases); i++) {
        memcpy(p4 + 6, cases[i].bytes, 2);
        assert_int_equal(ip_parse(p4, sizeof(p4), &info), 0);
        assert_int_equal(info.is_fragment, cases[i].is_fragment);
    }
    memcpy(p6, v6_tcp, sizeof(p6));
    assert_int_equal(ip_parse(p6, sizeof(p6), &info), 0);
    assert_false(info.is_fragment);
    p6[6] = 44;
    assert_int_equal(ip_parse(p6, sizeof(p6), &info), 0);
    assert_true(info.is_fragment);
}

/* One byte of a good packet changed, and how many of its bytes there are. */
static void test_parse_refuses(void **state)
{
    static const struct {
        const uint8_t *packet;
        size_t off;
        uint8_t value;
        size_t len;
        int expected;
    } cases[] = {
        {v4_udp, 0, 0x45, 30, 0},
        {v4_udp, 0, 0x45, 29, IP_E_LENGTH}, /* shorter than it says */
        {v4_udp, 0, 0x45, 19, IP_E_LENGTH},
        {v4_udp, 0, 0x45, 0, IP_E_NOT_IP},
        {v4_udp, 0, 0x44, 30, IP_E_LENGTH}, /* a header of 16 bytes */
        {v4_udp, 0, 0x4f, 30, IP_E_LENGTH}, /* a header of 60, longer than the packet */
        {v4_udp, 0, 0x47, 30, 0},
        {v4_udp, 0, 0x55, 30, IP_E_NOT_IP},
        {v4_udp, 0, 0x00, 30, IP_E_NOT_IP},
        {v4_udp, 3, 20, 30, 0}, /* padding behind it */
        {v4_udp, 3, 19, 30, IP_E_LENGTH},
        {v4_udp, 3, 31, 30, IP_E_LENGTH},
        {v6_tcp, 0, 0x6b, 60, 0},
        {v6_tcp, 0, 0x6b, 59, IP_E_LENGTH},
        {v6_tcp, 0, 0x6b, 39, IP_E_LENGTH},
        {v6_tcp, 5, 0, 60, 0},
        {v6_tcp, 5, 21, 60, IP_E_LENGTH},
        {v6_tcp, 4, 1, 60, IP_E_LENGTH},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ip_info info = {.len = 12345};
        uint8_t buf[64] = {0};
        int r;

        memcpy(buf, cases[i].packet, cases[i].len);
        if (cases[i].len)
            buf[cases[i].off] = cases[i].value;
        r = ip_parse(buf, cases[i].len, &info);
        if (r != cases[i].expected)
            fail_msg("case %zu: %d instead of %d", i, r, cases[i].expected);
        if (r != 0)
            assert_int_equal(info.len, 12345);
    }
}

static void test_ecn(void **state)
{
    /* RFC 6040 figure 4: [inner][outer]; the kernel lets Not-ECT under CE pass. */
    static const uint8_t decapsulated[4][4] = {
        [IP_ECN_NOT_ECT] = {IP_ECN_NOT_ECT, IP_ECN_NOT_ECT, IP_ECN_NOT_ECT, IP_ECN_NOT_ECT},
        [IP_ECN_ECT1] = {IP_ECN_ECT1, IP_ECN_ECT1, IP_ECN_ECT1, IP_ECN_CE},
        [IP_ECN_ECT0] = {IP_ECN_ECT0, IP_ECN_ECT1, IP_ECN_ECT0, IP_ECN_CE},
        [IP_ECN_CE] = {IP_ECN_CE, IP_ECN_CE, IP_ECN_CE, IP_ECN_CE},
    };

    assert_int_equal(ip_ecn_encapsulate(0xb8), IP_ECN_NOT_ECT);
    assert_int_equal(ip_ecn_encapsulate(0xb8 | IP_ECN_ECT0), IP_ECN_ECT0);
    assert_int_equal(ip_ecn_encapsulate(IP_ECN_ECT1), IP_ECN_ECT1);
    assert_int_equal(ip_ecn_encapsulate(IP_ECN_CE), IP_ECN_ECT0);
    for (uint8_t inner = 0; inner < 4; inner++) {
        for (uint8_t outer = 0; outer < 4; outer++) {
            struct ip_info info;
            uint8_t p4[sizeof(v4_udp)];
            uint8_t p6[sizeof(v6_tcp)];

            memcpy(p4, v4_udp, sizeof(p4));
            p4[1] = (uint8_t)(0xb8 | inner);
            ip_v4_set_checksum(p4, 20);
            ip_ecn_decapsulate(p4, (uint8_t)(0xfc | outer));
            assert_int_equal(p4[1], 0xb8 | decapsulated[inner][outer]);
            /* A header with a right checksum sums to all ones. */
            assert_int_equal(ip_sum_fold(ip_sum_add(0, p4, 20)), 0xffff);

            memcpy(p6, v6_tcp, sizeof(p6));
            p6[1] = (uint8_t)(0x8a | inner << 4);
            p6[2] = 0xbc;
            ip_ecn_decapsulate(p6, outer);
            /* The rest of the class, and the flow label, stay as they were. */
            assert_int_equal(p6[0], 0x6b);
            assert_int_equal(p6[1], 0x8a | decapsulated[inner][outer] << 4);
            assert_int_equal(p6[2], 0xbc);
            assert_int_equal(ip_parse(p6, sizeof(p6), &info), 0);
            assert_int_equal(info.tos, 0xb8 | decapsulated[inner][outer]);
        }
    }
}

static void test_checksum(void **state)
{
    /* RFC 1071 section 3. */
    static const uint8_t rfc1071[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    /* A well-known IPv4 header, whose checksum is b1e6. */
    uint8_t header[] = {0x45, 0, 0, 0x3c, 0x1c, 0x46, 0x40, 0, 0x40, 0x06, 0, 0, 0xac, 0x10, 0x0a,
        0x63, 0xac, 0x10, 0x0a, 0x0c};
    struct ip_info info;
    uint64_t seed = 1;
    struct rng rng = rng_seeded(&seed);
    uint64_t sum;

    assert_int_equal(ip_sum_fold(ip_sum_add(0, rfc1071, sizeof(rfc1071))), 0xddf2);
    ip_v4_set_checksum(header, sizeof(header));
    assert_int_equal(header[10] << 8 | header[11], 0xb1e6);

    /* UDP over the pseudo header, both families: by hand, 16 bits at a time. */
    assert_int_equal(ip_parse(v4_udp, sizeof(v4_udp), &info), 0);
    sum = ip_sum_pseudo(&info.src, &info.dst, IP_PROTO_UDP, 10);
    assert_int_equal(ip_sum_fold(sum), 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 17 + 10);
    assert_int_equal(ip_parse(v6_tcp, sizeof(v6_tcp), &info), 0);
    sum = ip_sum_pseudo(&info.src, &info.dst, IP_PROTO_TCP, 20);
    assert_int_equal(ip_sum_fold(sum), (0xfd00 + 1 + 0xfd00 + 2 + 6 + 20) % 0xffff);

    /* In pieces of even length the sum is the same: whole vectors, words and what is left. */
    for (unsigned i = 0; i < 2000; i++) {
        uint8_t buf[1500];
        size_t len = rng_u32(&rng) % (i % 2 ? 65 : sizeof(buf) + 1);
        size_t cut = len ? rng_u32(&rng) % len & ~(size_t)1 : 0;
        uint32_t slow = 0;

        rng_fill(&rng, buf, sizeof(buf));
        for (size_t k = 0; k < len; k++)
            slow += k % 2 ? buf[k] : (uint32_t)buf[k] << 8;
        while (slow >> 16)
            slow = (slow & 0xffff) + (slow >> 16);
        sum = ip_sum_add(ip_sum_add(0, buf, cut), buf + cut, len - cut);
        assert_int_equal(ip_sum_fold(sum), slow);
    }
}

/* The checksum of an ICMP message of @len bytes. */
static void set_sum(uint8_t *p, size_t len)
{
    uint16_t sum;

    p[2] = p[3] = 0;
    sum = (uint16_t)~ip_sum_fold(ip_sum_add(0, p, len));
    p[2] = (uint8_t)(sum >> 8);
    p[3] = (uint8_t)sum;
}

/* A request byte for byte, and which bytes are taken for its answer. */
static void test_echo(void **state)
{
    const struct echo asked = {.id = 0x1234, .seq = 0x5678, .index = 0x9abcdef0, .cookie = 7};
    static const uint8_t begins[2][2] = {{128, 0}, {8, 0}};
    static const uint8_t answers[2] = {129, 0};

    for (unsigned v4 = 0; v4 < 2; v4++) {
        struct echo got = {.id = 1};
        uint8_t p[ECHO_LEN];

        echo_encode(&asked, v4, p);
        assert_memory_equal(p, begins[v4], 2);
        assert_memory_equal(p + 4, "\x12\x34\x56\x78\x9a\xbc\xde\xf0", 8);
        assert_memory_equal(p + 12, &asked.cookie, 8);
        assert_int_equal(
            v4 ? ip_sum_fold(ip_sum_add(0, p, sizeof(p))) : p[2] | p[3], v4 ? 0xffff : 0);
        /* A request is no answer. */
        assert_false(echo_decode(&got, v4, p, sizeof(p)));
        p[0] = answers[v4];
        /* Over IPv4 its checksum counts, which the kernel looks at over IPv6. */
        assert_int_equal(echo_decode(&got, v4, p, sizeof(p)), !v4);
        if (v4)
            set_sum(p, sizeof(p));
        assert_false(echo_decode(&got, v4, p, sizeof(p) - 1));
        assert_true(echo_decode(&got, v4, p, sizeof(p)));
        assert_int_equal(got.id, asked.id);
        assert_int_equal(got.seq, asked.seq);
        assert_int_equal(got.index, asked.index);
        assert_int_equal(got.cookie, asked.cookie);
        assert_false(echo_decode(&got, !v4, p, sizeof(p)));
        p[1] = 1;
        assert_false(echo_decode(&got, false, p, sizeof(p)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_type),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_parse_fields),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_parse_refuses),
        cmocka_unit_test(test_ecn),
        cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_echo),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
