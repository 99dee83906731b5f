/*
 * tcpstore_entry.h - entries and waiting clients, as tcpstore_*.c share them.
 */
#pragma once

#include "rendezvous/tcpstore/tcpstore_server.h"

/** What is known of a key. */
struct tcpstore_entry {
    struct htab_link link;  /* in tcpstore_server.entries */
    uint8_t *key;           /* owns */
    size_t key_len;         /* bytes */
    bool has_value;         /* a key without one only waits, or is a queue's */
    bool is_sorted;         /* @queue is in order; not while it is loaded */
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

/** tcpstore_entry_find() - NULL if nothing is known of the key. */
struct tcpstore_entry *tcpstore_entry_find(
    const struct tcpstore_server *ts, struct tcpstore_bytes key);

/** tcpstore_entry_acquire() - find it, or make one with nothing in it yet. NULL: no room, no
 * memory. */
struct tcpstore_entry *tcpstore_entry_acquire(
    struct tcpstore_server *ts, struct tcpstore_bytes key);

/** tcpstore_entry_release() - free it if nothing is in it. */
void tcpstore_entry_release(struct tcpstore_server *ts, struct tcpstore_entry *en);

/** tcpstore_entry_value() - empty if there is none; borrowed until the entry changes. */
struct tcpstore_bytes tcpstore_entry_value(const struct tcpstore_entry *en);

/** tcpstore_entry_put() - the key's value is now @value, which is copied. 0 or
 * TCPSTORE_SERVER_E_... */
int tcpstore_entry_put(
    struct tcpstore_server *ts, struct tcpstore_entry *en, struct tcpstore_bytes value);

/** tcpstore_entry_append() - the key's value has @value behind it. 0 or TCPSTORE_SERVER_E_... */
int tcpstore_entry_append(
    struct tcpstore_server *ts, struct tcpstore_entry *en, struct tcpstore_bytes value);

/** tcpstore_entry_remove() - the key has no value any more. */
void tcpstore_entry_remove(struct tcpstore_server *ts, struct tcpstore_entry *en);

/** tcpstore_entry_push() - one more in its queue. 0 or TCPSTORE_SERVER_E_FULL. */
int tcpstore_entry_push(
    struct tcpstore_server *ts, struct tcpstore_entry *en, struct tcpstore_bytes value);

/** tcpstore_entry_pop() - the first item leaves the queue; gives its value. NULL when empty. */
struct rdzv_buf *tcpstore_entry_pop(struct tcpstore_server *ts, struct tcpstore_entry *en);
