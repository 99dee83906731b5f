/*
 * rdzv_kv_internal.h - entries and waiting clients, as rdzv_kv*.c share them.
 */
#pragma once

#include "rendezvous/rdzv_kv.h"

/** What is known of a key. */
struct rdzv_entry {
    struct htab_link link; /* in rdzv_kv.entries */
    uint8_t *key;          /* owns */
    size_t key_len;        /* bytes */
    bool has_value;        /* a key without one only waits, or is a queue's */
    uint8_t *value;        /* owns; NULL while empty */
    size_t value_len;      /* bytes */
    size_t n_queue;        /* items in @queue */
    struct list queue;     /* owns struct rdzv_item; what was pushed first is first */
    struct list waits;     /* of struct rdzv_wait, in the order in which they came */
    struct list watches;   /* likewise */
};

/** An item of a queue. */
struct rdzv_item {
    struct list link; /* in its entry's queue */
    uint64_t number;  /* in the order of pushing, over all queues */
    size_t len;       /* bytes */
    uint8_t value[];  /* of it */
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

/** rdzv_kv__acquire() - find it, or make one with nothing in it yet. NULL: no memory. */
struct rdzv_entry *rdzv_kv__acquire(struct rdzv_kv *kv, struct tcpstore_bytes key);

/** rdzv_kv__release() - free it if nothing is in it. */
void rdzv_kv__release(struct rdzv_kv *kv, struct rdzv_entry *en);

/** rdzv_kv__put() - the key's value is now @a and @b, which are copied. 0 or RDZV_KV_E_FULL. */
int rdzv_kv__put(
    struct rdzv_kv *kv, struct rdzv_entry *en, struct tcpstore_bytes a, struct tcpstore_bytes b);

/** rdzv_kv__remove() - the key has no value any more. */
void rdzv_kv__remove(struct rdzv_kv *kv, struct rdzv_entry *en);

/** rdzv_kv__push() - one more in its queue. 0 or RDZV_KV_E_FULL. */
int rdzv_kv__push(struct rdzv_kv *kv, struct rdzv_entry *en, struct tcpstore_bytes value);

/** rdzv_kv__pop() - the first item leaves the queue; gives it, free(). NULL when empty. */
struct rdzv_item *rdzv_kv__pop(struct rdzv_kv *kv, struct rdzv_entry *en);
