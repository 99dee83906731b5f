/*
 * relay_select.h - which relays this node keeps ready, which it reports to its peers, and whether
 * the hub still relays.
 *
 * Theory of operation. A relay is the hub, or a node that the hub admits as a relay
 * and that reports to be one. We can use such a node if we reach it by a direct path
 * and have a session with it, from which it knows our address. *Standbys* are the
 * relays whose sessions are kept alive with keepalives, like the hub's: each one that
 * an edge goes through, and the nearest others whose lines are not full until there are two of
 * these. The hub and the
 * standbys are reported to peers, each with its round trip time; path/path_nominate.c
 * then chooses a relay for each pair of nodes.
 *
 * Whether a relay is alive is known from the path to it (path/path_liveness.c): data
 * that goes through the relay counts as data on that path. For the hub it is known
 * from struct hub_liveness.
 *
 * Pure: facts in, choices out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
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
    bool is_closed;   /* its line is full: no edge begins to use it */
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
    struct path_relay reported[PATH_RELAYS_MAX];
    unsigned n_reported;
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

/* ---- is the hub alive? ----------------------------------------------------------------------- */

/**
 * Does the hub still answer, while it relays data of this node?
 *
 * There is a direct path to each relay that is a node, and that path shows whether the relay
 * answers. There is none to the hub. So the hub is asked by STUN while data goes through it and
 * there is another relay to go to. When several requests in a row have had no answer it counts as
 * dead: it is no longer reported to peers as a relay, and edges move to the other relay. The
 * requests go on until it answers, or until packets to it go in TLS or nowhere.
 */
struct hub_liveness {
    struct endpoint hub; /* where the engine has it; none: not known */
    uint64_t n_bytes;    /* counted of what it relays */
    nsec_t moved_at;     /* time when @n_bytes last changed; 0: never */
    bool has_other;      /* there is another relay */
    bool is_dead;
    nsec_t next_at;        /* time of the next request */
    unsigned n_unanswered; /* requests since the last answer */
};

/**
 * hub_liveness_look() - what the engine shows of the hub
 * @hub:	where it has the hub; none: not known
 * @n_bytes:	received and sent, since any start, of all edges that the hub relays
 * @has_other:	there is another relay to go to
 */
void hub_liveness_look(struct hub_liveness *h, const struct endpoint *hub, uint64_t n_bytes,
    bool has_other, nsec_t now);

/** hub_liveness_tick() - after a look, and when it is due. Return: ask @h->hub by STUN now. */
bool hub_liveness_tick(struct hub_liveness *h, nsec_t now);

/** hub_liveness_on_answer() - a request to @from was answered. Return: true if that is the hub. */
bool hub_liveness_on_answer(struct hub_liveness *h, const struct endpoint *from, nsec_t now);

/** hub_liveness_due() - when hub_liveness_tick() is to be called; NSEC_NEVER: not at all. */
nsec_t hub_liveness_due(const struct hub_liveness *h, nsec_t now);
