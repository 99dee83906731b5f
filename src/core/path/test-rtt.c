/* test-rtt.c - how round trips are spread, of which time, and until when that is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/rtt.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC

static void spread_is(const struct rtt_track *t, nsec_t now, uint32_t p50, uint32_t p99,
    uint32_t jitter, uint32_t samples)
{
    struct rtt_spread s = rtt_track_spread(t, now);

    if (s.p50_us != p50 || s.p99_us != p99 || s.jitter_us != jitter || s.samples != samples)
        fail_msg("p50 %u, p99 %u, jitter %u of %u; wanted %u, %u, %u of %u", s.p50_us, s.p99_us,
            s.jitter_us, s.samples, p50, p99, jitter, samples);
}

static void test_few_say_nothing(void **state)
{
    struct rtt_track t = {.n = 0};

    spread_is(NULL, 5 * SEC, 0, 0, 0, 0);
    spread_is(&t, 5 * SEC, 0, 0, 0, 0);
    for (unsigned i = 0; i < RTT_SAMPLES_MIN - 1; i++)
        rtt_track_add(&t, 10 * MS, false, 100 * SEC + i * SEC / 2);
    spread_is(&t, 104 * SEC, 0, 0, 0, 0);
    /* The one that makes it enough is looked at at once. */
    rtt_track_add(&t, 12 * MS, false, 104 * SEC);
    spread_is(&t, 104 * SEC, 10000, 12000, 285, 8);
}

/* The greatest of 100 is left out of the 99th percentile, and is in the jitter. */
static void test_median_percentile_and_jitter(void **state)
{
    struct rtt_track t = {.n = 0};
    nsec_t now = 100 * SEC;

    for (unsigned i = 1; i <= 100; i++)
        rtt_track_add(&t, (i == 50 ? 900 : i % 2 ? 20 : 30) * MS, false, now += 6 * SEC);
    /* 98 steps of 10 ms but for the two beside the one that was late. */
    spread_is(&t, now, 20000, 30000, (97 * 10 + 2 * 880) * 1000 / 99, 100);
    rtt_track_add(&t, 900 * MS, false, now += 6 * SEC);
    spread_is(&t, now, 30000, 900000, (97 * 10 + 2 * 880 + 870) * 1000 / 100, 101);
}

/* It is found anew each five seconds, and of a minute that was bad nothing is left after ten. */
static void test_only_the_last_minutes_count(void **state)
{
    struct rtt_track t = {.n = 0};
    nsec_t now = 100 * SEC;

    for (unsigned i = 0; i < 60; i++)
        rtt_track_add(&t, 200 * MS, false, now += SEC);
    assert_int_equal(rtt_track_spread(&t, now).p50_us, 200000);
    for (unsigned i = 0; i < 40; i++)
        rtt_track_add(&t, 20 * MS, false, now += 10 * SEC);
    assert_int_equal(rtt_track_spread(&t, now).p50_us, 200000);
    assert_int_equal(rtt_track_spread(&t, now).p99_us, 200000);
    for (unsigned i = 0; i < 21; i++)
        rtt_track_add(&t, 20 * MS, false, now += 10 * SEC);
    spread_is(&t, now, 20000, 20000, 0, 61);
    /* No more than fit. */
    for (unsigned i = 0; i < 3 * RTT_SAMPLES; i++)
        rtt_track_add(&t, 25 * MS, false, now += SEC / 10);
    rtt_track_add(&t, 25 * MS, false, now += 5 * SEC);
    spread_is(&t, now, 25000, 25000, 0, RTT_SAMPLES);
}

static void test_nothing_is_known_of_what_does_not_answer(void **state)
{
    struct rtt_track t = {.n = 0};
    nsec_t now = 100 * SEC;

    for (unsigned i = 0; i < 20; i++)
        rtt_track_add(&t, 20 * MS, false, now += SEC);
    assert_int_equal(rtt_track_spread(&t, now + RTT_STALE - 1).p50_us, 20000);
    spread_is(&t, now + RTT_STALE, 0, 0, 0, 0);
    /* A clock that was wrong makes no round trip that lasts for ever, and none of no time. */
    for (unsigned i = 0; i < 2 * RTT_SAMPLES; i++)
        rtt_track_add(&t, i % 2 ? -5 : INT64_MAX, false, now += SEC);
    assert_int_equal(rtt_track_spread(&t, now).p50_us, 1);
    assert_int_equal(rtt_track_spread(&t, now).p99_us, 60000000);
}

/* A round trip each @each for so long. */
static void measure(struct rtt_track *t, nsec_t rtt, nsec_t each, nsec_t for_time, nsec_t *now)
{
    for (nsec_t end = *now + for_time; *now < end; *now += each)
        rtt_track_add(t, rtt, true, *now);
}

static void test_what_is_usual(void **state)
{
    struct rtt_track t = {.n = 0};
    nsec_t now = 100 * SEC;

    /* That of a busy time is none. */
    for (unsigned i = 0; i < 400; i++)
        rtt_track_add(&t, 90 * MS, false, now += SEC);
    assert_int_equal(rtt_track_spread(&t, now).usual_us, 0);
    measure(&t, 20 * MS, SEC / 2, 50 * SEC, &now);
    assert_int_equal(rtt_track_spread(&t, now).usual_us, 0);
    measure(&t, 20 * MS, SEC / 2, 20 * SEC, &now);
    assert_in_range(rtt_track_spread(&t, now).usual_us, 17500, 22500);
    /* Of an idle path it takes eight, and each counts for its time. */
    t = (struct rtt_track){.n = 0};
    measure(&t, 20 * MS, 30 * SEC, 8 * 30 * SEC, &now);
    assert_in_range(rtt_track_spread(&t, now).usual_us, 17500, 22500);
    measure(&t, 28 * MS, 30 * SEC, 16 * 30 * SEC, &now);
    assert_in_range(rtt_track_spread(&t, now).usual_us, 24500, 31500);
}

static bool is_longer(const struct rtt_track *t, nsec_t now)
{
    return rtt_track_longer(t, now).since != 0;
}

static void test_they_take_longer(void **state)
{
    struct rtt_track t = {.n = 0};
    nsec_t now = 100 * SEC;
    nsec_t since;

    assert_false(is_longer(NULL, now));
    measure(&t, 20 * MS, SEC, 300 * SEC, &now);
    since = now;
    measure(&t, 62 * MS, SEC, 119 * SEC, &now);
    assert_false(is_longer(&t, now));
    measure(&t, 60 * MS, SEC, 2 * SEC, &now);
    assert_int_equal(rtt_track_longer(&t, now).since, since);
    assert_int_equal(rtt_track_longer(&t, now).least_us, 60000);
    assert_in_range(rtt_track_longer(&t, now).usual_us, 17500, 22500);
    /* It stays as it is while the node is busy, and is known no more after a while. */
    rtt_track_add(&t, 200 * MS, false, now);
    assert_int_equal(rtt_track_longer(&t, now).least_us, 60000);
    assert_false(is_longer(&t, now + RTT_STALE));
    measure(&t, 61 * MS, SEC, 600 * SEC, &now);
    assert_true(is_longer(&t, now));
    assert_in_range(rtt_track_spread(&t, now).usual_us, 17500, 22500);
    /* One that is as usual ends it. */
    rtt_track_add(&t, 21 * MS, true, now += SEC);
    assert_false(is_longer(&t, now));
    measure(&t, 60 * MS, SEC, 100 * SEC, &now);
    rtt_track_add(&t, 30 * MS, true, now += SEC);
    measure(&t, 60 * MS, SEC, 100 * SEC, &now);
    assert_false(is_longer(&t, now));
    /* After an hour it is what is usual. */
    measure(&t, 60 * MS, SEC, 3600 * SEC, &now);
    assert_false(is_longer(&t, now));
    assert_in_range(rtt_track_spread(&t, now).usual_us, 52500, 67500);
}

/* Little is not much, and a silence begins anew. */
static void test_they_do_not_take_longer(void **state)
{
    struct rtt_track t = {.n = 0};
    nsec_t now = 100 * SEC;

    measure(&t, MS, SEC, 300 * SEC, &now);
    measure(&t, 5 * MS, SEC, 300 * SEC, &now);
    assert_false(is_longer(&t, now));
    t = (struct rtt_track){.n = 0};
    measure(&t, 50 * MS, SEC, 300 * SEC, &now);
    measure(&t, 80 * MS, SEC, 300 * SEC, &now);
    assert_false(is_longer(&t, now));
    t = (struct rtt_track){.n = 0};
    measure(&t, 50 * MS, SEC, 300 * SEC, &now);
    measure(&t, 150 * MS, SEC, 60 * SEC, &now);
    now += 400 * SEC;
    measure(&t, 150 * MS, SEC, 100 * SEC, &now);
    assert_false(is_longer(&t, now));
    /* Of an idle path it takes four. */
    t = (struct rtt_track){.n = 0};
    measure(&t, 20 * MS, 60 * SEC, 600 * SEC, &now);
    measure(&t, 80 * MS, 60 * SEC, 180 * SEC, &now);
    assert_false(is_longer(&t, now));
    measure(&t, 80 * MS, 60 * SEC, 60 * SEC, &now);
    assert_true(is_longer(&t, now));
}

static void test_what_differs_enough_to_be_told(void **state)
{
    static const struct {
        struct rtt_spread a, b;
        bool differs;
    } rows[] = {
        {{20000, 30000, 100, 50, 0}, {20000, 30000, 9000, 90, 0}, false},
        {{20000, 30000, 0, 50, 0}, {24000, 30000, 0, 50, 0}, false},
        {{20000, 30000, 0, 50, 0}, {27000, 30000, 0, 50, 0}, true},
        {{200, 300, 0, 50, 0}, {900, 2000, 0, 50, 0}, false},
        {{200, 300, 0, 50, 0}, {1300, 2000, 0, 50, 0}, true},
        {{20000, 30000, 0, 50, 0}, {20000, 59000, 0, 50, 0}, false},
        {{20000, 30000, 0, 50, 0}, {20000, 61000, 0, 50, 0}, true},
        {{0, 0, 0, 0, 0}, {200, 300, 0, 8, 0}, true},
        {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, false},
        {{20000, 30000, 0, 50, 0}, {20000, 30000, 0, 50, 20000}, true},
        {{20000, 30000, 0, 50, 16000}, {20000, 30000, 0, 50, 20000}, false},
        {{20000, 30000, 0, 50, 14000}, {20000, 30000, 0, 50, 20000}, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rtt_spread_differs(&rows[i].a, &rows[i].b) != rows[i].differs ||
            rtt_spread_differs(&rows[i].b, &rows[i].a) != rows[i].differs)
            fail_msg("row %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_say_nothing),
        cmocka_unit_test(test_median_percentile_and_jitter),
        cmocka_unit_test(test_only_the_last_minutes_count),
        cmocka_unit_test(test_nothing_is_known_of_what_does_not_answer),
        cmocka_unit_test(test_what_is_usual),
        cmocka_unit_test(test_they_take_longer),
        cmocka_unit_test(test_they_do_not_take_longer),
        cmocka_unit_test(test_what_differs_enough_to_be_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
