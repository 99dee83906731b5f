/* test-edges.c - a node's edges: how they begin, what each event plans, and what is told of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"
#include "test/support/path_solo.h"

#define MS  NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

static const struct x25519_public stranger = {{2}};

static struct path *edge_of(const struct solo *w)
{
    size_t cursor = 0;

    return container_of(htab_each(&w->paths->by_key, &cursor, NULL), struct path, by_key);
}

static uint64_t rounds(const struct solo *w)
{
    return paths_counters(w->paths)->rounds;
}

static void put_peer(struct solo *w, enum path_policy policy)
{
    struct path_peer peer = solo_view(w).peer;

    peer.policy = policy;
    assert_int_equal(paths_put_peer(w->paths, &peer, w->now), 0);
    solo_take_actions(w);
}

/* The peer's one address, and the number of its report. */
static struct path_side side_of(const struct solo *w, uint64_t generation)
{
    struct path_side side = {.generation = generation};

    assert_true(candidates_add(&side.candidates, CANDIDATE_HOST, &w->host));
    return side;
}

/* The node that nominates uses the direct path. */
static struct solo *start_direct(void)
{
    struct solo *w = solo_start_proven(true);
    struct path_frame f;

    solo_answer_after(w, 20 * MS);
    solo_run(w, 100 * MS);
    f = solo_next_frame(w, PATH_FRAME_ACCEPT);
    f.transaction = solo_last_of(w, PATH_FRAME_NOMINATE)->f.transaction;
    solo_deliver(w, &f);
    assert_int_equal(w->use.path, PATH_KIND_DIRECT);
    return w;
}

/* ---- how they begin -------------------------------------------------------------------------- */

static void test_limits_of_a_new_node(void **state)
{
    uint64_t seed = 3;
    struct paths_options opt = {.name = "a", .rng = rng_seeded(&seed)};
    struct paths *p = NULL;

    x25519_secret_make(&opt.secret, &opt.rng);
    for (unsigned given = 0; given < 2; given++) {
        opt.frames_per_second = given ? 10 : 0;
        opt.answers_per_second = given ? 20 : 0;
        opt.guess_sockets = given ? 5 : 0;
        assert_int_equal(paths_new(&p, &opt, SOLO_T0), 0);
        assert_int_equal(p->budget.begin.interval, given ? 100 * MS : SEC / 400);
        assert_int_equal(p->budget.begin.burst, SEC);
        assert_int_equal(p->budget.answer.interval, given ? 50 * MS : MS);
        assert_int_equal(p->budget.answer.burst, SEC);
        assert_int_equal(p->budget.mappings.interval, 120 * SEC / 1024);
        assert_int_equal(p->budget.mappings.burst, 120 * SEC);
        assert_int_equal(p->guessing.sockets_max, given ? 5 : 256);
        assert_string_equal(p->name, "a");
        assert_true(p->relay_is_usable);
        assert_true(paths_due(p) == NSEC_NEVER);
        /* What nobody else is to know is drawn for each purpose. */
        assert_true(p->session != 0 && p->by_key.seed != 0 && p->by_tag.seed != 0);
        assert_true(p->budget.to.seed != 0 && p->budget.to.seed != p->by_key.seed);
        assert_true(p->by_key.seed != p->by_tag.seed && p->by_tag.seed != p->session);
        p = paths_free(p);
        assert_null(p);
    }
    assert_null(paths_free(NULL));
}

/* Its own key is no peer's, nor is one with which everybody has the same secret. */
static void test_peers_that_are_none(void **state)
{
    struct solo *w = solo_start(true);
    struct path_peer peer = {.name = "c"};
    struct path_view v;

    for (unsigned i = 0; i < 2; i++) {
        peer.key = i == 0 ? w->paths->public : (struct x25519_public){{0}};
        assert_int_equal(paths_put_peer(w->paths, &peer, w->now), -EINVAL);
        assert_false(paths_view(w->paths, &peer.key, &v, w->now));
        assert_int_equal(w->paths->by_key.n, 1);
        assert_int_equal(w->paths->by_tag.n, 1);
    }
    solo_stop(w);
}

/* A new edge is on the relay, and has nothing to do until its peer tells something. */
static void test_a_new_edge(void **state)
{
    for (unsigned nominates = 0; nominates < 2; nominates++) {
        struct solo *w = solo_start(nominates);
        const struct path *pp = edge_of(w);
        struct path_view v = solo_view(w);
        uint64_t phase = 0;

        assert_int_equal(w->n_uses, 1);
        assert_int_equal(v.kind, PATH_KIND_RELAY);
        assert_int_equal(v.since, SOLO_T0);
        assert_int_equal(pp->nominates, nominates);
        assert_true(paths_due(w->paths) == NSEC_NEVER);
        assert_true(pp->choice.choose_at == NSEC_NEVER);
        assert_true(pp->choice.alarm_at == NSEC_NEVER);
        assert_true(pp->relay.move_at == NSEC_NEVER);
        assert_true(pp->liveness.next_at == NSEC_NEVER);
        assert_true(pp->checks.round.next_at == NSEC_NEVER);
        /* Both ends reckon it from both tags, whatever their version. */
        for (unsigned i = 0; i < sizeof(w->keys.send_tag.b); i++)
            phase = phase * 257 + (w->keys.send_tag.b[i] ^ w->keys.receive_tag.b[i]);
        assert_int_equal(pp->slot.phase, phase % (uint64_t)(3600 * SEC));
        solo_stop(w);
    }
}

/* ---- the policy ------------------------------------------------------------------------------ */

static void test_a_policy_without_direct_paths(void **state)
{
    static const enum path_policy policies[] = {PATH_POLICY_RELAY, PATH_POLICY_OFF};

    for (unsigned i = 0; i < 2; i++) {
        struct solo *w = start_direct();

        assert_true(edge_of(w)->checks.round.next_at != NSEC_NEVER);
        solo_run(w, SEC);
        put_peer(w, policies[i]);
        assert_int_equal(w->use.path, i == 0 ? PATH_KIND_RELAY : PATH_KIND_NONE);
        assert_int_equal(solo_view(w).kind, i == 0 ? PATH_KIND_RELAY : PATH_KIND_NONE);
        assert_int_equal(solo_view(w).since, w->now);
        /* Nothing is tried any more, nor is a path of before taken. */
        assert_true(paths_due(w->paths) == NSEC_NEVER);
        assert_false(paths_keep(w->paths, &w->key, &w->host, w->now));
        solo_stop(w);
    }
}

/* The edge is relayed for as long as before, and people are warned after half a minute of that. */
static void test_only_direct_paths_from_now_on(void **state)
{
    struct solo *w = solo_start(true);
    const struct path *pp = edge_of(w);

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 10 * SEC);
    put_peer(w, PATH_POLICY_DIRECT);
    assert_int_equal(solo_view(w).since, SOLO_T0);
    assert_int_equal(pp->choice.alarm_at, SOLO_T0 + 30 * SEC);
    solo_run(w, 20 * SEC - 1);
    assert_false(solo_view(w).is_alarm);
    solo_run(w, 1);
    assert_true(solo_view(w).is_alarm);
    put_peer(w, PATH_POLICY_AUTO);
    assert_false(solo_view(w).is_alarm);
    assert_true(pp->choice.alarm_at == NSEC_NEVER);
    solo_stop(w);
    /* A direct path stays as it is. */
    w = start_direct();
    put_peer(w, PATH_POLICY_DIRECT);
    assert_int_equal(w->n_uses, 2);
    assert_int_equal(solo_view(w).kind, PATH_KIND_DIRECT);
    assert_true(edge_of(w)->choice.alarm_at == NSEC_NEVER);
    solo_stop(w);
}

/* It begins to try at once, what it has not done before. */
static void test_direct_paths_are_wanted_again(void **state)
{
    struct solo *w = solo_start(true);

    put_peer(w, PATH_POLICY_RELAY);
    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 100 * SEC);
    assert_int_equal(w->n_sent, 0);
    put_peer(w, PATH_POLICY_AUTO);
    assert_int_equal(paths_due(w->paths), w->now);
    assert_int_equal(rounds(w), 1);
    assert_in_range(edge_of(w)->slot.next_at, w->now, w->now + 60 * SEC);
    solo_stop(w);
}

/* ---- a peer that goes ------------------------------------------------------------------------ */

static const struct behavior easy = {.mapping = BEHAVIOR_ENDPOINT_INDEPENDENT, .is_natted = true};
static const struct behavior hard = {.mapping = BEHAVIOR_PORT_DEPENDENT, .is_natted = true};

/* A node that guesses ports, with 16 sockets open. */
static struct solo *start_guessing(void)
{
    struct solo *w = solo_start(true);

    solo_tell_self(w, &hard);
    solo_tell_side(w, CANDIDATE_REFLEXIVE, &easy);
    solo_run(w, 5100 * MS);
    assert_int_equal(w->n_opened, 16);
    for (unsigned i = 0; i < 16; i++)
        paths_on_socket(w->paths, w->opened[i], true);
    assert_int_equal(w->paths->guessing.n_sockets, 16);
    return w;
}

static void assert_all_closed(struct solo *w)
{
    solo_take_actions(w);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(w->n_closed[w->opened[i]], 1);
    assert_int_equal(w->paths->guessing.n_sockets, 0);
    assert_null(w->paths->guessing.edge);
}

static void test_who_guesses_closes_its_sockets(void **state)
{
    struct solo *w = start_guessing();

    put_peer(w, PATH_POLICY_RELAY);
    assert_all_closed(w);
    solo_stop(w);
    w = start_guessing();
    paths_remove_peer(w->paths, &w->key, w->now);
    assert_all_closed(w);
    solo_stop(w);
    w = start_guessing();
    paths_leave_sockets(w->paths, w->now);
    assert_all_closed(w);
    solo_stop(w);
}

static void test_the_socket_of_a_peer_that_goes(void **state)
{
    struct solo *w = start_direct();
    struct path_frame ping = solo_next_frame(w, PATH_FRAME_PING);

    edge_of(w)->pairs.items[0].socket = 9;
    w->paths->guessing.n_sockets = 1;
    paths_remove_peer(w->paths, &stranger, w->now);
    assert_int_equal(w->paths->by_key.n, 1);
    paths_remove_peer(w->paths, &w->key, w->now);
    solo_take_actions(w);
    assert_int_equal(w->n_closed[9], 1);
    assert_int_equal(w->n_all_closed, 1);
    assert_int_equal(w->paths->guessing.n_sockets, 0);
    assert_int_equal(w->paths->by_key.n, 0);
    assert_int_equal(w->paths->by_tag.n, 0);
    /* Its frames are anybody's. */
    solo_deliver(w, &ping);
    assert_int_equal(paths_counters(w->paths)->refused_tag, 1);
    solo_stop(w);
    w = start_direct();
    paths_remove_peer(w->paths, &w->key, w->now);
    solo_take_actions(w);
    assert_int_equal(w->n_all_closed, 0);
    solo_stop(w);
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* Another number or other addresses are a reason to try again; other relays alone are none. */
static void test_reports_of_the_peer(void **state)
{
    struct solo *w = solo_start(true);
    struct path_side side = side_of(w, 5);

    paths_set_peer_side(w->paths, &stranger, &side, w->now);
    assert_false(edge_of(w)->has_side);
    paths_set_peer_side(w->paths, &w->key, &side, w->now);
    assert_true(edge_of(w)->has_side);
    assert_int_equal(rounds(w), 1);
    assert_int_equal(paths_due(w->paths), w->now);
    solo_run(w, 5 * SEC);
    side.keepalive = 30 * SEC;
    paths_set_peer_side(w->paths, &w->key, &side, w->now);
    assert_int_equal(rounds(w), 1);
    assert_int_equal(edge_of(w)->side.keepalive, 30 * SEC);
    side.generation = 6;
    paths_set_peer_side(w->paths, &w->key, &side, w->now);
    assert_int_equal(rounds(w), 2);
    solo_run(w, 5 * SEC);
    side.candidates.items[0].endpoint.port++;
    paths_set_peer_side(w->paths, &w->key, &side, w->now);
    assert_int_equal(rounds(w), 3);
    assert_int_equal(edge_of(w)->pairs.n, 1);
    assert_int_equal(edge_of(w)->pairs.items[0].remote.endpoint.port, w->host.port + 1);
    solo_stop(w);
    /* A first one that says nothing: both ends will try at slots. */
    w = solo_start(true);
    paths_set_peer_side(w->paths, &w->key, &(struct path_side){.generation = 0}, w->now);
    assert_in_range(paths_due(w->paths), w->now + 1, w->now + 60 * SEC);
    solo_stop(w);
}

static void test_reports_of_the_node_itself(void **state)
{
    struct solo *w = solo_start(true);
    struct path_side self = {.generation = 5};
    struct endpoint own = solo_endpoint("198.51.100.1:51820");
    struct path_side side = side_of(w, 1);

    paths_set_peer_side(w->paths, &w->key, &side, w->now);
    solo_run(w, 5 * SEC);
    paths_set_self(w->paths, &self, w->now);
    assert_int_equal(rounds(w), 2);
    assert_int_equal(w->paths->self_changed_at, 0);
    solo_run(w, 5 * SEC);
    self.keepalive = 30 * SEC;
    paths_set_self(w->paths, &self, w->now);
    assert_int_equal(rounds(w), 2);
    assert_int_equal(w->paths->self.keepalive, 30 * SEC);
    assert_true(candidates_add(&self.candidates, CANDIDATE_HOST, &own));
    paths_set_self(w->paths, &self, w->now);
    assert_int_equal(rounds(w), 3);
    assert_int_equal(paths_due(w->paths), w->now);
    assert_int_equal(w->paths->self_changed_at, w->now);
    solo_stop(w);
}

/* Where packets already go directly the peer has to hear of another address at once; another number
 * alone is nothing to ask for. */
static void test_a_direct_path_is_asked_when_the_address_changes(void **state)
{
    for (unsigned moved = 0; moved < 2; moved++) {
        struct solo *w = start_direct();
        struct path_side self = {.generation = 5};
        nsec_t next_at;

        solo_run(w, 5 * SEC);
        next_at = edge_of(w)->liveness.next_at;
        assert_true(next_at > w->now);
        if (moved)
            assert_true(candidates_add(&self.candidates, CANDIDATE_HOST, &w->host));
        paths_set_self(w->paths, &self, w->now);
        assert_int_equal(edge_of(w)->liveness.next_at, moved ? w->now : next_at);
        solo_stop(w);
    }
}

/* The network has changed: the pair in use is asked, and all are tried. */
static void test_another_network(void **state)
{
    struct solo *w = start_direct();
    struct path_pair *pair = &edge_of(w)->pairs.items[0];
    uint64_t n;

    solo_run(w, 5 * SEC);
    n = rounds(w);
    assert_true(ip_addr_equal(&pair->contact.local, &w->local));
    paths_on_network_change(w->paths, w->now);
    assert_int_equal(rounds(w), n + 1);
    assert_int_equal(paths_due(w->paths), w->now);
    assert_int_equal(edge_of(w)->liveness.next_at, w->now);
    assert_int_equal(w->paths->changed_at, w->now);
    assert_true(ip_addr_is_none(&pair->contact.local));
    assert_true(ip_addr_equal(&pair->contact.left, &w->local));
    solo_stop(w);
}

/* Slots come sooner without a relay, beginning with the next; to be told so again changes nothing.
 */
static void test_a_relay_that_comes_and_goes(void **state)
{
    struct solo *w = solo_start(true);
    struct path *pp = edge_of(w);

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 5 * SEC);
    pp->slot.backoff = 3;
    paths_on_relay(w->paths, true, w->now);
    assert_int_equal(pp->slot.backoff, 3);
    paths_on_relay(w->paths, false, w->now);
    assert_int_equal(pp->slot.backoff, 0);
    assert_int_equal(paths_due(w->paths), pp->slot.next_at);
    assert_in_range(pp->slot.next_at, w->now + 1, w->now + 5 * SEC);
    pp->slot.backoff = 3;
    paths_on_relay(w->paths, false, w->now);
    assert_int_equal(pp->slot.backoff, 3);
    paths_on_relay(w->paths, true, w->now);
    assert_int_equal(pp->slot.backoff, 0);
    solo_stop(w);
}

/* A tenth of a second is a difference, either way. */
static void test_a_clock_that_differs(void **state)
{
    struct solo *w = solo_start(true);
    nsec_t next_at;

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 5 * SEC);
    next_at = edge_of(w)->slot.next_at;
    paths_set_clock(w->paths, 100 * MS - 1, w->now);
    paths_set_clock(w->paths, -100 * MS + 1, w->now);
    assert_int_equal(w->paths->clock_offset, 0);
    assert_int_equal(edge_of(w)->slot.next_at, next_at);
    paths_set_clock(w->paths, 100 * MS, w->now);
    assert_int_equal(w->paths->clock_offset, 100 * MS);
    assert_int_equal(edge_of(w)->slot.next_at, next_at - 100 * MS);
    paths_set_clock(w->paths, 0, w->now);
    assert_int_equal(w->paths->clock_offset, 0);
    assert_int_equal(edge_of(w)->slot.next_at, next_at);
    solo_stop(w);
}

static struct candidate_blocks block_of(const char *text)
{
    struct candidate_blocks blocks = {.n = 1};

    assert_int_equal(ip_prefix_parse(&blocks.items[0], text, NULL), 0);
    return blocks;
}

/* What lies in another overlay is left, and is tried again when it does not any more. */
static void test_another_overlay(void **state)
{
    struct candidate_blocks theirs = block_of("203.0.113.0/24"), others = block_of("192.0.2.0/24");
    struct candidate_blocks none = {.n = 0};
    struct solo *w = start_direct();
    struct path *pp = edge_of(w);
    struct path_frame f;

    paths_set_blocks(w->paths, &others, w->now);
    solo_take_actions(w);
    assert_int_equal(w->n_uses, 2);
    assert_int_equal(pp->pairs.n, 1);
    paths_set_blocks(w->paths, &theirs, w->now);
    solo_take_actions(w);
    assert_int_equal(w->n_uses, 3);
    assert_int_equal(w->use.path, PATH_KIND_RELAY);
    assert_int_equal(pp->pairs.n, 0);
    paths_set_blocks(w->paths, &none, w->now);
    assert_int_equal(pp->pairs.n, 1);
    solo_stop(w);
    /* A peer that has told nothing was heard somewhere, and may be heard there again. */
    w = solo_start(true);
    f = solo_next_frame(w, PATH_FRAME_PING);
    solo_deliver(w, &f);
    assert_int_equal(edge_of(w)->pairs.n, 1);
    paths_set_blocks(w->paths, &others, w->now);
    assert_int_equal(edge_of(w)->pairs.n, 1);
    paths_set_blocks(w->paths, &theirs, w->now);
    assert_int_equal(edge_of(w)->pairs.n, 0);
    solo_stop(w);
}

/* ---- traffic --------------------------------------------------------------------------------- */

/* Data that begins to flow on the relay is a reason to try; on a direct path the pair is asked. */
static void test_data_begins_to_flow(void **state)
{
    for (unsigned is_direct = 0; is_direct < 2; is_direct++) {
        struct solo *w = is_direct ? start_direct() : solo_start_proven(false);
        struct path *pp = edge_of(w);
        uint64_t n;

        solo_run(w, 5 * SEC);
        n = rounds(w);
        pp->slot.backoff = 3;
        paths_on_traffic(w->paths, &stranger, 1, 1, w->now);
        paths_on_traffic(w->paths, &w->key, 1, 1, w->now);
        assert_int_equal(rounds(w), n);
        assert_int_equal(pp->slot.backoff, 3);
        paths_on_traffic(w->paths, &w->key, 1, 2, w->now);
        assert_int_equal(rounds(w), n + !is_direct);
        assert_int_equal(pp->slot.backoff, 0);
        assert_int_equal(paths_due(w->paths), w->now);
        assert_true(pp->liveness.next_at == (is_direct ? w->now : NSEC_NEVER));
        solo_stop(w);
    }
}

/* What the engine has received by the pair in use keeps it, and nothing is kept on the relay. */
static void test_what_the_engine_has_received(void **state)
{
    struct solo *w = start_direct();
    struct path *pp = edge_of(w);

    solo_run(w, 10 * SEC);
    assert_true(pp->liveness.n_unanswered > 0);
    paths_on_received(w->paths, &stranger, w->now, w->now);
    assert_int_equal(pp->liveness.received_at, 0);
    paths_on_received(w->paths, &w->key, w->now, w->now);
    assert_int_equal(pp->liveness.received_at, w->now);
    pp->choice.pair = 0;
    paths_on_received(w->paths, &w->key, w->now, w->now + 1);
    assert_int_equal(pp->liveness.received_at, w->now);
    solo_stop(w);
}

static void test_a_path_is_kept_once(void **state)
{
    struct solo *w = solo_start(true);
    struct endpoint other = w->host;

    other.port++;
    assert_false(paths_keep(w->paths, &stranger, &w->host, w->now));
    assert_true(paths_keep(w->paths, &w->key, &w->host, w->now));
    assert_int_equal(paths_due(w->paths), w->now);
    assert_false(paths_keep(w->paths, &w->key, &other, w->now));
    solo_take_actions(w);
    assert_true(endpoint_equal(&w->use.remote, &w->host));
    assert_int_equal(w->n_uses, 2);
    solo_stop(w);
}

/* Of a size that a frame can have, to a peer whose run is known. */
static void test_what_may_be_probed(void **state)
{
    static const struct {
        uint16_t size;
        bool may;
    } cases[] = {{PATH_FRAME_MIN - 1, false}, {PATH_FRAME_MIN, true}, {PATH_FRAME_MAX, true},
        {PATH_FRAME_MAX + 1, false}};
    struct solo *w = solo_start(true);
    uint64_t probe = 0;

    assert_true(paths_keep(w->paths, &w->key, &w->host, w->now));
    assert_false(paths_probe(w->paths, &w->key, 1400, &probe, w->now));
    solo_stop(w);
    w = start_direct();
    assert_false(paths_probe(w->paths, &stranger, 1400, &probe, w->now));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        nsec_t spent = w->paths->budget.begin.rate.full_at;

        assert_int_equal(
            paths_probe(w->paths, &w->key, cases[i].size, &probe, w->now), cases[i].may);
        assert_int_equal(w->paths->budget.begin.rate.full_at > spent, cases[i].may);
    }
    solo_stop(w);
}

/* It is known of a direct path alone. */
static void test_how_large_packets_are(void **state)
{
    struct solo *w = start_direct();
    struct path *pp = edge_of(w);

    paths_set_mtu(w->paths, &stranger, 1400);
    assert_int_equal(pp->choice.mtu, 0);
    paths_set_mtu(w->paths, &w->key, 1400);
    assert_int_equal(pp->choice.mtu, 1400);
    pp->choice.pair = 0;
    paths_set_mtu(w->paths, &w->key, 1400);
    assert_int_equal(pp->choice.mtu, 0);
    solo_stop(w);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void test_what_is_told_of_a_direct_edge(void **state)
{
    struct solo *w = start_direct();
    struct path_pair *pair = &edge_of(w)->pairs.items[0];
    struct path_view v;

    pair->socket = 9;
    pair->n_known = 4;
    pair->lost = 1;
    pair->rtt = 30 * MS;
    v = solo_view(w);
    assert_string_equal(v.peer.name, "b");
    assert_true(x25519_public_equal(&v.peer.key, &w->key));
    assert_int_equal(v.kind, PATH_KIND_DIRECT);
    assert_true(endpoint_equal(&v.remote, &w->host));
    assert_int_equal(v.socket, 9);
    assert_int_equal(v.rtt, 30 * MS);
    assert_int_equal(v.least_rtt, 20 * MS);
    assert_int_equal(v.loss_permille, 250);
    assert_int_equal(v.since, w->now);
    assert_int_equal(v.n_frames, w->n_sent);
    assert_int_equal(v.n_guesses, 0);
    assert_string_equal(v.why, "");
    assert_false(v.is_alarm);
    assert_true(x25519_public_is_none(&v.via));
    assert_false(paths_view(w->paths, &stranger, &v, w->now));
    solo_stop(w);
}

/* Through which relay, and whether inside TLS; an edge that is off goes through none. */
static void test_what_is_told_of_a_relayed_edge(void **state)
{
    struct solo *w = solo_start(true);
    struct path_side self = {
        .n_relays = 1, .relays = {{.key = {{7}}, .rtt = 3 * MS, .is_stream = true, .mtu = 1400}}};
    struct path_side side = {.n_relays = 1, .relays = {{.key = {{7}}, .rtt = 4 * MS, .mtu = 1380}}};
    struct path_view v;

    paths_set_self(w->paths, &self, w->now);
    paths_set_peer_side(w->paths, &w->key, &side, w->now);
    v = solo_view(w);
    assert_int_equal(v.kind, PATH_KIND_STREAM);
    assert_int_equal(v.rtt, 7 * MS);
    assert_int_equal(v.least_rtt, 7 * MS);
    assert_int_equal(v.via.b[0], 7);
    assert_true(endpoint_is_none(&v.remote));
    assert_string_equal(v.why, "b knows no address of its own");
    assert_int_equal(paths_relay_mtu(w->paths, &w->key, &v.via), 1380);
    assert_int_equal(paths_relay_mtu(w->paths, &stranger, &v.via), 0);
    self.relays[0].is_stream = false;
    paths_set_self(w->paths, &self, w->now);
    assert_int_equal(solo_view(w).kind, PATH_KIND_RELAY);
    self.relays[0].is_stream = true;
    paths_set_self(w->paths, &self, w->now);
    put_peer(w, PATH_POLICY_OFF);
    assert_int_equal(solo_view(w).kind, PATH_KIND_NONE);
    solo_stop(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_of_a_new_node),
        cmocka_unit_test(test_peers_that_are_none),
        cmocka_unit_test(test_a_new_edge),
        cmocka_unit_test(test_a_policy_without_direct_paths),
        cmocka_unit_test(test_only_direct_paths_from_now_on),
        cmocka_unit_test(test_direct_paths_are_wanted_again),
        cmocka_unit_test(test_who_guesses_closes_its_sockets),
        cmocka_unit_test(test_the_socket_of_a_peer_that_goes),
        cmocka_unit_test(test_reports_of_the_peer),
        cmocka_unit_test(test_reports_of_the_node_itself),
        cmocka_unit_test(test_a_direct_path_is_asked_when_the_address_changes),
        cmocka_unit_test(test_another_network),
        cmocka_unit_test(test_a_relay_that_comes_and_goes),
        cmocka_unit_test(test_a_clock_that_differs),
        cmocka_unit_test(test_another_overlay),
        cmocka_unit_test(test_data_begins_to_flow),
        cmocka_unit_test(test_what_the_engine_has_received),
        cmocka_unit_test(test_a_path_is_kept_once),
        cmocka_unit_test(test_what_may_be_probed),
        cmocka_unit_test(test_how_large_packets_are),
        cmocka_unit_test(test_what_is_told_of_a_direct_edge),
        cmocka_unit_test(test_what_is_told_of_a_relayed_edge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
