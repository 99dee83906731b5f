/* test-top-rates.c - bytes a second, from sums that grow at once and in steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "top/top_rates.h"

#define S NSEC_PER_SEC

static struct top_rates rates;

static int set_up(void **state)
{
    rates = (struct top_rates){.is_stepped = false};
    return 0;
}

static int tear_down(void **state)
{
    top_rates_deinit(&rates);
    return 0;
}

static void look(nsec_t at, uint64_t a_to_b, uint64_t b_to_a)
{
    top_rates_begin(&rates, at);
    top_rates_add(&rates, "a", "b", a_to_b);
    top_rates_add(&rates, "b", "a", b_to_a);
    top_rates_end(&rates);
}

/* @expected: below 0: not known */
static void check(double is, double expected)
{
    if (expected < 0 ? !isnan(is) : is != expected)
        fail_msg("%f, not %f", is, expected);
}

static void test_counters(void **state)
{
    look(10 * S, 1000, 50);
    check(top_rates_find(&rates, "a", "b"), -1);
    check(top_rates_total(&rates), -1);
    look(12 * S, 1500, 50);
    check(top_rates_find(&rates, "a", "b"), 250);
    check(top_rates_find(&rates, "b", "a"), 0);
    check(top_rates_find(&rates, "b", "c"), -1);
    check(top_rates_total(&rates), 250);
    look(13 * S, 1500, 60);
    check(top_rates_find(&rates, "a", "b"), 0);
    check(top_rates_find(&rates, "b", "a"), 10);
    /* Twice in the same moment. */
    look(13 * S, 1600, 60);
    check(top_rates_find(&rates, "a", "b"), 0);
    look(14 * S, 1600, 60);
    check(top_rates_find(&rates, "a", "b"), 100);
    /* Counted anew. */
    look(15 * S, 7, 60);
    check(top_rates_find(&rates, "a", "b"), -1);
    look(16 * S, 9, 60);
    check(top_rates_find(&rates, "a", "b"), 2);
}

static void test_steps(void **state)
{
    rates.is_stepped = true;
    look(10 * S, 1000, 0);
    look(15 * S, 1000, 0);
    look(20 * S, 1900, 0);
    /* Since when the first step was made is not known. */
    check(top_rates_find(&rates, "a", "b"), -1);
    check(top_rates_find(&rates, "b", "a"), -1);
    look(40 * S, 1900, 0);
    check(top_rates_find(&rates, "a", "b"), -1);
    look(80 * S, 7900, 0);
    check(top_rates_find(&rates, "a", "b"), 100);
    look(100 * S, 7900, 0);
    check(top_rates_find(&rates, "a", "b"), 100);
    check(top_rates_find(&rates, "b", "a"), 0);
    look(170 * S, 7900, 1);
    check(top_rates_find(&rates, "a", "b"), 0);
    check(top_rates_find(&rates, "b", "a"), -1);
    /* The next day. */
    look(180 * S, 3, 1);
    check(top_rates_find(&rates, "a", "b"), -1);
}

static void test_what_is_gone_is_forgotten(void **state)
{
    look(1 * S, 10, 10);
    look(2 * S, 20, 30);
    top_rates_begin(&rates, 3 * S);
    top_rates_add(&rates, "b", "a", 50);
    top_rates_end(&rates);
    assert_int_equal(rates.n, 1);
    check(top_rates_find(&rates, "a", "b"), -1);
    check(top_rates_total(&rates), 20);
}

static void test_of_a_node(void **state)
{
    double sent;
    double received;

    for (int k = 0; k < 2; k++) {
        top_rates_begin(&rates, (1 + k) * S);
        top_rates_add(&rates, "a", "b", k ? 5 : 0);
        top_rates_add(&rates, "a", "c", k ? 7 : 0);
        top_rates_add(&rates, "ab", "a", k ? 100 : 0);
        top_rates_add(&rates, "c", "ab", k ? 1000 : 0);
        top_rates_end(&rates);
    }
    top_rates_of_node(&rates, "a", &sent, &received);
    check(sent, 12);
    check(received, 100);
    top_rates_of_node(&rates, "c", &sent, &received);
    check(sent, 1000);
    check(received, 7);
    top_rates_of_node(&rates, "z", &sent, &received);
    check(sent, -1);
    check(received, -1);
}

/* The rows of a day, by path and job; those without a receiver are of no pair. */
static void test_rows_of_traffic(void **state)
{
    static const char *const texts[] = {
        "[{\"from\":\"a\",\"to\":\"b\",\"path\":\"lan\",\"bytes\":10},"
        "{\"from\":\"a\",\"to\":\"b\",\"path\":\"relay\",\"job\":\"j\",\"bytes\":20},"
        "{\"from\":\"a\",\"bytes\":99},{\"from\":7},3]",
        "[{\"from\":\"a\",\"to\":\"b\",\"path\":\"lan\",\"bytes\":40},"
        "{\"from\":\"a\",\"to\":\"b\",\"path\":\"relay\",\"job\":\"j\",\"bytes\":30}]"};

    for (unsigned i = 0; i < 2; i++) {
        json_t *rows = json_loads(texts[i], 0, NULL);

        assert_non_null(rows);
        top_rates_take(&rates, rows, (1 + i * 10) * S);
        json_decref(rows);
    }
    assert_int_equal(rates.n, 1);
    check(top_rates_find(&rates, "a", "b"), 4);
    top_rates_take(&rates, NULL, 20 * S);
    assert_int_equal(rates.n, 0);
}

static void test_counters_of_an_agent(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        json_t *status =
            json_pack("{s:{s:s}, s:{s:s, s:i, s:i}, s:[{s:s, s:i, s:i}, {s:i}]}", "self", "name",
                "n1", "hub", "name", "hub-1", "rxBytes", (int)i * 10, "txBytes", (int)i * 20,
                "peers", "name", "n2", "rxBytes", (int)i * 30, "txBytes", (int)i * 40, "name", 7);

        assert_non_null(status);
        top_rates_take_status(&rates, status, (1 + i) * S);
        json_decref(status);
    }
    check(top_rates_find(&rates, "hub-1", "n1"), 10);
    check(top_rates_find(&rates, "n1", "hub-1"), 20);
    check(top_rates_find(&rates, "n2", "n1"), 30);
    check(top_rates_find(&rates, "n1", "n2"), 40);
    assert_int_equal(rates.n, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_steps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_gone_is_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_of_a_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rows_of_traffic, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_counters_of_an_agent, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
