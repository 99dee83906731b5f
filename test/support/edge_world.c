/* edge_world.c - see edge_world.h. */
#include "test/support/edge_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "test/support/sample_mesh.h"

struct endpoint edge_world_endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

void edge_world_put_peer_with_key(
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

void edge_world_put_peer(struct snapshot *s, unsigned n, uint64_t run)
{
    const struct x25519_public key = sample_key(n);

    edge_world_put_peer_with_key(s, n, &key, run);
}

int edge_world_set_up(void **state)
{
    static struct edge_world w;
    const struct x25519_public own = {.b = {0}};
    struct paths_options opt = {.secret = {.b = {[0] = 8, [31] = 64}}};

    w = (struct edge_world){.snapshot = sample_snapshot(5, EDGE_WORLD_SELF), .seed = 1};
    opt.rng = rng_seeded(&w.seed);
    edge_world_put_peer(&w.snapshot, 3, 0);
    edge_world_put_peer(&w.snapshot, 4, 70);
    edge_world_put_peer(&w.snapshot, 5, 80);
    w.snapshot.network.mtu = 1380;
    assert_int_equal(paths_new(&w.paths, &opt, EDGE_WORLD_T0), 0);
    edges_init(&w.e, w.paths, &opt.secret, &own, &opt.rng);
    edges_set_snapshot(&w.e, &w.snapshot, EDGE_WORLD_T0);
    (void)edges_take_changes(&w.e);
    (void)edges_choose_relays(&w.e, EDGE_WORLD_T0);
    *state = &w;
    return 0;
}

int edge_world_tear_down(void **state)
{
    struct edge_world *w = *state;

    edges_deinit(&w->e);
    w->paths = paths_free(w->paths);
    snapshot_deinit(&w->snapshot);
    return 0;
}

void edge_world_go_direct(struct edge_world *w, unsigned n, const char *at, nsec_t now)
{
    struct path_action action = {.path = PATH_KIND_DIRECT, .peer = sample_key(n)};

    action.remote = edge_world_endpoint(at);
    edges_use_direct(&w->e, &action, &action.remote, now);
    (void)edges_choose_relays(&w->e, now);
}

void edge_world_relay(struct edge_world *w, unsigned n, unsigned relay, nsec_t now)
{
    struct path_action action = {.path = PATH_KIND_RELAY, .peer = sample_key(n)};

    if (relay != 0)
        action.via.key = sample_key(relay);
    edges_use_relay(&w->e, &action, now);
    (void)edges_choose_relays(&w->e, now);
}

struct observation edge_world_seen(unsigned n, const char *at, nsec_t handshake_at, uint64_t bytes)
{
    return (struct observation){.key = sample_key(n),
        .endpoint = edge_world_endpoint(at),
        .handshake_at = handshake_at,
        .facts = {.rx_bytes = bytes, .tx_bytes = bytes}};
}

void edge_world_see(struct edge_world *w, struct observation what, nsec_t now)
{
    edges_observe(&w->e, &(struct observe){.items = &what, .n = 1}, now);
    (void)edges_choose_relays(&w->e, now);
}

struct render_path edge_world_route(struct edge_world *w, const char *node)
{
    size_t n;
    const struct render_path *routes = edges_routes(&w->e, &n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(routes[i].node, node) == 0)
            return routes[i];
    fail_msg("%s has no route", node);
    return (struct render_path){.mtu = 0};
}

bool edge_world_is_handshake_due(const struct edge_world *w, const char *node, nsec_t now)
{
    return peer_table_find(&w->e.peers, node)->handshake.due_at <= now;
}

struct path_side edge_world_tell_relays(struct edge_world *w, nsec_t hub_rtt, nsec_t now)
{
    struct path_side side = {.generation = 9};

    edges_tell_relays(&w->e, hub_rtt, &side, now);
    return side;
}
