/* test-flight-causes.c - whom the ranks of a job wait for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "health/flight.h"
#include "health/flight_causes.h"

#define PLACES_MAX 32
#define CAUSES_MAX 4

static struct world {
    struct flight_place places[PLACES_MAX];
    size_t n;
    struct flight_cause causes[CAUSES_MAX];
    size_t n_causes;
} w;

static int begin(void **state)
{
    w = (struct world){.n = 0};
    return 0;
}

/* A rank waits in that operation of a group, or in none: 0. */
static struct flight_place *add(uint64_t key, uint32_t rank, uint64_t entered, uint64_t waits_in)
{
    struct flight_place *p = &w.places[w.n++];

    assert_true(w.n <= PLACES_MAX);
    *p = (struct flight_place){.key = key, .rank = rank, .entered = entered, .waits_in = waits_in};
    if (waits_in > 0) {
        (void)snprintf(p->operation, sizeof(p->operation), "all_reduce");
        (void)snprintf(p->type, sizeof(p->type), "Float");
        p->elements = 64;
        p->wait_ms = 1000;
    }
    return p;
}

static void find(size_t n)
{
    struct flight_heard heard[PLACES_MAX];

    /* In the order in which nodes say it, which is any. */
    for (size_t i = 0; i < w.n; i++)
        heard[i] = (struct flight_heard){.place = &w.places[w.n - 1 - i], .who = &w};
    w.n_causes = flight_causes_find(heard, w.n, w.causes, CAUSES_MAX);
    assert_int_equal(w.n_causes, n);
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(w.causes[i].rank.who, &w);
}

static void test_one_has_not_entered(void **state)
{
    add(1, 0, 12, 12);
    add(1, 1, 13, 12);
    add(1, 2, 11, 0);
    add(1, 3, 12, 12)->wait_ms = 9;
    find(1);
    assert_int_equal(w.causes[0].fault, FLIGHT_BEHIND);
    assert_int_equal(w.causes[0].rank.place->rank, 2);
    assert_int_equal(w.causes[0].most->waits_in, 12);
    assert_int_equal(w.causes[0].n_waiting, 3);
    assert_null(w.causes[0].own);
}

static void test_all_is_well(void **state)
{
    find(0);
    add(1, 0, 12, 0);
    add(1, 1, 12, 0);
    find(0);
    /* All have entered, and none comes out: that is the network's. */
    add(2, 0, 7, 7);
    add(2, 1, 7, 7);
    find(0);
}

/* It is not the others that it waits for, as far as this shows. */
static void test_one_alone_is_ahead(void **state)
{
    add(1, 0, 12, 12);
    add(1, 1, 11, 0);
    add(1, 2, 11, 0);
    find(0);
    /* Of two it is the other one. */
    w.n = 2;
    find(1);
    assert_int_equal(w.causes[0].rank.place->rank, 1);
    assert_int_equal(w.causes[0].n_waiting, 1);
}

static void test_one_does_something_else(void **state)
{
    for (uint32_t i = 0; i < 4; i++)
        add(1, i, 12, 12);
    (void)snprintf(w.places[0].operation, sizeof(w.places[0].operation), "all_gather");
    find(1);
    assert_int_equal(w.causes[0].fault, FLIGHT_DIFFERS);
    assert_int_equal(w.causes[0].rank.place->rank, 0);
    assert_int_equal(w.causes[0].n_waiting, 3);
    assert_string_equal(w.causes[0].most->operation, "all_reduce");
    /* Where no kind is that of most, the lowest rank is the measure. */
    (void)snprintf(w.places[1].operation, sizeof(w.places[1].operation), "all_gather");
    find(2);
    assert_int_equal(w.causes[0].rank.place->rank, 2);
    assert_int_equal(w.causes[1].rank.place->rank, 3);
    assert_int_equal(w.causes[0].n_waiting, 2);
}

static void test_sizes_and_types(void **state)
{
    for (uint32_t i = 0; i < 3; i++)
        add(1, i, 12, 12);
    w.places[1].elements = 63;
    find(1);
    assert_int_equal(w.causes[0].rank.place->rank, 1);
    w.places[1].elements = 64;
    (void)snprintf(w.places[2].type, sizeof(w.places[2].type), "BFloat16");
    find(1);
    assert_int_equal(w.causes[0].rank.place->rank, 2);
    /* In these each rank may give another size. */
    for (size_t i = 0; i < w.n; i++)
        (void)snprintf(w.places[i].operation, sizeof(w.places[i].operation), "all_to_all");
    find(0);
}

/* Operations that differ are a cause before ranks that are behind, which may be because of them. */
static void test_what_differs_goes_first(void **state)
{
    for (uint32_t i = 0; i < 4; i++)
        add(1, i, 12, 12);
    w.places[1].elements = 63;
    add(1, 4, 11, 0);
    find(1);
    assert_int_equal(w.causes[0].fault, FLIGHT_DIFFERS);
    assert_int_equal(w.causes[0].rank.place->rank, 1);
}

/* Rank 1 is behind in group 1, since it waits in group 2, where rank 2 is behind. */
static void test_who_waits_is_not_named(void **state)
{
    add(1, 0, 12, 12);
    add(1, 1, 11, 0);
    add(2, 1, 5, 5);
    add(2, 2, 4, 0);
    find(1);
    assert_int_equal(w.causes[0].fault, FLIGHT_BEHIND);
    assert_int_equal(w.causes[0].rank.place->rank, 2);
    assert_int_equal(w.causes[0].rank.place->key, 2);
}

/* Each of two ranks waits in one group for the other one. */
static void test_groups_that_wait_for_each_other(void **state)
{
    add(1, 0, 12, 12);
    add(1, 1, 11, 0);
    add(2, 1, 5, 5)->wait_ms = 2000;
    add(2, 0, 4, 0);
    find(2);
    assert_int_equal(w.causes[0].fault, FLIGHT_CROSSED);
    assert_int_equal(w.causes[0].rank.place->rank, 0);
    assert_int_equal(w.causes[0].own->key, 1);
    assert_int_equal(w.causes[1].rank.place->rank, 1);
    assert_int_equal(w.causes[1].own->waits_in, 5);
}

/* Those who are waited for longest. */
static void test_more_than_are_named(void **state)
{
    for (uint32_t i = 0; i < 6; i++) {
        add(i + 1, 2 * i, 3, 3)->wait_ms = 100 * (i + 1);
        add(i + 1, 2 * i + 1, 2, 0);
    }
    find(CAUSES_MAX);
    for (uint32_t i = 0; i < CAUSES_MAX; i++)
        assert_int_equal(w.causes[i].rank.place->rank, 11 - 2 * i);
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_has_not_entered),
        TEST(test_all_is_well),
        TEST(test_one_alone_is_ahead),
        TEST(test_one_does_something_else),
        TEST(test_sizes_and_types),
        TEST(test_what_differs_goes_first),
        TEST(test_who_waits_is_not_named),
        TEST(test_groups_that_wait_for_each_other),
        TEST(test_more_than_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
