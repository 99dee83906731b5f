/* test-replay.c - the replay window: a table of cases, and a slow reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "noise/keypair.h"
#include "wire/wg.h"

#define LIMIT  WG_REJECT_AFTER_MESSAGES
#define WINDOW ((uint64_t)REPLAY_WINDOW)

/* Run in order on one window each; a counter, and whether it is fresh. */
struct step {
    uint64_t counter;
    bool is_fresh;
};

static void run(const struct step *steps, size_t n)
{
    struct replay w;

    memset(&w, 0, sizeof(w));
    for (size_t i = 0; i < n; i++)
        if (replay_check(&w, steps[i].counter) != steps[i].is_fresh)
            fail_msg("step %zu: counter %llu should be %s", i, (unsigned long long)steps[i].counter,
                steps[i].is_fresh ? "fresh" : "refused");
}

#define RUN(...)                                                                                   \
    run((const struct step[]){__VA_ARGS__},                                                        \
        sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step))

static void test_table(void **state)
{
    /* 1: in order, each once. */
    RUN({0, true}, {0, false}, {1, true}, {1, false}, {9, true}, {8, true}, {7, true}, {7, false});
    /* 2: the first one may be any. */
    RUN({5, true}, {5, false}, {0, true}, {0, false});
    /* 3: the far edge of the window. */
    RUN({WINDOW, true}, {0, true}, {0, false});
    RUN({WINDOW + 1, true}, {0, false}, {1, true}, {1, false});
    RUN({3 * WINDOW, true}, {2 * WINDOW, true}, {2 * WINDOW - 1, false});
    /* 4: a jump over the whole ring forgets everything, and keeps the old out. */
    RUN({3, true}, {(uint64_t)REPLAY_BITS * 5 + 3, true}, {3, false},
        {(uint64_t)REPLAY_BITS * 5 + 2, true}, {(uint64_t)REPLAY_BITS * 4 + 3, false});
    /* 5: across a block's border. */
    RUN({63, true}, {64, true}, {63, false}, {64, false}, {65, true}, {62, true}, {62, false});
    /* 6: the message limit, which also keeps `next` from wrapping. */
    RUN({LIMIT - 1, true}, {LIMIT, false}, {LIMIT + 1, false}, {UINT64_MAX, false},
        {LIMIT - 1, false}, {LIMIT - 2, true}, {LIMIT - 1 - WINDOW, true},
        {LIMIT - 2 - WINDOW, false}, {0, false});
    /* 7: backwards through the whole window. */
    struct replay w;

    memset(&w, 0, sizeof(w));
    for (uint64_t c = WINDOW + 1; c-- > 0;)
        assert_true(replay_check(&w, c));
    for (uint64_t c = 0; c <= WINDOW; c++)
        assert_false(replay_check(&w, c));
}

/* The reference remembers every counter of a small range, and the greatest. */
#define RANGE 60000u

static void test_reference(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t s = seed;
        struct rng rng = rng_seeded(&s);
        bool *seen = calloc(RANGE, sizeof(*seen));
        uint64_t greatest = 0;
        bool any = false;
        struct replay w;

        assert_non_null(seen);
        memset(&w, 0, sizeof(w));
        for (unsigned i = 0; i < 100000; i++) {
            /* Near the front mostly, sometimes anywhere, so that both edges are met often. */
            uint64_t c = rng_u32(&rng) % 16 == 0
                             ? rng_u32(&rng) % RANGE
                             : (greatest + rng_u32(&rng) % 200 + RANGE - 150) % RANGE;
            bool expected;

            if (rng_u32(&rng) % 8 == 0)
                c = (greatest + RANGE - WINDOW - 5 + rng_u32(&rng) % 10) % RANGE;
            expected = !seen[c] && (!any || c + WINDOW >= greatest);
            if (replay_check(&w, c) != expected)
                fail_msg("seed %llu, step %u: counter %llu, greatest %llu, expected %d",
                    (unsigned long long)seed, i, (unsigned long long)c,
                    (unsigned long long)greatest, expected);
            if (expected) {
                seen[c] = true;
                greatest = !any || c > greatest ? c : greatest;
                any = true;
            }
        }
        free(seen);
    }
}

/* ---- what has arrived, and what has not ---- */

static void assert_arrivals(const struct replay *w, uint64_t below, struct arrivals expected)
{
    struct arrivals a = replay_arrivals(w, below);

    if (a.received != expected.received || a.lost != expected.lost ||
        a.reordered != expected.reordered || a.repeated != expected.repeated)
        fail_msg("below %llu: %llu received, %llu lost, %llu reordered, %llu repeated",
            (unsigned long long)below, (unsigned long long)a.received, (unsigned long long)a.lost,
            (unsigned long long)a.reordered, (unsigned long long)a.repeated);
}

#define ALL UINT64_MAX

static void test_arrivals(void **state)
{
    struct replay w;

    memset(&w, 0, sizeof(w));
    assert_arrivals(&w, ALL, (struct arrivals){0});
    /* The first that comes has counter 3: three before it were sent, and have not come. */
    assert_true(replay_check(&w, 3));
    assert_arrivals(&w, ALL, (struct arrivals){.received = 1, .lost = 3});
    assert_arrivals(&w, 0, (struct arrivals){.received = 1});
    assert_arrivals(&w, 2, (struct arrivals){.received = 1, .lost = 2});
    /* One comes behind it: it is not lost. */
    assert_true(replay_check(&w, 1));
    assert_arrivals(&w, ALL, (struct arrivals){.received = 2, .lost = 2, .reordered = 1});
    assert_arrivals(&w, 2, (struct arrivals){.received = 2, .lost = 1, .reordered = 1});
    /* What comes twice is no more received than before. */
    assert_false(replay_check(&w, 1));
    assert_false(replay_check(&w, 3));
    assert_arrivals(
        &w, ALL, (struct arrivals){.received = 2, .lost = 2, .reordered = 1, .repeated = 2});
    /* A jump over the whole ring: none of those between has come. */
    assert_true(replay_check(&w, (uint64_t)REPLAY_BITS * 5));
    assert_arrivals(&w, ALL,
        (struct arrivals){
            .received = 3, .lost = (uint64_t)REPLAY_BITS * 5 - 2, .reordered = 1, .repeated = 2});
    /* What has left the ring is lost, whatever is asked. */
    assert_arrivals(&w, 0,
        (struct arrivals){.received = 3,
            .lost = (uint64_t)REPLAY_BITS * 4 + 64 - 2,
            .reordered = 1,
            .repeated = 2});
    /* One that is too old for the window is not received, and so stays lost. */
    assert_false(replay_check(&w, 0));
    assert_arrivals(&w, ALL,
        (struct arrivals){
            .received = 3, .lost = (uint64_t)REPLAY_BITS * 5 - 2, .reordered = 1, .repeated = 2});
}

/* At the greatest counter that there is nothing wraps, and what is refused changes nothing. */
static void test_arrivals_at_the_limit(void **state)
{
    struct replay w;

    memset(&w, 0, sizeof(w));
    assert_true(replay_check(&w, LIMIT - 1));
    assert_false(replay_check(&w, LIMIT));
    assert_false(replay_check(&w, UINT64_MAX));
    assert_arrivals(&w, ALL, (struct arrivals){.received = 1, .lost = LIMIT - 1});
    assert_true(replay_check(&w, LIMIT - 2));
    assert_arrivals(&w, ALL, (struct arrivals){.received = 2, .lost = LIMIT - 2, .reordered = 1});
}

static void test_sums_have_an_end(void **state)
{
    struct arrivals sum = {.received = 1, .lost = UINT64_MAX - 1, .reordered = 2, .repeated = 3};

    arrivals_add(&sum, &(struct arrivals){.received = 10, .lost = 1});
    assert_true(sum.lost == UINT64_MAX && sum.received == 11);
    arrivals_add(&sum, &(struct arrivals){.lost = LIMIT, .reordered = 20, .repeated = 30});
    assert_true(sum.lost == UINT64_MAX && sum.reordered == 22 && sum.repeated == 33);
}

/** A line that loses, reorders and repeats at random, and what a slow count says of it. */
struct line {
    struct replay w;
    bool *seen; /* owns; by counter: came, and was taken */
    uint64_t next;
    struct arrivals counted; /* but for what is lost */
};

static void arrive(struct line *l, uint64_t counter)
{
    bool is_old = l->next > counter && l->next - 1 - counter > WINDOW;
    bool is_fresh = !is_old && !l->seen[counter];

    if (replay_check(&l->w, counter) != is_fresh)
        fail_msg("counter %llu, greatest %llu", (unsigned long long)counter,
            (unsigned long long)l->next - 1);
    l->counted.received += is_fresh;
    l->counted.reordered += is_fresh && counter < l->next;
    l->counted.repeated += !is_fresh && !is_old;
    l->seen[counter] |= is_fresh;
    if (is_fresh && counter >= l->next)
        l->next = counter + 1;
}

/* What replay_arrivals() has to say of @below, from all that has come. */
static struct arrivals expect(const struct line *l, uint64_t below)
{
    struct arrivals a = l->counted;
    uint64_t front = l->next ? (l->next - 1) / 64 : 0;
    uint64_t left = front >= REPLAY_BITS / 64 ? (front - REPLAY_BITS / 64 + 1) * 64 : 0;

    if (below > l->next)
        below = l->next;
    if (below < left)
        below = left;
    for (uint64_t c = 0; c < below; c++)
        a.lost += !l->seen[c];
    return a;
}

/* Of many lines, from clean to dreadful, and at many points of each: exactly what was lost,
 * reordered and repeated. */
static void test_arrivals_of_random_lines(void **state)
{
    enum { SENT = 30000, HELD_MAX = 12000 };

    for (uint64_t seed = 1; seed <= 25; seed++) {
        uint64_t s = seed;
        struct rng rng = rng_seeded(&s);
        static const uint32_t shares[] = {0, 1, 10, 100, 500};
        uint32_t loss = shares[seed % 5];         /* of 1,000 */
        uint32_t reorder = shares[seed / 5 % 5];  /* of 1,000 */
        uint32_t repeat = shares[(seed + 2) % 4]; /* of 1,000 */
        uint64_t held_for = 1 + rng_u32(&rng) % HELD_MAX;
        struct line l = {.seen = calloc(SENT, sizeof(bool))};
        uint64_t held[64]; /* counters that are overtaken, in the order in which they come */
        uint64_t held_until[64];
        unsigned n_held = 0;

        assert_non_null(l.seen);
        for (uint64_t c = 0; c < SENT; c++) {
            if (rng_u32(&rng) % 1000 < loss)
                continue;
            if (n_held < 64 && rng_u32(&rng) % 1000 < reorder) {
                held[n_held] = c;
                held_until[n_held++] = c + 1 + rng_u32(&rng) % held_for;
            } else {
                arrive(&l, c);
                if (rng_u32(&rng) % 1000 < repeat)
                    arrive(&l, c - (c > 100 ? rng_u32(&rng) % 100 : 0));
            }
            for (unsigned i = 0; i < n_held; i++)
                if (held_until[i] <= c) {
                    arrive(&l, held[i]);
                    held[i] = held[--n_held];
                    held_until[i] = held_until[n_held];
                    i--;
                }
            if (c % 5003 == 0 || c == SENT - 1) {
                assert_arrivals(&l.w, ALL, expect(&l, ALL));
                assert_arrivals(&l.w, 0, expect(&l, 0));
                assert_arrivals(&l.w, l.next / 2, expect(&l, l.next / 2));
                assert_arrivals(&l.w, l.next - l.next / 100, expect(&l, l.next - l.next / 100));
            }
        }
        free(l.seen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_arrivals),
        cmocka_unit_test(test_arrivals_at_the_limit),
        cmocka_unit_test(test_sums_have_an_end),
        cmocka_unit_test(test_arrivals_of_random_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
