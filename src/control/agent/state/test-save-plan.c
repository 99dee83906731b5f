/* test-save-plan.c - how often the snapshot is written, whatever the hub says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/state/save_plan.h"

/* An event each 10 ms for @for_how_long, as the agent takes them; how many writes that makes. */
static unsigned count_writes(bool is_status, nsec_t for_how_long)
{
    struct save_plan p = {0};
    nsec_t due = NSEC_NEVER;
    unsigned n = 0;

    for (nsec_t now = NSEC_PER_SEC; now < NSEC_PER_SEC + for_how_long; now += NSEC_PER_SEC / 100) {
        if (now >= due) {
            p.saved_at = now;
            due = NSEC_NEVER;
            n++;
        }
        due = nsec_min(due, save_plan_due(&p, is_status, now));
    }
    return n;
}

static void test_first_at_once(void **state)
{
    const struct save_plan p = {0};

    assert_int_equal(save_plan_due(&p, true, 7), 7 + SAVE_PLAN_DELAY);
    assert_int_equal(save_plan_due(&p, false, 7), 7 + SAVE_PLAN_DELAY);
}

static void test_a_flood(void **state)
{
    assert_int_equal(count_writes(true, 300 * NSEC_PER_SEC), 10);
    assert_int_equal(count_writes(false, 300 * NSEC_PER_SEC), 60);
}

/* What matters more comes sooner, also while a lesser write is waited for. */
static void test_sooner(void **state)
{
    const struct save_plan p = {.saved_at = 100 * NSEC_PER_SEC};
    nsec_t now = 110 * NSEC_PER_SEC;

    assert_int_equal(save_plan_due(&p, true, now), 130 * NSEC_PER_SEC);
    assert_int_equal(save_plan_due(&p, false, now), now + SAVE_PLAN_DELAY);
    assert_int_equal(save_plan_due(&p, false, 101 * NSEC_PER_SEC), 105 * NSEC_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_at_once),
        cmocka_unit_test(test_a_flood),
        cmocka_unit_test(test_sooner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
