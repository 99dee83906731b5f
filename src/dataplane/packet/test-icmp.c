/* test-icmp.c - which packets are answered with "unreachable", and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "packet/icmp.h"
#include "test/support/packets.h"
#include "wire/ip.h"

static void test_v4(void **state)
{
    struct test_flow f = {.port = 5, .host = 7};
    uint8_t p[TEST_PACKET_MAX], out[ICMP_MESSAGE_MAX];
    uint32_t len = test_packet(&f, 1000, 0x10, p);
    struct ip_info ip;
    size_t n = icmp_make(p, len, ICMP_NO_ROUTE, 0, out);

    assert_int_equal(n, 576);
    assert_int_equal(ip_parse(out, n, &ip), 0);
    assert_int_equal(ip.proto, IP_PROTO_ICMP);
    assert_memory_equal(out + 12, p + 16, 4);
    assert_memory_equal(out + 16, p + 12, 4);
    assert_int_equal(out[20], 3);
    assert_int_equal(out[21], 1);
    assert_int_equal(ip_sum_fold(ip_sum_add(0, out + 20, n - 20)), 0xffff);
    assert_int_equal(ip_sum_fold(ip_sum_add(0, out, 20)), 0xffff);
    assert_memory_equal(out + 28, p, n - 28);
    /* Never an error about an error. */
    assert_int_equal(icmp_make(out, n, ICMP_NO_ROUTE, 0, p), 0);
    /* Nor to or about a group, nor about the later parts of a packet. */
    len = test_packet(&f, 100, 0x10, p);
    p[16] = 224;
    assert_int_equal(icmp_make(p, len, ICMP_NO_ROUTE, 0, out), 0);
    p[16] = 10;
    p[7] = 1;
    assert_int_equal(icmp_make(p, len, ICMP_NO_ROUTE, 0, out), 0);
}

static void test_v6(void **state)
{
    struct test_flow f = {.port = 5, .host = 7, .v6 = true, .udp = true};
    uint8_t p[TEST_PACKET_MAX], out[ICMP_MESSAGE_MAX];
    uint32_t len = test_packet(&f, 1400, 0, p);
    struct ip_info ip;
    size_t n = icmp_make(p, len, ICMP_NO_ROUTE, 0, out);
    uint64_t sum;

    assert_int_equal(n, 1280);
    assert_int_equal(ip_parse(out, n, &ip), 0);
    assert_int_equal(ip.proto, IP_PROTO_ICMPV6);
    assert_memory_equal(out + 8, p + 24, 16);
    assert_memory_equal(out + 24, p + 8, 16);
    assert_int_equal(out[40], 1);
    assert_int_equal(out[41], 3);
    sum = ip_sum_pseudo(&ip.src, &ip.dst, IP_PROTO_ICMPV6, (uint32_t)n - 40);
    assert_int_equal(ip_sum_fold(ip_sum_add(sum, out + 40, n - 40)), 0xffff);
    assert_int_equal(icmp_make(out, n, ICMP_NO_ROUTE, 0, p), 0);
}

static void test_too_big(void **state)
{
    struct test_flow f = {.port = 5, .host = 7};
    struct test_flow g = {.port = 5, .host = 7, .v6 = true};
    uint8_t p[TEST_PACKET_MAX], out[ICMP_MESSAGE_MAX];
    uint32_t len = test_packet(&f, 3000, 0x10, p);
    size_t n = icmp_make(p, len, ICMP_TOO_BIG, 1408, out);

    assert_int_equal(n, 576);
    assert_int_equal(out[20], 3);
    assert_int_equal(out[21], 4);
    assert_int_equal(out[26] << 8 | out[27], 1408);
    assert_int_equal(ip_sum_fold(ip_sum_add(0, out + 20, n - 20)), 0xffff);
    /* With DF clear it would have been fragmented. */
    p[6] = 0;
    assert_int_equal(icmp_make(p, len, ICMP_TOO_BIG, 1408, out), 0);

    len = test_packet(&g, 3000, 0x10, p);
    n = icmp_make(p, len, ICMP_TOO_BIG, 1408, out);
    assert_int_equal(n, 1280);
    assert_int_equal(out[40], 2);
    assert_int_equal(out[41], 0);
    assert_memory_equal(out + 44, "\0\0\5\200", 4);
    assert_memory_equal(out + 48, p, n - 48);
    /* Never an error about an error. */
    assert_int_equal(icmp_make(out, n, ICMP_TOO_BIG, 1280, p), 0);
}

/* Also where DF is clear: it would not pass in pieces either. */
static void test_refused(void **state)
{
    struct test_flow f = {.port = 5, .host = 7};
    struct test_flow g = {.port = 5, .host = 7, .v6 = true};
    uint8_t p[TEST_PACKET_MAX], out[ICMP_MESSAGE_MAX];
    uint32_t len = test_packet(&f, 100, 0x10, p);

    p[6] = 0;
    assert_int_equal(icmp_make(p, len, ICMP_REFUSED, 0, out), 20 + 8 + len);
    assert_int_equal(out[20], 3);
    assert_int_equal(out[21], 13);
    len = test_packet(&g, 100, 0x10, p);
    assert_int_equal(icmp_make(p, len, ICMP_REFUSED, 0, out), 40 + 8 + len);
    assert_int_equal(out[40], 1);
    assert_int_equal(out[41], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v4),
        cmocka_unit_test(test_v6),
        cmocka_unit_test(test_too_big),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
