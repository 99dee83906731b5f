/*
 * relay_select.h - which relays this node keeps ready, and what it tells its peers of relays.
 *
 * Theory of operation. A relay is the hub, or a node that the hub admits as one
 * and that says it is one. A node can be used where we reach it by a direct path of
 * our own and have a session with it, by which it knows our address. Of those the
 * two nearest are *standbys*: their sessions are kept alive with keepalives as the
 * hub's is, though nothing goes through them; and so is each one that an edge goes
 * through. Standbys and the hub are told to peers, each with its round trip;
 * path/path_relay.c then chooses for each pair of nodes.
 *
 * Whether a relay lives its own path tells (path/path_liveness.h): data that goes
 * through it counts as the path's own. The hub's life is in hub_liveness.h.
 *
 * Pure: facts in, choices out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "path/path.h"

/** A peer that relays for others, and may. */
struct relay_fact {
    struct x25519_public key;
    size_t peer;      /* its place among the caller's peers; not read here */
    bool is_direct;   /* we have a direct path to it */
    bool is_used;     /* an edge of ours goes through it */
    bool has_session; /* so it knows where we are */
    nsec_t rtt;       /* to it, at least 1 */
    bool is_standby;  /* relay_select_standbys() writes it */
};

/** The relay that is a hub. */
struct relay_hub {
    struct x25519_public key; /* none: not known */
    nsec_t rtt;               /* 0: not measured */
    bool is_dead;
};

/** What was told of relays last. */
struct relay_select {
    struct path_relay told[PATH_RELAYS_MAX];
    unsigned n_told;
};

/** relay_select_standbys() - choose them among @n relays: sets each @is_standby anew. */
void relay_select_standbys(struct relay_fact *relays, size_t n);

/**
 * relay_select_tell() - the relays to be reported, into @side: the hub first
 * @relays:	@n of them, with their standbys chosen
 *
 * A round trip that has changed by little is told as before, so that it is no news for all peers.
 */
void relay_select_tell(struct relay_select *rs, const struct relay_hub *hub,
    const struct relay_fact *relays, size_t n, struct path_side *side);
