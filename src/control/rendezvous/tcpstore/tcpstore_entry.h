/*
 * tcpstore_entry.h - entries and waiting clients, as tcpstore_*.c share them.
 */
#pragma once

#include "rendezvous/tcpstore/tcpstore_server.h"

/** All that a store has about a key. */
struct tcpstore_entry {
    struct htab_link link;  /* in tcpstore_server.entries */
    uint8_t *key;           /* owns */
    size_t key_len;         /* bytes */
    bool has_value;         /* a key without one has a queue, or clients that wait for it */
    bool is_sorted;         /* @queue is in order, which it is not after items were loaded */
    struct rdzv_buf *value; /* counted; NULL while empty */
    size_t n_queue;         /* items in @queue */
    struct list queue;      /* owns struct tcpstore_item; what was pushed first is first */
    struct list waits;      /* of struct tcpstore_wait, in the order in which they came */
    struct list watches;    /* likewise */
    struct list unsaved;    /* in tcpstore_server.unsaved while the value is not saved */
    size_t saved;           /* length of its blob; 0: there is none */
};

/** An item of a queue. */
struct tcpstore_item {
    struct list link;       /* in its entry's queue */
    uint64_t number;        /* in the order of pushing, over all queues */
    struct rdzv_buf *value; /* counted */
    size_t saved;           /* length of its blob */
};

/** A client that waits for a key, or watches it. */
struct tcpstore_wait {
    struct list of_client;          /* in the client's list */
    struct list of_entry;           /* in the entry's list */
    struct tcpstore_client *client; /* pins */
    struct tcpstore_entry *entry;   /* pins */
};

/** tcpstore_entry_find() - lends the entry of a key; NULL: there is none. */
struct tcpstore_entry *tcpstore_entry_find(
    const struct tcpstore_server *ts, struct tcpstore_bytes key);

/** tcpstore_entry_acquire() - find it, or make an empty one. NULL: no room, or no memory. */
struct tcpstore_entry *tcpstore_entry_acquire(
    struct tcpstore_server *ts, struct tcpstore_bytes key);

/** tcpstore_entry_release() - free it if nothing is in it. */
void tcpstore_entry_release(struct tcpstore_server *ts, struct tcpstore_entry *en);

/** tcpstore_entry_value() - empty if there is none; borrowed until the entry changes. */
struct tcpstore_bytes tcpstore_entry_value(const struct tcpstore_entry *en);

/** tcpstore_entry_put() - set the value to a copy of @value. 0 or TCPSTORE_SERVER_E_... */
int tcpstore_entry_put(
    struct tcpstore_server *ts, struct tcpstore_entry *en, struct tcpstore_bytes value);

/** tcpstore_entry_append() - append @value to the value. 0 or TCPSTORE_SERVER_E_... */
int tcpstore_entry_append(
    struct tcpstore_server *ts, struct tcpstore_entry *en, struct tcpstore_bytes value);

/** tcpstore_entry_remove() - the key has no value any more. */
void tcpstore_entry_remove(struct tcpstore_server *ts, struct tcpstore_entry *en);

/** tcpstore_entry_push() - append a copy of @value to its queue. 0 or TCPSTORE_SERVER_E_FULL. */
int tcpstore_entry_push(
    struct tcpstore_server *ts, struct tcpstore_entry *en, struct tcpstore_bytes value);

/** tcpstore_entry_pop() - remove the first item; gives its value. NULL: the queue is empty, or no
 * memory. */
struct rdzv_buf *tcpstore_entry_pop(struct tcpstore_server *ts, struct tcpstore_entry *en);
