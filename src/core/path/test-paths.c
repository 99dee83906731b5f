/* test-paths.c - two nodes find a path, keep it, and lose it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "path/paths.h"
#include "test/support/path_couple.h"

#define MSEC NSEC_PER_MSEC
#define SEC  NSEC_PER_SEC

static struct couple couple;

static void test_relay_at_once_then_direct(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_assert_relayed(c);
    assert_int_equal(c->nodes[0].n_uses, 1);
    assert_non_null(strstr(couple_view(c, 0).why, "has told no addresses"));
    couple_tell(c);
    couple_run(c, 300 * MSEC);
    couple_assert_direct(c);
    assert_int_equal(c->nodes[0].n_uses, 2);
    assert_int_equal(c->nodes[1].n_uses, 2);
    assert_true(couple_view(c, 0).rtt == 2 * COUPLE_DELAY);
    assert_string_equal(c->nodes[0].event, "b: direct path 203.0.113.2:51820, 20.0 ms");
    couple_stop(c);
}

/* Nothing in the overlay's own block is a path, whatever a peer reports and wherever it speaks
 * from: the path would lead through the overlay itself. */
static void test_no_path_leads_through_the_overlay(void **state)
{
    struct candidate_blocks blocks = {.n = 1};
    struct couple *c = &couple;

    assert_int_equal(ip_prefix_parse(&blocks.items[0], "203.0.113.0/24", NULL), 0);
    couple_start(c, PATH_POLICY_AUTO);
    for (unsigned i = 0; i < 2; i++)
        paths_set_blocks(c->nodes[i].paths, &blocks, c->now);
    couple_tell(c);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_relayed(c);
    couple_stop(c);
    /* One end that knows them is enough. */
    couple_start(c, PATH_POLICY_AUTO);
    paths_set_blocks(c->nodes[0].paths, &blocks, c->now);
    couple_tell(c);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_relayed(c);
    couple_stop(c);
}

/* A second overlay that begins later takes the path that leads through it now, for as long as it is
 * there; a part of its block that leads elsewhere does not. */
static void test_a_path_leads_through_another_overlay_from_now_on(void **state)
{
    struct candidate_blocks blocks = {.n = 0};
    struct ip_prefix block;
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    assert_int_equal(ip_prefix_parse(&block, "203.0.113.0/24", NULL), 0);
    assert_true(candidate_blocks_add(&blocks, &block));
    paths_set_blocks(c->nodes[0].paths, &blocks, c->now);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_relayed(c);
    assert_int_equal(ip_prefix_parse(&block, "203.0.113.0/28", NULL), 0);
    candidate_blocks_exclude(&blocks, &block);
    paths_set_blocks(c->nodes[0].paths, &blocks, c->now);
    couple_run_with_traffic(c, 120 * SEC);
    couple_assert_direct(c);
    couple_stop(c);
}

static void test_idle_is_cheap_and_steady(void **state)
{
    struct couple *c = &couple;
    uint64_t before;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run(c, 10 * SEC);
    before = c->n_sent;
    couple_run(c, 600 * SEC);
    couple_assert_direct(c);
    assert_int_equal(c->nodes[0].n_uses, 2);
    /* A ping and a pong each 10 s for both nodes together, and a round now and then. */
    assert_in_range(c->n_sent - before, 110, 170);
    couple_stop(c);
}

static void spread_is(const struct couple *c, unsigned node, bool is_known)
{
    struct path_view view = couple_view(c, node);

    assert_int_equal(rtt_spread_is_known(&view.spread), is_known);
    if (!is_known)
        return;
    assert_int_equal(view.spread.p50_us, 2 * COUPLE_DELAY / NSEC_PER_USEC);
    assert_in_range(view.spread.p99_us, view.spread.p50_us, 10 * view.spread.p50_us);
}

/* While packets flow both ends measure, though one of them would only answer. */
static void test_both_ends_know_how_round_trips_are_spread(void **state)
{
    struct path_peer peer = {.policy = PATH_POLICY_RELAY};
    struct couple *c = &couple;
    uint64_t before;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run(c, 1 * SEC);
    spread_is(c, 0, false);
    spread_is(c, 1, false);
    before = c->n_sent;
    couple_run_with_traffic(c, 60 * SEC);
    couple_assert_direct(c);
    spread_is(c, 0, true);
    spread_is(c, 1, true);
    /* Two pings a second of the one, and one in five seconds of the other; each has its answer. */
    assert_in_range(c->n_sent - before, 2 * 115, 2 * 170);
    c->slow_until = c->now + 2 * SEC;
    c->slow_by = 50 * MSEC;
    couple_run_with_traffic(c, 20 * SEC);
    assert_true(couple_view(c, 0).spread.p99_us > 60000);
    assert_true(couple_view(c, 0).spread.jitter_us > 0);
    /* Another path has figures of its own, and a relay none. */
    peer.key = c->nodes[1].key;
    assert_int_equal(paths_put_peer(c->nodes[0].paths, &peer, c->now), 0);
    couple_run(c, 1 * SEC);
    spread_is(c, 0, false);
    couple_stop(c);
}

/* What this moves more than a calm node may, each second. */
static void run_busy(struct couple *c, nsec_t time)
{
    for (nsec_t t = 0; t < time; t += SEC) {
        c->n_bytes += 70000;
        couple_traffic(c);
        couple_run(c, SEC);
    }
}

/* What is usual is learned while a node moves little, and whether it takes longer is, too. */
static void test_what_is_usual_of_a_path(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, 5 * SEC);
    couple_assert_direct(c);
    run_busy(c, 120 * SEC);
    spread_is(c, 0, true);
    assert_int_equal(couple_view(c, 0).spread.usual_us, 0);
    couple_run_with_traffic(c, 120 * SEC);
    assert_in_range(couple_view(c, 0).spread.usual_us, 2 * COUPLE_DELAY / NSEC_PER_USEC * 7 / 8,
        2 * COUPLE_DELAY / NSEC_PER_USEC * 9 / 8);
    c->slow_until = c->now + 1200 * SEC;
    c->slow_by = 50 * MSEC;
    run_busy(c, 240 * SEC);
    assert_int_equal(couple_view(c, 0).longer.since, 0);
    couple_run_with_traffic(c, 120 * SEC);
    assert_int_equal(couple_view(c, 0).longer.since, 0);
    couple_run_with_traffic(c, 20 * SEC);
    assert_true(couple_view(c, 0).longer.since > 0);
    assert_true(couple_view(c, 0).longer.least_us > 50000);
    c->slow_until = 0;
    couple_run_with_traffic(c, 10 * SEC);
    assert_int_equal(couple_view(c, 0).longer.since, 0);
    couple_stop(c);
}

/* An idle direct path is pinged as often as the shorter memory of the two NATs needs. */
static void test_idle_pace_is_the_shorter_keepalive(void **state)
{
    static const struct {
        nsec_t keepalive[2];
        unsigned pings; /* in 600 s */
    } cases[] = {{{4, 0}, 150}, {{0, 4}, 150}, {{20, 40}, 30}, {{40, 20}, 30}, {{40, 40}, 15}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct couple *c = &couple;
        uint64_t before;

        couple_start(c, PATH_POLICY_AUTO);
        c->nodes[0].keepalive = cases[i].keepalive[0] * SEC;
        c->nodes[1].keepalive = cases[i].keepalive[1] * SEC;
        couple_tell(c);
        couple_run(c, 10 * SEC);
        before = c->n_sent;
        couple_run(c, 600 * SEC);
        couple_assert_direct(c);
        assert_in_range(c->n_sent - before, 2 * cases[i].pings - 4, 2 * cases[i].pings + 50);
        couple_stop(c);
    }
}

/* As an earlier run has left it in the engine: used at once, asked, and left if it is silent. */
static void test_a_kept_path_is_used_and_asked(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    for (unsigned i = 0; i < 2; i++)
        assert_true(
            paths_keep(c->nodes[i].paths, &c->nodes[1 - i].key, &c->nodes[1 - i].ep, c->now));
    couple_run(c, 0);
    couple_assert_direct(c);
    assert_string_equal(
        c->nodes[0].event, "b: direct path 203.0.113.2:51820, kept from before this start");
    couple_run_with_traffic(c, 20 * SEC);
    couple_assert_direct(c);
    assert_int_equal(c->nodes[0].n_uses, 2);
    assert_int_equal(c->nodes[1].n_uses, 2);
    assert_true(couple_view(c, 0).rtt == 2 * COUPLE_DELAY);
    couple_stop(c);
}

static void test_a_kept_path_that_is_dead_is_left_in_time(void **state)
{
    struct couple *c = &couple;
    struct endpoint gone;

    couple_start(c, PATH_POLICY_AUTO);
    gone = c->nodes[1].ep;
    gone.port = 4242;
    assert_true(paths_keep(c->nodes[0].paths, &c->nodes[1].key, &gone, c->now));
    couple_run(c, 2000 * MSEC);
    couple_assert_relayed(c);
    assert_int_equal(c->nodes[0].n_uses, 3);
    couple_tell(c);
    couple_run(c, 300 * MSEC);
    couple_assert_direct(c);
    couple_stop(c);
}

static void test_what_may_not_be_kept(void **state)
{
    static const struct endpoint loopback = {.addr = {.b = {[15] = 1}}, .port = 4000};
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_RELAY);
    assert_false(paths_keep(c->nodes[0].paths, &c->nodes[1].key, &c->nodes[1].ep, c->now));
    couple_run(c, 0);
    couple_assert_relayed(c);
    couple_stop(c);
    couple_start(c, PATH_POLICY_AUTO);
    assert_false(paths_keep(c->nodes[0].paths, &c->nodes[1].key, &loopback, c->now));
    couple_run(c, 0);
    couple_assert_relayed(c);
    couple_stop(c);
}

static void test_dead_path_is_left_in_time(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    c->nodes[0].is_deaf = c->nodes[1].is_deaf = true;
    couple_run_with_traffic(c, 2500 * MSEC);
    couple_assert_relayed(c);
    assert_non_null(strstr(c->nodes[0].event, "no answer any more"));
    assert_non_null(strstr(couple_view(c, 0).why, "stopped answering"));
    /* It may be for an address that the NAT has changed. */
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(c->nodes[i].n_fresh, 1);
    c->nodes[0].is_deaf = c->nodes[1].is_deaf = false;
    couple_run_with_traffic(c, 61 * SEC);
    couple_assert_direct(c);
    couple_stop(c);
}

/* What was lost in it is no share of losses for which the relay would be better afterwards. */
static void test_outage_that_ends_in_time_is_not_loss(void **state)
{
    struct couple *c = &couple;
    uint64_t n_sent;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, 5 * SEC);
    couple_assert_direct(c);
    for (unsigned i = 0; i < 3; i++) {
        c->nodes[0].is_deaf = c->nodes[1].is_deaf = true;
        n_sent = c->n_sent;
        couple_run_with_traffic(c, 1000 * MSEC);
        couple_run(c, 100 * MSEC);
        assert_true(c->n_sent - n_sent >= 4);
        c->nodes[0].is_deaf = c->nodes[1].is_deaf = false;
        couple_run_with_traffic(c, 5 * SEC);
    }
    couple_assert_direct(c);
    assert_int_equal(c->nodes[0].n_uses, 2);
    assert_int_equal(c->nodes[1].n_uses, 2);
    couple_stop(c);
}

static void test_one_way_break_takes_both_away(void **state)
{
    for (unsigned deaf = 0; deaf < 2; deaf++) {
        struct couple *c = &couple;

        couple_start(c, PATH_POLICY_AUTO);
        couple_tell(c);
        couple_run_with_traffic(c, 10 * SEC);
        couple_assert_direct(c);
        c->nodes[deaf].is_deaf = true;
        couple_run_with_traffic(c, 2500 * MSEC);
        couple_assert_relayed(c);
        couple_run_with_traffic(c, 30 * SEC);
        couple_assert_relayed(c);
        couple_stop(c);
    }
}

static void test_idle_path_that_died_is_left_when_data_flows(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_traffic(c);
    couple_run(c, 20 * SEC);
    couple_assert_direct(c);
    c->nodes[0].is_deaf = c->nodes[1].is_deaf = true;
    couple_run_with_traffic(c, 2500 * MSEC);
    couple_assert_relayed(c);
    couple_stop(c);
}

static void test_policy(void **state)
{
    struct couple *c = &couple;
    struct path_peer peer = {.name = "b"};

    couple_start(c, PATH_POLICY_RELAY);
    couple_tell(c);
    couple_run(c, 120 * SEC);
    couple_assert_relayed(c);
    assert_int_equal(c->n_sent, 0);
    assert_non_null(strstr(couple_view(c, 0).why, "says relay"));
    peer.key = c->nodes[1].key;
    peer.policy = PATH_POLICY_OFF;
    assert_int_equal(paths_put_peer(c->nodes[0].paths, &peer, c->now), 0);
    couple_run(c, 1 * SEC);
    assert_int_equal(couple_view(c, 0).kind, PATH_KIND_NONE);
    couple_stop(c);
}

static void test_old_and_foreign_frames_change_nothing(void **state)
{
    struct couple *c = &couple;
    struct couple_frame kept;
    struct endpoint elsewhere = {.port = 7};
    uint64_t replays;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run(c, 300 * MSEC);
    couple_assert_direct(c);
    kept = c->kept;
    elsewhere.addr = c->nodes[0].ep.addr;
    replays = paths_counters(c->nodes[1].paths)->refused_replay;
    couple_inject(c, 1, &elsewhere, kept.bytes, kept.len);
    assert_int_equal(paths_counters(c->nodes[1].paths)->refused_replay, replays + 1);
    kept.bytes[60] ^= 1;
    couple_inject(c, 1, &elsewhere, kept.bytes, kept.len);
    assert_int_equal(paths_counters(c->nodes[1].paths)->refused_seal, 1);
    kept.bytes[5] ^= 1;
    couple_inject(c, 1, &elsewhere, kept.bytes, kept.len);
    assert_int_equal(paths_counters(c->nodes[1].paths)->refused_tag, 1);
    /* Its own frame does not come back to it as the peer's. */
    couple_inject(c, 0, &elsewhere, c->kept.bytes, c->kept.len);
    assert_int_equal(paths_counters(c->nodes[0].paths)->refused_tag, 1);
    couple_run(c, 60 * SEC);
    couple_assert_direct(c);
    assert_int_equal(c->nodes[1].n_uses, 2);
    couple_stop(c);
}

static void test_frames_of_an_earlier_run_move_nothing(void **state)
{
    struct couple *c = &couple;
    struct couple_frame kept;
    struct endpoint elsewhere;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run(c, 300 * MSEC);
    kept = c->kept;
    couple_stop(c);
    couple_start(c, PATH_POLICY_AUTO);
    /* The same keys, but both nodes are other runs. */
    elsewhere = c->nodes[0].ep;
    elsewhere.port++;
    couple_inject(c, 1, &elsewhere, kept.bytes, kept.len);
    couple_run(c, 10 * SEC);
    couple_assert_relayed(c);
    couple_stop(c);
}

static void test_address_change_is_followed_at_once(void **state)
{
    for (unsigned mover = 0; mover < 2; mover++) {
        struct couple *c = &couple;

        couple_start(c, PATH_POLICY_AUTO);
        couple_tell(c);
        couple_run_with_traffic(c, 10 * SEC);
        couple_assert_direct(c);
        c->nodes[mover].ep.port = 4242;
        paths_on_network_change(c->nodes[mover].paths, c->now);
        couple_run_with_traffic(c, 1500 * MSEC);
        couple_assert_direct(c);
        assert_int_equal(c->nodes[1 - mover].n_uses, 3);
        /* Its own way is the same as before: it did not leave that for the relay meanwhile. */
        assert_int_equal(c->nodes[mover].n_uses, 2);
        couple_stop(c);
    }
}

/* The peer goes on at our address of before until it has found the new one. */
static void test_address_of_before_a_change_is_not_gone_back_to(void **state)
{
    static const uint8_t addrs[2][4] = {{192, 0, 2, 1}, {192, 0, 2, 2}};
    struct ip_addr before = ip_addr_v4(addrs[0]);
    struct ip_addr after = ip_addr_v4(addrs[1]);
    struct couple *c = &couple;
    struct couple_node *mover = &c->nodes[0];
    unsigned n_from_before = 0;

    couple_start(c, PATH_POLICY_AUTO);
    mover->heard_at = before;
    couple_tell(c);
    couple_run_with_traffic(c, 10 * SEC);
    assert_true(ip_addr_equal(&mover->spoke_at, &before));
    paths_on_network_change(mover->paths, c->now);
    for (unsigned i = 0; i < 9; i++) {
        couple_run_with_traffic(c, 500 * MSEC);
        n_from_before += !ip_addr_is_none(&mover->spoke_at);
    }
    /* An answer leaves where it was asked for; the peer asks once in this time. */
    assert_in_range(n_from_before, 0, 1);
    /* It was the right one all the same: what arrives there five seconds later says so. */
    couple_run_with_traffic(c, 3 * SEC);
    assert_true(ip_addr_equal(&mover->spoke_at, &before));
    /* A new one is answered from at once. */
    paths_on_network_change(mover->paths, c->now);
    mover->heard_at = after;
    couple_run_with_traffic(c, 1500 * MSEC);
    assert_true(ip_addr_equal(&mover->spoke_at, &after));
    couple_assert_direct(c);
    couple_stop(c);
}

static void test_probe_of_the_mtu(void **state)
{
    struct couple *c = &couple;
    uint64_t probe;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    assert_false(paths_probe(c->nodes[0].paths, &c->nodes[1].key, 1400, &probe, c->now));
    couple_run(c, 300 * MSEC);
    assert_false(paths_probe(c->nodes[0].paths, &c->nodes[1].key, 9217, &probe, c->now));
    assert_true(paths_probe(c->nodes[0].paths, &c->nodes[1].key, 9000, &probe, c->now));
    couple_run(c, 0);
    {
        struct path_action a;

        assert_true(paths_next(c->nodes[0].paths, &a));
        assert_int_equal(a.kind, PATH_ACTION_SEND);
        assert_int_equal(a.len, 9000);
        assert_true(a.dont_fragment);
        couple_inject(c, 1, &c->nodes[0].ep, a.frame, a.len);
    }
    couple_run(c, 100 * MSEC);
    assert_int_equal(c->nodes[0].n_fits, 1);
    assert_int_equal(c->nodes[0].fits.size, 9000);
    assert_true(c->nodes[0].fits.probe == probe);
    assert_false(c->nodes[0].fits.is_whole);
    couple_stop(c);
}

static void test_peer_that_goes(void **state)
{
    struct couple *c = &couple;
    struct path_view v;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run(c, 300 * MSEC);
    paths_remove_peer(c->nodes[0].paths, &c->nodes[1].key, c->now);
    assert_false(paths_view(c->nodes[0].paths, &c->nodes[1].key, &v, c->now));
    assert_true(paths_due(c->nodes[0].paths) == NSEC_NEVER);
    couple_run(c, 30 * SEC);
    assert_int_equal(couple_view(c, 1).kind, PATH_KIND_RELAY);
    couple_stop(c);
}

static void start_with_v6(struct couple *c, nsec_t delay6)
{
    couple_start(c, PATH_POLICY_AUTO);
    c->has_v6 = true;
    c->delay6 = delay6;
    couple_tell(c);
    couple_run_with_traffic(c, 2 * SEC);
}

static void assert_v6(const struct couple *c, bool v6)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct couple_node *peer = &c->nodes[1 - i];

        assert_true(endpoint_equal(&c->nodes[i].use.remote, v6 ? &peer->ep6 : &peer->ep));
    }
}

static void test_v6_when_it_is_better(void **state)
{
    struct couple *c = &couple;

    start_with_v6(c, 4 * MSEC);
    assert_v6(c, true);
    couple_stop(c);
    start_with_v6(c, 20 * MSEC);
    assert_v6(c, false);
    couple_stop(c);
}

static void test_switch_only_to_what_is_clearly_better(void **state)
{
    struct couple *c = &couple;

    start_with_v6(c, 20 * MSEC);
    /* Better by 2 of 20 ms: not worth a switch, however often it is measured. */
    c->delay6 = 9 * MSEC;
    couple_run_with_traffic(c, 300 * SEC);
    assert_v6(c, false);
    assert_int_equal(c->nodes[0].n_uses, 2);
    /* By 16 of 20: within two slots, once, and both. */
    c->delay6 = 2 * MSEC;
    couple_run_with_traffic(c, 130 * SEC);
    assert_v6(c, true);
    assert_int_equal(c->nodes[0].n_uses, 3);
    assert_int_equal(c->nodes[1].n_uses, 3);
    couple_stop(c);
}

/* Not while long packets get lost on it: pings are short, and do not tell. */
static void test_better_pair_has_to_carry_what_is_sent(void **state)
{
    struct couple *c = &couple;

    start_with_v6(c, 20 * MSEC);
    c->delay6 = 2 * MSEC;
    c->hole6 = 1300;
    for (unsigned i = 0; i < 2; i++)
        paths_set_mtu(c->nodes[i].paths, &c->nodes[1 - i].key, 1408);
    couple_run_with_traffic(c, 300 * SEC);
    assert_v6(c, false);
    assert_int_equal(c->nodes[0].n_uses, 2);
    c->hole6 = 0;
    couple_run_with_traffic(c, 130 * SEC);
    assert_v6(c, true);
    assert_int_equal(c->nodes[0].n_uses, 3);
    /* The answers to what it asked itself are of no concern to anybody else. */
    assert_int_equal(c->nodes[0].n_fits, 0);
    couple_stop(c);
}

/* Of a relay: what it passes on has to fit on the way back as well. */
static void test_probe_of_a_relay_is_answered_in_full(void **state)
{
    struct couple *c = &couple;
    struct path_peer relay = {.policy = PATH_POLICY_AUTO, .is_relay = true};
    struct path_action a;
    uint64_t probe;

    couple_start(c, PATH_POLICY_AUTO);
    relay.key = c->nodes[1].key;
    assert_int_equal(paths_put_peer(c->nodes[0].paths, &relay, c->now), 0);
    couple_tell(c);
    couple_run(c, 300 * MSEC);
    assert_true(paths_probe(c->nodes[0].paths, &c->nodes[1].key, 1400, &probe, c->now));
    assert_true(paths_next(c->nodes[0].paths, &a));
    couple_inject(c, 1, &c->nodes[0].ep, a.frame, a.len);
    couple_run(c, 100 * MSEC);
    assert_int_equal(c->nodes[0].n_fits, 1);
    assert_true(c->nodes[0].fits.is_whole);
    couple_stop(c);
}

/* All that was tried is shown, up to what there is room for. */
static void test_pairs_are_shown(void **state)
{
    static const struct x25519_public stranger = {{7}};
    struct path_pair_view views[4];
    struct couple *c = &couple;
    const struct x25519_public *peer = &c->nodes[1].key;

    couple_start(c, PATH_POLICY_AUTO);
    c->has_v6 = true;
    c->delay6 = 30 * MSEC;
    assert_int_equal(paths_pairs(c->nodes[0].paths, peer, views, 4), 0);
    couple_tell(c);
    assert_int_equal(paths_pairs(c->nodes[0].paths, peer, views, 4), 2);
    assert_int_equal(views[0].verdict, PATH_VERDICT_UNTRIED);
    assert_int_equal(views[0].n_pings, 0);
    couple_run_with_traffic(c, 2 * SEC);
    assert_int_equal(paths_pairs(c->nodes[0].paths, &stranger, views, 4), 0);
    assert_int_equal(paths_pairs(c->nodes[0].paths, peer, views, 0), 0);
    assert_int_equal(paths_pairs(c->nodes[0].paths, peer, views, 1), 1);
    assert_int_equal(paths_pairs(c->nodes[0].paths, peer, views, 4), 2);
    for (unsigned i = 0; i < 2; i++) {
        bool is_v4 = ip_addr_is_v4(&views[i].remote.endpoint.addr);

        assert_true(
            endpoint_equal(&views[i].remote.endpoint, is_v4 ? &c->nodes[1].ep : &c->nodes[1].ep6));
        assert_int_equal(views[i].remote.kind, CANDIDATE_HOST);
        assert_int_equal(views[i].socket, PATH_SOCKET_MAIN);
        assert_int_equal(views[i].verdict, is_v4 ? PATH_VERDICT_CHOSEN : PATH_VERDICT_WORKS);
        assert_int_equal(views[i].rtt, is_v4 ? 20 * MSEC : 60 * MSEC);
        assert_int_equal(views[i].loss_permille, 0);
        assert_in_range(views[i].n_pongs, 2, views[i].n_pings);
        assert_in_range(views[i].tried_at, c->now - 2 * SEC, c->now);
    }
    couple_stop(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relay_at_once_then_direct),
        cmocka_unit_test(test_no_path_leads_through_the_overlay),
        cmocka_unit_test(test_a_path_leads_through_another_overlay_from_now_on),
        cmocka_unit_test(test_idle_is_cheap_and_steady),
        cmocka_unit_test(test_both_ends_know_how_round_trips_are_spread),
        cmocka_unit_test(test_what_is_usual_of_a_path),
        cmocka_unit_test(test_idle_pace_is_the_shorter_keepalive),
        cmocka_unit_test(test_a_kept_path_is_used_and_asked),
        cmocka_unit_test(test_a_kept_path_that_is_dead_is_left_in_time),
        cmocka_unit_test(test_what_may_not_be_kept),
        cmocka_unit_test(test_dead_path_is_left_in_time),
        cmocka_unit_test(test_outage_that_ends_in_time_is_not_loss),
        cmocka_unit_test(test_one_way_break_takes_both_away),
        cmocka_unit_test(test_idle_path_that_died_is_left_when_data_flows),
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_old_and_foreign_frames_change_nothing),
        cmocka_unit_test(test_frames_of_an_earlier_run_move_nothing),
        cmocka_unit_test(test_address_change_is_followed_at_once),
        cmocka_unit_test(test_address_of_before_a_change_is_not_gone_back_to),
        cmocka_unit_test(test_probe_of_the_mtu),
        cmocka_unit_test(test_peer_that_goes),
        cmocka_unit_test(test_v6_when_it_is_better),
        cmocka_unit_test(test_switch_only_to_what_is_clearly_better),
        cmocka_unit_test(test_better_pair_has_to_carry_what_is_sent),
        cmocka_unit_test(test_probe_of_a_relay_is_answered_in_full),
        cmocka_unit_test(test_pairs_are_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
