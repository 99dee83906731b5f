/*
 * peer_table.h - the peers that find paths, as the network's snapshot has them.
 *
 * Theory of operation. A peer is a node that is no hub, that reports candidates and
 * whose edge with us is not off. peer_table_take() makes the table anew from each
 * snapshot: what is kept of a peer stays with it as long as its name and key do, and
 * each entry then says what is new of it. Those that went are in a list of their
 * own until the next snapshot, so that the owner can let go of what belongs to them.
 *
 * The table writes the upper part of an entry. What is below it is kept here for the
 * owner, and written by the part that each field names.
 *
 * Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/paths/edge/edge_handshake.h"
#include "agent/paths/edge/edge_route.h"
#include "path/path.h"

struct pmtu_driver;
struct snapshot;

/** What the engine counts for a peer. */
struct peer_traffic {
    uint64_t rx_bytes; /* as counted last */
    uint64_t tx_bytes;
};

/** What the last snapshot has brought. */
struct peer_news {
    bool is_put;       /* it is new, or its policy or its being a relay has changed */
    bool is_side;      /* it has reported something new of itself */
    bool is_restarted; /* as a relay: what it has seen of handshakes is forgotten */
    bool is_relaying;  /* it has begun or ended being a relay */
};

struct peer_entry {
    char node[NAME_MAX_LEN + 1];
    struct x25519_public key;
    enum path_policy policy; /* PATH_POLICY_N: not put yet */
    bool is_relay;           /* it relays for others, and may */
    uint64_t relay_run;      /* of it, as it reported last */
    uint64_t generation;     /* of what it reported last */
    struct peer_news news;

    struct edge_handshake handshake; /* edge_handshake.c */
    struct edge_route route;         /* edge_route.c */
    struct pmtu_driver *pmtu;        /* owns; pmtu_driver.c; NULL: it never had a direct path */
    struct peer_traffic traffic;     /* the owner of the table */
    bool has_session;                /* the owner; as observed */
    bool is_standby;                 /* the owner, as relay_select.c chooses */
};

struct peer_table {
    struct peer_entry *items; /* owns; sorted by node */
    size_t n;
    struct peer_entry *gone; /* owns; in the order of their names */
    size_t n_gone;
};

#define PEER_TABLE_NULL                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

/** peer_table_deinit() - release the table, but not what its entries own. Idempotent. */
void peer_table_deinit(struct peer_table *t);

/**
 * peer_table_take() - the network has changed
 *
 * Pointers into the table become invalid. What entries in @t->gone own is the caller's to release,
 * before the next call.
 *
 * Return: 0 or -ENOMEM, and then nothing has changed.
 */
int peer_table_take(struct peer_table *t, const struct snapshot *s);

/** peer_table_retry() - what was new of that peer could not be used: it is new once more. */
void peer_table_retry(struct peer_entry *peer);

/** peer_table_find() - lends; NULL: there is none of that name. */
struct peer_entry *peer_table_find(const struct peer_table *t, const char *node);

/** peer_table_find_key() - the same by key; walks the table. */
struct peer_entry *peer_table_find_key(const struct peer_table *t, const struct x25519_public *key);
