/* test-tai64n.c - what initiations are dated, by whatever clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/clock.h"
#include "noise/tai64n.h"

#define NOW ((nsec_t)1790000000 * NSEC_PER_SEC)

/* Timestamps are so far apart at least. */
#define STEP ((nsec_t)1 << 24)

static const struct tai64n none = {{0}};

/* The next timestamp within @b at @wall, after @last, in ns since 1970. */
static nsec_t next(struct tai64n *last, const struct tai64n_bounds *b, nsec_t wall)
{
    struct tai64n t = tai64n_next(last, tai64n_bound(b, wall));

    return tai64n_wall(&t);
}

static void test_grows(void **state)
{
    struct tai64n_bounds b = TAI64N_UNBOUNDED;
    struct tai64n last = none;
    nsec_t first = next(&last, &b, NOW);
    nsec_t second;

    assert_int_equal(first, NOW);
    second = next(&last, &b, NOW - 3600 * NSEC_PER_SEC);
    assert_int_equal(second, NOW + STEP);
    assert_int_equal(tai64n_wall(&last), second);
    assert_true(tai64n_wall(&none) == 0);
    /* The clock is followed from the moment on at which it shows more than the last one. */
    assert_int_equal(next(&last, &b, second + STEP - 1), NOW + 2 * STEP);
    assert_int_equal(next(&last, &b, NOW + 4 * STEP - 1), NOW + 3 * STEP);
    assert_int_equal(next(&last, &b, NOW + 59 * STEP + 5), NOW + 59 * STEP);
    /* Where no step fits into the second, the next one begins. */
    assert_int_equal(next(&last, &b, NOW), NOW + NSEC_PER_SEC);
    /* A clock before 1970 shows 1970. */
    last = none;
    assert_int_equal(next(&last, &b, -5), 0);
    assert_int_equal(next(&last, &b, -5), STEP);
}

/* A label of somebody else, whose next step is a whole second exactly. */
static void test_next_second(void **state)
{
    struct tai64n last = {{0x40, 0, 0, 0, 0, 0, 0, 10, 0x3a, 0x9a, 0xca, 0}};

    assert_int_equal(tai64n_wall(&last), NSEC_PER_SEC - STEP);
    (void)tai64n_next(&last, 0);
    assert_int_equal(tai64n_wall(&last), NSEC_PER_SEC);
    last = (struct tai64n){{0x40, 0, 0, 0, 0, 0, 0, 10, 0x3a, 0x9a, 0xc9, 0xff}};
    (void)tai64n_next(&last, 0);
    assert_int_equal(tai64n_wall(&last), NSEC_PER_SEC - 1);
}

/* Between which times the clock is held, to the nanosecond. */
static void test_bounds(void **state)
{
    static const struct {
        struct tai64n_bounds b;
        nsec_t wall;
        nsec_t bound;
    } cases[] = {
        {{.above = 0, .upto = NSEC_NEVER}, 5, 5},
        {{.above = 0, .upto = 7}, 7, 7},
        {{.above = 0, .upto = 7}, 8, 7},
        {{.above = 1, .upto = NSEC_NEVER}, 0, 1 + STEP},
        {{.above = 1, .upto = NSEC_NEVER}, 1 + STEP, 1 + STEP},
        {{.above = 1, .upto = NSEC_NEVER}, 2 + STEP, 2 + STEP},
        {{.above = 5, .upto = 7}, 8, 5 + STEP},
        {{.above = NSEC_NEVER - STEP - 1, .upto = NSEC_NEVER}, 5, NSEC_NEVER - 1},
        {{.above = NSEC_NEVER - STEP, .upto = NSEC_NEVER}, 5, 5},
        {{.above = -1, .upto = NSEC_NEVER}, -2, -2},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(tai64n_bound(&cases[i].b, cases[i].wall), cases[i].bound);
}

/* Another run was ahead of this clock: the first timestamp of each peer is above all of its. */
static void test_above(void **state)
{
    const nsec_t ahead[] = {1, 7200 * NSEC_PER_SEC, (nsec_t)100 * 365 * 86400 * NSEC_PER_SEC};

    for (unsigned i = 0; i < sizeof(ahead) / sizeof(*ahead); i++) {
        struct tai64n_bounds b = {.above = NOW + ahead[i], .upto = NSEC_NEVER};
        struct tai64n last = none;
        nsec_t t = next(&last, &b, NOW);

        assert_true(t > b.above && t < b.above + 40 * NSEC_PER_MSEC);
        assert_true(next(&last, &b, NOW) > t);
        /* Once the clock has caught up it is followed. */
        t = next(&last, &b, b.above + 10 * NSEC_PER_SEC);
        assert_true(t > b.above + 9 * NSEC_PER_SEC);
    }
}

/* The clock has jumped ahead of what a later run will know: not before it knows. */
static void test_upto(void **state)
{
    struct tai64n_bounds b = {.above = 0, .upto = NOW + 300 * NSEC_PER_SEC};
    struct tai64n last = none;
    nsec_t t = next(&last, &b, NOW + 7200 * NSEC_PER_SEC);

    assert_true(t <= b.upto && t > b.upto - 20 * NSEC_PER_MSEC);
    assert_true(next(&last, &b, NOW + 7200 * NSEC_PER_SEC) > t);
    b.upto = NOW + 8000 * NSEC_PER_SEC;
    assert_true(next(&last, &b, NOW + 7200 * NSEC_PER_SEC) > NOW + 7199 * NSEC_PER_SEC);
}

/* Between times that leave no room, above what was sent wins. */
static void test_no_room(void **state)
{
    struct tai64n_bounds b = {.above = NOW, .upto = NOW};
    struct tai64n last = none;

    assert_true(next(&last, &b, NOW - NSEC_PER_SEC) > NOW);
    b = (struct tai64n_bounds){.above = NSEC_NEVER, .upto = NSEC_NEVER};
    assert_true(next(&last, &b, NOW) > NOW);
}

/* Seconds are counted from 1970, which TAI64 calls 2^62 + 10; what is out of reach is an end. */
static void test_wall_of_a_label(void **state)
{
    static const struct {
        struct tai64n label;
        nsec_t wall;
    } cases[] = {
        {{{0x40, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 5}}, 0},
        {{{0x40, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 5}}, 5},
        {{{0x40, 0, 0, 0, 0, 0, 0, 11, 0, 0, 1, 0}}, NSEC_PER_SEC + 256},
        {{{0x40, 0, 0, 2, 0, 0, 0, 10, 0, 0, 0, 1}}, (nsec_t)8589934592 * NSEC_PER_SEC + 1},
        {{{0x40, 0, 0, 2, 0x25, 0xc1, 0x7d, 4 + 9, 0, 0, 0, 1}},
            NSEC_NEVER / NSEC_PER_SEC * NSEC_PER_SEC - NSEC_PER_SEC + 1},
        {{{0x40, 0, 0, 2, 0x25, 0xc1, 0x7d, 4 + 10, 0, 0, 0, 1}}, NSEC_NEVER},
        {{{0x40, 0, 1, 0, 0, 0, 0, 10, 0, 0, 0, 1}}, NSEC_NEVER},
        {{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1}}, NSEC_NEVER},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(tai64n_wall(&cases[i].label), cases[i].wall);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_next_second),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_above),
        cmocka_unit_test(test_upto),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_wall_of_a_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
