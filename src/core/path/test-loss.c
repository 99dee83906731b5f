/* test-loss.c - loss over time: which time, how sure, and what this machine dropped itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "path/loss.h"

#define SEC NSEC_PER_SEC

/** A track, and the time at which it was added to last. */
struct world {
    struct loss_track t;
    nsec_t now;
};

/* @seconds in which @received come and @lost do not, each second. */
static void pass(struct world *w, unsigned seconds, uint64_t received, uint64_t lost, uint64_t here)
{
    if (w->now == 0)
        loss_track_add(&w->t, 0, 0, 0, w->now = 1000 * SEC);
    for (unsigned i = 0; i < seconds; i++)
        loss_track_add(&w->t, received, lost, here, w->now += SEC);
}

static struct loss_rate rate_of(const struct world *w)
{
    return loss_track_rate(&w->t, w->now);
}

static void test_nothing_is_known_of_little(void **state)
{
    struct loss_track never = {.n = 0};
    struct loss_rate r = loss_track_rate(&never, 5 * SEC);
    struct world w = {.now = 0};

    assert_false(loss_rate_is_known(&r));
    assert_int_equal(r.packets + r.lost + r.seconds + r.periods, 0);
    assert_int_equal(loss_rate_ppm(&r), 0);
    /* The first counts are of before. */
    loss_track_add(&never, 100000, 100000, 0, 5 * SEC);
    r = loss_track_rate(&never, 5 * SEC);
    assert_int_equal(r.packets, 0);
    pass(&w, 9, 100, 11, 0);
    r = rate_of(&w);
    assert_int_equal(r.packets, 999);
    assert_false(loss_rate_is_known(&r));
    pass(&w, 1, 1, 0, 0);
    r = rate_of(&w);
    assert_true(loss_rate_is_known(&r));
    /* It begins with twice as many, and ends with fewer than once. */
    pass(&w, 1, 999, 0, 0);
    assert_false(w.t.is_known);
    pass(&w, 20, 1, 10, 0);
    assert_true(w.t.is_known);
    assert_int_equal(w.t.level, LOSS_LEVEL_CRITICAL);
    pass(&w, 599, 1, 0, 0);
    assert_false(w.t.is_known);
    assert_int_equal(w.t.level, LOSS_LEVEL_NONE);
}

/* With enough datagrams it is of the last minute, else of ten. */
static void test_which_time_it_is_of(void **state)
{
    struct world w = {.now = 0};
    struct loss_rate r;

    pass(&w, 600, 900, 0, 0);
    pass(&w, 60, 999, 1, 0);
    r = rate_of(&w);
    assert_in_range(r.seconds, 50, 60);
    assert_int_equal(r.lost, r.seconds);
    assert_int_equal(r.packets, r.seconds * 1000);
    assert_in_range(r.periods, 5, 6);
    assert_int_equal(loss_rate_ppm(&r), 1000);
    /* It gets worse, and is over, and the last minute says so. */
    pass(&w, 60, 980, 20, 0);
    pass(&w, 60, 1000, 0, 0);
    r = rate_of(&w);
    assert_int_equal(r.lost, 0);
    assert_int_equal(r.periods, 0);
    /* A tenth as much, of which a minute has lost too few. */
    pass(&w, 600, 100, 0, 0);
    for (unsigned i = 0; i < 60; i++) {
        pass(&w, 9, 100, 0, 0);
        pass(&w, 1, 99, 1, 0);
    }
    r = rate_of(&w);
    assert_in_range(r.seconds, 589, 600);
    assert_in_range(r.lost, 58, 60);
    assert_in_range(r.periods, 58, 60);
    assert_in_range(loss_rate_ppm(&r), 970, 1030);
    /* And when nothing comes any more there is nothing to tell. */
    pass(&w, 601, 0, 0, 0);
    r = rate_of(&w);
    assert_false(loss_rate_is_known(&r));
    assert_int_equal(w.t.level, LOSS_LEVEL_NONE);
}

/* Whoever asks seldom loses nothing of it. */
static void test_seldom_looks(void **state)
{
    struct world w = {.now = 0};
    struct loss_rate r;

    pass(&w, 0, 0, 0, 0);
    for (unsigned i = 0; i < 100; i++)
        loss_track_add(&w.t, 9990, 10, 0, w.now += 10 * SEC);
    r = rate_of(&w);
    assert_in_range(r.seconds, 50, 60);
    assert_int_equal(r.packets, r.seconds * 1000);
    assert_int_equal(r.lost, r.seconds);
    /* A look after a long time says nothing of the last minute alone. */
    loss_track_add(&w.t, 70000, 30000, 0, w.now += 300 * SEC);
    r = rate_of(&w);
    assert_in_range(r.seconds, 300, 600);
    assert_in_range(loss_rate_ppm(&r), 70000, 80000);
}

/* One event is no rate, however much it lost. */
static void test_one_event_is_no_rate(void **state)
{
    struct world w = {.now = 0};

    pass(&w, 120, 1000, 0, 0);
    pass(&w, 1, 0, 5000, 0);
    for (unsigned i = 0; i < 120; i++) {
        assert_int_equal(w.t.level, LOSS_LEVEL_NONE);
        pass(&w, 1, 1000, 0, 0);
    }
    /* Three of them in a minute are. */
    for (unsigned i = 0; i < 3; i++) {
        pass(&w, 14, 1000, 0, 0);
        pass(&w, 1, 0, 1000, 0);
    }
    assert_int_equal(w.t.level, LOSS_LEVEL_CRITICAL);
}

static void test_levels_begin_and_end(void **state)
{
    struct world w = {.now = 0};

    pass(&w, 120, 1999, 0, 0);
    pass(&w, 65, 1999, 1, 0); /* 0.05 % */
    assert_int_equal(w.t.level, LOSS_LEVEL_NONE);
    pass(&w, 65, 1997, 3, 0); /* 0.15 % */
    assert_int_equal(w.t.level, LOSS_LEVEL_SOME);
    pass(&w, 65, 4997, 3, 0); /* 0.06 % */
    assert_int_equal(w.t.level, LOSS_LEVEL_SOME);
    pass(&w, 65, 980, 20, 0); /* 2 % */
    assert_int_equal(w.t.level, LOSS_LEVEL_CRITICAL);
    pass(&w, 65, 994, 6, 0); /* 0.6 % */
    assert_int_equal(w.t.level, LOSS_LEVEL_CRITICAL);
    pass(&w, 65, 996, 4, 0); /* 0.4 % */
    assert_int_equal(w.t.level, LOSS_LEVEL_SOME);
    pass(&w, 65, 1000, 0, 0);
    assert_int_equal(w.t.level, LOSS_LEVEL_NONE);
    /* What is over stays so, also where little is sent afterwards. */
    for (unsigned i = 0; i < 400; i++) {
        pass(&w, 1, 30, 0, 0);
        assert_int_equal(w.t.level, LOSS_LEVEL_NONE);
    }
    pass(&w, 65, 980, 20, 0);
    assert_int_equal(w.t.level, LOSS_LEVEL_CRITICAL);
}

/* What this machine dropped is not the line's, also when it is missed a little after that. */
static void test_what_was_dropped_here(void **state)
{
    struct world w = {.now = 0};
    struct loss_rate r;

    pass(&w, 120, 1000, 0, 0);
    for (unsigned i = 0; i < 6; i++) {
        pass(&w, 1, 1000, 0, 300);
        pass(&w, 8, 1000, 0, 0);
        pass(&w, 1, 1000, 250, 0);
        assert_int_equal(w.t.level, LOSS_LEVEL_NONE);
    }
    r = rate_of(&w);
    assert_int_equal(r.lost, 0);
    assert_int_equal(r.periods, 0);
    /* What is beyond that is. */
    pass(&w, 60, 1000, 300, 100);
    r = rate_of(&w);
    assert_in_range(r.lost, 190 * r.seconds, 200 * r.seconds);
    assert_int_equal(w.t.level, LOSS_LEVEL_CRITICAL);
}

/* A peer chooses its counters, so what it seems to have lost may be any number. */
static void test_absurd_counts(void **state)
{
    struct world w = {.now = 0};
    struct loss_rate r;

    pass(&w, 100, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    r = rate_of(&w);
    assert_int_equal(r.lost, 0);
    pass(&w, 60, UINT64_MAX, UINT64_MAX, 0);
    r = rate_of(&w);
    assert_true(r.lost > UINT32_MAX && r.packets > r.lost);
    assert_in_range(loss_rate_ppm(&r), 1, 1000000);
    assert_int_equal(
        loss_rate_ppm(&(struct loss_rate){.packets = UINT64_MAX, .lost = UINT64_MAX}), 1000000);
}

/* Of what is lost at random, the rate is told to a factor of two in the time that it may take. */
static void test_random_losses(void **state)
{
    static const struct {
        unsigned per_second; /* datagrams */
        uint32_t ppm;        /* lost */
        unsigned within_s;
    } lines[] = {{1000, 1000, 60}, {300, 1000, 120}, {300, 10000, 60}, {1000, 100, 600}};

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        unsigned n_right = 0;

        for (uint64_t seed = 1; seed <= 40; seed++) {
            uint64_t s = seed;
            struct rng rng = rng_seeded(&s);
            struct world w = {.now = 0};
            struct loss_rate r;

            pass(&w, 300, lines[i].per_second, 0, 0);
            for (unsigned t = 0; t < lines[i].within_s; t++) {
                unsigned lost = 0;

                for (unsigned k = 0; k < lines[i].per_second; k++)
                    lost += rng_u32(&rng) % 1000000 < lines[i].ppm;
                pass(&w, 1, lines[i].per_second - lost, lost, 0);
            }
            r = rate_of(&w);
            n_right +=
                loss_rate_ppm(&r) >= lines[i].ppm / 2 && loss_rate_ppm(&r) <= lines[i].ppm * 2;
        }
        if (n_right < 38)
            fail_msg("line %zu: right %u times of 40", i, n_right);
    }
}

/* ---- beside what is usual -------------------------------------------------------------------- */

static void test_what_is_usual(void **state)
{
    struct world w = {.now = 0};
    struct loss_rate r;

    /* It is of all but the last minute, and of half a minute at least. */
    pass(&w, 85, 998, 2, 0);
    r = rate_of(&w);
    assert_false(r.has_usual);
    pass(&w, 20, 998, 2, 0);
    r = rate_of(&w);
    assert_true(r.has_usual);
    assert_int_equal(r.usual_ppm, 2000);
    assert_false(w.t.is_worse);
    /* Of few datagrams it is not known for longer. */
    w = (struct world){.now = 0};
    pass(&w, 240, 100, 0, 0);
    r = rate_of(&w);
    assert_false(r.has_usual);
    pass(&w, 40, 100, 0, 0);
    r = rate_of(&w);
    assert_true(r.has_usual);
    assert_int_equal(r.usual_ppm, 0);
    /* And what this machine dropped itself is none. */
    w = (struct world){.now = 0};
    pass(&w, 200, 990, 10, 10);
    r = rate_of(&w);
    assert_true(r.has_usual);
    assert_int_equal(r.usual_ppm, 0);
    assert_false(w.t.is_worse);
}

/* What was more than an hour ago is not in it. */
static void test_usual_is_of_an_hour(void **state)
{
    struct world w = {.now = 0};
    struct loss_rate r;

    pass(&w, 600, 900, 100, 0);
    pass(&w, 3000, 1000, 0, 0);
    r = rate_of(&w);
    assert_in_range(r.usual_ppm, 16000, 18000);
    pass(&w, 1400, 1000, 0, 0);
    r = rate_of(&w);
    assert_true(r.has_usual);
    assert_int_equal(r.usual_ppm, 0);
    /* Nor what was before a silence. */
    loss_track_add(&w.t, 0, 0, 0, w.now += 7200 * SEC);
    pass(&w, 20, 1000, 0, 0);
    r = rate_of(&w);
    assert_false(r.has_usual);
}

static void test_much_worse_than_usual(void **state)
{
    struct world w = {.now = 0};
    struct loss_rate r;

    pass(&w, 300, 998, 2, 0);
    pass(&w, 20, 990, 10, 0);
    assert_false(w.t.is_worse);
    /* Half of a minute is three times as bad. */
    pass(&w, 25, 990, 10, 0);
    assert_true(w.t.is_worse);
    r = rate_of(&w);
    assert_int_equal(r.usual_ppm, 2000);
    /* As long as it lasts nothing of it is usual. */
    pass(&w, 600, 990, 10, 0);
    assert_true(w.t.is_worse);
    r = rate_of(&w);
    assert_in_range(r.usual_ppm, 2000, 2300);
    /* It is over at half as much again. */
    pass(&w, 60, 996, 4, 0);
    assert_true(w.t.is_worse);
    pass(&w, 60, 997, 3, 0);
    assert_false(w.t.is_worse);
    /* After an hour it is what is usual. */
    pass(&w, 600, 998, 2, 0);
    pass(&w, 60, 980, 20, 0);
    assert_true(w.t.is_worse);
    pass(&w, 3500, 980, 20, 0);
    assert_true(w.t.is_worse);
    pass(&w, 100, 980, 20, 0);
    assert_false(w.t.is_worse);
    pass(&w, 300, 980, 20, 0);
    assert_false(w.t.is_worse);
    r = rate_of(&w);
    assert_int_equal(r.usual_ppm, 20000);
}

/* A burst is none, nor a line that loses little, nor one of which too little is known. */
static void test_no_worse_than_usual(void **state)
{
    struct world w = {.now = 0};

    for (unsigned i = 0; i < 60; i++) {
        pass(&w, 59, 998, 2, 0);
        pass(&w, 1, 500, 500, 0);
        assert_false(w.t.is_worse);
    }
    w = (struct world){.now = 0};
    pass(&w, 300, 1000, 0, 0);
    for (unsigned i = 0; i < 120; i++) {
        pass(&w, 1, 999, 1, 0);
        pass(&w, 1, 1000, 0, 0);
        assert_false(w.t.is_worse);
    }
    w = (struct world){.now = 0};
    pass(&w, 300, 400, 0, 0);
    for (unsigned i = 0; i < 20; i++) {
        pass(&w, 1, 100, 1, 0);
        assert_false(w.t.is_worse);
    }
    w = (struct world){.now = 0};
    pass(&w, 20, 999, 1, 0);
    pass(&w, 60, 900, 100, 0);
    assert_false(w.t.is_worse);
    assert_int_equal(w.t.level, LOSS_LEVEL_CRITICAL);
}

/* A track of 300 s at @usual of 100,000, and then of 60 s at @now of @each a second. */
static struct world usual_and_now(uint64_t usual, uint64_t each, uint64_t now)
{
    struct world w = {.now = 0};

    pass(&w, 300, 100000 - usual, usual, 0);
    pass(&w, 61, each - now, now, 0);
    return w;
}

/* Each condition, at its limit. */
static void test_limits_of_worse(void **state)
{
    static const struct {
        uint64_t usual, each, now;
        bool is_worse;
    } cases[] = {
        {100, 100000, 300, true},
        {100, 100000, 299, false},
        {0, 100000, 100, true},
        {0, 100000, 99, false},
        /* So few were lost in a minute. */
        {0, 30, 1, true},
        {1000, 300, 9, true},
        {1000, 300, 8, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world w = usual_and_now(cases[i].usual, cases[i].each, cases[i].now);

        if (w.t.is_worse != cases[i].is_worse)
            fail_msg("case %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known_of_little),
        cmocka_unit_test(test_which_time_it_is_of),
        cmocka_unit_test(test_seldom_looks),
        cmocka_unit_test(test_one_event_is_no_rate),
        cmocka_unit_test(test_levels_begin_and_end),
        cmocka_unit_test(test_what_was_dropped_here),
        cmocka_unit_test(test_absurd_counts),
        cmocka_unit_test(test_random_losses),
        cmocka_unit_test(test_what_is_usual),
        cmocka_unit_test(test_usual_is_of_an_hour),
        cmocka_unit_test(test_much_worse_than_usual),
        cmocka_unit_test(test_no_worse_than_usual),
        cmocka_unit_test(test_limits_of_worse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
