/*
 * tcpstore_entry.h - entries and waiting clients, as tcpstore_*.c share them.
 */
#pragma once

#include "rendezvous/tcpstore_server.h"

/** What is known of a key. */
struct rdzv_entry {
    struct htab_link link;     /* in rdzv_kv.entries */
    uint8_t *key;              /* owns */
    size_t key_len;            /* bytes */
    bool has_value;            /* a key without one only waits, or is a queue's */
    bool is_sorted;            /* @queue is in order; not while it is loaded */
    struct rdzv_shared *value; /* counted; NULL while empty */
    size_t n_queue;            /* items in @queue */
    struct list queue;         /* owns struct rdzv_item; what was pushed first is first */
    struct list waits;         /* of struct rdzv_wait, in the order in which they came */
    struct list watches;       /* likewise */
    struct list unsaved;       /* in rdzv_kv.unsaved while the value is not saved */
    size_t saved;              /* length of its blob; 0: there is none */
};

/** An item of a queue. */
struct rdzv_item {
    struct list link;          /* in its entry's queue */
    uint64_t number;           /* in the order of pushing, over all queues */
    struct rdzv_shared *value; /* counted */
    size_t saved;              /* length of its blob */
};

/** A client that waits for a key, or watches it. */
struct rdzv_wait {
    struct list of_client;      /* in the client's list */
    struct list of_entry;       /* in the entry's list */
    struct rdzv_client *client; /* pins */
    struct rdzv_entry *entry;   /* pins */
};

/** rdzv_kv__find() - NULL if nothing is known of the key. */
struct rdzv_entry *rdzv_kv__find(const struct rdzv_kv *kv, struct tcpstore_bytes key);

/** rdzv_kv__acquire() - find it, or make one with nothing in it yet. NULL: no room, no memory. */
struct rdzv_entry *rdzv_kv__acquire(struct rdzv_kv *kv, struct tcpstore_bytes key);

/** rdzv_kv__release() - free it if nothing is in it. */
void rdzv_kv__release(struct rdzv_kv *kv, struct rdzv_entry *en);

/** rdzv_kv__value() - empty if there is none; borrowed until the entry changes. */
struct tcpstore_bytes rdzv_kv__value(const struct rdzv_entry *en);

/** rdzv_kv__put() - the key's value is now @value, which is copied. 0 or RDZV_KV_E_... */
int rdzv_kv__put(struct rdzv_kv *kv, struct rdzv_entry *en, struct tcpstore_bytes value);

/** rdzv_kv__append() - the key's value has @value behind it. 0 or RDZV_KV_E_... */
int rdzv_kv__append(struct rdzv_kv *kv, struct rdzv_entry *en, struct tcpstore_bytes value);

/** rdzv_kv__remove() - the key has no value any more. */
void rdzv_kv__remove(struct rdzv_kv *kv, struct rdzv_entry *en);

/** rdzv_kv__push() - one more in its queue. 0 or RDZV_KV_E_FULL. */
int rdzv_kv__push(struct rdzv_kv *kv, struct rdzv_entry *en, struct tcpstore_bytes value);

/** rdzv_kv__pop() - the first item leaves the queue; gives its value. NULL when empty. */
struct rdzv_shared *rdzv_kv__pop(struct rdzv_kv *kv, struct rdzv_entry *en);
