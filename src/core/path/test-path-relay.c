/*
 * test-path-relay.c - when a pair goes through a relay rather than directly, through which one, and
 * when it changes to another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"
#include "path/pmtu.h"
#include "test/support/path_couple.h"

#define MSEC NSEC_PER_MSEC
#define SEC  NSEC_PER_SEC

static struct couple couple;

static struct x25519_public relay_key(uint8_t n)
{
    return (struct x25519_public){{n, 1}};
}

/* Node @i reaches relay n+1 in rtt[n] ms; 0: not at all. Both ends hear of it. */
static void tell(struct couple *c, unsigned i, const unsigned rtt_ms[static 2])
{
    struct path_side side = {.generation = 1};

    for (unsigned n = 0; n < 2; n++)
        if (rtt_ms[n] != 0)
            side.relays[side.n_relays++] = (struct path_relay){
                .key = relay_key((uint8_t)(n + 1)), .rtt = (nsec_t)rtt_ms[n] * MSEC};
    paths_set_self(c->nodes[i].paths, &side, c->now);
    paths_set_peer_side(c->nodes[1 - i].paths, &c->nodes[i].key, &side, c->now);
    couple_run(c, 0);
}

static void assert_via(struct couple *c, unsigned i, uint8_t n)
{
    struct x25519_public key = relay_key(n);
    struct path_view view;

    couple_run(c, 1 * MSEC);
    assert_true(paths_view(c->nodes[i].paths, &c->nodes[1 - i].key, &view, c->now));
    assert_true(x25519_public_equal(&view.via, &key));
}

static void test_better_only_after_a_while_and_by_the_first(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    tell(c, 0, (unsigned[]){20, 10});
    tell(c, 1, (unsigned[]){20, 10});
    couple_run(c, 1500 * MSEC);
    assert_via(c, 0, 1);
    couple_run(c, 1000 * MSEC);
    assert_via(c, 0, 2);
    /* The other end waits to be taken along. */
    assert_via(c, 1, 1);
    paths_on_relayed(c->nodes[1].paths, &c->nodes[0].key, &(struct x25519_public){{2, 1}}, c->now);
    assert_via(c, 1, 2);
    couple_stop(c);
}

/* Nothing is sent, so no handshake takes the other end along. */
static void test_better_for_both_without_a_session(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_RELAY);
    tell(c, 0, (unsigned[]){20, 10});
    tell(c, 1, (unsigned[]){20, 10});
    couple_run(c, 10 * SEC);
    for (unsigned i = 0; i < 2; i++)
        assert_via(c, i, 2);
    couple_stop(c);
}

static void test_little_better_is_not_worth_it(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    tell(c, 0, (unsigned[]){20, 18});
    tell(c, 1, (unsigned[]){20, 18});
    couple_run(c, 10 * SEC);
    assert_via(c, 0, 1);
    couple_stop(c);
}

static void test_lost_one_is_left_at_once_by_either(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        struct couple *c = &couple;

        couple_start(c, PATH_POLICY_AUTO);
        tell(c, 0, (unsigned[]){10, 20});
        tell(c, 1, (unsigned[]){10, 20});
        assert_via(c, i, 1);
        tell(c, i, (unsigned[]){0, 20});
        assert_via(c, i, 2);
        couple_stop(c);
    }
}

/* The other end has left the relay of both and led here; once it is there again, both go back. */
static void test_announced_anew_is_gone_back_to(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        struct couple *c = &couple;

        couple_start(c, PATH_POLICY_AUTO);
        tell(c, 0, (unsigned[]){10, 40});
        tell(c, 1, (unsigned[]){10, 40});
        paths_on_relayed(
            c->nodes[0].paths, &c->nodes[1].key, &(struct x25519_public){{2, 1}}, c->now);
        couple_run(c, 10 * SEC);
        /* Whatever the reports say: they may be old. */
        assert_via(c, 0, 2);
        tell(c, i, (unsigned[]){0, 40});
        tell(c, i, (unsigned[]){10, 40});
        couple_run(c, 1500 * MSEC);
        assert_via(c, 0, 2);
        couple_run(c, 1000 * MSEC);
        assert_via(c, 0, 1);
        couple_stop(c);
    }
}

/* A relayed pair has nothing of its own to keep alive: the hub's mapping serves all. */
static void test_relayed_pair_sends_nothing(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_RELAY);
    couple_tell(c);
    couple_run(c, 3600 * SEC);
    assert_int_equal(c->n_sent, 0);
    couple_stop(c);
}

static void set_relay_that_carries(struct couple *c, nsec_t rtt, uint16_t mtu)
{
    for (unsigned i = 0; i < 2; i++) {
        struct path_side side = {.generation = 1, .n_relays = 1};

        side.relays[0] = (struct path_relay){.key = {{5}}, .rtt = rtt / 2, .mtu = mtu};
        assert_true(candidates_add(&side.candidates, CANDIDATE_HOST, &c->nodes[i].ep));
        paths_set_self(c->nodes[i].paths, &side, c->now);
        paths_set_peer_side(c->nodes[1 - i].paths, &c->nodes[i].key, &side, c->now);
    }
}

static void set_relay(struct couple *c, nsec_t rtt)
{
    set_relay_that_carries(c, rtt, 0);
}

/* Flows have large packets, and no relay was found to carry such: they stay where they pass. */
static void test_relay_has_to_carry_what_is_sent(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 19 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    for (unsigned i = 0; i < 2; i++)
        paths_set_mtu(c->nodes[i].paths, &c->nodes[1 - i].key, 1408);
    set_relay_that_carries(c, 5 * MSEC, 1392);
    couple_run_with_traffic(c, 30 * SEC);
    couple_assert_direct(c);
    set_relay_that_carries(c, 5 * MSEC, 1408);
    couple_run_with_traffic(c, 3 * SEC);
    couple_assert_relayed(c);
    assert_int_equal(
        paths_relay_mtu(c->nodes[0].paths, &c->nodes[1].key, &(struct x25519_public){{5}}), 1408);
    couple_stop(c);
}

static void test_relay_that_is_better(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 19 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    set_relay(c, 5 * MSEC);
    couple_run_with_traffic(c, 3 * SEC);
    couple_assert_relayed(c);
    assert_non_null(strstr(couple_view(c, 0).why, "the relay is faster"));
    assert_true(couple_view(c, 0).rtt == 5 * MSEC);
    set_relay(c, 60 * MSEC);
    couple_run_with_traffic(c, 130 * SEC);
    couple_assert_direct(c);
    couple_stop(c);
}

/* Queues come and go with the load of the machines, and some moment of each minute has none. Where
 * none has, the relay's way is just as full. */
static void test_busy_time_is_no_reason(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    c->slow_by = 50 * MSEC;
    for (unsigned i = 0; i < 10; i++) {
        c->slow_until = c->now + 26 * SEC;
        couple_run_with_traffic(c, 28 * SEC);
    }
    set_relay(c, 115 * MSEC);
    c->slow_until = c->now + 300 * SEC;
    couple_run_with_traffic(c, 310 * SEC);
    couple_assert_direct(c);
    assert_int_equal(c->nodes[0].n_uses, 2); /* the relay, and then this */
    couple_stop(c);
}

/* A way that has become longer is left within a minute and a half, and taken again soon. */
static void test_path_that_became_slow(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 600 * SEC);
    couple_assert_direct(c);
    c->slow_until = c->now + 400 * SEC;
    c->slow_by = 50 * MSEC;
    couple_run_with_traffic(c, 25 * SEC);
    couple_assert_direct(c);
    couple_run_with_traffic(c, 65 * SEC);
    couple_assert_relayed(c);
    couple_run_with_traffic(c, 300 * SEC);
    couple_assert_relayed(c);
    assert_int_equal(c->nodes[0].n_uses, 3);
    couple_run_with_traffic(c, 20 * SEC);
    couple_assert_direct(c);
    couple_stop(c);
}

/* The edge's own traffic makes the relay slow, on which the slow direct path is better, ... */
static void test_edge_does_not_go_to_and_fro(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    c->slow_until = NSEC_NEVER;
    c->slow_by = 50 * MSEC;
    for (unsigned i = 0; i < 3600; i++) {
        couple_run_with_traffic(c, SEC);
        if (i % 5 == 0)
            set_relay(c, couple_view(c, 0).kind == PATH_KIND_RELAY ? 400 * MSEC : 15 * MSEC);
    }
    /* After half a minute, a minute, two, and so on. */
    assert_in_range(c->nodes[0].n_uses, 4, 18);
    couple_stop(c);
}

/* Much is lost on the direct path. Only a relay of which both ends know that it answers is better:
 * one that is full itself loses just as much. */
static void test_a_relay_that_is_not_known_to_be_better(void **state)
{
    struct couple *c = &couple;

    for (unsigned is_known = 0; is_known < 2; is_known++) {
        couple_start(c, PATH_POLICY_AUTO);
        couple_tell(c);
        set_relay(c, is_known ? 30 * MSEC : 0);
        couple_run_with_traffic(c, 10 * SEC);
        couple_assert_direct(c);
        for (unsigned i = 0; i < 100; i++) {
            c->nodes[0].is_deaf = i % 2 == 0;
            couple_run_with_traffic(c, 500 * MSEC);
        }
        assert_int_equal(c->nodes[0].n_uses > 2, is_known);
        c->nodes[0].is_deaf = false;
        couple_run_with_traffic(c, 20 * SEC);
        couple_assert_direct(c);
        couple_stop(c);
    }
}

/* What was found of a path that answered is not said of one that does not any more. */
static void test_verdict_falls_with_its_evidence(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 19 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    set_relay(c, 5 * MSEC);
    couple_run_with_traffic(c, 20 * SEC);
    couple_assert_relayed(c);
    for (unsigned i = 0; i < 2; i++) {
        assert_non_null(strstr(couple_view(c, i).why, "the relay is faster"));
        c->nodes[i].is_deaf = true;
    }
    couple_run_with_traffic(c, 30 * SEC);
    for (unsigned i = 0; i < 2; i++)
        if (strstr(couple_view(c, i).why, "the relay is faster"))
            fail_msg("%u: %s", i, couple_view(c, i).why);
    couple_stop(c);
}

static void test_better_path_is_taken_soon(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 5 * MSEC);
    couple_run_with_traffic(c, 120 * SEC);
    couple_assert_relayed(c);
    set_relay(c, 60 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    couple_stop(c);
}

/* An answer that was late by itself, as when an uplink changes, is no reason to leave. */
static void test_one_late_answer_is_nothing(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    c->slow_until = c->now + 450 * MSEC;
    c->slow_by = 400 * MSEC;
    couple_run_with_traffic(c, SEC);
    assert_true(couple_view(c, 0).rtt > 60 * MSEC || couple_view(c, 1).rtt > 60 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    assert_int_equal(c->nodes[0].n_uses, 2); /* the relay, and then this */
    couple_stop(c);
}

/* Answers that come after those of later pings are late, and nothing was lost. */
static void test_late_answers_are_no_loss(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    for (unsigned n = 0; n < 20; n++) {
        c->slow_until = c->now + (nsec_t)(300 + 20 * n) * MSEC;
        c->slow_by = 400 * MSEC;
        couple_run_with_traffic(c, 2 * SEC);
    }
    couple_assert_direct(c);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(couple_view(c, i).loss_permille, 0);
    couple_stop(c);
}

/* Where many paths begin at once, a first answer tells how busy the nodes were. */
static void test_first_answers_do_not_decide_for_the_relay(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    c->slow_until = c->now + 200 * MSEC;
    c->slow_by = 50 * MSEC;
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 3 * SEC);
    couple_assert_direct(c);
    assert_int_equal(c->nodes[0].n_uses, 2); /* the relay, and then this */
    couple_stop(c);
    /* One that stays slow is left to the relay, and both ends say so. */
    couple_start(c, PATH_POLICY_AUTO);
    c->slow_until = NSEC_NEVER;
    c->slow_by = 50 * MSEC;
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 20 * SEC);
    couple_assert_relayed(c);
    assert_non_null(strstr(couple_view(c, 0).why, "the relay is faster"));
    assert_non_null(strstr(couple_view(c, 1).why, "the relay is faster"));
    couple_stop(c);
}

static void test_hub_absence_changes_nothing_direct(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, 5 * SEC);
    for (unsigned i = 0; i < 2; i++)
        paths_on_relay(c->nodes[i].paths, false, c->now);
    c->nodes[0].is_deaf = true;
    couple_run_with_traffic(c, 20 * SEC);
    couple_assert_relayed(c);
    /* From the last candidates, at slots that come each ten seconds without a relay. */
    c->nodes[0].is_deaf = false;
    couple_run_with_traffic(c, 12 * SEC);
    couple_assert_direct(c);
    couple_stop(c);
}

/* ---- by the numbers ------------------------------------------------------------------------- */

/* The end of a direct edge that chooses; both ends reach relay 5. What it has queued is taken. */
static struct path *start_direct(struct couple *c)
{
    struct paths *p;
    struct path_action action;
    struct path *pp;
    size_t cursor = 0;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 100 * MSEC);
    couple_run_with_traffic(c, 3 * SEC);
    couple_assert_direct(c);
    p = c->nodes[0].paths;
    while (paths_next(p, &action))
        continue;
    pp = container_of(htab_each(&p->by_key, &cursor, NULL), struct path, by_key);
    assert_true(pp->nominates);
    return pp;
}

static struct path_pair *chosen(struct path *pp)
{
    struct path_pair *pair = path__pair_of(pp, pp->choice.pair);

    assert_non_null(pair);
    return pair;
}

/* How many frames of that kind, with those flags, are to be sent. */
static unsigned count_frames(const struct path *pp, enum path_frame_kind kind, uint8_t flags)
{
    const struct paths_queue *q = &pp->owner->queue;
    unsigned n = 0;

    for (size_t i = 0; i < q->n; i++) {
        const struct paths_item *item = &q->items[(q->first + i) % q->cap];

        n += item->action.kind == PATH_ACTION_SEND && item->frame.kind == kind &&
             item->frame.flags == flags;
    }
    return n;
}

/* A direct path and a relay, as they were measured. */
struct comparison {
    const char *what;
    unsigned rtt_ms;     /* of the direct path: the least of the last minute */
    unsigned relayed_ms; /* of the relay, both ends' together; 0: not known */
    unsigned n_known;    /* pings of the direct path; of them @lost, the newest in bit 0 */
    uint64_t lost;
    uint16_t mtu; /* inner bytes of what is sent; and what the relay carries, at each end */
    uint16_t mtu_here;
    uint16_t mtu_there;
    bool has_no_relay;
    bool is_direct_only;
    bool is_better; /* the relay */
};

static const struct comparison comparisons[] = {
    {.what = "half", .rtt_ms = 40, .relayed_ms = 20, .is_better = true},
    {.what = "more than half", .rtt_ms = 40, .relayed_ms = 21},
    {.what = "10 ms less", .rtt_ms = 16, .relayed_ms = 6, .is_better = true},
    {.what = "9 ms less", .rtt_ms = 16, .relayed_ms = 7},
    {.what = "longer", .rtt_ms = 10, .relayed_ms = 100},
    {.what = "unknown", .rtt_ms = 900, .relayed_ms = 0},
    {.what = "unusable", .rtt_ms = 900, .relayed_ms = 2, .has_no_relay = true},
    {.what = "unwanted", .rtt_ms = 900, .relayed_ms = 2, .is_direct_only = true},
    {.what = "a quarter lost",
        .rtt_ms = 10,
        .relayed_ms = 100,
        .n_known = 20,
        .lost = 0x1f0,
        .is_better = true},
    {.what = "less than a quarter lost",
        .rtt_ms = 10,
        .relayed_ms = 100,
        .n_known = 20,
        .lost = 0xf0},
    {.what = "too few pings", .rtt_ms = 10, .relayed_ms = 100, .n_known = 19, .lost = 0x1f0},
    {.what = "lost before the last eight",
        .rtt_ms = 10,
        .relayed_ms = 100,
        .n_known = 20,
        .lost = 0x1f00},
    {.what = "one lost of the last eight",
        .rtt_ms = 10,
        .relayed_ms = 100,
        .n_known = 20,
        .lost = 0xf80,
        .is_better = true},
    {.what = "the newest lost",
        .rtt_ms = 10,
        .relayed_ms = 100,
        .n_known = 20,
        .lost = 0xf01,
        .is_better = true},
    {.what = "lost, and the relay unknown",
        .rtt_ms = 10,
        .relayed_ms = 0,
        .n_known = 20,
        .lost = 0xfff},
    {.what = "lost, and no relay",
        .rtt_ms = 10,
        .relayed_ms = 100,
        .n_known = 20,
        .lost = 0xfff,
        .has_no_relay = true},
    {.what = "lost, and the relay unwanted",
        .rtt_ms = 10,
        .relayed_ms = 100,
        .n_known = 20,
        .lost = 0xfff,
        .is_direct_only = true},
    {.what = "carries as much",
        .rtt_ms = 40,
        .relayed_ms = 20,
        .mtu = 1400,
        .mtu_here = 1400,
        .mtu_there = 1401,
        .is_better = true},
    {.what = "carries less here",
        .rtt_ms = 40,
        .relayed_ms = 20,
        .mtu = 1400,
        .mtu_here = 1399,
        .mtu_there = 1400},
    {.what = "carries less there",
        .rtt_ms = 40,
        .relayed_ms = 20,
        .mtu = 1400,
        .mtu_here = 1400,
        .mtu_there = 1399},
    {.what = "carries what everything does",
        .rtt_ms = 40,
        .relayed_ms = 20,
        .mtu = PMTU_INNER_MIN,
        .is_better = true},
    {.what = "is not known to carry more",
        .rtt_ms = 40,
        .relayed_ms = 20,
        .mtu = PMTU_INNER_MIN + 1},
};

static void measure(struct path *pp, const struct comparison *as)
{
    struct path_pair *pair = chosen(pp);
    struct path_relay *here = &pp->owner->self.relays[0];
    struct path_relay *there = &pp->side.relays[0];

    pair->recent.values[0] = as->rtt_ms * MSEC;
    pair->recent.values[1] = 0;
    pair->n_known = as->n_known;
    pair->lost = as->lost;
    pp->choice.mtu = as->mtu;
    pp->choice.stay_until = 0;
    pp->peer.policy = as->is_direct_only ? PATH_POLICY_DIRECT : PATH_POLICY_AUTO;
    pp->owner->relay_is_usable = !as->has_no_relay;
    here->rtt = as->relayed_ms != 0 ? 1 * MSEC : 0;
    here->mtu = as->mtu_here;
    there->rtt = as->relayed_ms != 0 ? (as->relayed_ms - 1) * MSEC : 0;
    there->mtu = as->mtu_there;
}

/* The second measurement in a row decides. */
static void test_when_a_relay_is_better(void **state)
{
    for (size_t i = 0; i < sizeof(comparisons) / sizeof(comparisons[0]); i++) {
        const struct comparison *as = &comparisons[i];
        struct couple *c = &couple;
        struct path *pp = start_direct(c);
        struct path_pair *pair = chosen(pp);

        measure(pp, as);
        path__on_measured(pp, pair, c->now);
        if (pp->choice.pair != pair->id || pair->record.n_better != as->is_better)
            fail_msg("%s: once", as->what);
        path__on_measured(pp, pair, c->now);
        if ((pp->choice.pair == 0) != as->is_better)
            fail_msg("%s: twice", as->what);
        couple_stop(c);
    }
}

static void test_what_is_left_for_a_better_relay(void **state)
{
    static const struct comparison better = {.rtt_ms = 40, .relayed_ms = 20};
    static const struct comparison worse = {.rtt_ms = 40, .relayed_ms = 30};
    struct couple *c = &couple;
    struct path *pp = start_direct(c);
    struct path_pair *pair = chosen(pp);

    /* Not twice in a row. */
    measure(pp, &better);
    path__on_measured(pp, pair, c->now);
    measure(pp, &worse);
    path__on_measured(pp, pair, c->now);
    measure(pp, &better);
    path__on_measured(pp, pair, c->now);
    assert_int_equal(pp->choice.pair, pair->id);
    /* Nor as long as it stays because it has come back from one. */
    pp->choice.stay_until = c->now + 1;
    path__on_measured(pp, pair, c->now);
    assert_int_equal(pair->record.n_better, 0);
    path__on_measured(pp, pair, c->now + 1);
    assert_int_equal(pair->record.n_better, 1);
    pp->choice.n_returns = 3;
    path__on_measured(pp, pair, c->now + 1);
    assert_int_equal(pp->choice.pair, 0);
    assert_true(pp->choice.has_left && pp->choice.is_worse);
    assert_int_equal(pp->choice.n_returns, 3);
    assert_int_equal(pair->record.n_better, 0);
    assert_true(pair->record.free_at == c->now + 1 + 4 * SEC);
    assert_int_equal(count_frames(pp, PATH_FRAME_LEAVE, PATH_FRAME_WORSE), 2);
    couple_stop(c);
}

/* Who has stayed for long enough begins with the shortest stay again. */
static void test_a_long_stay_is_a_new_beginning(void **state)
{
    static const struct comparison better = {.rtt_ms = 40, .relayed_ms = 20};

    for (unsigned i = 0; i < 2; i++) {
        struct couple *c = &couple;
        struct path *pp = start_direct(c);
        struct path_pair *pair = chosen(pp);
        nsec_t now = 1000 * SEC;

        measure(pp, &better);
        pp->choice.stay_until = now - 300 * SEC + 1 - i;
        pp->choice.n_returns = 3;
        path__on_measured(pp, pair, now);
        path__on_measured(pp, pair, now);
        assert_int_equal(pp->choice.pair, 0);
        assert_int_equal(pp->choice.n_returns, i == 0 ? 3 : 0);
        couple_stop(c);
    }
}

/* What the end of a direct path has to do for the relay, of the kinds USE, CLOSE and EVENT. */
struct left {
    struct path_action use;
    unsigned n_uses;
    unsigned n_closed;
    uint32_t closed;
    unsigned n_events;
    char text[PATH_TEXT_MAX];
};

static struct left take_left(struct path *pp)
{
    struct left left = {.n_uses = 0};
    struct path_action a;

    while (paths_next(pp->owner, &a)) {
        if (a.kind == PATH_ACTION_USE) {
            left.use = a;
            left.n_uses++;
        }
        if (a.kind == PATH_ACTION_CLOSE) {
            left.closed = a.socket;
            left.n_closed++;
        }
        if (a.kind == PATH_ACTION_EVENT) {
            size_t n = strlen(left.text);

            left.n_events++;
            assert_false(a.is_warning);
            (void)snprintf(left.text + n, sizeof(left.text) - n, "%s", a.text);
        }
    }
    return left;
}

/* As if more was known of the direct path than a new one has. */
static void burden(struct path *pp, nsec_t now)
{
    pp->choice.sent.pair = pp->choice.received.pair = pp->choice.pair;
    pp->choice.mtu = 1400;
    pp->choice.choose_at = pp->choice.alarm_at = now;
    pp->relay.move_at = now;
    pp->slot.next_at = NSEC_NEVER;
    pp->guess.n_tried = 3;
}

static void assert_unburdened(const struct path *pp, nsec_t now)
{
    assert_int_equal(pp->choice.pair, 0);
    assert_int_equal(pp->choice.sent.pair, 0);
    assert_int_equal(pp->choice.received.pair, 0);
    assert_int_equal(pp->choice.mtu, 0);
    assert_true(pp->choice.since == now);
    assert_true(pp->choice.choose_at == NSEC_NEVER);
    assert_true(pp->liveness.next_at == NSEC_NEVER);
    assert_true(pp->relay.move_at == NSEC_NEVER);
    assert_true(pp->slot.next_at > now && pp->slot.next_at < NSEC_NEVER);
}

static void test_from_the_pair_to_the_relay(void **state)
{
    struct couple *c = &couple;
    struct path *pp = start_direct(c);
    uint64_t switches = pp->owner->counters.switches;
    nsec_t now = 1000 * SEC;
    struct path_side *self = &pp->owner->self;
    struct left left;

    /* Of two relays the second is the better one. */
    self->relays[1] = self->relays[0];
    self->relays[1].key = relay_key(6);
    self->n_relays = 2;
    pp->side.relays[1] = pp->side.relays[0];
    pp->side.relays[1].key = relay_key(6);
    pp->side.n_relays = 2;
    self->relays[1].rtt = pp->side.relays[1].rtt = 7 * MSEC;
    burden(pp, now);
    pp->choice.since = now - 300 * SEC;
    path__use_relay(pp, "because", now);
    assert_unburdened(pp, now);
    assert_true(pp->choice.alarm_at == NSEC_NEVER);
    assert_true(x25519_public_equal(&pp->relay.key, &self->relays[1].key));
    /* It has lasted: guesses that were in vain before it are forgotten. */
    assert_int_equal(pp->guess.n_tried, 0);
    assert_true(pp->owner->counters.switches == switches + 1);
    left = take_left(pp);
    assert_int_equal(left.n_uses, 1);
    assert_int_equal(left.use.path, PATH_KIND_RELAY);
    assert_true(x25519_public_equal(&left.use.via.key, &self->relays[1].key));
    assert_true(left.use.via.rtt == 14 * MSEC);
    assert_true(endpoint_is_none(&left.use.remote));
    assert_false(left.use.is_followed);
    assert_int_equal(left.n_closed, 0);
    assert_int_equal(left.n_events, 1);
    assert_string_equal(left.text, "b: because");
    couple_stop(c);
}

/* It is nothing to tell of, and no change of the path that is counted. */
static void test_to_the_relay_without_a_word(void **state)
{
    struct couple *c = &couple;
    struct path *pp = start_direct(c);
    uint64_t switches = pp->owner->counters.switches;
    nsec_t now = 1000 * SEC;
    struct left left;

    burden(pp, now);
    pp->choice.since = now - 300 * SEC + 1;
    pp->peer.policy = PATH_POLICY_DIRECT;
    path__use_relay(pp, NULL, now);
    assert_unburdened(pp, now);
    /* People are told after a while. */
    assert_true(pp->choice.alarm_at == now + 30 * SEC);
    assert_int_equal(pp->guess.n_tried, 3);
    assert_true(pp->owner->counters.switches == switches);
    left = take_left(pp);
    assert_int_equal(left.n_uses, 1);
    assert_int_equal(left.n_events, 0);
    /* A relay that has been used for that long is no path that has lasted. */
    pp->choice.since = now - 300 * SEC;
    path__use_relay(pp, NULL, now);
    assert_int_equal(pp->guess.n_tried, 3);
    /* An edge that is off has none. */
    (void)take_left(pp);
    pp->peer.policy = PATH_POLICY_OFF;
    path__use_relay(pp, NULL, now);
    left = take_left(pp);
    assert_int_equal(left.use.path, PATH_KIND_NONE);
    assert_true(pp->slot.next_at == NSEC_NEVER);
    couple_stop(c);
}

/* A socket that was opened for the pair alone is closed with it. */
static void test_the_socket_of_a_pair_that_is_left(void **state)
{
    struct couple *c = &couple;
    struct path *pp = start_direct(c);
    struct left left;

    chosen(pp)->socket = 9;
    pp->owner->guessing.n_sockets = 1;
    path__use_relay(pp, "because", c->now);
    left = take_left(pp);
    assert_int_equal(left.n_closed, 1);
    assert_int_equal(left.closed, 9);
    assert_int_equal(pp->owner->guessing.n_sockets, 0);
    for (unsigned i = 0; i < pp->pairs.n; i++)
        assert_int_equal(pp->pairs.items[i].socket, PATH_SOCKET_MAIN);
    couple_stop(c);
}

/* Each relay that this node reaches is shown, with what the peer says of it. */
static void test_relays_are_shown(void **state)
{
    static const struct x25519_public stranger = {{7}};
    struct path_relay_view views[4];
    struct couple *c = &couple;
    struct x25519_public keys[2] = {relay_key(1), relay_key(2)};
    const struct x25519_public *peer = &c->nodes[1].key;

    couple_start(c, PATH_POLICY_AUTO);
    assert_int_equal(paths_relays(c->nodes[0].paths, peer, views, 4), 0);
    tell(c, 0, (unsigned[]){20, 10});
    tell(c, 1, (unsigned[]){30, 0});
    assert_int_equal(paths_relays(c->nodes[0].paths, &stranger, views, 4), 0);
    assert_int_equal(paths_relays(c->nodes[0].paths, peer, views, 0), 0);
    assert_int_equal(paths_relays(c->nodes[0].paths, peer, views, 1), 1);
    assert_int_equal(paths_relays(c->nodes[0].paths, peer, views, 4), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(x25519_public_equal(&views[i].key, &keys[i]));
        assert_int_equal(views[i].here, i == 0 ? 20 * MSEC : 10 * MSEC);
        assert_int_equal(views[i].there, i == 0 ? 30 * MSEC : 0);
        assert_int_equal(views[i].verdict, i == 0 ? PATH_VERDICT_CHOSEN : PATH_VERDICT_SILENT);
    }
    /* One that both reach, and which is not used. */
    tell(c, 1, (unsigned[]){30, 30});
    assert_int_equal(paths_relays(c->nodes[0].paths, peer, views, 4), 2);
    assert_int_equal(views[1].there, 30 * MSEC);
    assert_int_equal(views[1].verdict, PATH_VERDICT_WORKS);
    couple_stop(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_better_only_after_a_while_and_by_the_first),
        cmocka_unit_test(test_better_for_both_without_a_session),
        cmocka_unit_test(test_little_better_is_not_worth_it),
        cmocka_unit_test(test_lost_one_is_left_at_once_by_either),
        cmocka_unit_test(test_announced_anew_is_gone_back_to),
        cmocka_unit_test(test_relayed_pair_sends_nothing),
        cmocka_unit_test(test_relay_that_is_better),
        cmocka_unit_test(test_relay_has_to_carry_what_is_sent),
        cmocka_unit_test(test_one_late_answer_is_nothing),
        cmocka_unit_test(test_late_answers_are_no_loss),
        cmocka_unit_test(test_busy_time_is_no_reason),
        cmocka_unit_test(test_path_that_became_slow),
        cmocka_unit_test(test_edge_does_not_go_to_and_fro),
        cmocka_unit_test(test_a_relay_that_is_not_known_to_be_better),
        cmocka_unit_test(test_verdict_falls_with_its_evidence),
        cmocka_unit_test(test_better_path_is_taken_soon),
        cmocka_unit_test(test_first_answers_do_not_decide_for_the_relay),
        cmocka_unit_test(test_hub_absence_changes_nothing_direct),
        cmocka_unit_test(test_when_a_relay_is_better),
        cmocka_unit_test(test_what_is_left_for_a_better_relay),
        cmocka_unit_test(test_a_long_stay_is_a_new_beginning),
        cmocka_unit_test(test_from_the_pair_to_the_relay),
        cmocka_unit_test(test_to_the_relay_without_a_word),
        cmocka_unit_test(test_the_socket_of_a_pair_that_is_left),
        cmocka_unit_test(test_relays_are_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
