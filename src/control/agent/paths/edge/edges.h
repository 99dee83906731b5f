/*
 * edges.h - the edges of this node: which way each goes, and all that follows from it.
 *
 * Theory of operation. path/paths.h chooses a path for each edge. From that follow
 * the route that render puts into the engine (edge_route.h), the handshake that a
 * relay has to see (edge_handshake.h), the size that the path carries
 * (pmtu_driver.h), and which relays are kept ready (relay_select.h). Here these
 * parts are told of each other's results. What the outside has to do is told by
 * edges_take_news(), and by what the functions return.
 *
 * No I/O but lines of the log; time is an argument.
 *
 * Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/paths/edge/hub_liveness.h"
#include "agent/paths/edge/peer_table.h"
#include "agent/paths/edge/pmtu_driver.h"
#include "agent/paths/edge/relay_select.h"

struct paths;
struct peer_seen;
struct render_path;
struct snapshot;

struct edges {
    struct paths *paths; /* pins */
    struct x25519_public own;
    struct peer_table peers;
    struct relay_select relays;
    struct hub_liveness hub_liveness;
    struct x25519_public hub; /* that relays; none: not known */
    char hub_name[NAME_MAX_LEN + 1];
    struct pmtu_driver_limits limits;
    bool has_news;         /* routes have changed, or a handshake is due: see edges_take_news() */
    bool relays_changed;   /* a relay was found or lost: choose anew */
    size_t next_handshake; /* place in @peers from which one is looked for */
    struct relay_fact *facts;   /* owns; room for one of each peer */
    struct render_path *routes; /* owns; likewise */
};

/** edges_init() - none yet. @paths: pinned; @own: this node's key. */
void edges_init(struct edges *e, struct paths *paths, const struct x25519_public *own);

/** edges_deinit() - release all. Idempotent. */
void edges_deinit(struct edges *e);

/** edges_take_news() - has there been something since the last call for which to reconcile? */
bool edges_take_news(struct edges *e);

/** edges_set_snapshot() - the network has changed. Nothing happens without memory. */
void edges_set_snapshot(struct edges *e, const struct snapshot *s, nsec_t now);

/** edges_set_link_mtu() - inner bytes that the machine's largest link carries; 0: not known. */
void edges_set_link_mtu(struct edges *e, uint16_t mtu);

/** edges_observe() - what the engine shows of its peers: @n, sorted by key, hubs too. */
void edges_observe(struct edges *e, const struct peer_seen *seen, size_t n, nsec_t now);

/** edges_use_direct() - a USE of a direct path; WireGuard has to send to @endpoint for it. */
void edges_use_direct(
    struct edges *e, const struct path_action *action, const struct endpoint *endpoint, nsec_t now);

/** edges_use_relay() - a USE of any other kind. */
void edges_use_relay(struct edges *e, const struct path_action *action, nsec_t now);

/** edges_on_fits() - a FITS: a peer has got a probe. */
void edges_on_fits(struct edges *e, const struct path_action *action, nsec_t now);

/** edges_tick() - whatever is due: MTU probes, and handshakes, which are news. */
void edges_tick(struct edges *e, nsec_t now);

/** edges_due() - when edges_tick() is to be called; NSEC_NEVER: not at all. */
nsec_t edges_due(const struct edges *e);

/**
 * edges_choose_relays() - after all paths have been taken: which relays are kept ready
 *
 * Return: false when no relay was found or lost since the last time, and nothing was done.
 */
bool edges_choose_relays(struct edges *e, nsec_t now);

/** edges_tell_relays() - into @side, to be reported. @hub_rtt: 0: not measured. */
void edges_tell_relays(struct edges *e, nsec_t hub_rtt, struct path_side *side, nsec_t now);

/** edges_relay_at() - whose direct path leads there; lends. NULL: no relay's. */
const struct peer_entry *edges_relay_at(const struct edges *e, const struct endpoint *at);

/** edges_routes() - of those that do not go through the hub, by node; until the next call. */
const struct render_path *edges_routes(struct edges *e, size_t *ret_n);

/** edges_on_applied() - the routes are in the engine: handshakes may begin. */
void edges_on_applied(struct edges *e);

/** edges_next_handshake() - with whom to begin one now; NULL: with nobody more. Lends. */
const struct peer_entry *edges_next_handshake(struct edges *e, nsec_t now);

/** edges_on_hub_forgot() - each edge that it relays needs a handshake. */
void edges_on_hub_forgot(struct edges *e, nsec_t now);

/** edges_hasten_handshakes() - all that are wanted are due now. Return: some are. */
bool edges_hasten_handshakes(struct edges *e, nsec_t now);

/** edges_awaits_handshake() - one is wanted, and was not observed yet. */
bool edges_awaits_handshake(const struct edges *e);

/** edges_name_of() - the peer with that key, or else the hub. */
const char *edges_name_of(const struct edges *e, const struct x25519_public *key);
