/* test-tai64n.c - what initiations are dated, by whatever clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/clock.h"
#include "noise/tai64n.h"

#define NOW ((nsec_t)1790000000 * NSEC_PER_SEC)

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

    assert_true(first <= NOW && first > NOW - 20 * NSEC_PER_MSEC);
    second = next(&last, &b, NOW - 3600 * NSEC_PER_SEC);
    assert_true(second > first && second < first + 20 * NSEC_PER_MSEC);
    assert_true(tai64n_wall(&none) == 0);
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
        cmocka_unit_test(test_above),
        cmocka_unit_test(test_upto),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_wall_of_a_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
