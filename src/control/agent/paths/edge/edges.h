/*
 * edges.h - the edges of this node: which way each goes, and all that follows from it.
 *
 * Theory of operation. path/paths.h chooses a path for each edge. From that follow
 * the route that render puts into the engine and the handshake that a relay has to see
 * (peer_table.h), the size that the path carries and what the way to each hub does (edge_mtu.h),
 * and which relays are kept ready (relay_select.h). Stock peers, which find no paths, are measured
 * beside them. This module tells each of these parts what the others have found.
 * What the owner has to do it learns from edges_take_changes() and from what the functions return.
 *
 * No I/O but lines of the log; time is an argument.
 *
 * Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/paths/edge/edge_mtu.h"
#include "agent/paths/edge/peer_table.h"
#include "agent/paths/edge/relay_select.h"

struct node;
struct observe;

/** Most hubs beside the one that relays that are known by their endpoints. */
#define EDGES_OTHER_HUBS_MAX (HUB_MTU_MAX - 1)

/** A hub that is not the one that relays for this node. */
struct edges_hub {
    struct x25519_public key;
    struct endpoint at; /* where the engine has it; none: not known */
};

struct edges {
    struct paths *paths; /* pins */
    struct x25519_public own;
    struct peer_table peers;
    struct relay_select relays;
    struct hub_liveness hub_liveness;
    struct hub_mtus hubs;     /* the ways to them */
    struct stock_mtus stocks; /* peers without an agent */
    bool can_ping;            /* the owner sends what stock_mtus_next() gives */
    struct x25519_public hub; /* key of the hub that relays; none: not known */
    char hub_name[NAME_MAX_LEN + 1];
    bool is_hub_chosen; /* edges_set_hub() has named it */
    struct edges_hub other_hubs[EDGES_OTHER_HUBS_MAX];
    unsigned n_other_hubs;
    struct pmtu_driver_limits limits;
    nsec_t observed_at;  /* the last edges_observe(); 0: none was */
    bool has_changes;    /* routes have changed, or a handshake is due: see edges_take_changes() */
    bool relays_changed; /* a relay was found or lost, or carries more or less than before: they
                            have to be chosen, and reported, anew */
    size_t next_handshake;      /* index in @peers where the search for the next one begins */
    struct relay_fact *facts;   /* owns; room for one of each peer */
    struct render_path *routes; /* owns; room for one of each peer */
};

/** edges_init() - there are no edges yet. @paths, and @rng's context: pinned; @secret: this node's,
 * copied; @own: of it. */
void edges_init(struct edges *e, struct paths *paths, const struct x25519_secret *secret,
    const struct x25519_public *own, const struct rng *rng);

/** edges_set_keys() - this node calls under the key of @calls from now on, and hubs know it by
 * @secret, which may be the same; both are copied. The paths are told by the owner. */
void edges_set_keys(
    struct edges *e, const struct x25519_secret *secret, const struct x25519_public *calls);

/** edges_deinit() - release all. */
void edges_deinit(struct edges *e);

/** edges_take_changes() - has something happened since the last call that needs a pass? */
bool edges_take_changes(struct edges *e);

/** edges_set_snapshot() - the network has changed. Without memory nothing changes here. */
void edges_set_snapshot(struct edges *e, const struct snapshot *s, nsec_t now);

/**
 * edges_set_hub() - the hub that relays for this node; until the first call it is render_hub()
 *
 * When it is another one than before, each edge that goes through it needs a handshake there.
 */
void edges_set_hub(struct edges *e, const struct node *hub, nsec_t now);

/** edges_is_hub_at() - is @at the endpoint of any hub? */
bool edges_is_hub_at(const struct edges *e, const struct endpoint *at);

/** edges_observe() - what the engine shows of its peers, hubs too. When a peer is seen for the
 * first time the direct path that an earlier agent has left in the engine is taken up.
 */
void edges_observe(struct edges *e, const struct observe *seen, nsec_t now);

/** edges_use_direct() - PATH_ACTION_USE of a direct path, for which WireGuard sends to @endpoint.
 */
void edges_use_direct(
    struct edges *e, const struct path_action *action, const struct endpoint *endpoint, nsec_t now);

/** edges_use_relay() - PATH_ACTION_USE of a path that is not direct. */
void edges_use_relay(struct edges *e, const struct path_action *action, nsec_t now);

/** edges_on_fits() - PATH_ACTION_FITS: a peer has received a probe of the MTU. */
void edges_on_fits(struct edges *e, const struct path_action *action, nsec_t now);

/** edges_next_frame() - the next frame that measures the way to a hub, as hub_mtus_next(). */
bool edges_next_frame(struct edges *e, struct hub_mtu_frame *ret, nsec_t wall, nsec_t now);

/** edges_tick() - do what is due: MTU probes, and handshakes, for which edges_take_changes() is
 * true. */
void edges_tick(struct edges *e, nsec_t now);

/** edges_due() - when edges_tick() is to be called; NSEC_NEVER: not at all. */
nsec_t edges_due(const struct edges *e, nsec_t now);

/**
 * edges_choose_relays() - after all paths have been taken: which relays are kept ready
 *
 * Return: false when no relay was found or lost since the last time, and nothing was done.
 */
bool edges_choose_relays(struct edges *e, nsec_t now);

/** edges_tell_relays() - into @side, to be reported. @hub_rtt: 0: not measured. */
void edges_tell_relays(struct edges *e, nsec_t hub_rtt, struct path_side *side, nsec_t now);

/** edges_relay_at() - the relay whose direct path leads to @at; lends. NULL: there is none. */
const struct peer_entry *edges_relay_at(const struct edges *e, const struct endpoint *at);

/** edges_routes() - of edges that do not go through the hub, or are measured, by node; borrowed
 * until the next call. */
const struct render_path *edges_routes(struct edges *e, size_t *ret_n);

/** edges_on_applied() - the routes are in the engine: handshakes may begin. */
void edges_on_applied(struct edges *e);

/** edges_next_handshake() - with whom to begin one now; NULL: with nobody more. Lends. */
const struct peer_entry *edges_next_handshake(struct edges *e, nsec_t now);

/** edges_on_hub_forgot() - the hub was started anew: each edge that it relays needs a handshake. */
void edges_on_hub_forgot(struct edges *e, nsec_t now);

/** edges_hasten_handshakes() - make all handshakes that are wanted due now. Return: there are some.
 */
bool edges_hasten_handshakes(struct edges *e, nsec_t now);

/** edges_awaits_handshake() - is there a handshake that is wanted and was not seen yet? */
bool edges_awaits_handshake(const struct edges *e);
