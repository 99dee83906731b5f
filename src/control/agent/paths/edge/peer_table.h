/*
 * peer_table.h - the peers that find paths, as the network's snapshot has them.
 *
 * Theory of operation. A peer is another node that is no hub, that reports candidates and
 * whose edge with us is not off. peer_table_take() makes a new table from each snapshot.
 * An entry keeps its state as long as the peer has the same name and key, and its @news
 * says what the last snapshot has changed. Peers that are gone are in a list of their own
 * until the next snapshot, so that the owner can release what their entries own.
 *
 * The table writes the fields of an entry down to @news. The fields below are only kept
 * here for the owner; each names the part that writes it.
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

/** The engine's counters for a peer, as read last. */
struct peer_traffic {
    uint64_t rx_bytes;     /* received from it */
    uint64_t tx_bytes;     /* sent to it */
    struct endpoint heard; /* where the last of what was received since the look before came from;
                              none: nothing was */
};

/** What the last snapshot has changed for a peer. */
struct peer_news {
    bool is_put;       /* it is new, or its policy or whether it is a relay has changed */
    bool is_side;      /* it has reported something new about itself */
    bool is_restarted; /* it is a relay and was restarted, so it has forgotten all handshakes */
    bool is_relaying;  /* it has become a relay, or is none any more */
};

struct peer_entry {
    char node[NAME_MAX_LEN + 1];
    struct x25519_public key;
    enum path_policy policy; /* PATH_POLICY_N: the entry is new, or is to be retried */
    bool is_relay;           /* it relays for others, and the hub admits it as a relay */
    uint64_t relay_run;      /* the run of its relay, as reported last; 0: it runs none */
    uint64_t generation;     /* of its last report */
    struct peer_news news;

    struct edge_handshake handshake; /* edge_handshake.c */
    struct edge_route route;         /* edge_route.c */
    struct pmtu_driver *pmtu;        /* owns; pmtu_driver.c; NULL: it never had a direct path */
    struct peer_traffic traffic;     /* the owner of the table */
    bool has_session;                /* the owner; as observed */
    bool was_seen;                   /* the owner; it was observed since it is in the table */
    bool is_standby;                 /* the owner, as relay_select.c chooses */
};

struct peer_table {
    struct peer_entry *items; /* owns; sorted by node */
    size_t n;
    struct peer_entry *gone; /* owns; sorted by node; gone since the last snapshot */
    size_t n_gone;
};

#define PEER_TABLE_NULL                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

/** peer_table_deinit() - release the table, but not what its entries own. Idempotent. */
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

/** peer_table_retry() - the news of that peer could not be used: report them again next time. */
void peer_table_retry(struct peer_entry *peer);

/** peer_table_find() - lends the entry of a node, by name; NULL: there is none. */
struct peer_entry *peer_table_find(const struct peer_table *t, const char *node);

/** peer_table_find_key() - the same by key; a linear search. */
struct peer_entry *peer_table_find_key(const struct peer_table *t, const struct x25519_public *key);
