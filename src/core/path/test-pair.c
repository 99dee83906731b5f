/* test-pair.c - how a pair is measured, and which of two is better. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "wire/path.h"

#define MS NSEC_PER_MSEC
#define T0 (100 * NSEC_PER_SEC)

static void ping(struct path_pair *pair, uint64_t transaction)
{
    path__pair_on_ping(pair, transaction, T0 + (nsec_t)transaction);
}

/* The ping of @transaction is answered @rtt after it was sent. */
static bool pong(struct path_pair *pair, uint64_t transaction, nsec_t rtt)
{
    nsec_t sent_at = T0 + (nsec_t)transaction;
    struct path_frame f = {.transaction = transaction, .clock = (uint64_t)sent_at};

    return path__pair_on_pong(pair, &f, sent_at + rtt, sent_at + rtt);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void test_a_ping_is_noted(void **state)
{
    struct path_pair pair = {.id = 1, .is_answered = true};

    ping(&pair, 5);
    assert_int_equal(pair.tried_at, T0 + 5);
    assert_int_equal(pair.n_pings, 1);
    assert_false(pair.is_answered);
    assert_int_equal(pair.n_known, 0);
    assert_false(path__pair_is_valid(&pair, T0 + 5));
}

static void test_a_pong_is_noted(void **state)
{
    struct path_pair pair = {.id = 1};
    nsec_t now = T0 + 5 + 20 * MS;

    ping(&pair, 5);
    assert_true(pong(&pair, 5, 20 * MS));
    assert_int_equal(pair.rtt, 20 * MS);
    assert_int_equal(pair.last_rtt, 20 * MS);
    assert_int_equal(pair.valid_at, now);
    assert_int_equal(pair.answered_at, now);
    assert_int_equal(pair.n_samples, 1);
    assert_int_equal(pair.n_round_pongs, 1);
    assert_int_equal(pair.n_pongs, 1);
    assert_int_equal(pair.n_known, 1);
    assert_true(pair.is_answered);
    assert_true(path__pair_is_valid(&pair, now + 4 * NSEC_PER_SEC));
    assert_false(path__pair_is_valid(&pair, now + 4 * NSEC_PER_SEC + 1));
    path__pair_on_death(&pair);
    assert_false(path__pair_is_valid(&pair, now));
    assert_int_equal(pair.n_samples, 0);
    assert_false(pair.is_answered);
    assert_int_equal(pair.answered_at, now);
}

/* Of the first four the least, then a quarter of each new one. */
static void test_round_trips_are_smoothed(void **state)
{
    static const nsec_t cases[][2] = {{40, 40}, {20, 20}, {30, 20}, {28, 20}, {60, 30}, {6, 24}};
    struct path_pair pair = {.id = 1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        ping(&pair, i + 1);
        assert_true(pong(&pair, i + 1, cases[i][0] * MS));
        assert_int_equal(pair.rtt, cases[i][1] * MS);
        assert_int_equal(pair.last_rtt, cases[i][0] * MS);
    }
}

/* A pong says that the pings before it are lost; one that comes later takes that back. */
static void test_loss_and_late_answers(void **state)
{
    struct path_pair pair = {.id = 1};

    assert_int_equal(path__pair_loss(&pair), 0);
    ping(&pair, 1);
    assert_true(pong(&pair, 1, 20 * MS));
    for (uint64_t t = 2; t <= 5; t++)
        ping(&pair, t);
    assert_int_equal(path__pair_loss(&pair), 0);
    assert_true(pong(&pair, 4, 20 * MS));
    assert_int_equal(pair.n_known, 4);
    assert_int_equal(path__pair_loss(&pair), 500);
    assert_true(pong(&pair, 5, 20 * MS));
    assert_int_equal(pair.n_known, 5);
    assert_int_equal(path__pair_loss(&pair), 400);
    assert_false(pong(&pair, 2, 900 * MS));
    assert_int_equal(path__pair_loss(&pair), 200);
    assert_int_equal(pair.rtt, 20 * MS);
    assert_int_equal(pair.n_pongs, 4);
    assert_false(pong(&pair, 2, 900 * MS));
    assert_int_equal(pair.n_pongs, 4);
    assert_false(pong(&pair, 3, 900 * MS));
    assert_int_equal(path__pair_loss(&pair), 0);
    assert_int_equal(pair.n_known, 5);
}

/* So many pings are remembered; the oldest is lost when another one takes its place. */
static void test_a_forgotten_ping_is_lost(void **state)
{
    struct path_pair pair = {.id = 1};

    ping(&pair, 1);
    assert_true(pong(&pair, 1, 20 * MS));
    for (uint64_t t = 2; t < 2 + PATH_PINGS_MAX; t++)
        ping(&pair, t);
    assert_int_equal(pair.n_known, 1);
    ping(&pair, 2 + PATH_PINGS_MAX);
    assert_int_equal(pair.n_known, 2);
    assert_int_equal(path__pair_loss(&pair), 500);
    assert_false(pong(&pair, 2, 20 * MS));
    assert_true(pong(&pair, 3, 20 * MS));
    assert_int_equal(path__pair_loss(&pair), 333);
}

/* Four pings lost in a row are an outage, and no loss; three are loss. */
static void test_an_outage_is_forgotten(void **state)
{
    static const struct {
        unsigned n_lost;
        unsigned n_known; /* afterwards; four were answered before */
        unsigned loss;
        unsigned n_samples;
    } cases[] = {{1, 6, 166, 5}, {3, 8, 375, 5}, {4, 5, 0, 1}, {6, 5, 0, 1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct path_pair pair = {.id = 1};
        uint64_t t = 1;

        for (; t <= 4; t++) {
            ping(&pair, t);
            assert_true(pong(&pair, t, 20 * MS));
        }
        for (unsigned n = 0; n < cases[i].n_lost; n++)
            ping(&pair, t++);
        ping(&pair, t);
        assert_true(pong(&pair, t, 30 * MS));
        assert_int_equal(pair.n_known, cases[i].n_known);
        assert_int_equal(path__pair_loss(&pair), cases[i].loss);
        assert_int_equal(pair.n_samples, cases[i].n_samples);
        /* What was lost in it is not taken back: it is not counted any more. */
        if (cases[i].n_lost >= 4) {
            assert_false(pong(&pair, t - 1, 90 * MS));
            assert_int_equal(pair.n_pongs, 5);
            assert_int_equal(path__pair_loss(&pair), 0);
        }
    }
}

/* At most 64 are known, the newest. */
static void test_loss_is_of_the_last_64(void **state)
{
    struct path_pair pair = {.id = 1};
    uint64_t t = 1;

    for (unsigned i = 0; i < 100; i++) {
        ping(&pair, t++);
        ping(&pair, t++);
        assert_true(pong(&pair, t - 1, 20 * MS));
    }
    assert_int_equal(pair.n_known, 64);
    assert_int_equal(path__pair_loss(&pair), 500);
    for (unsigned i = 0; i < 62; i++) {
        ping(&pair, t);
        assert_true(pong(&pair, t++, 20 * MS));
    }
    assert_int_equal(path__pair_loss(&pair), 1 * 1000 / 64);
    ping(&pair, t);
    assert_true(pong(&pair, t++, 20 * MS));
    assert_int_equal(path__pair_loss(&pair), 0);
}

/* A pair that has failed may be another way when it answers again: it is measured anew. */
static void test_after_a_death_all_is_measured_anew(void **state)
{
    struct path_pair pair = {.id = 1};

    for (uint64_t t = 1; t <= 6; t++) {
        ping(&pair, t);
        assert_true(pong(&pair, t, 20 * MS));
    }
    ping(&pair, 7);
    path__pair_on_death(&pair);
    ping(&pair, 8);
    assert_true(pong(&pair, 8, 50 * MS));
    assert_int_equal(pair.rtt, 50 * MS);
    assert_int_equal(pair.n_samples, 1);
    assert_int_equal(pair.n_known, 1);
    assert_int_equal(path__pair_loss(&pair), 0);
    assert_int_equal(path__least(&pair.least), 50 * MS);
    assert_int_equal(path__least(&pair.recent), 50 * MS);
}

/* ---- which is better ------------------------------------------------------------------------- */

/** What is known of a pair. */
struct known {
    int rtt_ms;
    unsigned n_known;
    unsigned n_lost;
    const char *at;
    uint32_t socket;
};

static struct path_pair make_pair(const struct known *known)
{
    struct path_pair pair = {.id = 1,
        .rtt = known->rtt_ms * MS,
        .n_known = known->n_known,
        .lost = (UINT64_C(1) << known->n_lost) - 1,
        .socket = known->socket};

    assert_int_equal(
        endpoint_parse(&pair.remote.endpoint, known->at ? known->at : "203.0.113.1:1", NULL), 0);
    return pair;
}

static void test_which_pair_is_better(void **state)
{
    static const char lan[] = "192.168.1.2:1";
    static const struct {
        struct known a, b;
        int better; /* 1: a; -1: b; 0: neither by more than chance */
    } cases[] = {
        /* A round trip that is shorter by 5 ms, or by a fifth of the longer one. */
        {{10}, {15}, 1},
        {{11}, {15}, 0},
        {{80}, {100}, 1},
        {{81}, {100}, 0},
        {{100}, {81}, 0},
        {{100}, {80}, -1},
        /* Loss goes before, from 20 pings on, and when it differs by 20 in 1000. */
        {{50, 50, 0}, {10, 50, 1}, 1},
        {{50, 64, 1}, {10, 64, 2}, -1},
        {{50, 19, 0}, {10, 50, 9}, -1},
        {{50, 50, 0}, {10, 19, 9}, -1},
        {{50, 20, 0}, {10, 20, 9}, 1},
        {{10, 50, 1}, {50, 50, 0}, -1},
        /* Else the private network, and then the main socket. */
        {{10, .at = lan}, {10}, 1},
        {{10, .at = lan, .socket = 3}, {10}, 1},
        {{10}, {10, .at = lan, .socket = 3}, -1},
        {{10}, {10, .socket = 3}, 1},
        {{10, .socket = 4}, {10, .socket = 3}, 0},
        {{15, .at = lan}, {10}, -1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct path_pair a = make_pair(&cases[i].a);
        struct path_pair b = make_pair(&cases[i].b);

        if (path__pair_is_better(&a, &b) != (cases[i].better > 0) ||
            path__pair_is_better(&b, &a) != (cases[i].better < 0))
            fail_msg("case %zu", i);
    }
}

static void test_what_became_of_a_pair(void **state)
{
    static const struct {
        struct path_pair pair;
        bool is_round;
        enum path_verdict verdict;
    } cases[] = {
        {{.id = 1}, false, PATH_VERDICT_UNTRIED},
        {{.id = 1, .tried_at = T0}, true, PATH_VERDICT_TRYING},
        {{.id = 1, .tried_at = T0}, false, PATH_VERDICT_SILENT},
        {{.id = 1, .tried_at = T0, .n_round_pongs = 1}, false, PATH_VERDICT_WORKS},
        {{.id = 1, .tried_at = T0, .is_answered = true}, false, PATH_VERDICT_WORKS},
        {{.id = 1, .tried_at = T0, .record = {.has_died = true}}, false, PATH_VERDICT_DIED},
        {{.id = 1,
             .tried_at = T0,
             .valid_at = T0,
             .is_answered = true,
             .record = {.has_died = true}},
            false, PATH_VERDICT_WORKS},
        {{.id = 2, .tried_at = T0, .record = {.has_died = true}}, false, PATH_VERDICT_CHOSEN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct path pp = {.choice.pair = 2};

        pp.checks.round.next_at = cases[i].is_round ? T0 : NSEC_NEVER;
        assert_int_equal(path__pair_verdict(&pp, &cases[i].pair), cases[i].verdict);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ping_is_noted),
        cmocka_unit_test(test_a_pong_is_noted),
        cmocka_unit_test(test_round_trips_are_smoothed),
        cmocka_unit_test(test_loss_and_late_answers),
        cmocka_unit_test(test_a_forgotten_ping_is_lost),
        cmocka_unit_test(test_an_outage_is_forgotten),
        cmocka_unit_test(test_loss_is_of_the_last_64),
        cmocka_unit_test(test_after_a_death_all_is_measured_anew),
        cmocka_unit_test(test_which_pair_is_better),
        cmocka_unit_test(test_what_became_of_a_pair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
