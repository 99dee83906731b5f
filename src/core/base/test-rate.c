/* test-rate.c - so much at once, then so much a second, whatever the order of the calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rate.h"

#define EACH (10 * NSEC_PER_MSEC)

static void test_a_burst_and_then_the_rate(void **state)
{
    struct rate r = RATE_NULL;
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
    struct rate r = RATE_NULL;
    nsec_t now = 100 * NSEC_PER_SEC;
    unsigned n = 0;

    assert_true(rate_take(&r, NSEC_PER_SEC, EACH, 4));
    while (rate_take(&r, now, EACH, 4))
        n++;
    assert_int_equal(n, 4);
}

static void test_what_is_paid_in_advance_is_waited_for(void **state)
{
    struct rate r = RATE_NULL;
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
    struct rate r = RATE_NULL;

    assert_true(rate_is_spent(&r, 100 * NSEC_PER_SEC, 3 * EACH - 4 * EACH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_burst_and_then_the_rate),
        cmocka_unit_test(test_rest_saves_no_more_than_the_burst),
        cmocka_unit_test(test_what_is_paid_in_advance_is_waited_for),
        cmocka_unit_test(test_more_than_the_bucket_holds_is_never_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
