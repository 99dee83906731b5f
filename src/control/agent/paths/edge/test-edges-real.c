/*
 * test-edges-real.c - edges whose direct path is a real one: what it carries, and what keeps it.
 *
 * The peer n3 is a machine of path/'s, and answers; time is the test's.
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

#define SELF 2

/* n3 is the other end of a real path, and answers. The world's own edges are not used. */
static struct edge_world *begin_couple(struct couple *c, uint64_t relay_run)
{
    static struct edge_world w;
    static const struct x25519_secret secret = {.b = {[0] = 8, [31] = 64}};
    struct rng rng;

    w = (struct edge_world){.snapshot = sample_snapshot(3, SELF), .seed = 1};
    rng = rng_seeded(&w.seed);
    couple_start(c, PATH_POLICY_AUTO);
    edge_world_put_peer_with_key(&w.snapshot, 3, &c->nodes[1].key, relay_run);
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

static void end_couple(struct edge_world *w, struct couple *c)
{
    edges_deinit(&w->e);
    snapshot_deinit(&w->snapshot);
    couple_stop(c);
}

static void take_changes(struct edge_world *w, nsec_t now)
{
    (void)edges_take_changes(&w->e);
    (void)edges_choose_relays(&w->e, now);
}

static void test_the_size_of_a_path(void **state)
{
    static struct couple c;

    for (uint64_t relay_run = 0; relay_run < 2; relay_run++) {
        struct edge_world *w = begin_couple(&c, relay_run);
        const struct couple_node *self = &c.nodes[0];
        struct captured_log said = captured_log_begin();
        struct path_action fits;

        take_changes(w, c.now);
        edges_use_direct(&w->e, &self->use, &self->use.remote, c.now);
        captured_log_end(&said, "");
        /* What every path carries; the sizes of links up to the network's are asked for. */
        assert_int_equal(edge_world_route(w, "n3").mtu, 1140);
        take_changes(w, c.now);
        couple_run(&c, 600 * MS);
        assert_int_equal(self->n_fits, 6);
        fits = self->fits;
        assert_int_equal(fits.size, 1412);
        said = captured_log_begin();
        edges_on_fits(&w->e, &fits, c.now);
        captured_log_end(&said, "info: test: n3: the path carries packets of 1440 bytes\n");
        assert_int_equal(edge_world_route(w, "n3").mtu, 1380);
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
    struct edge_world *w = begin_couple(&c, 0);
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

/* Whatever authentic comes by the path keeps it, though the peer's agent answers nothing. */
static void test_what_is_heard_keeps_a_path(void **state)
{
    static const enum path_kind kept[] = {
        PATH_KIND_RELAY, PATH_KIND_DIRECT, PATH_KIND_RELAY, PATH_KIND_RELAY};
    static struct couple c;

    /* Nothing is heard; something is; something is, from elsewhere; before the engine was told. */
    for (unsigned i = 0; i < 4; i++) {
        struct edge_world *w = begin_couple(&c, 0);
        struct observation ob = {.key = c.nodes[1].key, .endpoint = c.nodes[1].ep};
        const struct observe all = {.items = &ob, .n = 1};

        edges_use_direct(&w->e, &c.nodes[0].use, &c.nodes[0].use.remote, c.now);
        if (i != 3)
            edges_on_applied(&w->e);
        ob.heard = i == 2 ? edge_world_endpoint("198.51.100.77:1") : ob.endpoint;
        c.nodes[0].is_deaf = true;
        for (unsigned k = 0; k < 16; k++) {
            ob.facts.tx_bytes += 100;
            ob.facts.rx_bytes = i == 0 ? 100 : ob.facts.tx_bytes;
            ob.handshake_at = c.now;
            edges_observe(&w->e, &all, c.now);
            couple_run(&c, 250 * MS);
        }
        assert_int_equal(c.nodes[0].use.path, kept[i]);
        end_couple(w, &c);
    }
}

/* What came through a relay shows that the path to the relay lives. */
static void test_what_a_relay_passes_on_keeps_its_path(void **state)
{
    static struct couple c;

    for (unsigned i = 0; i < 3; i++) {
        struct edge_world *w = begin_couple(&c, i);
        struct path_action via = {.path = PATH_KIND_RELAY, .peer = sample_key(4)};
        struct observation items[] = {
            {.key = sample_key(4), .endpoint = c.nodes[1].ep, .heard = c.nodes[1].ep},
            {.key = c.nodes[1].key, .endpoint = c.nodes[1].ep}};
        const struct observe all = {.items = items, .n = 2};

        if (i == 2)
            items[0].heard = edge_world_endpoint("198.51.100.77:1");
        if (x25519_public_compare(&items[0].key, &items[1].key) > 0) {
            struct observation o = items[0];

            items[0] = items[1];
            items[1] = o;
        }
        edge_world_put_peer(&w->snapshot, 4, 0);
        edges_set_snapshot(&w->e, &w->snapshot, c.now);
        edges_use_direct(&w->e, &c.nodes[0].use, &c.nodes[0].use.remote, c.now);
        via.via.key = c.nodes[1].key;
        edges_use_relay(&w->e, &via, c.now);
        edges_on_applied(&w->e);
        (void)edges_choose_relays(&w->e, c.now);
        c.nodes[0].is_deaf = true;
        for (unsigned k = 1; k <= 40; k++) {
            for (unsigned n = 0; n < 2; n++) {
                bool is_relay = x25519_public_equal(&items[n].key, &c.nodes[1].key);

                items[n].facts =
                    (struct wg_facts){.rx_bytes = is_relay ? 1 : k * 100, .tx_bytes = k * 100};
                items[n].handshake_at = c.now;
            }
            edges_observe(&w->e, &all, c.now);
            couple_run(&c, 100 * MS);
        }
        /* Of a peer that is no relay it shows nothing, nor where it came by another way. */
        assert_int_equal(couple_view(&c, 0).kind, i == 1 ? PATH_KIND_DIRECT : PATH_KIND_RELAY);
        end_couple(w, &c);
    }
}

/* Its path is watched as one that has data itself. */
static void test_data_through_a_relay_is_its_paths(void **state)
{
    static struct couple c;
    uint64_t n_sent[2];

    for (unsigned i = 0; i < 2; i++) {
        struct edge_world *w = begin_couple(&c, 1);
        struct path_action via = {.path = PATH_KIND_RELAY, .peer = sample_key(4)};
        struct observation ob = {.key = sample_key(4), .endpoint = c.nodes[1].ep};

        edge_world_put_peer(&w->snapshot, 4, 0);
        edges_set_snapshot(&w->e, &w->snapshot, c.now);
        edges_use_direct(&w->e, &c.nodes[0].use, &c.nodes[0].use.remote, c.now);
        via.via.key = c.nodes[1].key;
        edges_use_relay(&w->e, &via, c.now);
        edges_on_applied(&w->e);
        (void)edges_choose_relays(&w->e, c.now);
        couple_run(&c, 20 * SEC);
        n_sent[i] = c.n_sent;
        for (unsigned k = 1; k <= 40; k++) {
            ob.facts.tx_bytes = i == 0 ? 100 : k * 100;
            edges_observe(&w->e, &(struct observe){.items = &ob, .n = 1}, c.now);
            couple_run(&c, 250 * MS);
        }
        n_sent[i] = c.n_sent - n_sent[i];
        end_couple(w, &c);
    }
    assert_true(n_sent[1] > n_sent[0] + 10);
}

/* Of a relay it is told how long packets the way to it and back carries, while they are
 * WireGuard's own. */
static void test_what_the_way_to_a_relay_carries_is_told(void **state)
{
    static struct couple c;
    struct edge_world *w = begin_couple(&c, 1);
    const struct couple_node *self = &c.nodes[0];
    const struct endpoint own_socket = edge_world_endpoint("127.0.0.1:4000");
    struct observation ob = {.key = c.nodes[1].key, .endpoint = c.nodes[1].ep};
    struct x25519_public other = sample_key(4);
    struct path_action fits;
    struct path_side side;

    take_changes(w, c.now);
    edges_use_direct(&w->e, &self->use, &self->use.remote, c.now);
    take_changes(w, c.now);
    couple_run(&c, 600 * MS);
    ob.handshake_at = c.now;
    edge_world_see(w, ob, c.now);
    assert_int_equal(edge_world_tell_relays(w, 0, c.now).n_relays, 2);
    assert_int_equal(edge_world_tell_relays(w, 0, c.now).relays[1].mtu, 0);
    take_changes(w, c.now);
    /* Of another peer's probe, or of one that was not sent, nothing follows. */
    fits = self->fits;
    fits.peer = other;
    edges_on_fits(&w->e, &fits, c.now);
    fits = self->fits;
    fits.probe++;
    edges_on_fits(&w->e, &fits, c.now);
    assert_false(edges_take_changes(&w->e));
    edges_on_fits(&w->e, &self->fits, c.now);
    side = edge_world_tell_relays(w, 0, c.now);
    assert_true(x25519_public_equal(&side.relays[1].key, &c.nodes[1].key));
    assert_int_equal(side.relays[1].mtu, 1380);
    assert_true(side.relays[1].rtt >= 2 * COUPLE_DELAY);
    /* An answer that was shorter says nothing of the way back. */
    peer_table_find(&w->e.peers, "n3")->pmtu->is_both = false;
    assert_int_equal(edge_world_tell_relays(w, 0, c.now).relays[1].mtu, 0);
    peer_table_find(&w->e.peers, "n3")->pmtu->is_both = true;
    edges_use_direct(&w->e, &self->use, &own_socket, c.now);
    assert_int_equal(edge_world_tell_relays(w, 0, c.now).relays[1].mtu, 0);
    /* A path that is lost carries nothing. */
    edge_world_relay(w, 3, 0, c.now);
    (void)edges_routes(&w->e, &(size_t){0});
    end_couple(w, &c);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_size_of_a_path),
        cmocka_unit_test(test_another_path_carries_as_much),
        cmocka_unit_test(test_what_is_heard_keeps_a_path),
        cmocka_unit_test(test_what_a_relay_passes_on_keeps_its_path),
        cmocka_unit_test(test_data_through_a_relay_is_its_paths),
        cmocka_unit_test(test_what_the_way_to_a_relay_carries_is_told),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
