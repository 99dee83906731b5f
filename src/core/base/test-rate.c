/* test-rate.c - so much at once, then so much a second, whatever the order of the calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rate.h"

#define EACH  (10 * NSEC_PER_MSEC)
#define BURST 5

static void test_a_burst_and_then_the_rate(void **state)
{
    struct rate r = {0};
    nsec_t now = 5 * NSEC_PER_SEC;

    for (unsigned i = 0; i < 3; i++)
        assert_true(rate_take(&r, now, EACH, 3));
    assert_false(rate_take(&r, now, EACH, 3));
    assert_false(rate_take(&r, now + EACH - 1, EACH, 3));
    assert_true(rate_take(&r, now + EACH, EACH, 3));
    assert_false(rate_take(&r, now + EACH, EACH, 3));
}

static void test_rest_saves_no_more_than_the_burst(void **state)
{
    struct rate r = {0};
    nsec_t now = 100 * NSEC_PER_SEC;
    unsigned n = 0;

    assert_true(rate_take(&r, NSEC_PER_SEC, EACH, 4));
    while (rate_take(&r, now, EACH, 4))
        n++;
    assert_int_equal(n, 4);
}

static void test_what_is_paid_in_advance_is_waited_for(void **state)
{
    struct rate r = {0};
    nsec_t now = NSEC_PER_SEC;

    rate_pay(&r, now, 7 * EACH);
    assert_true(rate_is_spent(&r, now, 2 * EACH));
    assert_int_equal(rate_free_at(&r, now, 2 * EACH), now + 5 * EACH);
    assert_false(rate_is_spent(&r, now + 5 * EACH, 2 * EACH));
    rate_give_back(&r, 5 * EACH);
    assert_int_equal(rate_free_at(&r, now, 2 * EACH), now);
}

/* A burst that is smaller than nothing: what does not fit at all is never there. */
static void test_more_than_the_bucket_holds_is_never_there(void **state)
{
    struct rate r = {0};

    assert_true(rate_is_spent(&r, 100 * NSEC_PER_SEC, 3 * EACH - 4 * EACH));
}

/* How many of @n tries at one moment pass. */
static unsigned allowed(struct ratelimit *rl, const struct ip_addr *src, unsigned n, nsec_t now)
{
    unsigned ok = 0;

    for (unsigned i = 0; i < n; i++)
        ok += ratelimit_allow(rl, src, now);
    return ok;
}

static void test_ratelimit(void **state)
{
    struct ip_addr v4 = ip_addr_v4((uint8_t[]){192, 0, 2, 1});
    struct ip_addr v4_next = ip_addr_v4((uint8_t[]){192, 0, 2, 2});
    struct ip_addr v6 = {{0x20, 1, 0xd, 0xb8}};
    struct ip_addr v6_same_64 = {{0x20, 1, 0xd, 0xb8, [15] = 9}};
    struct ip_addr v6_other_64 = {{0x20, 1, 0xd, 0xb8, [7] = 9}};
    const nsec_t t = 1000 * NSEC_PER_SEC;
    struct ratelimit rl;

    ratelimit_init(&rl, EACH, BURST, 99);
    assert_int_equal(allowed(&rl, &v4, 20, t), BURST);
    assert_int_equal(allowed(&rl, &v4_next, 20, t), BURST);
    assert_int_equal(allowed(&rl, &v4, 20, t + EACH - 1), 0);
    assert_int_equal(allowed(&rl, &v4, 20, t + EACH), 1);
    assert_int_equal(allowed(&rl, &v4, 20, t + 3 * EACH), 2);
    assert_int_equal(allowed(&rl, &v4, 20, t + NSEC_PER_SEC * 10), BURST);
    assert_int_equal(allowed(&rl, &v6, 3, t), 3);
    assert_int_equal(allowed(&rl, &v6_same_64, 20, t), 2);
    assert_int_equal(allowed(&rl, &v6_other_64, 20, t), BURST);
    ratelimit_deinit(&rl);
    ratelimit_deinit(&rl);
}

/* Many sources at once: the table fills, refuses newcomers, and recovers. */
static void test_ratelimit_full(void **state)
{
    struct ratelimit rl;
    unsigned refused = 0;
    unsigned served = 0;

    ratelimit_init(&rl, EACH, BURST, 3);
    for (uint32_t i = 0; i < 100000; i++) {
        struct ip_addr a =
            ip_addr_v4((uint8_t[]){10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i});

        refused += !ratelimit_allow(&rl, &a, 1);
    }
    assert_true(refused >= 100000 - RATELIMIT_SETS * RATELIMIT_ASSOCIATIVITY);
    assert_true(refused < 100000);
    for (uint32_t i = 0; i < 1000; i++) {
        struct ip_addr a = ip_addr_v4((uint8_t[]){11, 0, (uint8_t)(i >> 8), (uint8_t)i});

        served += ratelimit_allow(&rl, &a, 1 + EACH);
    }
    assert_int_equal(served, 1000);
    ratelimit_deinit(&rl);
}

/* Who pays afterwards: asking costs nothing, and one comes back after EACH. */
static void test_what_fails_is_paid_for(void **state)
{
    struct ip_addr a = ip_addr_v4((uint8_t[]){192, 0, 2, 1});
    struct ip_addr b = ip_addr_v4((uint8_t[]){192, 0, 2, 2});
    const nsec_t t = 1000 * NSEC_PER_SEC;
    struct ratelimit rl;

    ratelimit_init(&rl, EACH, BURST, 1);
    for (unsigned i = 0; i < BURST; i++) {
        assert_false(ratelimit_is_spent(&rl, &a, t));
        assert_false(ratelimit_is_spent(&rl, &a, t));
        ratelimit_pay(&rl, &a, t);
    }
    assert_true(ratelimit_is_spent(&rl, &a, t));
    assert_false(ratelimit_is_spent(&rl, &b, t));
    assert_true(ratelimit_is_spent(&rl, &a, t + EACH - 1));
    assert_false(ratelimit_is_spent(&rl, &a, t + EACH));
    ratelimit_deinit(&rl);
}

/* Who has no address is not limited, not even for the strangers of ::/64, whose block has none. */
static void test_no_address_is_nobody(void **state)
{
    const struct ip_addr none = {{0}};
    const struct ip_addr loopback = {{[15] = 1}};
    struct ratelimit rl;

    ratelimit_init(&rl, EACH, BURST, 1);
    for (unsigned i = 0; i < BURST; i++)
        ratelimit_pay(&rl, &none, NSEC_PER_SEC);
    assert_false(ratelimit_is_spent(&rl, &none, NSEC_PER_SEC));
    assert_false(ratelimit_is_spent(&rl, &loopback, NSEC_PER_SEC));
    for (unsigned i = 0; i < BURST; i++)
        ratelimit_pay(&rl, &loopback, NSEC_PER_SEC);
    assert_true(ratelimit_is_spent(&rl, &loopback, NSEC_PER_SEC));
    assert_false(ratelimit_is_spent(&rl, &none, NSEC_PER_SEC));
    ratelimit_deinit(&rl);
}

/* Newcomers that pay always find a place, and whoever owes most keeps its own longest. */
static void test_who_owes_most_is_remembered(void **state)
{
    struct ip_addr worst = ip_addr_v4((uint8_t[]){10, 0, 0, 0});
    struct ip_addr newcomer = ip_addr_v4((uint8_t[]){12, 0, 0, 0});
    struct ratelimit rl;
    const nsec_t now = NSEC_PER_SEC;

    ratelimit_init(&rl, EACH, BURST, 1);
    for (unsigned i = 0; i < BURST; i++)
        ratelimit_pay(&rl, &worst, now);
    for (uint32_t i = 1; i <= 100000; i++) {
        struct ip_addr a =
            ip_addr_v4((uint8_t[]){11, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i});

        ratelimit_pay(&rl, &a, now);
        assert_false(ratelimit_is_spent(&rl, &a, now));
    }
    assert_true(ratelimit_is_spent(&rl, &worst, now));
    for (unsigned i = 0; i < BURST; i++)
        ratelimit_pay(&rl, &newcomer, now);
    assert_true(ratelimit_is_spent(&rl, &newcomer, now));
    ratelimit_deinit(&rl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_burst_and_then_the_rate),
        cmocka_unit_test(test_rest_saves_no_more_than_the_burst),
        cmocka_unit_test(test_what_is_paid_in_advance_is_waited_for),
        cmocka_unit_test(test_more_than_the_bucket_holds_is_never_there),
        cmocka_unit_test(test_ratelimit),
        cmocka_unit_test(test_ratelimit_full),
        cmocka_unit_test(test_what_fails_is_paid_for),
        cmocka_unit_test(test_no_address_is_nobody),
        cmocka_unit_test(test_who_owes_most_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
