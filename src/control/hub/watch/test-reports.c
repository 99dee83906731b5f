/* test-reports.c - which agents are silent, also when the hub's clock is set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "health/node.h"
#include "hub/watch/reports.h"
#include "mesh/object/edge_status.h"
#include "test/support/audience.h"

#define WALL 1800000000

static struct reports reports;
static nsec_t now;
static int64_t wall_s;

static int enter(void **state)
{
    int r = audience_enter(state);

    reports_init(&reports, audience_network()->model);
    now = 1000 * NSEC_PER_SEC;
    wall_s = WALL;
    return r;
}

static int leave(void **state)
{
    reports_deinit(&reports);
    return audience_leave(state);
}

static void hear(const char *name)
{
    struct model_node *node = audience_node(name);

    node->spec.stock = false;
    node->reported->reported_at = node->reported->heard_here_at = wall_s;
}

static void pass(unsigned seconds)
{
    for (; seconds > 0; seconds--) {
        now += NSEC_PER_SEC;
        wall_s++;
        reports_look(&reports, now, wall_s);
    }
}

/* "a" is heard just before the clock is set, and "b" 80 s before. */
static void set_clock(int64_t step)
{
    reports_look(&reports, now, wall_s);
    hear("b");
    pass(80);
    hear("a");
    pass(1);
    wall_s += step;
    pass(5);
    assert_int_equal(reports.events.counts[EDGE_EVENT_SILENT], 0);
    assert_int_equal(wall_s - audience_node("a")->reported->reported_at, 6);
    assert_int_equal(wall_s - audience_node("b")->reported->reported_at, 86);
    pass(20);
    assert_int_equal(reports.events.counts[EDGE_EVENT_SILENT], 1);
    pass(EDGE_SILENT_AFTER);
    assert_int_equal(reports.events.counts[EDGE_EVENT_SILENT], 2);
}

static void test_a_clock_that_is_set_forward(void **state)
{
    (void)state;
    set_clock(7200);
}

static void test_a_clock_that_is_set_back(void **state)
{
    (void)state;
    set_clock(-7200);
}

/* What was heard after the step and before it was seen is as new as it says. */
static void test_a_report_right_after_the_step(void **state)
{
    (void)state;
    reports_look(&reports, now, wall_s);
    pass(10);
    wall_s -= 7200;
    hear("a");
    pass(1);
    assert_int_equal(wall_s - audience_node("a")->reported->reported_at, 1);
}

/* A node that is heard all the time, and says nothing else: its record is written each minute. */
static void test_last_seen_is_written_each_minute(void **state)
{
    struct model_node *a = audience_node("a");

    (void)state;
    a->reported->stored_at = a->reported->heard.last_seen_at = wall_s;
    for (unsigned s = 0; s < REPORTS_SEEN_FLUSH_S; s += 10) {
        reports_seen(&reports, a, now, wall_s + s);
        assert_false(a->reported->is_unsaved);
    }
    reports_seen(&reports, a, now, wall_s + REPORTS_SEEN_FLUSH_S);
    assert_true(a->reported->is_unsaved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_clock_that_is_set_forward, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_clock_that_is_set_back, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_report_right_after_the_step, enter, leave),
        cmocka_unit_test_setup_teardown(test_last_seen_is_written_each_minute, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
