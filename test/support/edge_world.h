/*
 * edge_world.h - the edges of one node with the machine that finds their paths, by a clock that the
 * test moves.
 */
#pragma once

#include "agent/paths/edge/edges.h"
#include "agent/reconcile/observe.h"
#include "mesh/render/render.h"
#include "path/paths.h"

struct edge_world {
    struct edges e;
    struct paths *paths;
    struct snapshot snapshot;
    uint64_t seed;
};

/** edge_world_endpoint() - of "ADDRESS:PORT"; fails the test when it is none. */
struct endpoint edge_world_endpoint(const char *text);

/** edge_world_put_peer_with_key() - node @n finds paths; @run: as a relay, 0: it is none. */
void edge_world_put_peer_with_key(
    struct snapshot *s, unsigned n, const struct x25519_public *key, uint64_t run);

/** edge_world_put_peer() - the same with the key that sample_key() gives. */
void edge_world_put_peer(struct snapshot *s, unsigned n, uint64_t run);

/** edge_world_relay() - the edge to node @n goes through @relay; 0: through the hub. */
void edge_world_relay(struct edge_world *w, unsigned n, unsigned relay, nsec_t now);

/** edge_world_see() - the engine shows that peer, and no other. */
void edge_world_see(struct edge_world *w, struct observation what, nsec_t now);

/** edge_world_route() - the route of that node; fails the test when it has none. */
struct render_path edge_world_route(struct edge_world *w, const char *node);

/** edge_world_tell_relays() - what this node tells of the relays that it reaches. */
struct path_side edge_world_tell_relays(struct edge_world *w, nsec_t hub_rtt, nsec_t now);
