/* test-uplink.c - what trains to several peers say together of the uplink. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "uplink/train.h"
#include "uplink/uplink.h"

#define MBIT UINT64_C(1000000)
#define NOW  INT64_C(1800000000)
#define HOUR 3600

static struct uplink up;

/* A train @ago_s ago. @mbit is negative: the way carries that at least. */
static void put(const char *peer, double mbit, int64_t ago_s)
{
    struct uplink_train t = {.bits_per_s = (uint64_t)((mbit < 0 ? -mbit : mbit) * 1e6),
        .is_line = mbit >= 0,
        .at_s = NOW - ago_s};

    (void)snprintf(t.peer, sizeof(t.peer), "%s", peer);
    uplink_put(&up, &t);
}

static int begin(void **state)
{
    (void)state;
    memset(&up, 0, sizeof(up));
    return 0;
}

static struct uplink_estimate look(void)
{
    return uplink_estimate(&up, NOW);
}

static void test_three_trains_to_two_peers(void **state)
{
    (void)state;
    assert_int_equal(look().state, UPLINK_UNKNOWN);
    assert_int_equal(look().at_s, 0);
    put("a", 19.5, 90);
    put("a", 20, 80);
    put("a", 19.8, 70);
    /* It may be what a's own line carries. */
    assert_int_equal(look().state, UPLINK_UNKNOWN);
    assert_int_equal(look().n_trains, 3);
    assert_int_equal(look().n_peers, 1);
    put("b", 19.9, 60);
    assert_int_equal(look().state, UPLINK_FOUND);
    assert_int_equal(look().bits_per_s, 20 * MBIT);
    assert_int_equal(look().n_trains, 4);
    assert_int_equal(look().n_peers, 2);
    assert_int_equal(look().at_s, NOW - 60);
}

static void test_peers_with_slow_lines_of_their_own(void **state)
{
    (void)state;
    put("a", 5, 100);
    put("b", 8, 90);
    put("c", 12, 80);
    put("a", 5.1, 70);
    put("b", 8.1, 60);
    put("c", 12.1, 50);
    assert_int_equal(look().state, UPLINK_UNKNOWN);
    assert_null(look().faster);
    put("d", 30, 40);
    put("e", 31, 30);
    put("d", 30.5, 20);
    assert_int_equal(look().state, UPLINK_FOUND);
    assert_int_equal(look().bits_per_s, 31 * MBIT);
    /* The first three count no less for it. */
    assert_int_equal(uplink_trains_to(&up, "a", NOW), 2);
}

/* While it is in use it measures low. */
static void test_the_highest_of_a_day_counts(void **state)
{
    (void)state;
    put("a", 20, 10 * HOUR);
    put("b", 19, 10 * HOUR - 30);
    put("a", 19.5, 10 * HOUR - 60);
    put("a", 11, 3 * HOUR);
    put("b", 11.5, 2 * HOUR);
    put("c", 11.2, 1 * HOUR);
    assert_int_equal(look().bits_per_s, 20 * MBIT);
    /* A day later it is what was measured since. */
    assert_int_equal(uplink_estimate(&up, NOW + 15 * HOUR).bits_per_s, 11.5 * MBIT);
    assert_int_equal(uplink_estimate(&up, NOW + 30 * HOUR).state, UPLINK_UNKNOWN);
}

/* All must not be slowed down to what the way to some carries. */
static void test_a_neighbour_contradicts(void **state)
{
    (void)state;
    put("a", 20, 300);
    put("b", 20, 270);
    put("a", 20, 240);
    assert_int_equal(look().state, UPLINK_FOUND);
    put("near", -640, 210);
    assert_int_equal(look().state, UPLINK_UNKNOWN);
    assert_string_equal(look().faster, "near");
    /* It has gone away: what was its train counts for a day. Now it is elsewhere. */
    put("near", 19, 100);
    assert_int_equal(look().state, UPLINK_FOUND);
    assert_null(look().faster);
}

/* The first train to a had credit, and no other one since. */
static void test_a_credit_that_is_used_up(void **state)
{
    (void)state;
    put("a", 100, 1000);
    put("b", 20, 900);
    put("a", 20.5, 800);
    put("b", 20, 700);
    assert_int_equal(look().state, UPLINK_FOUND);
    assert_int_equal(look().bits_per_s, 20.5 * MBIT);
}

static void test_a_fast_line(void **state)
{
    (void)state;
    put("a", 20, 300);
    put("b", 20, 270);
    put("a", 20, 240);
    put("c", -2400, 100);
    assert_int_equal(look().state, UPLINK_FAST);
    assert_true(look().bits_per_s >= TRAIN_FAST);
    uplink_forget(&up);
    assert_int_equal(look().state, UPLINK_UNKNOWN);
    /* As fast a line is none that needs a rate, however sure it is. */
    put("a", 2500, 30);
    put("b", 2500, 20);
    put("a", 2500, 10);
    assert_int_equal(look().state, UPLINK_FAST);
}

static void test_rates_that_nobody_may_set(void **state)
{
    (void)state;
    put("a", 0.05, 30);
    put("b", 0.05, 20);
    put("a", 0.05, 10);
    assert_int_equal(look().state, UPLINK_UNKNOWN);
}

static void test_the_oldest_give_way(void **state)
{
    (void)state;
    put("old", -100, 1000);
    for (unsigned i = 0; i < UPLINK_TRAINS_MAX; i++)
        put(i % 2 ? "a" : "b", 20, 500 - i);
    assert_int_equal(up.n, UPLINK_TRAINS_MAX);
    assert_int_equal(uplink_trains_to(&up, "old", NOW), 0);
    assert_int_equal(look().n_trains, UPLINK_TRAINS_MAX);
}

static void test_three_digits(void **state)
{
    static const uint64_t rates[][2] = {{0, 0}, {7, 7}, {999, 999}, {1000, 1000}, {1009, 1000},
        {19876543, 19800000}, {UINT64_MAX, UINT64_C(18400000000000000000)}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rates) / sizeof(*rates); i++)
        assert_int_equal(uplink_round(rates[i][0]), rates[i][1]);
    put("a", 19.876543, 30);
    put("b", 19.876543, 20);
    put("a", 19.8, 10);
    assert_int_equal(look().bits_per_s, 19800000);
}

static void test_trains_at_the_same_time(void **state)
{
    (void)state;
    put("a", 20, 10);
    put("b", 20, 10);
    put("a", 20, 10);
    assert_int_equal(up.n, 3);
    assert_int_equal(look().state, UPLINK_FOUND);
}

static void test_a_clock_that_was_set_back(void **state)
{
    (void)state;
    put("a", 20, -5000);
    put("b", 20, -4000);
    put("a", 20, -3000);
    assert_int_equal(look().state, UPLINK_UNKNOWN);
    put("a", 20, 10);
    assert_int_equal(up.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_three_trains_to_two_peers, begin),
        cmocka_unit_test_setup(test_peers_with_slow_lines_of_their_own, begin),
        cmocka_unit_test_setup(test_the_highest_of_a_day_counts, begin),
        cmocka_unit_test_setup(test_a_neighbour_contradicts, begin),
        cmocka_unit_test_setup(test_a_credit_that_is_used_up, begin),
        cmocka_unit_test_setup(test_a_fast_line, begin),
        cmocka_unit_test_setup(test_rates_that_nobody_may_set, begin),
        cmocka_unit_test_setup(test_the_oldest_give_way, begin),
        cmocka_unit_test_setup(test_three_digits, begin),
        cmocka_unit_test_setup(test_trains_at_the_same_time, begin),
        cmocka_unit_test_setup(test_a_clock_that_was_set_back, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
