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
#include "test/support/path_couple.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC
#define T0  (1000 * SEC)

#define SELF 2

struct world {
    struct edges e;
    struct paths *paths;
    struct snapshot snapshot;
    uint64_t seed;
};

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

/* Node @n finds paths; @run: as a relay, 0: it is none. */
static void put_peer_with_key(
    struct snapshot *s, unsigned n, const struct x25519_public *key, uint64_t run)
{
    struct object o = sample_node(n);

    o.node.key = *key;
    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = 1;
    o.node.side->relay_run = run;
    o.node.relay = run != 0;
    sample_put(s, o);
}

static void put_peer(struct snapshot *s, unsigned n, uint64_t run)
{
    const struct x25519_public key = sample_key(n);

    put_peer_with_key(s, n, &key, run);
}

/* n3 is a peer like any other, n4 and n5 are relays. This end has the smallest key. */
static int set_up(void **state)
{
    static struct world w;
    const struct x25519_public own = {.b = {0}};
    struct paths_options opt = {.secret = {.b = {[0] = 8, [31] = 64}}};

    w = (struct world){.snapshot = sample_snapshot(5, SELF), .seed = 1};
    opt.rng = rng_seeded(&w.seed);
    put_peer(&w.snapshot, 3, 0);
    put_peer(&w.snapshot, 4, 70);
    put_peer(&w.snapshot, 5, 80);
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
    struct world *w = *state;

    edges_deinit(&w->e);
    w->paths = paths_free(w->paths);
    snapshot_deinit(&w->snapshot);
    return 0;
}

/* ---- what happens --------------------------------------------------------------------------- */

static void go_direct(struct world *w, unsigned n, const char *at, nsec_t now)
{
    struct path_action action = {.path = PATH_KIND_DIRECT, .peer = sample_key(n)};

    action.remote = endpoint(at);
    edges_use_direct(&w->e, &action, &action.remote, now);
    (void)edges_choose_relays(&w->e, now);
}

/* @relay 0: the hub. */
static void go_relayed(struct world *w, unsigned n, unsigned relay, nsec_t now)
{
    struct path_action action = {.path = PATH_KIND_RELAY, .peer = sample_key(n)};

    if (relay != 0)
        action.via.key = sample_key(relay);
    edges_use_relay(&w->e, &action, now);
    (void)edges_choose_relays(&w->e, now);
}

static struct observation seen(unsigned n, const char *at, nsec_t handshake_at, uint64_t bytes)
{
    return (struct observation){.key = sample_key(n),
        .endpoint = endpoint(at),
        .handshake_at = handshake_at,
        .facts = {.rx_bytes = bytes, .tx_bytes = bytes}};
}

static void see(struct world *w, struct observation what, nsec_t now)
{
    edges_observe(&w->e, &(struct observe){.items = &what, .n = 1}, now);
    (void)edges_choose_relays(&w->e, now);
}

/* The route of that node; fails the test when it has none. */
static struct render_path route(struct world *w, const char *node)
{
    size_t n;
    const struct render_path *routes = edges_routes(&w->e, &n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(routes[i].node, node) == 0)
            return routes[i];
    fail_msg("%s has no route", node);
    return (struct render_path){.mtu = 0};
}

static bool is_handshake_due(struct world *w, const char *node, nsec_t now)
{
    return peer_table_find(&w->e.peers, node)->handshake.due_at <= now;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_from_direct_to_the_hub(void **state)
{
    struct world *w = *state;
    size_t n;

    go_direct(w, 3, "198.51.100.3:51820", T0);
    assert_true(edges_take_changes(&w->e));
    assert_false(edges_take_changes(&w->e));
    assert_int_equal(route(w, "n3").endpoint.port, 51820);
    assert_false(edges_awaits_handshake(&w->e));
    go_relayed(w, 3, 0, T0 + SEC);
    assert_true(edges_take_changes(&w->e));
    (void)edges_routes(&w->e, &n);
    assert_int_equal(n, 0);
    /* The hub has to see one; ours is the smaller key. */
    assert_true(is_handshake_due(w, "n3", T0 + SEC));
    edges_on_applied(&w->e);
    assert_string_equal(edges_next_handshake(&w->e, T0 + SEC)->node, "n3");
    assert_null(edges_next_handshake(&w->e, T0 + SEC));
    /* Through the hub again is nothing new. */
    go_relayed(w, 3, 0, T0 + 2 * SEC);
    assert_false(edges_take_changes(&w->e));
}

static void test_a_relay_is_kept_ready(void **state)
{
    struct world *w = *state;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    assert_true(route(w, "n4").is_standby);
    /* It must have heard us. */
    assert_true(is_handshake_due(w, "n4", T0));
    see(w, seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    assert_false(edges_awaits_handshake(&w->e));
    (void)edges_take_changes(&w->e);
    /* One that is a relay no more is a peer like any other. */
    put_peer(&w->snapshot, 4, 0);
    edges_set_snapshot(&w->e, &w->snapshot, T0 + 2 * SEC);
    assert_true(edges_choose_relays(&w->e, T0 + 2 * SEC));
    assert_false(route(w, "n4").is_standby);
    assert_true(edges_take_changes(&w->e));
    assert_false(edges_choose_relays(&w->e, T0 + 2 * SEC));
}

static void test_what_goes_through_a_relay_follows_it(void **state)
{
    struct world *w = *state;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    go_relayed(w, 3, 4, T0);
    assert_string_equal(route(w, "n3").via, "n4");
    assert_int_equal(route(w, "n3").endpoint.port, 51820);
    go_direct(w, 4, "198.51.100.4:4000", T0 + SEC);
    assert_int_equal(route(w, "n3").endpoint.port, 4000);
    assert_true(is_handshake_due(w, "n4", T0 + SEC));
    /* Through a relay that we do not reach directly it goes by the hub. */
    go_relayed(w, 3, 5, T0 + 2 * SEC);
    assert_int_equal(peer_table_find(&w->e.peers, "n3")->route.kind, EDGE_ROUTE_HUB);
}

static void test_a_relay_that_has_forgotten(void **state)
{
    struct world *w = *state;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    go_relayed(w, 3, 4, T0);
    assert_false(is_handshake_due(w, "n3", T0 + SEC));
    put_peer(&w->snapshot, 4, 71);
    edges_set_snapshot(&w->e, &w->snapshot, T0 + SEC);
    assert_true(is_handshake_due(w, "n3", T0 + SEC));
    assert_true(is_handshake_due(w, "n4", T0 + SEC));
    assert_false(is_handshake_due(w, "n5", T0 + SEC));
}

static void test_a_hub_that_has_forgotten(void **state)
{
    struct world *w = *state;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    see(w, seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    see(w, seen(3, "203.0.113.10:51820", T0 + MS, 1), T0 + SEC);
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
    struct world *w = *state;
    struct object other = sample_node(1);
    struct endpoint at = endpoint("203.0.113.99:51820");

    other.node.key = sample_key(9);
    (void)snprintf(other.node.meta.name, sizeof(other.node.meta.name), "hub-b");
    other.node.address4.b[15] = 9;
    sample_put(&w->snapshot, other);
    edges_set_snapshot(&w->e, &w->snapshot, T0);
    assert_string_equal(w->e.hub_name, "hub");
    go_direct(w, 4, "198.51.100.4:51820", T0);
    see(w, seen(4, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    see(w, seen(3, "203.0.113.10:51820", T0 + MS, 1), T0 + SEC);
    see(w, seen(9, "203.0.113.99:51820", T0 + MS, 1), T0 + SEC);
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
static struct path_action last_use(struct world *w, unsigned n)
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
    struct world *w = *state;
    const struct x25519_public relay = sample_key(4);
    struct path_action action;

    go_direct(w, 4, "198.51.100.4:51820", T0);
    (void)last_use(w, 3);
    /* Until the engine has our own route, where it sends to says nothing. */
    see(w, seen(3, "198.51.100.4:51820", T0 + MS, 1), T0 + SEC);
    assert_int_equal(last_use(w, 3).kind, PATH_ACTION_NONE);
    edges_on_applied(&w->e);
    see(w, seen(3, "198.51.100.4:51820", T0 + 2 * MS, 2), T0 + 2 * SEC);
    action = last_use(w, 3);
    assert_int_equal(action.kind, PATH_ACTION_USE);
    assert_true(action.is_followed);
    assert_true(x25519_public_equal(&action.via.key, &relay));
    /* No handshake is begun for it: there was one. */
    edges_use_relay(&w->e, &action, T0 + 2 * SEC);
    assert_string_equal(route(w, "n3").via, "n4");
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
    struct world *w = *state;
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
    struct world *w = *state;
    struct observation all[] = {left(1, "203.0.113.10:51820"), left(3, "203.0.113.10:51820"),
        left(4, "198.51.100.4:51820"), left(5, "127.0.0.1:4000")};

    /* n3 goes through the hub, n4 is heard elsewhere, and n5 was reached through that agent. */
    all[2].heard = endpoint("198.51.100.4:4000");
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
    struct world *w = *state;
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
    struct world *w = *state;
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

/* ---- what a path carries -------------------------------------------------------------------- */

/* n3 is the other end of a real path, and answers. The world's own edges are not used. */
static struct world *begin_couple(struct couple *c, uint64_t relay_run)
{
    static struct world w;
    static const struct x25519_secret secret = {.b = {[0] = 8, [31] = 64}};
    struct rng rng;

    w = (struct world){.snapshot = sample_snapshot(3, SELF), .seed = 1};
    rng = rng_seeded(&w.seed);
    couple_start(c, PATH_POLICY_AUTO);
    put_peer_with_key(&w.snapshot, 3, &c->nodes[1].key, relay_run);
    w.snapshot.network.mtu = 1380;
    w.paths = c->nodes[0].paths;
    edges_init(&w.e, w.paths, &secret, &c->nodes[0].key, &rng);
    edges_set_snapshot(&w.e, &w.snapshot, c->now);
    c->has_v6 = true;
    c->delay6 = 2 * COUPLE_DELAY;
    couple_tell(c);
    couple_run_with_traffic(c, 2 * SEC);
    couple_assert_direct(c);
    return &w;
}

static void end_couple(struct world *w, struct couple *c)
{
    edges_deinit(&w->e);
    snapshot_deinit(&w->snapshot);
    couple_stop(c);
}

static void take_changes(struct world *w, nsec_t now)
{
    (void)edges_take_changes(&w->e);
    (void)edges_choose_relays(&w->e, now);
}

static void test_the_size_of_a_path(void **state)
{
    static struct couple c;

    for (uint64_t relay_run = 0; relay_run < 2; relay_run++) {
        struct world *w = begin_couple(&c, relay_run);
        const struct couple_node *self = &c.nodes[0];
        struct captured_log said = captured_log_begin();
        struct path_action fits;

        take_changes(w, c.now);
        edges_use_direct(&w->e, &self->use, &self->use.remote, c.now);
        captured_log_end(&said, "");
        /* What every path carries; the sizes of links up to the network's are asked for. */
        assert_int_equal(route(w, "n3").mtu, 1140);
        take_changes(w, c.now);
        couple_run(&c, 600 * MS);
        assert_int_equal(self->n_fits, 6);
        fits = self->fits;
        assert_int_equal(fits.size, 1412);
        said = captured_log_begin();
        edges_on_fits(&w->e, &fits, c.now);
        captured_log_end(&said, "info: test: n3: the path carries packets of 1440 bytes\n");
        assert_int_equal(route(w, "n3").mtu, 1380);
        assert_true(edges_take_changes(&w->e));
        /* What a relay carries decides whether it is chosen. */
        assert_int_equal(edges_choose_relays(&w->e, c.now), relay_run != 0);
        /* The same answer again is none. */
        edges_on_fits(&w->e, &fits, c.now);
        assert_false(edges_take_changes(&w->e));
        end_couple(w, &c);
    }
}

/* Another way has to carry as much before it is taken. */
static void test_another_path_carries_as_much(void **state)
{
    static struct couple c;
    struct world *w = begin_couple(&c, 0);
    const struct couple_node *self = &c.nodes[0];

    edges_use_direct(&w->e, &self->use, &self->use.remote, c.now);
    couple_run(&c, 600 * MS);
    edges_on_fits(&w->e, &self->fits, c.now);
    c.delay6 = 2 * MS;
    c.hole6 = 1300;
    couple_run_with_traffic(&c, 130 * SEC);
    assert_true(endpoint_equal(&self->use.remote, &c.nodes[1].ep));
    c.hole6 = 0;
    couple_run_with_traffic(&c, 130 * SEC);
    assert_true(endpoint_equal(&self->use.remote, &c.nodes[1].ep6));
    end_couple(w, &c);
}

/* The paths know of no way to the peer yet, so no probe leaves, and no answer is waited for. */
static void test_a_probe_that_is_not_sent(void **state)
{
    struct world *w = *state;
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
        cmocka_unit_test_setup_teardown(test_another_hub_relays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_hub_that_has_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_other_end_leads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_path_of_an_earlier_agent_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_shows_no_path_of_an_earlier_agent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_a_relay_carries_is_no_direct_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_peer_that_goes, set_up, tear_down),
        cmocka_unit_test(test_the_size_of_a_path),
        cmocka_unit_test(test_another_path_carries_as_much),
        cmocka_unit_test_setup_teardown(test_a_probe_that_is_not_sent, set_up, tear_down),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
