/*
 * test-edges.c - what one edge's path means for routes, handshakes and the other edges, by a clock
 * that the test moves. The paths are chosen by the test; the machine that chooses is path/'s.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/edges.h"
#include "agent/paths/edge/peer_table.h"
#include "agent/reconcile/observe.h"
#include "mesh/render/render.h"
#include "os/log.h"
#include "path/paths.h"
#include "test/support/captured_log.h"
#include "test/support/edge_world.h"
#include "test/support/path_couple.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC
#define T0  (1000 * SEC)

#define SELF 2

/* n3 is a peer like any other, n4 and n5 are relays. This end has the smallest key. */
static int set_up(void **state)
{
    static struct edge_world w;
    const struct x25519_public own = {.b = {0}};
    struct paths_options opt = {.secret = {.b = {[0] = 8, [31] = 64}}};

    w = (struct edge_world){.snapshot = sample_snapshot(5, SELF), .seed = 1};
    opt.rng = rng_seeded(&w.seed);
    edge_world_put_peer(&w.snapshot, 3, 0);
    edge_world_put_peer(&w.snapshot, 4, 70);
    edge_world_put_peer(&w.snapshot, 5, 80);
    w.snapshot.network.mtu = 1380;
    assert_int_equal(paths_new(&w.paths, &opt, T0), 0);
    edges_init(&w.e, w.paths, &opt.secret, &own, &opt.rng);
    edges_set_snapshot(&w.e, &w.snapshot, T0);
    (void)edges_take_changes(&w.e);
    (void)edges_choose_relays(&w.e, T0);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct edge_world *w = *state;

    edges_deinit(&w->e);
    w->paths = paths_free(w->paths);
    snapshot_deinit(&w->snapshot);
    return 0;
}

/* ---- what happens --------------------------------------------------------------------------- */

static void go_direct(struct edge_world *w, unsigned n, const char *at, nsec_t now)
{
    struct path_action action = {.path = PATH_KIND_DIRECT, .peer = sample_key(n)};

    action.remote = edge_world_endpoint(at);
    edges_use_direct(&w->e, &action, &action.remote, now);
    (void)edges_choose_relays(&w->e, now);
}

static struct observation seen(unsigned n, const char *at, nsec_t handshake_at, uint64_t bytes)
{
    return (struct observation){.key = sample_key(n),
        .endpoint = edge_world_endpoint(at),
        .handshake_at = handshake_at,
        .facts = {.rx_bytes = bytes, .tx_bytes = bytes}};
}

static bool is_handshake_due(struct edge_world *w, const char *node, nsec_t now)
{
    return peer_table_find(&w->e.peers, node)->handshake.due_at <= now;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_from_direct_to_the_hub(void **state)
{
    struct edge_world *w = *state;
    size_t n;

    go_direct(w, 3, "198.51.100.3:51820", T0);
    assert_true(edges_take_changes(&w->e));
    assert_false(edges_take_changes(&w->e));
    assert_int_equal(edge_world_route(w, "n3").endpoint.port, 51820);
    assert_false(edges_awaits_handshake(&w->e));
    edge_world_relay(w, 3, 0, T0 + SEC);
    assert_true(edges_take_changes(&w->e));
    (void)edges_routes(&w->e, &n);
    assert_int_equal(n, 0);
    /* The hub has to see one; ours is the smaller key. */
    assert_true(is_handshake_due(w, "n3", T0 + SEC));
    edges_on_applied(&w->e);
    assert_string_equal(edges_next_handshake(&w->e, T0 + SEC)->node, "n3");
    assert_null(edges_next_handshake(&w->e, T0 + SEC));
    /* Through the hub again is nothing new. */
    edge_world_relay(w, 3, 0, T0 + 2 * SEC);
    assert_false(edges_take_changes(&w->e));
}

static void test_a_relay_is_kept_ready(void **state)
{
    struct edge_world *w = *state;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    assert_true(edge_world_route(w, "n4").is_standby);
    /* It must have heard us. */
    assert_true(is_handshake_due(w, "n4", T0));
    edge_world_see(w, seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    assert_false(edges_awaits_handshake(&w->e));
    (void)edges_take_changes(&w->e);
    /* One that is a relay no more is a peer like any other. */
    edge_world_put_peer(&w->snapshot, 4, 0);
    edges_set_snapshot(&w->e, &w->snapshot, T0 + 2 * SEC);
    assert_true(edges_choose_relays(&w->e, T0 + 2 * SEC));
    assert_false(edge_world_route(w, "n4").is_standby);
    assert_true(edges_take_changes(&w->e));
    assert_false(edges_choose_relays(&w->e, T0 + 2 * SEC));
}

static void test_what_goes_through_a_relay_follows_it(void **state)
{
    struct edge_world *w = *state;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_relay(w, 3, 4, T0);
    assert_string_equal(edge_world_route(w, "n3").via, "n4");
    assert_int_equal(edge_world_route(w, "n3").endpoint.port, 51820);
    go_direct(w, 4, "198.51.100.4:4000", T0 + SEC);
    assert_int_equal(edge_world_route(w, "n3").endpoint.port, 4000);
    assert_true(is_handshake_due(w, "n4", T0 + SEC));
    /* Through a relay that we do not reach directly it goes by the hub. */
    edge_world_relay(w, 3, 5, T0 + 2 * SEC);
    assert_int_equal(peer_table_find(&w->e.peers, "n3")->route.kind, EDGE_ROUTE_HUB);
}

static void test_a_relay_that_has_forgotten(void **state)
{
    struct edge_world *w = *state;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_relay(w, 3, 4, T0);
    assert_false(is_handshake_due(w, "n3", T0 + SEC));
    edge_world_put_peer(&w->snapshot, 4, 71);
    edges_set_snapshot(&w->e, &w->snapshot, T0 + SEC);
    assert_true(is_handshake_due(w, "n3", T0 + SEC));
    assert_true(is_handshake_due(w, "n4", T0 + SEC));
    assert_false(is_handshake_due(w, "n5", T0 + SEC));
}

static void test_a_hub_that_has_forgotten(void **state)
{
    struct edge_world *w = *state;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_see(w, seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    edge_world_see(w, seen(3, "203.0.113.10:51820", T0 + MS, 1), T0 + SEC);
    (void)edges_take_changes(&w->e);
    edges_on_hub_forgot(&w->e, T0 + 2 * SEC);
    assert_true(edges_take_changes(&w->e));
    /* Not what goes directly, nor what never had a session. */
    assert_true(is_handshake_due(w, "n3", T0 + 2 * SEC));
    assert_false(is_handshake_due(w, "n4", T0 + 2 * SEC));
    assert_false(is_handshake_due(w, "n5", T0 + 2 * SEC));
    assert_true(edges_hasten_handshakes(&w->e, T0 + 2 * SEC));
}

/* Another hub relays from now on: what goes through it shakes hands there, and nothing else. */
static void test_another_hub_relays(void **state)
{
    struct edge_world *w = *state;
    struct object other = sample_node(1);
    struct endpoint at = edge_world_endpoint("203.0.113.99:51820");

    other.node.key = sample_key(9);
    (void)snprintf(other.node.meta.name, sizeof(other.node.meta.name), "hub-b");
    other.node.address4.b[15] = 9;
    sample_put(&w->snapshot, other);
    edges_set_snapshot(&w->e, &w->snapshot, T0);
    assert_string_equal(w->e.hub_name, "hub");
    go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_see(w, seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    edge_world_see(w, seen(3, "203.0.113.10:51820", T0 + MS, 1), T0 + SEC);
    edge_world_see(w, seen(9, "203.0.113.99:51820", T0 + MS, 1), T0 + SEC);
    assert_true(edges_is_hub_at(&w->e, &at));
    (void)edges_take_changes(&w->e);
    edges_set_hub(&w->e, snapshot_find_node(&w->snapshot, "hub"), T0 + 2 * SEC);
    assert_false(edges_take_changes(&w->e));
    edges_set_hub(&w->e, snapshot_find_node(&w->snapshot, "hub-b"), T0 + 2 * SEC);
    assert_true(edges_take_changes(&w->e));
    assert_true(is_handshake_due(w, "n3", T0 + 2 * SEC));
    assert_false(is_handshake_due(w, "n4", T0 + 2 * SEC));
    edges_set_snapshot(&w->e, &w->snapshot, T0 + 3 * SEC);
    assert_string_equal(w->e.hub_name, "hub-b");
}

/* The path that an edge has been given last; NONE: it was given none. */
static struct path_action last_use(struct edge_world *w, unsigned n)
{
    struct path_action last = {.kind = PATH_ACTION_NONE};
    const struct x25519_public key = sample_key(n);
    struct path_action action;

    while (paths_next(w->paths, &action))
        if (action.kind == PATH_ACTION_USE && x25519_public_equal(&action.peer, &key))
            last = action;
    return last;
}

static void test_the_other_end_leads(void **state)
{
    struct edge_world *w = *state;
    const struct x25519_public relay = sample_key(4);
    struct path_action action;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    (void)last_use(w, 3);
    /* Until the engine has our own route, where it sends to says nothing. */
    edge_world_see(w, seen(3, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    assert_int_equal(last_use(w, 3).kind, PATH_ACTION_NONE);
    edges_on_applied(&w->e);
    edge_world_see(w, seen(3, "198.51.100.4:51820", T0 + 2 * MS, 2), T0 + 2 * SEC);
    action = last_use(w, 3);
    assert_int_equal(action.kind, PATH_ACTION_USE);
    assert_true(action.is_followed);
    assert_true(x25519_public_equal(&action.via.key, &relay));
    /* No handshake is begun for it: there was one. */
    edges_use_relay(&w->e, &action, T0 + 2 * SEC);
    assert_string_equal(edge_world_route(w, "n3").via, "n4");
    assert_false(is_handshake_due(w, "n3", T0 + 3 * SEC));
}

/* As the engine of an earlier agent shows a peer: heard where it is sent to. */
static struct observation left(unsigned n, const char *at)
{
    struct observation s = seen(n, at, T0 - 100 * SEC, 1000);

    s.heard = s.endpoint;
    return s;
}

static void test_a_path_of_an_earlier_agent_is_kept(void **state)
{
    struct edge_world *w = *state;
    struct observation all[] = {left(3, "198.51.100.3:51820"), left(4, "198.51.100.4:51820")};
    const struct observe both = {.items = all, .n = 2};
    struct path_action action;

    edges_observe(&w->e, &both, T0 + SEC);
    action = last_use(w, 3);
    assert_int_equal(action.path, PATH_KIND_DIRECT);
    assert_true(endpoint_equal(&action.remote, &all[0].endpoint));
    /* What is seen later is this agent's own doing, or somebody else's. */
    all[1] = left(5, "198.51.100.5:51820");
    all[1].handshake_at = 0;
    edges_observe(&w->e, &both, T0 + 2 * SEC);
    all[1].handshake_at = T0 - 100 * SEC;
    edges_observe(&w->e, &both, T0 + 3 * SEC);
    assert_int_not_equal(last_use(w, 5).path, PATH_KIND_DIRECT);
}

static void test_what_shows_no_path_of_an_earlier_agent(void **state)
{
    struct edge_world *w = *state;
    struct observation all[] = {left(1, "203.0.113.10:51820"), left(3, "203.0.113.10:51820"),
        left(4, "198.51.100.4:51820"), left(5, "127.0.0.1:4000")};

    /* n3 goes through the hub, n4 is heard elsewhere, and n5 was reached through that agent. */
    all[2].heard = edge_world_endpoint("198.51.100.4:4000");
    edges_observe(&w->e, &(struct observe){.items = all, .n = 4}, T0 + SEC);
    for (unsigned n = 3; n <= 5; n++) {
        assert_int_not_equal(last_use(w, n).path, PATH_KIND_DIRECT);
        assert_int_not_equal(last_use(w, n).path, PATH_KIND_LAN);
    }
    /* Where they go now, no handshake was seen: one is wanted, but for who was there before. */
    assert_false(is_handshake_due(w, "n3", T0 + SEC));
    assert_true(is_handshake_due(w, "n4", T0 + SEC));
    assert_true(is_handshake_due(w, "n5", T0 + SEC));
}

/* Through the relay n4, which is reached directly itself. */
static void test_what_a_relay_carries_is_no_direct_path(void **state)
{
    struct edge_world *w = *state;
    struct observation all[] = {left(3, "198.51.100.4:51820"), left(4, "198.51.100.4:51820")};
    const struct x25519_public relayed = sample_key(3);
    struct path_action action;
    unsigned n_direct = 0;

    edges_observe(&w->e, &(struct observe){.items = all, .n = 2}, T0 + SEC);
    while (paths_next(w->paths, &action))
        if (action.kind == PATH_ACTION_USE && action.path == PATH_KIND_DIRECT) {
            assert_false(x25519_public_equal(&action.peer, &relayed));
            n_direct++;
        }
    assert_int_equal(n_direct, 1);
}

static void test_a_peer_that_goes(void **state)
{
    struct edge_world *w = *state;
    size_t n;

    go_direct(w, 3, "198.51.100.3:51820", T0);
    assert_non_null(peer_table_find(&w->e.peers, "n3")->pmtu);
    assert_true(edges_due(&w->e, T0) != NSEC_NEVER);
    sample_put(&w->snapshot, sample_edge(SELF, 3, EDGE_PATH_OFF));
    edges_set_snapshot(&w->e, &w->snapshot, T0 + SEC);
    (void)edges_routes(&w->e, &n);
    assert_int_equal(n, 0);
    assert_null(peer_table_find(&w->e.peers, "n3"));
}

/* ---- what is told of relays ----------------------------------------------------------------- */

static void assert_relay(
    const struct path_relay *relay, const struct x25519_public *key, nsec_t rtt, uint16_t mtu)
{
    assert_true(x25519_public_equal(&relay->key, key));
    assert_int_equal(relay->rtt, rtt);
    assert_int_equal(relay->mtu, mtu);
}

static void test_which_relays_are_reported(void **state)
{
    struct edge_world *w = *state;
    const struct x25519_public hub = sample_key(1);
    const struct x25519_public relay = sample_key(4);
    struct path_side side = edge_world_tell_relays(w, 30 * MS, T0);

    assert_int_equal(side.n_relays, 1);
    assert_relay(&side.relays[0], &hub, 30 * MS, 0);
    /* One that is reached directly, once there is a session with it. */
    go_direct(w, 4, "198.51.100.4:51820", T0);
    assert_int_equal(edge_world_tell_relays(w, 30 * MS, T0).n_relays, 1);
    edge_world_see(w, seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    side = edge_world_tell_relays(w, 30 * MS, T0 + SEC);
    assert_int_equal(side.n_relays, 2);
    assert_relay(&side.relays[0], &hub, 30 * MS, 0);
    assert_relay(&side.relays[1], &relay, 1, 0);
    w->e.hub_liveness.is_dead = true;
    side = edge_world_tell_relays(w, 30 * MS, T0 + SEC);
    assert_int_equal(side.n_relays, 1);
    assert_relay(&side.relays[0], &relay, 1, 0);
}

/* A standby that has no session shakes hands, once; whether it is used makes no difference. */
static void test_standbys_change_routes(void **state)
{
    struct edge_world *w = *state;
    struct peer_entry *relay;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    relay = peer_table_find(&w->e.peers, "n4");
    assert_true(relay->is_standby);
    assert_int_equal(relay->handshake.due_at, T0);
    assert_true(edges_take_changes(&w->e));
    /* The one that is under way goes on. */
    relay->handshake.due_at = T0 + 700 * MS;
    w->e.relays_changed = true;
    assert_true(edges_choose_relays(&w->e, T0 + SEC));
    assert_int_equal(relay->handshake.due_at, T0 + 700 * MS);
    assert_false(edges_take_changes(&w->e));
    assert_false(edges_choose_relays(&w->e, T0 + SEC));
    /* A session that is lost is begun anew. */
    relay->handshake.due_at = NSEC_NEVER;
    w->e.relays_changed = true;
    assert_true(edges_choose_relays(&w->e, T0 + 2 * SEC));
    assert_int_equal(relay->handshake.due_at, T0 + 2 * SEC);
    relay->handshake.due_at = NSEC_NEVER;
    relay->has_session = true;
    w->e.relays_changed = true;
    assert_true(edges_choose_relays(&w->e, T0 + 3 * SEC));
    assert_true(relay->handshake.due_at == NSEC_NEVER);
    /* It is none any more when its path is lost. */
    edge_world_relay(w, 4, 0, T0 + 4 * SEC);
    assert_false(relay->is_standby);
}

static void test_where_a_relay_is(void **state)
{
    struct edge_world *w = *state;
    const struct endpoint at = edge_world_endpoint("198.51.100.4:51820");
    const struct endpoint of_peer = edge_world_endpoint("198.51.100.3:51820");
    const struct endpoint none = {.port = 0};

    assert_null(edges_relay_at(&w->e, &at));
    assert_null(edges_relay_at(&w->e, &none));
    go_direct(w, 3, "198.51.100.3:51820", T0);
    go_direct(w, 4, "198.51.100.4:51820", T0);
    assert_string_equal(edges_relay_at(&w->e, &at)->node, "n4");
    assert_null(edges_relay_at(&w->e, &of_peer));
    /* What goes through it is not it. */
    edge_world_relay(w, 5, 4, T0);
    assert_string_equal(edges_relay_at(&w->e, &at)->node, "n4");
}

/* ---- handshakes ----------------------------------------------------------------------------- */

/* The other end begins, and this one only if it did not. */
static void test_the_greater_key_waits(void **state)
{
    struct edge_world *w = *state;
    struct edge_handshake *h;

    memset(&w->e.own, 0xff, sizeof(w->e.own));
    go_direct(w, 3, "198.51.100.3:51820", T0);
    edge_world_relay(w, 3, 0, T0 + SEC);
    h = &peer_table_find(&w->e.peers, "n3")->handshake;
    assert_int_equal(h->due_at, T0 + SEC + EDGE_HANDSHAKE_TURN);
    assert_int_equal(h->wanted_at, T0 + SEC);
    /* From one relay to another one it waits for less, and only where there is a session. */
    h->due_at = NSEC_NEVER;
    go_direct(w, 4, "198.51.100.4:51820", T0 + 2 * SEC);
    edge_world_relay(w, 3, 4, T0 + 2 * SEC);
    assert_true(h->due_at == NSEC_NEVER);
    assert_int_equal(h->wanted_at, T0 + 2 * SEC);
    h->seen_at = T0 + 2 * SEC;
    edge_world_relay(w, 3, 0, T0 + 3 * SEC);
    assert_int_equal(h->due_at, T0 + 3 * SEC + EDGE_HANDSHAKE_RELAY_TURN);
    /* A direct path needs none. */
    go_direct(w, 3, "198.51.100.3:51820", T0 + 3 * SEC);
    assert_true(h->due_at == NSEC_NEVER);
}

static void test_handshakes_are_taken_in_turn(void **state)
{
    struct edge_world *w = *state;

    for (unsigned n = 3; n <= 5; n += 2) {
        char at[32];

        (void)snprintf(at, sizeof(at), "198.51.100.%u:51820", n);
        go_direct(w, n, at, T0);
        edge_world_relay(w, n, 0, T0 + SEC * n);
    }
    assert_int_equal(edges_due(&w->e, T0), T0 + 3 * SEC);
    (void)edges_take_changes(&w->e);
    edges_tick(&w->e, T0 + 3 * SEC - 1);
    assert_false(edges_take_changes(&w->e));
    edges_tick(&w->e, T0 + 3 * SEC);
    assert_true(edges_take_changes(&w->e));
    edges_on_applied(&w->e);
    assert_true(peer_table_find(&w->e.peers, "n4")->route.is_applied);
    assert_string_equal(edges_next_handshake(&w->e, T0 + 5 * SEC)->node, "n3");
    assert_string_equal(edges_next_handshake(&w->e, T0 + 5 * SEC)->node, "n5");
    assert_null(edges_next_handshake(&w->e, T0 + 5 * SEC));
    /* Each is repeated a second later. */
    assert_int_equal(edges_due(&w->e, T0), T0 + 6 * SEC);
    edges_on_applied(&w->e);
    assert_null(edges_next_handshake(&w->e, T0 + 6 * SEC - 1));
    edges_on_applied(&w->e);
    assert_string_equal(edges_next_handshake(&w->e, T0 + 6 * SEC)->node, "n3");
    assert_true(edges_hasten_handshakes(&w->e, T0 + 5 * SEC));
    assert_true(is_handshake_due(w, "n5", T0 + 5 * SEC));
    assert_false(is_handshake_due(w, "n4", T0 + 5 * SEC));
}

/* ---- what the engine shows ------------------------------------------------------------------ */

static void test_traffic_is_counted(void **state)
{
    struct edge_world *w = *state;
    struct observation items[] = {seen(1, "203.0.113.10:51820", T0, 7),
        seen(3, "203.0.113.10:51820", T0, 100), seen(4, "198.51.100.4:51820", T0, 1000),
        seen(5, "203.0.113.10:51820", 0, 30)};
    const struct observe all = {.items = items, .n = 4};
    const struct peer_entry *peer = peer_table_find(&w->e.peers, "n3");
    const struct endpoint heard = edge_world_endpoint("198.51.100.77:1");

    items[1].facts.tx_bytes = 200;
    items[1].heard = heard;
    edges_observe(&w->e, &all, T0 + SEC);
    assert_true(peer->has_session);
    assert_false(peer_table_find(&w->e.peers, "n5")->has_session);
    assert_int_equal(peer->traffic.rx_bytes, 100);
    assert_int_equal(peer->traffic.tx_bytes, 200);
    assert_int_equal(w->e.observed_at, T0 + SEC);
    /* The first look shows no time at which something was heard, nor one without news. */
    assert_true(endpoint_is_none(&peer->traffic.heard));
    edges_observe(&w->e, &all, T0 + 2 * SEC);
    assert_true(endpoint_is_none(&peer->traffic.heard));
    items[1].facts.rx_bytes = 101;
    edges_observe(&w->e, &all, T0 + 3 * SEC);
    assert_true(endpoint_equal(&peer->traffic.heard, &heard));
    /* All that the hub relays, both ways, and where it is. */
    assert_true(endpoint_equal(&w->e.hub_liveness.hub, &items[0].endpoint));
    assert_int_equal(w->e.hub_liveness.n_bytes, 101 + 200 + 2 * 1000 + 2 * 30);
    assert_int_equal(w->e.hub_liveness.moved_at, T0 + 3 * SEC);
    assert_false(w->e.hub_liveness.has_other);
    go_direct(w, 4, "198.51.100.4:51820", T0 + 3 * SEC);
    edges_observe(&w->e, &all, T0 + 4 * SEC);
    assert_int_equal(w->e.hub_liveness.n_bytes, 101 + 200 + 2 * 30);
    assert_true(w->e.hub_liveness.has_other);
    /* An engine that does not know the hub. */
    edges_observe(&w->e, &(struct observe){.items = items + 1, .n = 3}, T0 + 5 * SEC);
    assert_true(endpoint_is_none(&w->e.hub_liveness.hub));
}

/* An edge that shows at the hub's endpoint was moved there by its other end. */
static void test_the_other_end_leads_to_the_hub(void **state)
{
    struct edge_world *w = *state;
    const struct x25519_public hub = sample_key(1);
    struct observation items[] = {
        seen(1, "203.0.113.10:51820", T0, 7), seen(3, "203.0.113.10:51820", T0 + SEC, 1)};
    const struct observe all = {.items = items, .n = 2};
    struct path_action action;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_relay(w, 3, 4, T0);
    paths_on_relayed(w->paths, &items[1].key, &(struct x25519_public){{4, 0, 7}}, T0);
    edges_on_applied(&w->e);
    edge_world_see(w, items[0], T0 + SEC);
    (void)last_use(w, 3);
    edges_observe(&w->e, &all, T0 + 2 * SEC);
    action = last_use(w, 3);
    assert_int_equal(action.kind, PATH_ACTION_USE);
    assert_int_equal(action.path, PATH_KIND_RELAY);
    assert_true(x25519_public_equal(&action.via.key, &hub));
    /* A direct path stays what it is, wherever the engine has the peer. */
    go_direct(w, 3, "198.51.100.3:51820", T0 + 2 * SEC);
    edges_on_applied(&w->e);
    items[1] = seen(3, "198.51.100.4:51820", T0 + 3 * SEC, 2);
    edges_observe(&w->e, &all, T0 + 4 * SEC);
    assert_int_equal(last_use(w, 3).kind, PATH_ACTION_NONE);
}

static void test_two_relays_at_one_endpoint(void **state)
{
    struct edge_world *w = *state;
    struct observation all[] = {left(4, "198.51.100.4:51820"), left(5, "198.51.100.4:51820")};

    edges_observe(&w->e, &(struct observe){.items = all, .n = 2}, T0 + SEC);
    assert_int_not_equal(last_use(w, 4).path, PATH_KIND_DIRECT);
}

static void test_a_stranger_at_a_relays_endpoint(void **state)
{
    struct edge_world *w = *state;
    struct observation all[] = {left(4, "198.51.100.4:51820"), left(77, "198.51.100.4:51820")};

    edges_observe(&w->e, &(struct observe){.items = all, .n = 2}, T0 + SEC);
    assert_int_not_equal(last_use(w, 4).path, PATH_KIND_DIRECT);
}

/* ---- hubs ----------------------------------------------------------------------------------- */

static void put_hub_b(struct edge_world *w)
{
    struct object other = sample_node(1);

    other.node.key = sample_key(9);
    (void)snprintf(other.node.meta.name, sizeof(other.node.meta.name), "hub-b");
    other.node.address4.b[15] = 9;
    sample_put(&w->snapshot, other);
    edges_set_snapshot(&w->e, &w->snapshot, T0);
}

static void test_where_hubs_are(void **state)
{
    struct edge_world *w = *state;
    const struct endpoint a = edge_world_endpoint("203.0.113.10:51820");
    const struct endpoint b = edge_world_endpoint("203.0.113.99:51820");
    const struct endpoint none = {.port = 0};
    const struct x25519_public key_a = sample_key(1), key_b = sample_key(9);
    struct observation items[] = {
        seen(1, "203.0.113.10:51820", T0, 1), seen(9, "203.0.113.99:51820", T0, 1)};

    put_hub_b(w);
    assert_int_equal(w->e.n_other_hubs, 1);
    assert_false(edges_is_hub_at(&w->e, &a) || edges_is_hub_at(&w->e, &b));
    edges_observe(&w->e, &(struct observe){.items = items, .n = 2}, T0 + SEC);
    assert_true(edges_is_hub_at(&w->e, &a) && edges_is_hub_at(&w->e, &b));
    w->e.hub_liveness.is_dead = true;
    w->e.hub_liveness.n_bytes = 77;
    /* The two change places. */
    edges_set_hub(&w->e, snapshot_find_node(&w->snapshot, "hub-b"), T0 + 2 * SEC);
    assert_true(x25519_public_equal(&w->e.hub, &key_b));
    assert_string_equal(w->e.hub_name, "hub-b");
    assert_int_equal(w->e.n_other_hubs, 1);
    assert_true(x25519_public_equal(&w->e.other_hubs[0].key, &key_a));
    assert_true(endpoint_equal(&w->e.other_hubs[0].at, &a));
    assert_false(w->e.hub_liveness.is_dead);
    assert_int_equal(w->e.hub_liveness.n_bytes, 77);
    edges_observe(&w->e, &(struct observe){.items = items, .n = 2}, T0 + 3 * SEC);
    assert_true(edges_is_hub_at(&w->e, &a) && edges_is_hub_at(&w->e, &b));
    /* A hub that the engine does not have is nowhere. */
    edges_observe(&w->e, &(struct observe){.items = items + 1, .n = 1}, T0 + 4 * SEC);
    assert_false(edges_is_hub_at(&w->e, &a));
    assert_true(edges_is_hub_at(&w->e, &b));
    w->e.hub_liveness.hub = b;
    assert_false(edges_is_hub_at(&w->e, &none));
}

/* When the hub that was chosen goes, another one is taken. */
static void test_the_chosen_hub_goes(void **state)
{
    struct edge_world *w = *state;
    struct object plain = sample_node(9);

    put_hub_b(w);
    edges_set_hub(&w->e, snapshot_find_node(&w->snapshot, "hub-b"), T0);
    edges_set_snapshot(&w->e, &w->snapshot, T0);
    assert_string_equal(w->e.hub_name, "hub-b");
    /* A node of that name that is no hub any more. */
    (void)snprintf(plain.node.meta.name, sizeof(plain.node.meta.name), "hub-b");
    sample_put(&w->snapshot, plain);
    edges_set_snapshot(&w->e, &w->snapshot, T0);
    assert_string_equal(w->e.hub_name, "hub");
    assert_int_equal(w->e.n_other_hubs, 0);
}

/* ---- stock peers ---------------------------------------------------------------------------- */

static struct stock_mtu *put_stock(struct edge_world *w)
{
    struct object o = sample_node(10);

    o.node.stock = true;
    sample_put(&w->snapshot, o);
    edges_set_snapshot(&w->e, &w->snapshot, T0);
    assert_int_equal(w->e.stocks.n, 1);
    return &w->e.stocks.items[0];
}

static uint16_t ceiling_of_stock(struct edge_world *w, const char *at)
{
    struct observation items[] = {seen(1, "203.0.113.10:51820", T0, 1), seen(10, at, T0, 1)};

    edges_observe(&w->e, &(struct observe){.items = items, .n = 2}, T0 + SEC);
    return (uint16_t)(w->e.stocks.items[0].pmtu->pmtu.bounds.ceiling - 60);
}

static void test_what_limits_packets_to_stock_peers(void **state)
{
    static const char through_hub[] = "203.0.113.10:51820";
    static const char elsewhere[] = "198.51.100.10:51820";
    struct edge_world *w = *state;
    struct stock_mtu *stock = put_stock(w);

    edge_world_see(w, seen(10, elsewhere, T0, 1), T0);
    assert_null(stock->pmtu);
    w->e.can_ping = true;
    assert_int_equal(ceiling_of_stock(w, elsewhere), 1380);
    w->e.limits.link_mtu = 1380;
    assert_int_equal(ceiling_of_stock(w, elsewhere), 1380);
    w->e.limits.link_mtu = 1340;
    assert_int_equal(ceiling_of_stock(w, elsewhere), 1340);
    w->e.limits.link_mtu = 9000;
    assert_int_equal(ceiling_of_stock(w, elsewhere), 1380);
    /* The way to the hub, for what goes through it. */
    assert_int_equal(ceiling_of_stock(w, through_hub), 1380);
    assert_int_equal(w->e.hubs.n, 1);
    w->e.hubs.items[0]->pmtu.pmtu.is_measured = true;
    w->e.hubs.items[0]->pmtu.mtu = 1290;
    assert_int_equal(ceiling_of_stock(w, through_hub), 1290);
    assert_int_equal(ceiling_of_stock(w, elsewhere), 1380);
}

/* Together with the other edges, by name. */
static void test_routes_of_stock_peers(void **state)
{
    struct edge_world *w = *state;
    struct stock_mtu *stock = put_stock(w);
    const struct render_path *routes;
    size_t n;

    go_direct(w, 3, "198.51.100.3:51820", T0);
    (void)edges_routes(&w->e, &n);
    assert_int_equal(n, 1);
    w->e.can_ping = true;
    assert_int_equal(ceiling_of_stock(w, "198.51.100.10:51820"), 1380);
    stock->pmtu->pmtu.is_measured = true;
    stock->pmtu->mtu = 1300;
    routes = edges_routes(&w->e, &n);
    assert_int_equal(n, 2);
    assert_string_equal(routes[0].node, "n10");
    assert_int_equal(routes[0].mtu, 1300);
    assert_true(endpoint_is_none(&routes[0].endpoint));
    assert_false(routes[0].is_standby);
    assert_string_equal(routes[1].node, "n3");
    /* They are asked in time. */
    assert_true(edges_due(&w->e, T0 + SEC) <= stock_mtus_due(&w->e.stocks, T0 + SEC));
}

/* ---- what a path carries -------------------------------------------------------------------- */

/* The paths know of no way to the peer yet, so no probe leaves, and no answer is waited for. */
static void test_a_probe_that_is_not_sent(void **state)
{
    struct edge_world *w = *state;
    const struct pmtu_driver *pmtu;

    go_direct(w, 3, "198.51.100.3:51820", T0);
    pmtu = peer_table_find(&w->e.peers, "n3")->pmtu;
    for (unsigned i = 0; i < PMTU_DRIVER_PROBES; i++)
        assert_int_equal(pmtu->probes[i].probe.size, 0);
    assert_int_equal(pmtu->pmtu.state, PMTU_STATE_SWEEP);
    assert_int_equal(pmtu->pmtu.next, 0);
    /* It is tried again, as one that was lost is. */
    assert_true(edges_due(&w->e, T0) == T0 + SEC);
    edges_tick(&w->e, T0 + SEC - 1);
    assert_int_equal(pmtu->pmtu.n_tries, 0);
    edges_tick(&w->e, T0 + SEC);
    assert_int_equal(pmtu->pmtu.n_tries, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_from_direct_to_the_hub, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_relay_is_kept_ready, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_goes_through_a_relay_follows_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_relay_that_has_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_hub_that_has_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_hub_relays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_other_end_leads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_path_of_an_earlier_agent_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_shows_no_path_of_an_earlier_agent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_a_relay_carries_is_no_direct_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_peer_that_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_which_relays_are_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_standbys_change_routes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_where_a_relay_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_greater_key_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_handshakes_are_taken_in_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_traffic_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_other_end_leads_to_the_hub, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_relays_at_one_endpoint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_stranger_at_a_relays_endpoint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_where_hubs_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_chosen_hub_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_limits_packets_to_stock_peers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_routes_of_stock_peers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_probe_that_is_not_sent, set_up, tear_down),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
