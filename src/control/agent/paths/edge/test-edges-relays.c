/*
 * test-edges-relays.c - which hubs and relays there are for the edges of a node, what is told of
 * them, and what is relayed to peers without an agent; by a clock that the test moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/edges.h"
#include "agent/paths/edge/peer_table.h"
#include "agent/reconcile/observe.h"
#include "mesh/render/render.h"
#include "os/log.h"
#include "path/paths.h"
#include "test/support/edge_world.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC
#define T0  EDGE_WORLD_T0

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
    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    assert_int_equal(edge_world_tell_relays(w, 30 * MS, T0).n_relays, 1);
    edge_world_see(w, edge_world_seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
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

    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
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

/* The third is one only while an edge goes through it; then it takes the place of another. */
static void test_a_relay_in_use_is_kept_ready(void **state)
{
    struct edge_world *w = *state;
    char node[4] = "n4", at[32];

    edge_world_put_peer(&w->snapshot, 6, 90);
    edges_set_snapshot(&w->e, &w->snapshot, T0);
    for (unsigned n = 4; n <= 6; n++) {
        (void)snprintf(at, sizeof(at), "198.51.100.%u:51820", n);
        edge_world_go_direct(w, n, at, T0);
    }
    for (unsigned is_used = 0; is_used < 2; is_used++) {
        if (is_used)
            edge_world_relay(w, 3, 6, T0);
        edges_observe(&w->e, &(struct observe){.n = 0}, T0 + SEC);
        assert_true(edges_choose_relays(&w->e, T0 + SEC));
        for (unsigned n = 4; n <= 6; n++) {
            node[1] = (char)('0' + n);
            assert_int_equal(
                edge_world_route(w, node).is_standby, n == 4 || (is_used ? n == 6 : n == 5));
        }
    }
}

/* They are chosen anew when the way to one of them, or whether it is one, has changed. */
static void test_when_relays_are_chosen(void **state)
{
    struct edge_world *w = *state;

    for (unsigned n = 3; n <= 4; n++) {
        struct path_action action = {.path = PATH_KIND_DIRECT, .peer = sample_key(n)};

        action.remote = edge_world_endpoint("198.51.100.4:51820");
        edges_use_direct(&w->e, &action, &action.remote, T0);
        assert_int_equal(edges_choose_relays(&w->e, T0), n == 4);
        action = (struct path_action){.path = PATH_KIND_RELAY, .peer = sample_key(n)};
        edges_use_relay(&w->e, &action, T0);
        assert_int_equal(edges_choose_relays(&w->e, T0), n == 4);
        sample_put(&w->snapshot, sample_edge(EDGE_WORLD_SELF, n, EDGE_PATH_OFF));
        edges_set_snapshot(&w->e, &w->snapshot, T0);
        assert_int_equal(edges_choose_relays(&w->e, T0), n == 4);
    }
}

/* The least of what both ends' ways to the relay carry. */
static void test_what_relayed_edges_carry(void **state)
{
    struct edge_world *w = *state;
    const struct path_relay own[] = {
        {.key = sample_key(1), .mtu = 1290}, {.key = sample_key(4), .mtu = 1400}};
    const struct path_relay theirs[] = {
        {.key = sample_key(1), .mtu = 1300}, {.key = sample_key(4), .mtu = 1280}};
    struct path_side self = {.generation = 1, .n_relays = 2};
    struct object o = sample_node(3);
    struct render_path route;

    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    *o.node.side = (struct path_side){.generation = 2, .n_relays = 2};
    memcpy(o.node.side->relays, theirs, sizeof(theirs));
    memcpy(self.relays, own, sizeof(own));
    sample_put(&w->snapshot, o);
    edges_set_snapshot(&w->e, &w->snapshot, T0);
    paths_set_self(w->paths, &self, T0);
    route = edge_world_route(w, "n3");
    assert_int_equal(route.mtu, 1290);
    assert_true(endpoint_is_none(&route.endpoint));
    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_relay(w, 3, 4, T0);
    route = edge_world_route(w, "n3");
    assert_int_equal(route.mtu, 1280);
    assert_string_equal(route.via, "n4");
}

static void test_where_a_relay_is(void **state)
{
    struct edge_world *w = *state;
    const struct endpoint at = edge_world_endpoint("198.51.100.4:51820");
    const struct endpoint of_peer = edge_world_endpoint("198.51.100.3:51820");
    const struct endpoint none = {.port = 0};

    assert_null(edges_relay_at(&w->e, &at));
    assert_null(edges_relay_at(&w->e, &none));
    edge_world_go_direct(w, 3, "198.51.100.3:51820", T0);
    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    assert_string_equal(edges_relay_at(&w->e, &at)->node, "n4");
    assert_null(edges_relay_at(&w->e, &of_peer));
    /* What goes through it is not it. */
    edge_world_relay(w, 4, 0, T0);
    edge_world_go_direct(w, 5, "198.51.100.4:51820", T0);
    edge_world_relay(w, 4, 5, T0);
    assert_string_equal(edges_relay_at(&w->e, &at)->node, "n5");
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

static void test_a_hub_that_has_forgotten(void **state)
{
    struct edge_world *w = *state;

    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_see(w, edge_world_seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    edge_world_see(w, edge_world_seen(3, "203.0.113.10:51820", T0 + MS, 1), T0 + SEC);
    /* What was wanted until then has come about. */
    peer_table_find(&w->e.peers, "n3")->handshake.due_at = NSEC_NEVER;
    (void)edges_take_changes(&w->e);
    edges_on_hub_forgot(&w->e, T0 + 2 * SEC);
    assert_true(edges_take_changes(&w->e));
    /* Not what goes directly, nor what never had a session. */
    assert_true(edge_world_is_handshake_due(w, "n3", T0 + 2 * SEC));
    assert_false(edge_world_is_handshake_due(w, "n4", T0 + 2 * SEC));
    assert_false(edge_world_is_handshake_due(w, "n5", T0 + 2 * SEC));
    assert_true(edges_hasten_handshakes(&w->e, T0 + 2 * SEC));
}

/* Another hub relays from now on: what goes through it shakes hands there, and nothing else. */
static void test_another_hub_relays(void **state)
{
    struct edge_world *w = *state;
    struct endpoint at = edge_world_endpoint("203.0.113.99:51820");

    put_hub_b(w);
    assert_string_equal(w->e.hub_name, "hub");
    edge_world_go_direct(w, 4, "198.51.100.4:51820", T0);
    edge_world_see(w, edge_world_seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    edge_world_see(w, edge_world_seen(3, "203.0.113.10:51820", T0 + MS, 1), T0 + SEC);
    edge_world_see(w, edge_world_seen(9, "203.0.113.99:51820", T0 + MS, 1), T0 + SEC);
    assert_true(edges_is_hub_at(&w->e, &at));
    (void)edges_take_changes(&w->e);
    edges_set_hub(&w->e, snapshot_find_node(&w->snapshot, "hub"), T0 + 2 * SEC);
    assert_false(edges_take_changes(&w->e));
    edges_set_hub(&w->e, snapshot_find_node(&w->snapshot, "hub-b"), T0 + 2 * SEC);
    assert_true(edges_take_changes(&w->e));
    assert_true(edge_world_is_handshake_due(w, "n3", T0 + 2 * SEC));
    assert_false(edge_world_is_handshake_due(w, "n4", T0 + 2 * SEC));
    edges_set_snapshot(&w->e, &w->snapshot, T0 + 3 * SEC);
    assert_string_equal(w->e.hub_name, "hub-b");
}

static void test_where_hubs_are(void **state)
{
    struct edge_world *w = *state;
    const struct endpoint a = edge_world_endpoint("203.0.113.10:51820");
    const struct endpoint b = edge_world_endpoint("203.0.113.99:51820");
    const struct endpoint none = {.port = 0};
    const struct x25519_public key_a = sample_key(1), key_b = sample_key(9);
    struct observation items[] = {edge_world_seen(1, "203.0.113.10:51820", T0, 1),
        edge_world_seen(9, "203.0.113.99:51820", T0, 1)};

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

/* Of more than there is room for, the first by name. */
static void test_as_many_hubs_as_are_known(void **state)
{
    struct edge_world *w = *state;
    struct x25519_public key;

    for (unsigned n = 20; n <= 20 + EDGES_OTHER_HUBS_MAX; n++) {
        struct object hub = sample_node(1);

        hub.node.key = sample_key(n);
        (void)snprintf(hub.node.meta.name, sizeof(hub.node.meta.name), "hub-%u", n);
        hub.node.address4.b[15] = hub.node.address6.b[15] = (uint8_t)n;
        sample_put(&w->snapshot, hub);
    }
    edges_set_snapshot(&w->e, &w->snapshot, T0);
    edges_set_hub(&w->e, snapshot_find_node(&w->snapshot, "hub-35"), T0);
    assert_string_equal(w->e.hub_name, "hub-35");
    assert_int_equal(w->e.n_other_hubs, EDGES_OTHER_HUBS_MAX);
    for (unsigned i = 0; i < EDGES_OTHER_HUBS_MAX; i++) {
        key = sample_key(20 + i);
        assert_true(x25519_public_equal(&w->e.other_hubs[i].key, &key));
    }
}

static void test_a_network_without_a_hub(void **state)
{
    struct edge_world *w = *state;

    assert_int_equal(snapshot_delete(&w->snapshot, &node_kind, "hub", NULL), 0);
    edges_set_snapshot(&w->e, &w->snapshot, T0);
    assert_string_equal(w->e.hub_name, "");
    assert_true(x25519_public_is_none(&w->e.hub));
    assert_int_equal(edge_world_tell_relays(w, 30 * MS, T0).n_relays, 0);
}

/* ---- the ways to them ------------------------------------------------------------------------ */

/* Takes all frames that are to be sent; how many there were. */
static unsigned take_frames(struct edge_world *w, nsec_t now)
{
    struct hub_mtu_frame frame;
    unsigned n = 0;

    while (edges_next_frame(&w->e, &frame, 0, now))
        n++;
    return n;
}

static void test_the_way_to_a_hub_is_measured(void **state)
{
    struct edge_world *w = *state;
    struct observation items[] = {edge_world_seen(1, "203.0.113.10:51820", T0, 1),
        edge_world_seen(3, "203.0.113.10:51820", T0, 1)};
    const struct observe all = {.items = items, .n = 2};
    const struct pmtu_driver *way;
    struct hub_mtu_frame frame;

    assert_int_equal(w->e.limits.network_mtu, 1380);
    assert_int_equal(take_frames(w, T0), 0);
    edges_observe(&w->e, &all, T0 + SEC);
    (void)edges_choose_relays(&w->e, T0 + SEC);
    assert_false(edges_take_changes(&w->e));
    assert_true(edges_next_frame(&w->e, &frame, 0, T0 + SEC));
    assert_true(endpoint_equal(&frame.to, &items[0].endpoint));
    /* What every path carries is used by now. */
    assert_true(edges_take_changes(&w->e));
    assert_true(edges_choose_relays(&w->e, T0 + SEC));
    assert_true(take_frames(w, T0 + SEC) > 0);
    assert_false(edges_take_changes(&w->e));
    assert_false(edges_choose_relays(&w->e, T0 + SEC));
    assert_int_equal(edges_due(&w->e, T0 + SEC), T0 + 2 * SEC);
    /* Both what it is sent itself and what it relays is data on that way. */
    way = &w->e.hubs.items[0]->pmtu;
    items[0].facts.tx_bytes++;
    edges_observe(&w->e, &all, T0 + 2 * SEC);
    assert_int_equal(way->pmtu.data_sent_at, T0 + 2 * SEC);
    assert_int_equal(way->pmtu.unheard_since, T0 + 2 * SEC);
    items[1].facts.tx_bytes++;
    edges_observe(&w->e, &all, T0 + 3 * SEC);
    assert_int_equal(way->pmtu.data_sent_at, T0 + 3 * SEC);
    items[1].facts.rx_bytes++;
    edges_observe(&w->e, &all, T0 + 4 * SEC);
    assert_int_equal(way->pmtu.data_sent_at, T0 + 3 * SEC);
    assert_true(way->pmtu.unheard_since == NSEC_NEVER);
    /* And when the engine does not know the hub any more. */
    edges_observe(&w->e, &(struct observe){.n = 0}, T0 + 5 * SEC);
    assert_true(edges_take_changes(&w->e));
    edges_observe(&w->e, &(struct observe){.n = 0}, T0 + 6 * SEC);
    assert_false(edges_take_changes(&w->e));
}

static void test_ways_to_several_hubs(void **state)
{
    struct edge_world *w = *state;
    struct observation items[] = {edge_world_seen(1, "203.0.113.10:51820", T0, 1),
        edge_world_seen(9, "203.0.113.99:51820", T0, 1)};
    struct path_side side;

    put_hub_b(w);
    edges_observe(&w->e, &(struct observe){.items = items, .n = 2}, T0 + SEC);
    assert_int_equal(w->e.hubs.n, 2);
    assert_true(take_frames(w, T0 + SEC) > 0);
    assert_true(edges_take_changes(&w->e));
    /* The result for the one that relays is told. */
    for (unsigned i = 0; i < 2; i++) {
        w->e.hubs.items[i]->pmtu.pmtu.is_measured = true;
        w->e.hubs.items[i]->pmtu.mtu =
            x25519_public_equal(&w->e.hubs.items[i]->key, &w->e.hub) ? 1290 : 1300;
    }
    side = edge_world_tell_relays(w, 30 * MS, T0 + SEC);
    assert_int_equal(side.relays[0].mtu, 1290);
    edges_observe(&w->e, &(struct observe){.items = items, .n = 1}, T0 + 2 * SEC);
    assert_true(edges_take_changes(&w->e));
    /* What is known of them stays as long as they are hubs. */
    edges_set_snapshot(&w->e, &w->snapshot, T0 + 3 * SEC);
    assert_int_equal(w->e.hubs.n, 2);
    assert_int_equal(snapshot_delete(&w->snapshot, &node_kind, "hub", NULL), 0);
    edges_set_snapshot(&w->e, &w->snapshot, T0 + 3 * SEC);
    assert_int_equal(w->e.hubs.n, 1);
    assert_true(x25519_public_equal(&w->e.hubs.items[0]->key, &items[1].key));
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
    struct observation items[] = {
        edge_world_seen(1, "203.0.113.10:51820", T0, 1), edge_world_seen(10, at, T0, 1)};

    edges_observe(&w->e, &(struct observe){.items = items, .n = 2}, T0 + SEC);
    return (uint16_t)(w->e.stocks.items[0].pmtu->pmtu.bounds.ceiling - 60);
}

static void test_what_limits_packets_to_stock_peers(void **state)
{
    static const char through_hub[] = "203.0.113.10:51820";
    static const char elsewhere[] = "198.51.100.10:51820";
    struct edge_world *w = *state;
    struct stock_mtu *stock = put_stock(w);

    edge_world_see(w, edge_world_seen(10, elsewhere, T0, 1), T0);
    assert_null(stock->pmtu);
    assert_int_equal(edges_due(&w->e, T0), NSEC_NEVER);
    w->e.can_ping = true;
    /* They are asked in time. */
    edge_world_see(w, edge_world_seen(10, elsewhere, T0, 1), T0);
    assert_int_not_equal(stock_mtus_due(&w->e.stocks, T0), NSEC_NEVER);
    assert_int_equal(edges_due(&w->e, T0), stock_mtus_due(&w->e.stocks, T0));
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

    edge_world_go_direct(w, 3, "198.51.100.3:51820", T0);
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
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_hub_that_has_forgotten, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_another_hub_relays, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_which_relays_are_reported, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_standbys_change_routes, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_where_a_relay_is, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_where_hubs_are, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_the_chosen_hub_goes, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_limits_packets_to_stock_peers, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_routes_of_stock_peers, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_relay_in_use_is_kept_ready, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_when_relays_are_chosen, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_relayed_edges_carry, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_as_many_hubs_as_are_known, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_network_without_a_hub, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_the_way_to_a_hub_is_measured, edge_world_set_up, edge_world_tear_down),
        cmocka_unit_test_setup_teardown(
            test_ways_to_several_hubs, edge_world_set_up, edge_world_tear_down),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
