/*
 * test-pair.c - how a pair is measured, which of two is better, which pairs an edge has, and what
 * is sent on them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"
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

/* ---- which pairs there are ------------------------------------------------------------------- */

static struct paths owner;
static struct path edge;

static struct endpoint ep(const char *text)
{
    struct endpoint e;

    assert_int_equal(endpoint_parse(&e, text, NULL), 0);
    return e;
}

static int begin_edge(void **state)
{
    owner = (struct paths){.session = 11,
        .budget = {.answer = {.interval = 1, .burst = NSEC_PER_SEC}, .to = {.seed = 1}}};
    edge = (struct path){.owner = &owner, .receiving.session = 77};
    edge.checks.round.next_at = NSEC_NEVER;
    return 0;
}

static int end_edge(void **state)
{
    free(edge.pairs.items);
    paths__queue_deinit(&owner);
    return 0;
}

static struct path_pair *add(enum candidate_kind kind, const char *text, uint32_t socket)
{
    struct endpoint e = ep(text);

    return path__pair_add(&edge, kind, &e, socket);
}

static struct path_pair *find(const char *text, uint32_t socket)
{
    struct endpoint e = ep(text);

    return path__pair_find(&edge, socket, &e);
}

static void test_a_pair_is_a_socket_and_an_endpoint(void **state)
{
    struct path_pair *pair;

    assert_int_equal(add(CANDIDATE_HEARD, "203.0.113.1:1", 0)->id, 1);
    assert_int_equal(add(CANDIDATE_HEARD, "203.0.113.1:2", 0)->id, 2);
    assert_int_equal(add(CANDIDATE_HEARD, "203.0.113.1:1", 3)->id, 3);
    assert_int_equal(edge.pairs.n, 3);
    pair = find("203.0.113.1:1", 3);
    assert_int_equal(pair->id, 3);
    assert_int_equal(pair->socket, 3);
    assert_int_equal(pair->remote.kind, CANDIDATE_HEARD);
    assert_int_equal(pair->remote.endpoint.port, 1);
    assert_null(find("203.0.113.1:2", 3));
    assert_ptr_equal(path__pair_of(&edge, 2), find("203.0.113.1:2", 0));
    assert_null(path__pair_of(&edge, 0));
    assert_null(path__pair_of(&edge, 4));
    /* It is the same one when it is found another way; the better of both kinds counts. */
    assert_int_equal(add(CANDIDATE_GIVEN, "203.0.113.1:2", 0)->id, 2);
    assert_int_equal(find("203.0.113.1:2", 0)->remote.kind, CANDIDATE_GIVEN);
    assert_int_equal(add(CANDIDATE_HEARD, "203.0.113.1:2", 0)->id, 2);
    assert_int_equal(find("203.0.113.1:2", 0)->remote.kind, CANDIDATE_GIVEN);
    assert_int_equal(edge.pairs.n, 3);
    assert_null(add(CANDIDATE_HOST, "127.0.0.1:1", 0));
    assert_int_equal(edge.pairs.n, 3);
}

/* A pair that was heard gives way to a new one: the longest without an answer, then the oldest. */
static void test_so_many_pairs_and_no_more(void **state)
{
    struct path_pair *pair;
    struct endpoint e = ep("203.0.113.1:1");

    for (unsigned i = 0; i < PATHS_PAIRS_MAX; i++, e.port++)
        assert_int_equal(path__pair_add(&edge, CANDIDATE_HOST, &e, 0)->id, i + 1);
    assert_null(path__pair_add(&edge, CANDIDATE_HOST, &e, 0));
    assert_int_equal(edge.pairs.n, PATHS_PAIRS_MAX);
    for (uint32_t id = 10; id < 20; id++) {
        pair = path__pair_of(&edge, id);
        pair->remote.kind = CANDIDATE_HEARD;
        pair->valid_at = id == 14 || id == 16 || id == 17 ? T0 : T0 + id;
    }
    edge.choice.pair = 14;
    for (unsigned i = 0; i < 3; i++, e.port++) {
        static const uint32_t goes[] = {16, 17, 10};

        assert_non_null(path__pair_of(&edge, goes[i]));
        assert_int_equal(path__pair_add(&edge, CANDIDATE_HOST, &e, 0)->id, PATHS_PAIRS_MAX + 1 + i);
        assert_int_equal(edge.pairs.n, PATHS_PAIRS_MAX);
        assert_null(path__pair_of(&edge, goes[i]));
    }
    /* Those that the two ends are about to use do not. */
    for (uint32_t id = 11; id < 20; id++)
        if ((pair = path__pair_of(&edge, id)) && id != 12 && id != 13)
            pair->remote.kind = CANDIDATE_HOST;
    edge.choice.sent.pair = 12;
    edge.choice.received.pair = 13;
    assert_null(path__pair_add(&edge, CANDIDATE_HOST, &e, 0));
    edge.choice.received.pair = 0;
    assert_non_null(path__pair_add(&edge, CANDIDATE_HOST, &e, 0));
    assert_null(path__pair_of(&edge, 13));
    assert_non_null(path__pair_of(&edge, 12));
}

/* Those that are no candidates any more go, unless they work or are about to be used. */
static void test_pairs_follow_what_the_peer_reports(void **state)
{
    struct endpoint kept = ep("203.0.113.1:1");
    struct endpoint new = ep("203.0.113.1:9");

    (void)add(CANDIDATE_HOST, "203.0.113.1:1", 0);
    (void)add(CANDIDATE_HOST, "203.0.113.1:2", 0);
    (void)add(CANDIDATE_HOST, "203.0.113.1:3", 0);
    (void)add(CANDIDATE_HOST, "203.0.113.1:4", 0);
    (void)add(CANDIDATE_HOST, "203.0.113.1:5", 8);
    find("203.0.113.1:3", 0)->is_answered = true;
    edge.choice.pair = find("203.0.113.1:4", 0)->id;
    assert_true(candidates_add(&edge.side.candidates, CANDIDATE_GIVEN, &kept));
    assert_true(candidates_add(&edge.side.candidates, CANDIDATE_MAPPED, &new));
    path__pairs_take_side(&edge);
    assert_int_equal(edge.pairs.n, 5);
    assert_int_equal(find("203.0.113.1:1", 0)->remote.kind, CANDIDATE_HOST);
    assert_null(find("203.0.113.1:2", 0));
    assert_int_equal(find("203.0.113.1:3", 0)->remote.kind, CANDIDATE_HEARD);
    assert_int_equal(find("203.0.113.1:4", 0)->remote.kind, CANDIDATE_HEARD);
    assert_int_equal(find("203.0.113.1:5", 8)->remote.kind, CANDIDATE_HOST);
    assert_int_equal(find("203.0.113.1:9", 0)->remote.kind, CANDIDATE_MAPPED);
}

static void test_pairs_that_are_of_no_use_any_more(void **state)
{
    (void)add(CANDIDATE_HEARD, "203.0.113.1:1", 0);
    (void)add(CANDIDATE_HOST, "203.0.113.1:2", 0);
    (void)add(CANDIDATE_HEARD, "203.0.113.1:3", 0);
    (void)add(CANDIDATE_HEARD, "203.0.113.1:4", 7);
    (void)add(CANDIDATE_HEARD, "198.51.100.1:5", 7);
    find("203.0.113.1:3", 0)->is_answered = true;
    edge.choice.sent.pair = find("203.0.113.1:4", 7)->id;
    /* The first is silent; so is the last. */
    path__pairs_drop_silent(&edge);
    assert_int_equal(edge.pairs.n, 3);
    assert_non_null(find("203.0.113.1:2", 0));
    assert_non_null(find("203.0.113.1:3", 0));
    assert_non_null(find("203.0.113.1:4", 7));
    (void)add(CANDIDATE_HEARD, "198.51.100.1:5", 7);
    /* All of a socket, whatever they are used for. */
    path__pairs_drop_socket(&edge, 7);
    assert_int_equal(edge.pairs.n, 2);
    assert_null(find("203.0.113.1:4", 7));
    assert_null(find("198.51.100.1:5", 7));
    /* Those that lead through an overlay, and none is made there. */
    (void)add(CANDIDATE_HEARD, "198.51.100.1:5", 0);
    assert_int_equal(ip_prefix_parse(&owner.blocks.items[0], "203.0.113.0/24", NULL), 0);
    owner.blocks.n = 1;
    path__pairs_drop_blocked(&edge);
    assert_int_equal(edge.pairs.n, 1);
    assert_non_null(find("198.51.100.1:5", 0));
    assert_null(add(CANDIDATE_HOST, "203.0.113.1:1", 0));
}

/* ---- what is sent ---------------------------------------------------------------------------- */

/** A pair of a socket of its own, whose peer was heard at an address of ours. */
static struct path_pair *begin_sending(void)
{
    struct path_pair *pair = add(CANDIDATE_HOST, "203.0.113.1:1", 5);

    pair->contact.local = ep("198.51.100.1:1").addr;
    return pair;
}

/* The last action that is queued; all of it is as it is expected here. */
static void assert_sent(const struct path_frame *frame, const char *to, uint32_t socket,
    const char *local, size_t len, uint8_t hops, bool dont_fragment)
{
    const struct paths_queue *q = &owner.queue;
    const struct paths_item *item = &q->items[(q->first + q->n - 1) % q->cap];
    struct endpoint remote = ep(to);
    struct ip_addr from = {0};

    if (local)
        from = ep(local).addr;
    assert_int_equal(item->action.kind, PATH_ACTION_SEND);
    assert_int_equal(item->action.socket, socket);
    assert_true(endpoint_equal(&item->action.remote, &remote));
    assert_true(ip_addr_equal(&item->action.local, &from));
    assert_int_equal(item->action.len, len);
    assert_int_equal(item->action.hops, hops);
    assert_int_equal(item->action.dont_fragment, dont_fragment);
    assert_int_equal(item->frame.kind, frame->kind);
    assert_int_equal(item->frame.flags, frame->flags);
    assert_int_equal(item->frame.size, frame->size);
    assert_int_equal(item->frame.held_us, frame->held_us);
    assert_int_equal(item->frame.transaction, frame->transaction);
    assert_int_equal(item->frame.session, 11);
    assert_int_equal(item->frame.echo, frame->echo ? frame->echo : 77);
    assert_int_equal(item->frame.sequence, edge.sending.sequence);
    assert_int_equal(item->frame.clock, frame->clock);
    assert_true(endpoint_equal(&item->frame.observed, &frame->observed));
    assert_int_equal(edge.sending.n_frames, q->n);
    assert_int_equal(edge.sending.sequence, q->n);
}

#define HERE  "198.51.100.1:1"
#define THERE "203.0.113.1:1"

static void test_pings_of_each_kind(void **state)
{
    struct path_pair *pair = begin_sending();
    struct endpoint guess = ep("203.0.113.1:999");
    struct path_frame f = {.kind = PATH_FRAME_PING, .transaction = 1, .clock = T0};

    path__ping(&edge, pair, T0);
    assert_sent(&f, THERE, 5, HERE, PATH_FRAME_MIN, 0, false);
    assert_int_equal(pair->n_pings, 1);
    assert_int_equal(pair->pings[0].transaction, 1);
    assert_int_equal(pair->tried_at, T0);
    /* It says what the peer wants to know of the one before, and of our address. */
    pair->is_answered = edge.choice.is_moved = true;
    f.transaction = 2;
    f.flags = PATH_FRAME_ANSWERED | PATH_FRAME_MOVED;
    path__ping(&edge, pair, T0);
    assert_sent(&f, THERE, 5, HERE, PATH_FRAME_MIN, 0, false);
    assert_false(pair->is_answered);
    edge.choice.is_moved = false;
    /* An opener is none of the pair's, and nor is a guess, which is counted as such. */
    pair->is_answered = true;
    f.transaction = 3;
    f.flags = 0;
    path__open(&edge, pair, 4, T0);
    assert_sent(&f, THERE, 5, HERE, PATH_FRAME_MIN, 4, false);
    assert_true(pair->is_answered);
    assert_int_equal(edge.sending.n_guesses, 0);
    f.transaction = 4;
    path__ping_loose(&edge, 6, &guess, T0);
    assert_sent(&f, "203.0.113.1:999", 6, NULL, PATH_FRAME_MIN, 0, false);
    assert_int_equal(edge.sending.n_guesses, 1);
    assert_int_equal(owner.counters.guesses, 1);
    assert_int_equal(pair->n_pings, 2);
}

static void test_words_and_probes(void **state)
{
    struct path_pair *pair = begin_sending();
    struct path_frame f = {
        .kind = PATH_FRAME_LEAVE, .flags = PATH_FRAME_WORSE, .transaction = 42, .clock = T0};
    uint64_t probe = 0;

    path__tell(&edge, pair, PATH_FRAME_LEAVE, PATH_FRAME_WORSE, 42, T0);
    assert_sent(&f, THERE, 5, HERE, PATH_FRAME_MIN, 0, false);
    edge.sending.transaction = 50;
    f = (struct path_frame){.kind = PATH_FRAME_PROBE, .transaction = 51, .clock = T0};
    assert_true(path__probe(&edge, pair, 1400, &probe, T0));
    assert_int_equal(probe, 51);
    assert_sent(&f, THERE, 5, HERE, 1400, 0, true);
    edge.peer.is_relay = true;
    f.transaction = 52;
    f.flags = PATH_FRAME_WHOLE;
    assert_true(path__probe(&edge, pair, 1400, &probe, T0));
    assert_int_equal(probe, 52);
    assert_sent(&f, THERE, 5, HERE, 1400, 0, true);
}

/* To where the question came from, from where it came to, with what it asked. */
static void test_answers_of_each_kind(void **state)
{
    struct path_pair *pair = begin_sending();
    struct path_arrival in = {.from = ep(THERE), .local = ep("198.51.100.9:1").addr, .socket = 5};
    struct path_frame question = {
        .kind = PATH_FRAME_PING, .transaction = 8, .session = 99, .clock = 1234};
    struct path_frame f = {.kind = PATH_FRAME_PONG,
        .transaction = 8,
        .echo = 99,
        .clock = 1234,
        .observed = in.from,
        .held_us = 3};

    in.at = T0 - 3 * NSEC_PER_USEC;
    path__answer(&edge, &in, &question, 500, T0);
    assert_sent(&f, THERE, 5, "198.51.100.9:1", PATH_FRAME_MIN, 0, false);
    edge.choice.pair = pair->id;
    f.flags = PATH_FRAME_IN_USE;
    question.flags = PATH_FRAME_WHOLE;
    path__answer(&edge, &in, &question, 500, T0);
    assert_sent(&f, THERE, 5, "198.51.100.9:1", PATH_FRAME_MIN, 0, false);
    /* By another socket it is another pair. */
    in.socket = 6;
    f.flags = 0;
    path__answer(&edge, &in, &question, 500, T0);
    assert_sent(&f, THERE, 6, "198.51.100.9:1", PATH_FRAME_MIN, 0, false);
    question.kind = PATH_FRAME_PROBE;
    f.kind = PATH_FRAME_PROBE_ACK;
    f.size = 500;
    path__answer(&edge, &in, &question, 500, T0);
    assert_sent(&f, THERE, 6, "198.51.100.9:1", 500, 0, true);
    question.flags = 0;
    path__answer(&edge, &in, &question, 500, T0);
    assert_sent(&f, THERE, 6, "198.51.100.9:1", PATH_FRAME_MIN, 0, false);
    /* Nothing, when all that may be answered was. */
    owner.budget.answer.rate.full_at = T0 + NSEC_PER_SEC + 1;
    path__answer(&edge, &in, &question, 500, T0);
    assert_int_equal(edge.sending.n_frames, 5);
    assert_int_equal(owner.queue.n, 5);
}

/* The queue is full: nothing is sent, and no ping is waited for. */
static void test_what_cannot_be_queued_is_not_sent(void **state)
{
    struct path_pair *pair = begin_sending();
    struct path_arrival in = {.from = ep(THERE), .socket = 5, .at = T0};
    struct path_frame question = {.kind = PATH_FRAME_PING, .transaction = 8};
    uint64_t probe = 42;

    while (paths__add(&owner, &edge, PATH_ACTION_SEND))
        continue;
    path__ping(&edge, pair, T0);
    path__open(&edge, pair, 3, T0);
    path__tell(&edge, pair, PATH_FRAME_LEAVE, 0, 7, T0);
    assert_false(path__probe(&edge, pair, 1400, &probe, T0));
    path__answer(&edge, &in, &question, 500, T0);
    assert_int_equal(probe, 42);
    assert_int_equal(pair->n_pings, 0);
    assert_int_equal(pair->tried_at, 0);
    assert_int_equal(edge.sending.n_frames, 0);
    assert_int_equal(edge.sending.sequence, 0);
    assert_int_equal(edge.sending.transaction, 0);
}

/* A pair that has answered within ten minutes is not counted against its address. */
static void test_what_may_be_asked(void **state)
{
    struct path_pair *pair = begin_sending();

    assert_true(path__may_ping(&edge, pair, 512, T0));
    assert_false(path__may_ping(&edge, pair, 1, T0));
    assert_int_equal(owner.counters.over_budget, 1);
    pair->answered_at = T0 - 600 * NSEC_PER_SEC;
    assert_false(path__may_ping(&edge, pair, 1, T0));
    pair->answered_at++;
    assert_true(path__may_ping(&edge, pair, 1, T0));
}

#define WITH_EDGE(test) cmocka_unit_test_setup_teardown(test, begin_edge, end_edge)

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
        WITH_EDGE(test_a_pair_is_a_socket_and_an_endpoint),
        WITH_EDGE(test_so_many_pairs_and_no_more),
        WITH_EDGE(test_pairs_follow_what_the_peer_reports),
        WITH_EDGE(test_pairs_that_are_of_no_use_any_more),
        WITH_EDGE(test_pings_of_each_kind),
        WITH_EDGE(test_words_and_probes),
        WITH_EDGE(test_answers_of_each_kind),
        WITH_EDGE(test_what_cannot_be_queued_is_not_sent),
        WITH_EDGE(test_what_may_be_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
