/*
 * test-line.c - when a line counts as full, who is asked to go another way, and who is let back: on
 * loads that are played second by second.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "relay/line.h"

#define SEC     NSEC_PER_SEC
#define MBIT    UINT64_C(1000000)
#define PAIRS   40
#define MINUTES 60
#define HOURS   3600

/* A relay with pairs that send all the time, each at a rate of its own. */
static struct {
    struct relay_line line;
    nsec_t now;
    uint64_t bytes;
    uint64_t rates[PAIRS]; /* bit/s */
    bool stays[PAIRS];     /* it has no other way to go */
    unsigned n_asked;      /* times that a pair was asked */
    unsigned n_back;
    bool was_away[PAIRS];
} world;

static int begin(void **state)
{
    memset(&world, 0, sizeof(world));
    world.now = 1000 * SEC;
    world.line.capacity = 10 * MBIT;
    return 0;
}

static struct relay_pair pair_of(unsigned i)
{
    return (struct relay_pair){
        .keys = {{{(uint8_t)(2 * i + 1)}}, {{(uint8_t)(2 * i + 2)}}}, .rate = world.rates[i]};
}

static bool is_away(unsigned i)
{
    struct relay_pair pair = pair_of(i);

    return relay_line_is_away(&world.line, pair.keys);
}

static bool is_here(unsigned i)
{
    return world.rates[i] > 0 && (world.stays[i] || !is_away(i));
}

static void add_sorted(struct relay_sample *s, const struct relay_pair *pair)
{
    unsigned at = s->n_pairs;

    while (at > 0 && s->pairs[at - 1].rate < pair->rate)
        at--;
    if (at == RELAY_LINE_PAIRS_MAX)
        return;
    if (s->n_pairs < RELAY_LINE_PAIRS_MAX)
        s->n_pairs++;
    memmove(&s->pairs[at + 1], &s->pairs[at], (s->n_pairs - at - 1) * sizeof(*s->pairs));
    s->pairs[at] = *pair;
}

static void count_moves(void)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        bool now = is_away(i);

        world.n_asked += now && !world.was_away[i];
        world.n_back += !now && world.was_away[i];
        world.was_away[i] = now;
    }
}

static void second(void)
{
    struct relay_sample s = {.now = world.now += SEC};
    uint64_t sum = 0;

    for (unsigned i = 0; i < PAIRS; i++)
        if (is_here(i)) {
            struct relay_pair pair = pair_of(i);

            sum += pair.rate;
            add_sorted(&s, &pair);
        }
    world.bytes += sum / 8;
    s.bytes = world.bytes;
    relay_line_take(&world.line, &s);
    count_moves();
}

static void pass(unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++)
        second();
}

/* How many seconds pass until the line has that level. */
static unsigned until_level(enum relay_line_level level)
{
    unsigned n = 0;

    while (world.line.level != level && n < 300) {
        second();
        n++;
    }
    assert_int_equal(world.line.level, level);
    return n;
}

static unsigned until_back(unsigned pair)
{
    unsigned n = 0;

    while (is_away(pair) && n < 30 * HOURS) {
        second();
        n++;
    }
    assert_false(is_away(pair));
    return n;
}

static void test_nothing_is_concluded_of_an_unknown_line(void **state)
{
    world.line.capacity = 0;
    world.rates[0] = 1000 * MBIT;
    pass(10 * MINUTES);
    assert_int_equal(world.line.level, RELAY_LINE_OPEN);
    assert_false(world.line.is_closed);
    assert_int_equal(world.n_asked, 0);
    /* But the rate is known, to a thousandth. */
    assert_in_range(world.line.rate, 999 * MBIT, 1001 * MBIT);
}

static void test_near_its_limit(void **state)
{
    unsigned n;

    world.rates[0] = 8 * MBIT;
    n = until_level(RELAY_LINE_NEAR);
    assert_in_range(n, 31, 50);
    pass(10 * MINUTES);
    /* That is no reason to send anybody away. */
    assert_int_equal(world.line.level, RELAY_LINE_NEAR);
    assert_false(world.line.is_closed);
    assert_int_equal(world.n_asked, 0);
    world.rates[0] = 6 * MBIT;
    n = until_level(RELAY_LINE_OPEN);
    assert_in_range(n, 10, 25);
}

static void test_a_peak_is_nothing(void **state)
{
    world.rates[0] = 5 * MBIT;
    pass(60);
    for (unsigned i = 0; i < 20; i++) {
        world.rates[1] = 5 * MBIT;
        pass(25);
        world.rates[1] = 0;
        pass(25);
        assert_int_equal(world.line.level, RELAY_LINE_OPEN);
    }
    assert_int_equal(world.n_asked, 0);
}

static void test_the_heaviest_pair_is_asked(void **state)
{
    struct relay_line_report report;
    unsigned n;

    world.rates[0] = 5 * MBIT - 100000;
    world.rates[1] = 5 * MBIT;
    n = until_level(RELAY_LINE_FULL);
    assert_in_range(n, 31, 60);
    assert_true(world.line.is_closed);
    assert_true(is_away(1));
    assert_false(is_away(0));
    relay_line_tell(&world.line, &report);
    assert_int_equal(report.level, RELAY_LINE_FULL);
    assert_int_equal(report.capacity, 10 * MBIT);
    assert_false(report.is_measured);
    world.line.is_measured = true;
    relay_line_tell(&world.line, &report);
    assert_true(report.is_measured);
    assert_true(report.notice.is_closed);
    assert_int_equal(report.notice.n_away, 1);
    assert_int_equal(report.n_pairs, 2);
    assert_true(report.pairs[0].is_away);
    assert_int_equal(report.pairs[0].pair.rate, 5 * MBIT);
    assert_false(report.pairs[1].is_away);
    assert_true(path_relay_notice_is_away(&report.notice,
        path_pair_tag(&report.pairs[0].pair.keys[1], &report.pairs[0].pair.keys[0])));
    assert_false(path_relay_notice_is_away(&report.notice,
        path_pair_tag(&report.pairs[1].pair.keys[0], &report.pairs[1].pair.keys[1])));
    /* It goes, and what remains is no load. */
    n = until_level(RELAY_LINE_OPEN);
    assert_in_range(n, 10, 30);
    relay_line_tell(&world.line, &report);
    /* The pair is named, though it does not use the line any more. */
    assert_int_equal(report.n_pairs, 2);
    assert_true(report.pairs[1].is_away);
    assert_int_equal(report.pairs[1].pair.rate, 0);
    /* New pairs are let in after three calm minutes, and this one is not let back then. */
    pass(170 - n);
    assert_true(world.line.is_closed);
    pass(60);
    assert_false(world.line.is_closed);
    assert_true(is_away(1));
    assert_int_equal(world.n_asked, 1);
}

/* A load that stays as it is moves a pair a few times in a day, each time after twice as long. */
static void test_it_does_not_oscillate(void **state)
{
    unsigned waits[3];

    world.rates[0] = 5 * MBIT - 100000;
    world.rates[1] = 5 * MBIT;
    (void)until_level(RELAY_LINE_FULL);
    for (unsigned i = 0; i < 3; i++) {
        waits[i] = until_back(1);
        (void)until_level(RELAY_LINE_FULL);
        assert_true(is_away(1));
    }
    assert_in_range(waits[0], 10 * MINUTES - 1, 10 * MINUTES + 10);
    assert_in_range(waits[1], 20 * MINUTES - 1, 20 * MINUTES + 10);
    assert_in_range(waits[2], 40 * MINUTES - 1, 40 * MINUTES + 10);
    begin(NULL);
    world.rates[0] = 5 * MBIT - 100000;
    world.rates[1] = 5 * MBIT;
    pass(24 * HOURS);
    assert_in_range(world.n_asked, 2, 8);
    assert_in_range(world.n_asked - world.n_back, 0, 1);
    /* Nobody else was bothered. */
    assert_false(is_away(0));
}

static void test_who_fits_is_let_back_soon(void **state)
{
    unsigned n;

    world.rates[0] = 5 * MBIT - 100000;
    world.rates[1] = 5 * MBIT;
    (void)until_level(RELAY_LINE_FULL);
    pass(60);
    world.rates[0] = 1 * MBIT;
    n = until_back(1);
    /* It has been below six tenths since the pair went. */
    assert_in_range(n, 60, 180);
    pass(HOURS);
    assert_int_equal(world.n_asked, 1);
    assert_int_equal(world.n_back, 1);
}

static void test_the_lightest_come_back_first(void **state)
{
    world.rates[0] = 4 * MBIT;
    world.rates[1] = 3 * MBIT;
    world.rates[2] = 2 * MBIT;
    world.rates[3] = 1 * MBIT;
    (void)until_level(RELAY_LINE_FULL);
    /* One is enough: what remains is six of ten. */
    assert_true(is_away(0) && !is_away(1) && !is_away(2) && !is_away(3));
    begin(NULL);
    world.rates[0] = 3 * MBIT;
    world.rates[1] = 3 * MBIT + 1;
    world.rates[2] = 2 * MBIT;
    world.rates[3] = 9 * MBIT;
    (void)until_level(RELAY_LINE_FULL);
    pass(5);
    assert_true(is_away(3) && is_away(1));
    assert_int_equal(world.n_asked, 2);
    world.rates[0] = world.rates[2] = 0;
    world.rates[3] = world.rates[1] = 100;
    pass(4 * MINUTES);
    assert_int_equal(world.n_back, 1);
    assert_true(is_away(3));
}

/* Who has no other way stays, and the next ones are asked. */
static void test_who_cannot_go_stays(void **state)
{
    world.rates[0] = 5 * MBIT + 500000;
    world.rates[1] = 3 * MBIT + 500000;
    world.rates[2] = 1 * MBIT;
    world.stays[0] = true;
    (void)until_level(RELAY_LINE_FULL);
    assert_int_equal(world.n_asked, 1);
    assert_true(is_away(0));
    pass(29);
    assert_int_equal(world.n_asked, 1);
    pass(3);
    assert_int_equal(world.n_asked, 2);
    assert_true(is_away(1));
    (void)until_level(RELAY_LINE_OPEN);
    assert_false(is_away(2));
}

/* A pair that takes less than a fiftieth of the line is not worth it. */
static void test_small_pairs_are_left_alone(void **state)
{
    for (unsigned i = 0; i < PAIRS; i++)
        world.rates[i] = 250000;
    (void)until_level(RELAY_LINE_FULL);
    assert_in_range(world.n_asked, 1, 4);
    begin(NULL);
    /* One that has no other way, and many that are too small. */
    world.rates[1] = 0;
    for (unsigned i = 2; i < PAIRS; i++)
        world.rates[i] = 199000;
    world.rates[0] = 9500000 - 38 * UINT64_C(199000);
    world.stays[0] = true;
    (void)until_level(RELAY_LINE_FULL);
    pass(5 * MINUTES);
    assert_int_equal(world.n_asked, 1);
    assert_true(is_away(0));
    assert_int_equal(world.line.level, RELAY_LINE_FULL);
}

static void test_more_are_asked_than_have_a_place(void **state)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        world.rates[i] = 400000;
        world.stays[i] = true;
    }
    (void)until_level(RELAY_LINE_FULL);
    pass(HOURS);
    /* Four each half minute, and those alone that a sample names. */
    assert_in_range(world.n_asked, RELAY_LINE_PAIRS_MAX, RELAY_LINE_AWAY_MAX);
    assert_in_range(world.line.n_away, RELAY_LINE_PAIRS_MAX, RELAY_LINE_AWAY_MAX);
}

/* A machine that stood still says nothing of what has lasted. */
static void test_a_gap_begins_anew(void **state)
{
    world.rates[0] = 5 * MBIT - 100000;
    world.rates[1] = 5 * MBIT;
    pass(35);
    assert_int_equal(world.line.level, RELAY_LINE_OPEN);
    world.now += 20 * SEC;
    world.bytes += 20 * 10 * MBIT / 8;
    second();
    assert_int_equal(world.line.level, RELAY_LINE_OPEN);
    pass(20);
    assert_int_equal(world.line.level, RELAY_LINE_OPEN);
    (void)until_level(RELAY_LINE_FULL);
    /* The same moment twice is no sample. */
    world.now -= SEC;
    second();
    assert_int_equal(world.line.level, RELAY_LINE_FULL);
}

#define LINE_TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINE_TEST(test_nothing_is_concluded_of_an_unknown_line),
        LINE_TEST(test_near_its_limit),
        LINE_TEST(test_a_peak_is_nothing),
        LINE_TEST(test_the_heaviest_pair_is_asked),
        LINE_TEST(test_it_does_not_oscillate),
        LINE_TEST(test_who_fits_is_let_back_soon),
        LINE_TEST(test_the_lightest_come_back_first),
        LINE_TEST(test_who_cannot_go_stays),
        LINE_TEST(test_small_pairs_are_left_alone),
        LINE_TEST(test_more_are_asked_than_have_a_place),
        LINE_TEST(test_a_gap_begins_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
