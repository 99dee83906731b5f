/*
 * relay_select.h - which relays this node keeps ready, and which it reports to its peers.
 *
 * Theory of operation. A relay is the hub, or a node that the hub admits as a relay
 * and that reports to be one. We can use such a node if we reach it by a direct path
 * and have a session with it, from which it knows our address. *Standbys* are the
 * relays whose sessions are kept alive with keepalives, like the hub's: each one that
 * an edge goes through, and the nearest others until there are two. The hub and the
 * standbys are reported to peers, each with its round trip time; path/path_relay.c
 * then chooses a relay for each pair of nodes.
 *
 * Whether a relay is alive is known from the path to it (path/path_liveness.h): data
 * that goes through the relay counts as data on that path. For the hub it is known
 * from hub_liveness.h.
 *
 * Pure: facts in, choices out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "path/path.h"

/** A peer that relays for others, and that the hub admits as a relay. */
struct relay_fact {
    struct x25519_public key;
    size_t peer;      /* its index among the caller's peers; not read here */
    bool is_direct;   /* we have a direct path to it */
    bool is_used;     /* an edge of ours goes through it */
    bool has_session; /* we have a session with it, so it knows our address */
    nsec_t rtt;       /* round trip time to it; at least 1 */
    uint16_t mtu;     /* inner bytes that the way there and back carries; 0: not measured */
    bool is_standby;  /* written by relay_select_standbys() */
};

/** The hub, as a relay. */
struct relay_hub {
    struct x25519_public key; /* none: not known */
    nsec_t rtt;               /* round trip time to it; 0: not measured */
    uint16_t mtu;             /* as in struct relay_fact */
    bool is_dead;
};

/** The relays that were reported last. */
struct relay_select {
    struct path_relay told[PATH_RELAYS_MAX];
    unsigned n_told;
};

/** relay_select_standbys() - choose the standbys among @n relays: sets each @is_standby. */
void relay_select_standbys(struct relay_fact *relays, size_t n);

/**
 * relay_select_tell() - write the relays to be reported into @side, the hub first
 * @relays:	@n of them, after relay_select_standbys()
 *
 * A round trip time that has changed little is reported with its former value, so that peers do not
 * get a new report for it.
 */
void relay_select_tell(struct relay_select *rs, const struct relay_hub *hub,
    const struct relay_fact *relays, size_t n, struct path_side *side);
