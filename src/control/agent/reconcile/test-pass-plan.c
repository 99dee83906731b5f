/* test-pass-plan.c - when a pass is due, and when a poll is; and how long passes took. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "agent/reconcile/pass_plan.h"
#include "base/metrics.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC

/* The random number with which a wait is neither shortened nor lengthened. */
#define MIDDLE (UINT32_MAX / 2 + 1)

/* ---- passes ---------------------------------------------------------------------------------- */

static void test_pass_is_due_when_it_is_asked_for(void **state)
{
    struct pass_plan p = PASS_PLAN_NULL;

    assert_true(p.due_at == NSEC_NEVER);
    pass_plan_request(&p, 100 * SEC);
    pass_plan_request(&p, 90 * SEC);
    pass_plan_request(&p, 95 * SEC);
    assert_int_equal(p.due_at, 90 * SEC);
    pass_plan_on_success(&p, false, 90 * SEC);
    assert_int_equal(p.due_at, 100 * SEC);
}

/* Whoever sets the interface down again and again has no pass for each time. */
static void test_pause_after_a_mend(void **state)
{
    struct pass_plan p = PASS_PLAN_NULL;

    pass_plan_on_success(&p, true, 90 * SEC);
    pass_plan_request(&p, 90 * SEC + 5 * MS);
    assert_int_equal(p.due_at, 90 * SEC + PASS_PLAN_PAUSE);
    assert_int_equal(p.held_until, 90 * SEC + PASS_PLAN_PAUSE);
    pass_plan_on_success(&p, false, 91 * SEC);
    assert_int_equal(p.held_until, 0);
    pass_plan_request(&p, 91 * SEC + 5 * MS);
    assert_int_equal(p.due_at, 91 * SEC + 5 * MS);
}

static void test_pass_that_fails_is_repeated_with_backoff(void **state)
{
    static const int waits_ms[] = {250, 500, 1000, 2000, 4000, 8000, 10000, 10000};
    struct pass_plan p = PASS_PLAN_NULL;
    struct err e = ERR_NULL;
    nsec_t now = 100 * SEC;

    (void)err_set(&e, -ENODEV, "there is no engine");
    for (unsigned i = 0; i < sizeof(waits_ms) / sizeof(*waits_ms); i++) {
        pass_plan_on_failure(&p, &e, true, MIDDLE, now);
        assert_int_equal(p.due_at - now, waits_ms[i] * MS);
        assert_string_equal(p.fault.text, "there is no engine");
        assert_int_equal(p.n_failed, i + 1);
        now = p.due_at;
    }
    /* With an engine others need not wait so long. */
    pass_plan_request(&p, now - 10 * SEC);
    assert_int_equal(p.due_at, now - 10 * SEC + PASS_PLAN_PAUSE);
    pass_plan_on_success(&p, false, now);
    assert_string_equal(p.fault.text, "");
    assert_int_equal(p.n_failed, 0);
    pass_plan_on_failure(&p, &e, true, MIDDLE, now);
    assert_int_equal(p.due_at - now, 250 * MS);
}

/* Agents that fail together do not try again together: each waits for a random part of its time. */
static void test_waits_are_scattered(void **state)
{
    static const struct {
        uint32_t random;
        int least_ms, most_ms;
    } cases[] = {
        {0, 187, 188}, {UINT32_MAX / 4, 218, 219}, {MIDDLE, 250, 250}, {UINT32_MAX, 312, 313}};
    struct err e = ERR_NULL;

    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct pass_plan p = PASS_PLAN_NULL;

        pass_plan_on_failure(&p, &e, true, cases[i].random, 100 * SEC);
        assert_in_range(p.due_at - 100 * SEC, cases[i].least_ms * MS, cases[i].most_ms * MS);
    }
}

/* ---- how long they take ---------------------------------------------------------------------- */

static void test_histogram_of_passes(void **state)
{
    struct pass_metrics m = {0};
    struct metrics metrics = METRICS_NULL;
    char *text;

    pass_metrics_add(&m, PASS_RESULT_UNCHANGED, 4 * MS);
    pass_metrics_add(&m, PASS_RESULT_UNCHANGED, 5 * MS);
    pass_metrics_add(&m, PASS_RESULT_UNCHANGED, 6 * MS);
    pass_metrics_add(&m, PASS_RESULT_FAILED, 7 * SEC);
    pass_metrics_add_samples(&m, 2, 1, &metrics);
    text = metrics_take(&metrics);
    /* Each bucket holds those before it. */
    assert_non_null(strstr(text, "_bucket{result=\"unchanged\",le=\"0.002\"} 0\n"));
    assert_non_null(strstr(text, "_bucket{result=\"unchanged\",le=\"0.005\"} 2\n"));
    assert_non_null(strstr(text, "_bucket{result=\"unchanged\",le=\"0.01\"} 3\n"));
    assert_non_null(strstr(text, "_bucket{result=\"unchanged\",le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(text, "_seconds_sum{result=\"unchanged\"} 0.015\n"));
    assert_non_null(strstr(text, "_seconds_sum{result=\"failed\"} 7\n"));
    assert_non_null(strstr(text, "_bucket{result=\"failed\",le=\"5\"} 0\n"));
    assert_non_null(strstr(text, "_bucket{result=\"failed\",le=\"+Inf\"} 1\n"));
    assert_non_null(strstr(text, "_seconds_count{result=\"changed\"} 0\n"));
    assert_non_null(strstr(text, "\nweft_agent_passes_failing 2\n"));
    assert_non_null(strstr(text, "\nweft_agent_foreign_peers_removed_total 1\n"));
    free(text);
}

/* An attempt to make the interface is itself an event of links, which asks for a pass. */
static void test_pass_without_engine_waits_for_its_time(void **state)
{
    struct pass_plan p = PASS_PLAN_NULL;
    struct err e = ERR_NULL;

    (void)err_set(&e, -ENODEV, "there is no engine");
    pass_plan_on_failure(&p, &e, false, MIDDLE, 100 * SEC);
    pass_plan_request(&p, 100 * SEC);
    assert_int_equal(p.due_at, 100 * SEC + 250 * MS);
    pass_plan_on_failure(&p, &e, false, MIDDLE, p.due_at);
    pass_plan_request(&p, 100 * SEC);
    assert_int_equal(p.due_at, 100 * SEC + 750 * MS);
    pass_plan_on_success(&p, false, 101 * SEC);
    pass_plan_request(&p, 101 * SEC);
    assert_int_equal(p.due_at, 101 * SEC);
}

/* ---- polls ----------------------------------------------------------------------------------- */

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

static void test_poll_after_a_change(void **state)
{
    struct poll_plan p = POLL_PLAN_NULL;

    poll_plan_begin(&p, 7, 100 * SEC);
    poll_plan_end(&p, 3, NSEC_NEVER, 100 * SEC);
    p.has_changes = true;
    assert_int_equal(p.due_at, 101 * SEC);
    assert_true(poll_plan_is_stale(&p, 101 * SEC));
    poll_plan_begin(&p, 7, 101 * SEC);
    assert_false(poll_plan_is_stale(&p, 101 * SEC));
    poll_plan_end(&p, 3, NSEC_NEVER, 101 * SEC);
    poll_plan_request(&p, 101 * SEC + 5 * MS);
    poll_plan_request(&p, 101 * SEC + 6 * MS);
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
        cmocka_unit_test(test_pause_after_a_mend),
        cmocka_unit_test(test_pass_that_fails_is_repeated_with_backoff),
        cmocka_unit_test(test_waits_are_scattered),
        cmocka_unit_test(test_histogram_of_passes),
        cmocka_unit_test(test_pass_without_engine_waits_for_its_time),
        cmocka_unit_test(test_poll_is_skipped_while_nothing_passes),
        cmocka_unit_test(test_poll_after_a_change),
        cmocka_unit_test(test_poll_without_an_interface),
        cmocka_unit_test(test_poll_of_many_peers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
