/*
 * edge_world.h - the edges of one node with the machine that finds their paths, by a clock that the
 * test moves.
 */
#pragma once

#include "agent/paths/edge/edges.h"
#include "agent/reconcile/observe.h"
#include "mesh/render/render.h"
#include "path/paths.h"

/** When edge_world_set_up() makes it, and the node whose edges they are. */
#define EDGE_WORLD_T0   (1000 * NSEC_PER_SEC)
#define EDGE_WORLD_SELF 2

struct edge_world {
    struct edges e;
    struct paths *paths;
    struct snapshot snapshot;
    uint64_t seed;
};

/** edge_world_set_up() - of cmocka: n3 is a peer like any other, n4 and n5 are relays. This end has
 * the smallest key. */
int edge_world_set_up(void **state);
int edge_world_tear_down(void **state);

/** edge_world_endpoint() - of "ADDRESS:PORT"; fails the test when it is none. */
struct endpoint edge_world_endpoint(const char *text);

/** edge_world_put_peer_with_key() - node @n finds paths; @run: as a relay, 0: it is none. */
void edge_world_put_peer_with_key(
    struct snapshot *s, unsigned n, const struct x25519_public *key, uint64_t run);

/** edge_world_put_peer() - the same with the key that sample_key() gives. */
void edge_world_put_peer(struct snapshot *s, unsigned n, uint64_t run);

/** edge_world_go_direct() - the edge to node @n goes to that endpoint. */
void edge_world_go_direct(struct edge_world *w, unsigned n, const char *at, nsec_t now);

/** edge_world_relay() - the edge to node @n goes through @relay; 0: through the hub. */
void edge_world_relay(struct edge_world *w, unsigned n, unsigned relay, nsec_t now);

/** edge_world_seen() - what the engine shows of node @n: where it is, and that many bytes each way.
 */
struct observation edge_world_seen(unsigned n, const char *at, nsec_t handshake_at, uint64_t bytes);

/** edge_world_see() - the engine shows that peer, and no other. */
void edge_world_see(struct edge_world *w, struct observation what, nsec_t now);

/** edge_world_route() - the route of that node; fails the test when it has none. */
struct render_path edge_world_route(struct edge_world *w, const char *node);

/** edge_world_is_handshake_due() - by then, with that node? */
bool edge_world_is_handshake_due(const struct edge_world *w, const char *node, nsec_t now);

/** edge_world_tell_relays() - what this node tells of the relays that it reaches. */
struct path_side edge_world_tell_relays(struct edge_world *w, nsec_t hub_rtt, nsec_t now);
