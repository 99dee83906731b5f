/*
 * peer_table.h - the peers that find paths, as the network's snapshot has them, and what this node
 * keeps of each: its route, and when a handshake with it is due.
 *
 * Theory of operation. A peer is another node that is no hub, that reports candidates and
 * whose edge with us is not off. peer_table_take() makes a new table from each snapshot.
 * An entry keeps its state as long as the peer has the same name and key, or goes on with a key
 * that was its second one, and its @changes say what the last snapshot has changed. Peers that are
 * gone are in a list of their own until the next snapshot, so that the owner can release what their
 * entries own.
 *
 * The table writes the fields of an entry down to @changes. The fields below are only kept
 * here for the owner.
 *
 * Pure: snapshots, what was seen, and times in; routes and deadlines out. Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/parse.h"
#include "crypto/x25519.h"
#include "path/path.h"

struct render_path;
struct snapshot;

/* ---- handshakes ------------------------------------------------------------------------------ */

/*
 * A relay passes on only what belongs to a handshake that it has seen. So when the packets of an
 * edge go to a relay, or a relay has forgotten what it saw, a new handshake is begun: by the end
 * with the smaller key at once, by the other only if there was none in the meantime. Both must not
 * begin at the same time: a kernel's WireGuard gives up its own handshake for the other's, so that
 * between two kernels neither is completed.
 *
 * A handshake that is not completed is begun again each second. Any handshake that is seen after
 * edge_handshake_want() counts, whichever end began it.
 */

/** How much later the end with the greater key begins, if there was none by then. */
#define EDGE_HANDSHAKE_TURN       NSEC_PER_SEC
#define EDGE_HANDSHAKE_RELAY_TURN (300 * NSEC_PER_MSEC) /* when a relay is left for another */

struct edge_handshake {
    nsec_t due_at;    /* time to begin one; NSEC_NEVER: none is wanted */
    nsec_t wanted_at; /* time when one was last wanted; 0: never; any handshake after it counts */
    nsec_t seen_at;   /* time of the last one, as the engine shows it; 0: never */
};

#define EDGE_HANDSHAKE_NULL                                                                        \
    {                                                                                              \
        .due_at = NSEC_NEVER                                                                       \
    }

/**
 * edge_handshake_want() - a handshake is needed
 * @is_first:	this end has the smaller key, and begins
 * @turn:	how long the other one waits for that: one of the two above; not read if @is_first
 */
void edge_handshake_want(struct edge_handshake *h, bool is_first, nsec_t turn, nsec_t now);

/** edge_handshake_hasten() - if a handshake is wanted, make it due now. Return: one is wanted. */
bool edge_handshake_hasten(struct edge_handshake *h, nsec_t now);

/** edge_handshake_on_seen() - what the engine tells of the last one; 0: there was none. */
void edge_handshake_on_seen(struct edge_handshake *h, nsec_t seen_at);

/** edge_handshake_is_answer() - does a handshake at @seen_at count for the one that is wanted? */
bool edge_handshake_is_answer(const struct edge_handshake *h, nsec_t seen_at);

/** edge_handshake_has_session() - may the session of the last handshake still carry packets? */
bool edge_handshake_has_session(const struct edge_handshake *h, nsec_t now);

/** edge_handshake_take() - is a handshake to be begun now? If so it counts as begun. */
bool edge_handshake_take(struct edge_handshake *h, nsec_t now);

/* ---- routes ---------------------------------------------------------------------------------- */

/** A route is to the hub (which render knows), to the peer itself, or to a relay that is a node,
 * whose own direct endpoint is then that of the edge. */
enum edge_route_kind {
    EDGE_ROUTE_HUB,
    EDGE_ROUTE_DIRECT,
    EDGE_ROUTE_RELAY,
};

struct edge_route {
    enum edge_route_kind kind;
    struct endpoint endpoint;        /* where WireGuard sends; none for the hub */
    nsec_t keepalive;                /* DIRECT: what the path needs of WireGuard; 0: nothing */
    struct x25519_public via;        /* RELAY: its key; else none */
    char via_node[NAME_MAX_LEN + 1]; /* RELAY: its name; else "" */
    bool is_applied;                 /* the engine has been told of it */
};

#define EDGE_ROUTE_NULL                                                                            \
    {                                                                                              \
        .kind = EDGE_ROUTE_HUB                                                                     \
    }

/**
 * edge_route_use_relay() - go through a relay that is a node
 * @endpoint:	where that relay is reached directly
 *
 * Return: true if this is another way than before, which has to be applied.
 */
bool edge_route_use_relay(struct edge_route *r, const struct x25519_public *relay, const char *node,
    const struct endpoint *endpoint);

/** edge_route_use_hub() - go through the hub. Return: as edge_route_use_relay(). */
bool edge_route_use_hub(struct edge_route *r);

/** edge_route_goes_via() - does it go through that relay? */
bool edge_route_goes_via(const struct edge_route *r, const struct x25519_public *relay);

/**
 * edge_route_render() - the route as render_config() takes it
 * @node:	the peer
 * @mtu:	inner bytes that the route carries; 0: not measured
 * @is_standby:	it is a relay that is kept ready
 *
 * Return: false for a route through the hub that is not measured, which render_config() knows
 * without being told.
 */
bool edge_route_render(const struct edge_route *r, const char *node, uint16_t mtu, bool is_standby,
    struct render_path *ret);

/* ---- the table ------------------------------------------------------------------------------- */

/** The engine's counters for a peer, as read last. */
struct peer_traffic {
    uint64_t rx_bytes;     /* received from it */
    uint64_t tx_bytes;     /* sent to it */
    struct endpoint heard; /* where the last of what was received since the look before came from;
                              none: nothing was */
};

/** What the last snapshot has changed for a peer. */
struct peer_changes {
    bool is_new;       /* there was no entry of it */
    bool is_put;       /* it is new, or its policy or whether it is a relay has changed */
    bool is_side;      /* it has reported something new about itself */
    bool is_restarted; /* it is a relay and was restarted, so it has forgotten all handshakes */
    bool is_relaying;  /* it has become a relay, or is none any more */
    bool is_rekeyed;   /* it has other keys: before it had the next one */
    struct x25519_public was;
};

struct peer_entry {
    char node[NAME_MAX_LEN + 1];
    struct x25519_public key;
    struct x25519_public other; /* its second key, while it changes its key; none: it has one */
    enum path_policy policy;    /* PATH_POLICY_N: the entry is new, or is to be retried */
    bool is_relay;              /* it relays for others, and the hub admits it as a relay */
    bool is_closed;             /* as a relay it is full, and takes no more pairs */
    uint64_t relay_run;         /* the run of its relay, as reported last; 0: it runs none */
    uint64_t generation;        /* of its last report */
    struct peer_changes changes;

    struct edge_handshake handshake;
    struct edge_route route;
    struct pmtu_driver *pmtu; /* owns; NULL: it never had a direct path */
    struct peer_traffic traffic;
    bool has_session; /* as observed */
    bool was_seen;    /* it was observed since it is in the table */
    bool is_standby;  /* as relay_select.c chooses */
};

struct peer_table {
    struct peer_entry *items; /* owns; sorted by node */
    size_t n;
    struct peer_entry *gone; /* owns; sorted by node; gone since the last snapshot */
    size_t n_gone;
};

/** peer_table_deinit() - release the table, but not what its entries own. */
void peer_table_deinit(struct peer_table *t);

/**
 * peer_table_take() - make the table anew from a new snapshot
 *
 * Pointers into the table become invalid. The caller releases what the entries in @t->gone own,
 * before the next call.
 *
 * Return: 0 or -ENOMEM, and then nothing has changed.
 */
int peer_table_take(struct peer_table *t, const struct snapshot *s);

/** peer_table_find() - lends the entry of a node, by name; NULL: there is none. */
struct peer_entry *peer_table_find(const struct peer_table *t, const char *node);

/** peer_table_find_key() - the same by key; a linear search. */
struct peer_entry *peer_table_find_key(const struct peer_table *t, const struct x25519_public *key);
