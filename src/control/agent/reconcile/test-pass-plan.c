/* test-pass-plan.c - when a pass is due, and when a poll is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "agent/reconcile/pass_plan.h"
#include "agent/reconcile/poll_plan.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC

/* ---- passes --------------------------------------------------------------------------------- */

static void test_pass_is_due_when_it_is_asked_for(void **state)
{
    struct pass_plan p = PASS_PLAN_NULL;

    assert_true(p.due_at == NSEC_NEVER);
    pass_plan_request(&p, 100 * SEC);
    pass_plan_request(&p, 90 * SEC);
    pass_plan_request(&p, 95 * SEC);
    assert_int_equal(p.due_at, 90 * SEC);
    pass_plan_on_success(&p, 90 * SEC);
    assert_int_equal(p.due_at, 100 * SEC);
}

static void test_pass_that_fails_is_repeated_later_and_later(void **state)
{
    static const int waits_ms[] = {250, 500, 1000, 2000, 4000, 8000, 10000, 10000};
    struct pass_plan p = PASS_PLAN_NULL;
    struct err e = ERR_NULL;
    nsec_t now = 100 * SEC;

    (void)err_set(&e, -ENODEV, "there is no engine");
    for (unsigned i = 0; i < sizeof(waits_ms) / sizeof(*waits_ms); i++) {
        pass_plan_on_failure(&p, &e, true, now);
        assert_int_equal(p.due_at - now, waits_ms[i] * MS);
        assert_string_equal(p.fault.text, "there is no engine");
        now = p.due_at;
    }
    /* With an engine others may ask for a pass at once. */
    pass_plan_request(&p, now);
    assert_int_equal(p.due_at, now);
    pass_plan_on_success(&p, now);
    assert_string_equal(p.fault.text, "");
    pass_plan_on_failure(&p, &e, true, now);
    assert_int_equal(p.due_at - now, 250 * MS);
}

/* An attempt to make the interface is itself an event of links, which asks for a pass. */
static void test_pass_without_engine_waits_for_its_time(void **state)
{
    struct pass_plan p = PASS_PLAN_NULL;
    struct err e = ERR_NULL;

    (void)err_set(&e, -ENODEV, "there is no engine");
    pass_plan_on_failure(&p, &e, false, 100 * SEC);
    pass_plan_request(&p, 100 * SEC);
    assert_int_equal(p.due_at, 100 * SEC + 250 * MS);
    pass_plan_on_failure(&p, &e, false, p.due_at);
    pass_plan_request(&p, 100 * SEC);
    assert_int_equal(p.due_at, 100 * SEC + 750 * MS);
    pass_plan_on_success(&p, 101 * SEC);
    pass_plan_request(&p, 101 * SEC);
    assert_int_equal(p.due_at, 101 * SEC);
}

/* ---- polls ---------------------------------------------------------------------------------- */

static void test_poll_is_skipped_while_nothing_passes(void **state)
{
    struct poll_plan p = POLL_PLAN_NULL;

    poll_plan_begin(&p, 7, 100 * SEC);
    poll_plan_end(&p, 3, NSEC_NEVER, 100 * SEC);
    assert_int_equal(p.due_at, 101 * SEC);
    assert_false(poll_plan_is_stale(&p, 101 * SEC));
    assert_true(poll_plan_is_idle(&p, 7));
    assert_false(poll_plan_is_idle(&p, 8));
    poll_plan_skip(&p, 101 * SEC);
    assert_int_equal(p.due_at, 102 * SEC);
    /* The clock of the last poll goes on. */
    assert_false(poll_plan_is_stale(&p, 110 * SEC - 1));
    assert_true(poll_plan_is_stale(&p, 110 * SEC));
}

static void test_poll_after_news(void **state)
{
    struct poll_plan p = POLL_PLAN_NULL;

    poll_plan_begin(&p, 7, 100 * SEC);
    poll_plan_end(&p, 3, NSEC_NEVER, 100 * SEC);
    poll_plan_on_news(&p);
    assert_int_equal(p.due_at, 101 * SEC);
    assert_true(poll_plan_is_stale(&p, 101 * SEC));
    poll_plan_begin(&p, 7, 101 * SEC);
    assert_false(poll_plan_is_stale(&p, 101 * SEC));
    poll_plan_end(&p, 3, NSEC_NEVER, 101 * SEC);
    poll_plan_request(&p, 101 * SEC + 5 * MS);
    assert_int_equal(p.due_at, 101 * SEC + 5 * MS);
    assert_true(poll_plan_is_stale(&p, p.due_at));
}

static void test_poll_without_an_interface(void **state)
{
    struct poll_plan p = POLL_PLAN_NULL;

    /* A count that is not known is never the same. */
    poll_plan_begin(&p, 0, 100 * SEC);
    assert_false(poll_plan_is_idle(&p, 0));
}

static void test_poll_of_many_peers(void **state)
{
    struct poll_plan p = POLL_PLAN_NULL;

    poll_plan_end(&p, 500, NSEC_NEVER, 100 * SEC);
    assert_int_equal(p.due_at, 101 * SEC);
    poll_plan_end(&p, 501, NSEC_NEVER, 100 * SEC);
    assert_int_equal(p.due_at, 110 * SEC);
    poll_plan_end(&p, 501, 200 * MS, 100 * SEC);
    assert_int_equal(p.due_at, 100 * SEC + 200 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pass_is_due_when_it_is_asked_for),
        cmocka_unit_test(test_pass_that_fails_is_repeated_later_and_later),
        cmocka_unit_test(test_pass_without_engine_waits_for_its_time),
        cmocka_unit_test(test_poll_is_skipped_while_nothing_passes),
        cmocka_unit_test(test_poll_after_news),
        cmocka_unit_test(test_poll_without_an_interface),
        cmocka_unit_test(test_poll_of_many_peers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
