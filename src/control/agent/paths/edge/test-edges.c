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
#define T0  EDGE_WORLD_T0

/* ---- routes --------------------------------------------------------------------------------- */

static void test_from_direct_to_the_hub(void **state)
{
    struct edge_world *w = *state;
    size_t n;

    edge_world_go_direct(w, 3, "198.51.100.3:51820", T0);
    assert_true(edges_take_changes(&w->e));
    assert_false(edges_take_changes(&w->e));
    assert_int_equal(edge_world_route(w, "n3").endpoint.port, 51820);
    assert_false(edges_awaits_handshake(&w->e));
    edge_world_relay(w, 3, 0, T0 + SEC);
    assert_true(edges_take_changes(&w->e));
    (void)edges_routes(&w->e, &n);
    assert_int_equal(n, 0);
    /* The hub has to see one; ours is the smaller key. */
    assert_true(edge_world_is_handshake_due(w, "n3", T0 + SEC));
    edges_on_applied(&w->e);
    assert_string_equal(edges_next_handshake(&w->e, T0 + SEC)->node, "n3");
    assert_null(edges_next_handshake(&w->e, T0 + SEC));
    /* Through the hub again is nothing new. */
    edge_world_relay(w, 3, 0, T0 + 2 * SEC);
    assert_false(edges_take_changes(&w->e));
}

static void test_what_a_direct_route_says(void **state)
{
    struct edge_world *w = *state;
    struct path_action action = {
        .path = PATH_KIND_DIRECT, .peer = sample_key(3), .keepalive = 25 * SEC};
    const struct endpoint own_socket = edge_world_endpoint("127.0.0.1:4000");
    struct render_path route;

    action.remote = edge_world_endpoint("198.51.100.3:51820");
    edges_use_direct(&w->e, &action, &own_socket, T0);
    route = edge_world_route(w, "n3");
    assert_true(endpoint_equal(&route.endpoint, &own_socket));
    assert_int_equal(route.keepalive, 25);
    assert_int_equal(route.mtu, 1140);
    assert_string_equal(route.via, "");
    assert_false(route.is_standby);
}

/* Actions may come for one that has just gone. */
static void test_paths_of_who_is_no_peer(void **state)
{
    struct edge_world *w = *state;
    struct path_action fits = {.peer = sample_key(3), .probe = 7};
    size_t n;

    edge_world_go_direct(w, 77, "198.51.100.77:51820", T0);
    edge_world_relay(w, 77, 4, T0);
    fits.peer = sample_key(77);
    edges_on_fits(&w->e, &fits, T0);
    /* Nor was anything probed where there was no path. */
    fits.peer = sample_key(3);
    edges_on_fits(&w->e, &fits, T0);
    (void)edges_routes(&w->e, &n);
    assert_int_equal(n, 0);
    assert_false(edges_take_changes(&w->e));
}

static void test_a_relay_is_kept_ready(void **state)
{
    struct edge_world *w = *state;

    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    assert_true(edge_world_route(w, "n4").is_standby);
    /* It must have heard us. */
    assert_true(edge_world_is_handshake_due(w, "n4", T0));
    edge_world_see(w, edge_world_seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
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

    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_relay(w, 3, 4, T0);
    assert_string_equal(edge_world_route(w, "n3").via, "n4");
    assert_int_equal(edge_world_route(w, "n3").endpoint.port, 51820);
    edge_world_go_direct(w, 4, "198.51.100.4:4000", T0 + SEC);
    assert_int_equal(edge_world_route(w, "n3").endpoint.port, 4000);
    assert_true(edge_world_is_handshake_due(w, "n4", T0 + SEC));
    /* Through a relay that we do not reach directly it goes by the hub. */
    edge_world_relay(w, 3, 5, T0 + 2 * SEC);
    assert_int_equal(peer_table_find(&w->e.peers, "n3")->route.kind, EDGE_ROUTE_HUB);
}

static void test_a_relay_that_has_forgotten(void **state)
{
    struct edge_world *w = *state;
    struct captured_log said;

    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_relay(w, 3, 4, T0);
    assert_false(edge_world_is_handshake_due(w, "n3", T0 + SEC));
    edge_world_put_peer(&w->snapshot, 4, 71);
    said = captured_log_begin();
    edges_set_snapshot(&w->e, &w->snapshot, T0 + SEC);
    captured_log_end(&said, "info: test: relay n4 was started anew: what goes through it shakes "
                            "hands again\n");
    assert_true(edge_world_is_handshake_due(w, "n3", T0 + SEC));
    assert_true(edge_world_is_handshake_due(w, "n4", T0 + SEC));
    assert_false(edge_world_is_handshake_due(w, "n5", T0 + SEC));
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

    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    (void)last_use(w, 3);
    /* Until the engine has our own route, where it sends to says nothing. */
    edge_world_see(w, edge_world_seen(3, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    assert_int_equal(last_use(w, 3).kind, PATH_ACTION_NONE);
    edges_on_applied(&w->e);
    edge_world_see(w, edge_world_seen(3, "198.51.100.4:51820", T0 + 2 * MS, 2), T0 + 2 * SEC);
    action = last_use(w, 3);
    assert_int_equal(action.kind, PATH_ACTION_USE);
    assert_true(action.is_followed);
    assert_true(x25519_public_equal(&action.via.key, &relay));
    /* No handshake is begun for it: there was one. */
    edges_use_relay(&w->e, &action, T0 + 2 * SEC);
    assert_string_equal(edge_world_route(w, "n3").via, "n4");
    assert_false(edge_world_is_handshake_due(w, "n3", T0 + 3 * SEC));
}

static void test_what_leads_nowhere(void **state)
{
    struct edge_world *w = *state;

    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    edges_on_applied(&w->e);
    (void)last_use(w, 3);
    /* A handshake of before the edge went where it goes. */
    peer_table_find(&w->e.peers, "n3")->handshake.wanted_at = T0 + SEC;
    edge_world_see(w, edge_world_seen(3, "198.51.100.4:51820", T0 + SEC, 1), T0 + 2 * SEC);
    assert_int_equal(last_use(w, 3).kind, PATH_ACTION_NONE);
    /* A place where there is neither a relay nor the hub. */
    edge_world_see(w, edge_world_seen(3, "198.51.100.77:1", T0 + 2 * SEC, 2), T0 + 2 * SEC);
    assert_int_equal(last_use(w, 3).kind, PATH_ACTION_NONE);
}

/* As the engine of an earlier agent shows a peer: heard where it is sent to. */
static struct observation left(unsigned n, const char *at)
{
    struct observation s = edge_world_seen(n, at, T0 - 100 * SEC, 1000);

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
    assert_false(edge_world_is_handshake_due(w, "n3", T0 + SEC));
    assert_true(edge_world_is_handshake_due(w, "n4", T0 + SEC));
    assert_true(edge_world_is_handshake_due(w, "n5", T0 + SEC));
}

/* Where the edge goes already, or was never seen to go, nothing is begun when it is seen first. */
static void test_what_an_earlier_agent_leaves_to_do(void **state)
{
    struct observation cases[] = {left(3, "198.51.100.4:51820"), left(3, "198.51.100.77:51820"),
        left(3, "198.51.100.77:51820"), left(3, "198.51.100.77:51820")};

    cases[0].heard = cases[1].heard = edge_world_endpoint("198.51.100.78:51820");
    cases[2].endpoint = cases[2].heard = (struct endpoint){.port = 0};
    cases[3].heard = cases[1].heard;
    cases[3].handshake_at = 0;
    for (unsigned i = 0; i < 4; i++) {
        struct edge_world *w;

        (void)edge_world_tear_down(state);
        (void)edge_world_set_up(state);
        w = *state;
        /* At a relay that is reached; while it has a direct path; nowhere; without a session. */
        if (i == 0)
            edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
        if (i == 1)
            edge_world_go_direct(w, 3, "198.51.100.3:51820", T0);
        edge_world_see(w, cases[i], T0 + SEC);
        assert_false(edge_world_is_handshake_due(w, "n3", T0 + 2 * SEC));
    }
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
    const struct x25519_public key = sample_key(3);
    struct path_view view;
    size_t n;

    edge_world_go_direct(w, 3, "198.51.100.3:51820", T0);
    assert_non_null(peer_table_find(&w->e.peers, "n3")->pmtu);
    assert_true(edges_due(&w->e, T0) != NSEC_NEVER);
    sample_put(&w->snapshot, sample_edge(EDGE_WORLD_SELF, 3, EDGE_PATH_OFF));
    edges_set_snapshot(&w->e, &w->snapshot, T0 + SEC);
    (void)edges_routes(&w->e, &n);
    assert_int_equal(n, 0);
    assert_null(peer_table_find(&w->e.peers, "n3"));
    assert_false(paths_view(w->paths, &key, &view, T0 + SEC));
}

/* Who the peers are, and what they say of themselves. */
static void test_what_paths_are_told(void **state)
{
    const struct x25519_public plain = sample_key(3), relay = sample_key(4);
    const struct endpoint at = edge_world_endpoint("198.51.100.3:51820");
    struct edge_world *w = *state;
    struct object o = sample_node(3);
    struct path_pair_view pair;
    struct path_view view;

    assert_true(paths_view(w->paths, &relay, &view, T0));
    assert_true(view.peer.is_relay);
    assert_true(paths_view(w->paths, &plain, &view, T0));
    assert_string_equal(view.peer.name, "n3");
    assert_int_equal(view.peer.policy, PATH_POLICY_AUTO);
    assert_false(view.peer.is_relay);
    assert_int_equal(paths_pairs(w->paths, &plain, &pair, 1), 0);
    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = 2;
    assert_true(candidates_add(&o.node.side->candidates, CANDIDATE_HOST, &at));
    sample_put(&w->snapshot, o);
    edges_set_snapshot(&w->e, &w->snapshot, T0);
    assert_int_equal(paths_pairs(w->paths, &plain, &pair, 1), 1);
    assert_true(endpoint_equal(&pair.remote.endpoint, &at));
}

/* It is put again by the next snapshot. */
static void test_a_peer_that_paths_do_not_take(void **state)
{
    struct edge_world *w = *state;
    const struct peer_entry *peer;

    edge_world_put_peer_with_key(&w->snapshot, 3, &(struct x25519_public){{0}}, 0);
    for (unsigned i = 0; i < 2; i++) {
        edges_set_snapshot(&w->e, &w->snapshot, T0);
        peer = peer_table_find(&w->e.peers, "n3");
        assert_true(peer->changes.is_put && peer->changes.is_side);
        assert_int_equal(peer->policy, PATH_POLICY_N);
        assert_int_equal(peer->generation, 0);
    }
}

/* ---- handshakes ----------------------------------------------------------------------------- */

/* The other end begins, and this one only if it did not. */
static void test_the_greater_key_waits(void **state)
{
    struct edge_world *w = *state;
    struct edge_handshake *h;

    memset(&w->e.own, 0xff, sizeof(w->e.own));
    edge_world_go_direct(w, 3, "198.51.100.3:51820", T0);
    edge_world_relay(w, 3, 0, T0 + SEC);
    h = &peer_table_find(&w->e.peers, "n3")->handshake;
    assert_int_equal(h->due_at, T0 + SEC + EDGE_HANDSHAKE_TURN);
    assert_int_equal(h->wanted_at, T0 + SEC);
    /* From one relay to another one it waits for less, and only where there is a session. */
    h->due_at = NSEC_NEVER;
    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0 + 2 * SEC);
    edge_world_relay(w, 3, 4, T0 + 2 * SEC);
    assert_true(h->due_at == NSEC_NEVER);
    assert_int_equal(h->wanted_at, T0 + 2 * SEC);
    h->seen_at = T0 + 2 * SEC;
    edge_world_relay(w, 3, 0, T0 + 3 * SEC);
    assert_int_equal(h->due_at, T0 + 3 * SEC + EDGE_HANDSHAKE_RELAY_TURN);
    /* A direct path needs none. */
    edge_world_go_direct(w, 3, "198.51.100.3:51820", T0 + 3 * SEC);
    assert_true(h->due_at == NSEC_NEVER);
}

static void test_handshakes_are_taken_in_turn(void **state)
{
    struct edge_world *w = *state;

    for (unsigned n = 3; n <= 5; n += 2) {
        char at[32];

        (void)snprintf(at, sizeof(at), "198.51.100.%u:51820", n);
        edge_world_go_direct(w, n, at, T0);
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
    assert_true(edge_world_is_handshake_due(w, "n5", T0 + 5 * SEC));
    assert_false(edge_world_is_handshake_due(w, "n4", T0 + 5 * SEC));
}

/* ---- what the engine shows ------------------------------------------------------------------ */

static void test_traffic_is_counted(void **state)
{
    struct edge_world *w = *state;
    struct observation items[] = {edge_world_seen(1, "203.0.113.10:51820", T0, 7),
        edge_world_seen(3, "203.0.113.10:51820", T0, 100),
        edge_world_seen(4, "198.51.100.4:51820", T0, 1000),
        edge_world_seen(5, "203.0.113.10:51820", 0, 30)};
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
    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0 + 3 * SEC);
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
    struct observation items[] = {edge_world_seen(1, "203.0.113.10:51820", T0, 7),
        edge_world_seen(3, "203.0.113.10:51820", T0 + SEC, 1)};
    const struct observe all = {.items = items, .n = 2};
    struct path_action action;

    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
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
    edge_world_go_direct(w, 3, "198.51.100.3:51820", T0 + 2 * SEC);
    edges_on_applied(&w->e);
    items[1] = edge_world_seen(3, "198.51.100.4:51820", T0 + 3 * SEC, 2);
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

/* ---- what a path carries -------------------------------------------------------------------- */

static void test_a_path_that_is_left_carries_nothing(void **state)
{
    const struct endpoint other = edge_world_endpoint("198.51.100.3:4000");
    struct edge_world *w = *state;
    struct peer_entry *peer = peer_table_find(&w->e.peers, "n3");
    const struct pmtu_driver *pmtu;

    /* Of one that never had a direct path nothing is measured. */
    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_relay(w, 3, 4, T0);
    assert_null(peer->pmtu);
    edge_world_go_direct(w, 3, "198.51.100.3:51820", T0);
    pmtu = peer->pmtu;
    assert_int_equal(pmtu->mtu, 1140);
    /* Another path is measured in the same place. */
    edge_world_go_direct(w, 3, "198.51.100.3:4000", T0 + SEC);
    assert_ptr_equal(peer->pmtu, pmtu);
    assert_true(endpoint_equal(&pmtu->remote, &other));
    assert_int_equal(pmtu_due(&pmtu->pmtu), T0 + 2 * SEC);
    edge_world_relay(w, 3, 0, T0 + 2 * SEC);
    assert_true(endpoint_is_none(&pmtu->remote));
    assert_int_equal(pmtu->mtu, 0);
    assert_int_equal(pmtu_due(&pmtu->pmtu), NSEC_NEVER);
}

static void test_data_on_a_path(void **state)
{
    struct edge_world *w = *state;
    struct observation ob = edge_world_seen(3, "198.51.100.3:51820", T0, 100);
    const struct pmtu *pmtu;

    edge_world_go_direct(w, 3, "198.51.100.3:51820", T0);
    pmtu = &peer_table_find(&w->e.peers, "n3")->pmtu->pmtu;
    edge_world_see(w, ob, T0 + SEC);
    ob.facts.tx_bytes++;
    edge_world_see(w, ob, T0 + 2 * SEC);
    assert_int_equal(pmtu->data_sent_at, T0 + 2 * SEC);
    assert_int_equal(pmtu->unheard_since, T0 + 2 * SEC);
    ob.facts.rx_bytes++;
    edge_world_see(w, ob, T0 + 3 * SEC);
    assert_int_equal(pmtu->data_sent_at, T0 + 2 * SEC);
    assert_true(pmtu->unheard_since == NSEC_NEVER);
}

/* The paths know of no way to the peer yet, so no probe leaves, and no answer is waited for. */
static void test_a_probe_that_is_not_sent(void **state)
{
    struct edge_world *w = *state;
    const struct pmtu_driver *pmtu;

    edge_world_go_direct(w, 3, "198.51.100.3:51820", T0);
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
        cmocka_unit_test_setup_teardown(
            test_from_direct_to_the_hub, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_relay_is_kept_ready, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_goes_through_a_relay_follows_it, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_relay_that_has_forgotten, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_the_other_end_leads, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_path_of_an_earlier_agent_is_kept, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_shows_no_path_of_an_earlier_agent, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_a_relay_carries_is_no_direct_path, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_peer_that_goes, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_the_greater_key_waits, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_handshakes_are_taken_in_turn, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_traffic_is_counted, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_the_other_end_leads_to_the_hub, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_two_relays_at_one_endpoint, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_stranger_at_a_relays_endpoint, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_probe_that_is_not_sent, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_a_direct_route_says, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_paths_of_who_is_no_peer, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_leads_nowhere, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_an_earlier_agent_leaves_to_do, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_paths_are_told, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_peer_that_paths_do_not_take, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_path_that_is_left_carries_nothing, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_data_on_a_path, edge_world_set_up, edge_world_tear_down),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
