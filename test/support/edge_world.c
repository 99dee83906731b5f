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

void edge_world_relay(struct edge_world *w, unsigned n, unsigned relay, nsec_t now)
{
    struct path_action action = {.path = PATH_KIND_RELAY, .peer = sample_key(n)};

    if (relay != 0)
        action.via.key = sample_key(relay);
    edges_use_relay(&w->e, &action, now);
    (void)edges_choose_relays(&w->e, now);
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

struct path_side edge_world_tell_relays(struct edge_world *w, nsec_t hub_rtt, nsec_t now)
{
    struct path_side side = {.generation = 9};

    edges_tell_relays(&w->e, hub_rtt, &side, now);
    return side;
}
