/* test-ipam.c - numbers against a slow reference, and the promises about when one is used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"
#include "hub/model/ipam.h"

static struct ip_prefix prefix(const char *text)
{
    struct ip_prefix p;

    assert_int_equal(ip_prefix_parse(&p, text, NULL), 0);
    return p;
}

static void test_capacity(void **state)
{
    static const struct {
        const char *cidr4;
        const char *cidr6;
        uint32_t capacity;
    } cases[] = {
        {"10.42.0.0/16", "fd00::/64", 65534},
        {"10.0.0.0/8", "fd00::/64", (1u << 24) - 2},
        {"10.0.0.0/30", "fd00::/64", 2},
        {"10.0.0.0/16", "fd00::/124", 15},
        {"10.0.0.0/16", "fd00::/32", 65534},
        {"10.0.0.0/28", "fd00::/124", 14},
        {"10.0.0.0/27", "fd00::/123", 30},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ip_prefix c4 = prefix(cases[i].cidr4);
        struct ip_prefix c6 = prefix(cases[i].cidr6);

        assert_int_equal(ipam_capacity(&c4, &c6), cases[i].capacity);
    }
}

static void test_addresses(void **state)
{
    static const char *const cidrs[] = {
        "10.42.0.0/16", "10.0.0.0/8", "192.168.7.128/25", "fd5a:1:2:3::/64", "fd00::/124"};
    static const uint32_t numbers[] = {1, 2, 14};
    struct ip_addr a;
    char text[IP_ADDR_TEXT_MAX];

    for (size_t i = 0; i < sizeof(cidrs) / sizeof(*cidrs); i++)
        for (size_t k = 0; k < 3; k++) {
            struct ip_prefix p = prefix(cidrs[i]);

            a = ipam_address(&p, numbers[k]);
            assert_true(ip_prefix_has(&p, &a));
            assert_int_equal(ipam_number(&p, &a), numbers[k]);
        }
    a = ipam_address(&(struct ip_prefix){prefix("10.42.0.0/16").addr, 16}, 513);
    assert_string_equal(ip_addr_format(&a, text), "10.42.2.1");
    assert_int_equal(ip_addr_parse(&a, "10.43.0.1", NULL), 0);
    assert_int_equal(ipam_number(&(struct ip_prefix){prefix("10.42.0.0/16").addr, 16}, &a), 0);
    assert_int_equal(ip_addr_parse(&a, "10.42.0.0", NULL), 0);
    assert_int_equal(ipam_number(&(struct ip_prefix){prefix("10.42.0.0/16").addr, 16}, &a), 0);
    assert_int_equal(ip_addr_parse(&a, "10.42.255.254", NULL), 0);
    assert_int_equal(ipam_number(&(struct ip_prefix){prefix("10.42.0.0/16").addr, 16}, &a), 65534);
    assert_int_equal(ip_addr_parse(&a, "fd5a:1:2:3:4::1", NULL), 0);
    assert_int_equal(ipam_number(&(struct ip_prefix){prefix("fd5a:1:2:3::/64").addr, 64}, &a), 0);
}

/* Give out the next one, as enrolment does. */
static uint32_t give(struct ipam *p)
{
    uint32_t n = ipam_next(p, false);

    if (n > 0) {
        assert_int_equal(ipam_take(p, n), 0);
        p->next = n + 1;
    }
    return n;
}

static void test_not_reused_soon(void **state)
{
    struct ipam p;

    ipam_init(&p, 10);
    assert_int_equal(give(&p), IPAM_HUB);
    for (uint32_t n = 2; n <= 5; n++)
        assert_int_equal(give(&p), n);
    assert_int_equal(ipam_release(&p, 3), 0);
    /* 3 stays unused until the block has been gone through. */
    for (uint32_t n = 6; n <= 10; n++)
        assert_int_equal(give(&p), n);
    assert_int_equal(ipam_release(&p, 5), 0);
    assert_int_equal(give(&p), 3);
    assert_int_equal(give(&p), 5);
    assert_int_equal(give(&p), 0);
    assert_int_equal(ipam_release(&p, 10), 0);
    assert_int_equal(give(&p), 10);
    assert_int_equal(give(&p), 0);
    ipam_deinit(&p);
}

/* While it is not known who has which number, only those above all that were ever given are free.
 */
static void test_numbers_that_may_be_somebodys(void **state)
{
    struct ipam p;

    ipam_init(&p, 10);
    assert_int_equal(p.high, 0);
    assert_int_equal(ipam_take(&p, 6), 0);
    assert_int_equal(ipam_take(&p, 4), 0);
    assert_int_equal(p.high, 6);
    assert_int_equal(ipam_release(&p, 6), 0);
    assert_int_equal(p.high, 6);
    p.next = 2;
    assert_int_equal(ipam_next(&p, false), 2);
    assert_int_equal(ipam_next(&p, true), 7);
    /* The cursor may be beyond it, and is the highest at the least. */
    p.next = 6;
    assert_int_equal(ipam_next(&p, true), 7);
    p.next = 7;
    assert_int_equal(ipam_next(&p, true), 7);
    p.next = 9;
    assert_int_equal(ipam_next(&p, true), 9);
    /* None is taken again meanwhile. */
    assert_int_equal(ipam_take(&p, 10), 0);
    assert_int_equal(ipam_next(&p, true), 0);
    assert_int_equal(ipam_next(&p, false), 9);
    p.next = 10;
    assert_int_equal(ipam_next(&p, false), 1);
    ipam_deinit(&p);
    assert_null(p.runs);
    assert_int_equal(p.n_runs, 0);
    assert_int_equal(p.cap, 0);
}

/* Without the stored cursor the numbers above the highest that is known are next. */
static void test_a_cursor_that_is_lost(void **state)
{
    struct ipam p;

    ipam_init(&p, 10);
    assert_int_equal(ipam_take(&p, 5), 0);
    p.forgot = true;
    assert_int_equal(ipam_next(&p, false), 6);
    assert_int_equal(ipam_next(&p, true), 0);
    assert_int_equal(ipam_take(&p, 10), 0);
    assert_int_equal(ipam_next(&p, false), 1);
    ipam_deinit(&p);
}

static void test_large_block(void **state)
{
    struct ipam p;

    ipam_init(&p, (1u << 24) - 2);
    for (uint32_t n = 1; n <= 200000; n++)
        assert_int_equal(give(&p), n);
    assert_int_equal(p.n_runs, 1);
    p.next = (1u << 24) - 2;
    assert_int_equal(give(&p), (1u << 24) - 2);
    assert_int_equal(give(&p), 200001);
    ipam_deinit(&p);
}

#define REFERENCE_N 40

static uint32_t reference_next(const bool taken[REFERENCE_N + 1], uint32_t cursor)
{
    for (uint32_t n = cursor; n <= REFERENCE_N; n++)
        if (!taken[n])
            return n;
    for (uint32_t n = 1; n <= REFERENCE_N; n++)
        if (!taken[n])
            return n;
    return 0;
}

static void test_reference(void **state)
{
    uint64_t seed = 7;
    struct rng rng = rng_seeded(&seed);
    bool taken[REFERENCE_N + 1] = {false};
    struct ipam p;

    ipam_init(&p, REFERENCE_N);
    for (int i = 0; i < 100000; i++) {
        uint32_t n = 1 + rng_u32(&rng) % REFERENCE_N;
        size_t runs = 0;

        if (rng_u32(&rng) % 2) {
            assert_int_equal(ipam_take(&p, n), 0);
            taken[n] = true;
        } else {
            assert_int_equal(ipam_release(&p, n), 0);
            taken[n] = false;
        }
        for (uint32_t k = 1; k <= REFERENCE_N; k++)
            runs += taken[k] && (k == 1 || !taken[k - 1]);
        assert_int_equal(p.n_runs, runs);
        p.next = 1 + rng_u32(&rng) % (REFERENCE_N + 1);
        assert_int_equal(ipam_next(&p, false), reference_next(taken, p.next));
    }
    ipam_deinit(&p);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_not_reused_soon),
        cmocka_unit_test(test_numbers_that_may_be_somebodys),
        cmocka_unit_test(test_a_cursor_that_is_lost),
        cmocka_unit_test(test_large_block),
        cmocka_unit_test(test_reference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
