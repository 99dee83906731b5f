/*
 * finder.h - finds and keeps the node's paths: path/paths.h with hands and ears.
 *
 * Theory of operation. What the machine of path/ wants to know is brought here:
 * frames through the engine's own port (frame_client.h), this machine's addresses
 * and every change of them, what STUN servers and the router say, what peers
 * report, what the engine counts. What it wants done is done here: frames are
 * sent, and the path of each peer is kept for render, which puts it into the
 * engine. The listener is told when there is something to be put, or to be
 * reported to the hub.
 *
 * A relay passes on only what belongs to a handshake that it has seen. So when a
 * peer goes back to the relay, or the hub has forgotten, a new handshake is
 * begun: by the end with the smaller key at once, by the other only if that did
 * not come about. Two at the same time are one too many, and a kernel's WireGuard
 * gives up its own for the other's, so that between two of them neither comes about.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "mesh/render.h"
#include "path/path.h"

struct engine;
struct err;
struct finder;
struct observe;
struct reconcile;
struct snapshot;
struct state;
struct uv_loop_s;

/** Who is told; called from the loop. */
struct finder_listener {
    void (*on_routes)(void *ctx);  /* finder_routes() has changed: reconcile at once */
    void (*on_self)(void *ctx);    /* finder_self() has changed: report it soon */
    void (*on_network)(void *ctx); /* this machine's addresses or ways out have changed */
    void *ctx;                     /* pinned */
};

/**
 * finder_new() - with nothing to go by yet
 * @state:	pinned: the key, the name, given endpoints, and the interface that is not looked at
 * @snapshot:	of now, for the names
 *
 * Return: 0 or negative errno with words.
 */
int finder_new(struct finder **ret, struct uv_loop_s *loop, const struct state *state,
    const struct finder_listener *listener, struct err *e);

/**
 * finder_free() - wipe, close
 * @leaving:	the node is none any more: the router's port is given back
 *
 * Its handles close in the loop's next turns. NULL is fine. Always NULL.
 */
struct finder *finder_free(struct finder *f, bool leaving);

/** finder_set_engine() - after every look: what runs, on which port. NULL: nothing does. */
void finder_set_engine(struct finder *f, struct engine *engine, uint16_t port, nsec_t now);

/** finder_set_link_mtu() - inner bytes that the machine's largest link carries; 0: not known. */
void finder_set_link_mtu(struct finder *f, uint16_t mtu);

/** finder_set_snapshot() - the network has changed: peers, hubs, what peers report. */
void finder_set_snapshot(struct finder *f, const struct snapshot *s, nsec_t now);

/** finder_set_keepalive() - to be told to peers: what holds this node's mappings; 0: not known. */
void finder_set_keepalive(struct finder *f, nsec_t keepalive, nsec_t now);

/** finder_outside() - at which address @server, a hub's endpoint, sees this node; none: unknown. */
struct ip_addr finder_outside(const struct finder *f, const struct endpoint *server);

/** finder_set_hub() - the hub is heard, or not. */
void finder_set_hub(struct finder *f, bool heard, nsec_t now);

/** finder_set_blocked() - no UDP gets out of this machine, as far as the hub shows; or it does. */
void finder_set_blocked(struct finder *f, bool blocked, nsec_t now);

/** finder_on_hub_forgot() - it was started anew: it has to see a handshake of every relayed edge.
 */
void finder_on_hub_forgot(struct finder *f, nsec_t now);

/** finder_take_observation() - what the engine counts for each peer. */
void finder_take_observation(struct finder *f, const struct observe *seen, nsec_t now);

/** finder_on_applied() - finder_routes() are in the engine: begin the handshakes that wait for it.
 */
void finder_on_applied(struct finder *f, struct reconcile *rc, nsec_t now);

/**
 * finder_retreat() - this process ends: paths that go through it are left for the relay
 *
 * Return: there were some, so finder_routes() has to be applied and finder_on_applied() called:
 * it begins the handshakes.
 */
bool finder_retreat(struct finder *f, nsec_t now);

/** finder_awaits_handshake() - one is wanted, and was not observed yet. */
bool finder_awaits_handshake(const struct finder *f);

/** finder_routes() - the direct paths, sorted by node; borrowed. */
const struct render_path *finder_routes(const struct finder *f, size_t *ret_n);

/** finder_pins() - frames go through, and the engine can hold endpoints. */
bool finder_pins(const struct finder *f);

/** finder_self() - what to report of this node; borrowed. */
const struct path_side *finder_self(const struct finder *f);

/** finder_set_relay() - this node is a relay for others; @is_new: what it relayed is forgotten. */
void finder_set_relay(struct finder *f, bool relays, bool is_new, nsec_t now);

/** finder_is_relay_at() - that node is relayed, and @at is where some relay is. */
bool finder_is_relay_at(const struct finder *f, const char *node, const struct endpoint *at);

/** finder_encode_relays() - those through which that node may be reached; NULL: no memory. */
json_t *finder_encode_relays(const struct finder *f, const char *node);

/** finder_view() - how that node is reached; false: it is no peer of ours, or finds no paths. */
bool finder_view(const struct finder *f, const char *node, struct path_view *ret, nsec_t now);

/** finder_encode_pairs() - all that was tried for that node; NULL: no such peer, or no memory. */
json_t *finder_encode_pairs(const struct finder *f, const char *node, nsec_t now);
