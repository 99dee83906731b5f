/* test-device-accept.c - which packets a device that is limited hands to its interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shared/options.h"
#include "wire/ip.h"

static struct ip_addr address(uint8_t last)
{
    return ip_addr_v4((const uint8_t[4]){10, 0, 0, last});
}

/* A packet's first bytes are its TCP or UDP header: the inner header ends at 0. */
static struct ip_info packet(uint8_t proto, uint8_t to)
{
    return (struct ip_info){.proto = proto, .len = 20, .l4_off = 0, .dst = address(to)};
}

static const uint8_t to_443[20] = {0, 1, 443 >> 8, 443 & 0xff};
static const uint8_t to_80[20] = {0, 1, 0, 80};

static void test_zeroes_are_no_limit(void **state)
{
    struct device_accept a = {0};
    struct ip_info ip = packet(IP_PROTO_UDP, 9);

    assert_true(device_accept_has(&a, to_80, &ip));
}

static void test_only_its_addresses(void **state)
{
    struct device_accept a = {.at = {{.to = address(1)}, {.to = address(2)}}};

    for (uint8_t to = 1; to < 5; to++) {
        struct ip_info ip = packet(IP_PROTO_UDP, to);

        assert_int_equal(device_accept_has(&a, to_80, &ip), to <= 2);
    }
}

static void test_only_that_port_of_tcp(void **state)
{
    struct device_accept a = {.at = {{.to = address(1), .tcp_port = 443}}};
    struct ip_info tcp = packet(IP_PROTO_TCP, 1);
    struct ip_info udp = packet(IP_PROTO_UDP, 1);
    struct ip_info fragment = packet(IP_PROTO_TCP, 1);
    struct ip_info cut = packet(IP_PROTO_TCP, 1);

    fragment.is_fragment = true;
    cut.len = 3;
    assert_true(device_accept_has(&a, to_443, &tcp));
    assert_false(device_accept_has(&a, to_80, &tcp));
    assert_false(device_accept_has(&a, to_443, &udp));
    assert_false(device_accept_has(&a, to_443, &fragment));
    assert_false(device_accept_has(&a, to_443, &cut));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroes_are_no_limit),
        cmocka_unit_test(test_only_its_addresses),
        cmocka_unit_test(test_only_that_port_of_tcp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
