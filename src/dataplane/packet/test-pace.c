/* test-pace.c - unit tests for sched.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/traffic.h"
#include "packet/sched.h"

#define START (1000 * NSEC_PER_SEC)

/* What may be made good at 100 Mbit/s. */
#define BURST ((uint64_t)PACE_BURST / 80)

static void test_no_limit(void **state)
{
    struct pace p = {0};

    pace_take(&p, 1 << 20, START);
    assert_int_equal(pace_due(&p, START), START);
}

/* 12,500 bytes at 100 Mbit/s take a millisecond. */
static void test_a_rate(void **state)
{
    struct pace p = {0};
    nsec_t now = START;
    uint64_t n_bytes = 0;

    pace_set(&p, 100000000);
    while (now < START + NSEC_PER_SEC) {
        pace_take(&p, 12500, now);
        n_bytes += 12500;
        now = nsec_max(now, pace_due(&p, now));
    }
    /* What may be made good at the beginning comes on top. */
    assert_in_range(n_bytes, 12500000, 12500000 + BURST + 12500);
}

static void test_a_late_timer_costs_nothing(void **state)
{
    struct pace p = {0};
    nsec_t now = START;
    uint64_t n_bytes = 0;

    pace_set(&p, 100000000);
    while (now < START + NSEC_PER_SEC) {
        pace_take(&p, 12500, now);
        n_bytes += 12500;
        now = nsec_max(now, pace_due(&p, now) + PACE_BURST / 4);
    }
    assert_in_range(n_bytes, 12500000 - 12500, 12500000 + BURST + 12500);
}

static void test_a_pause_is_not_made_good(void **state)
{
    struct pace p = {0};
    nsec_t now = START + 10 * NSEC_PER_SEC;
    uint64_t n_bytes = 0;

    pace_set(&p, 100000000);
    pace_take(&p, 12500, START);
    while (pace_due(&p, now) <= now) {
        pace_take(&p, 12500, now);
        n_bytes += 12500;
    }
    assert_in_range(n_bytes, BURST, BURST + 12500);
}

static void test_a_new_rate_begins_anew(void **state)
{
    struct pace p = {0};

    pace_set(&p, TRAFFIC_RATE_MIN);
    pace_take(&p, UINT64_C(1) << 40, START); /* Bounded: no overflow. */
    assert_true(pace_due(&p, START) > START);
    pace_set(&p, TRAFFIC_RATE_MAX);
    assert_true(pace_due(&p, START) <= START);
    assert_true(pace_rate(&p) == TRAFFIC_RATE_MAX);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_a_rate),
        cmocka_unit_test(test_a_late_timer_costs_nothing),
        cmocka_unit_test(test_a_pause_is_not_made_good),
        cmocka_unit_test(test_a_new_rate_begins_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
