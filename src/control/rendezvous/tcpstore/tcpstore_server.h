/*
 * tcpstore_server.h - a TCPStore: keys, values, queues, and clients that wait. Sans-I/O.
 *
 * It behaves as PyTorch's own server for the dialect that the client speaks. In one case
 * PyTorch's answer depends on timing, and this one's does not: any request ends the waits of
 * its client, so that no late answer to a wait can be taken for the answer to that request.
 *
 * Theory of operation. An *entry* is all that there is about a key: its value, its queue,
 * the clients that wait for it and those that watch it. It exists for as long as any of
 * these does. A request changes entries and appends answers to the output of its client
 * and of clients that have waited. All clients with output are in tcpstore_server.ready,
 * from which the owner sends it. Values are shared with the outputs, not copied.
 *
 * Changes are told to the owner as blobs (rdzv_quota.h), which it saves. A value is not told
 * at once: its entry is added to tcpstore_server.unsaved, and the owner asks for these when
 * it sends changes. So a value that is appended to a thousand times meanwhile is told once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/containers.h"
#include "rendezvous/shared/rdzv_quota.h"
#include "wire/tcpstore.h"

struct err;

/*
 * The answers to a client that have not been sent. Sans-I/O.
 *
 * A list of pieces. A few bytes are copied into a piece; for many, a piece has a reference to the
 * store's buffer (rdzv_quota.h), so that a value which is sent to a hundred clients takes memory
 * once. The memory of the pieces themselves counts in the job's quota.
 */

/** The output of one client. */
struct tcpstore_out {
    struct rdzv_quota *quota; /* pins; NULL until the first piece */
    struct list pieces;       /* owns struct tcpstore_out_piece; to be sent in this order */
    size_t len;               /* bytes that have not been sent */
    size_t cost;              /* what they cost, without what is shared */
};

/** tcpstore_out_peek() - the first pieces to be sent, at most @max. Returns how many. */
size_t tcpstore_out_peek(const struct tcpstore_out *out, struct iovec *iov, size_t max);

/* Outcomes. */
#define TCPSTORE_SERVER_E_REFUSED                                                                  \
    1                            /* PyTorch's would end the connection: no such key, no number     \
                                  */
#define TCPSTORE_SERVER_E_FULL 2 /* no room left in the job or its network, or no memory */
#define TCPSTORE_SERVER_E_LONG 3 /* the value would be over TCPSTORE_VALUE_MAX */

/** A store. */
struct tcpstore_server {
    struct rdzv_saver saver;  /* is told what has to be saved */
    struct rdzv_quota *quota; /* pins */
    struct htab entries;      /* owns struct tcpstore_entry, by key */
    struct list ready;        /* of struct tcpstore_client: those with output */
    struct list unsaved;      /* of struct tcpstore_entry: values to be told to the saver */
    size_t n_unsaved;         /* length of @unsaved */
    size_t n_keys;            /* keys with a value */
    size_t keys_len;          /* bytes of those keys */
    struct rdzv_buf *listed;  /* counted; the answer to LIST; NULL when the keys have changed */
    uint64_t next_item;       /* number of the next item in any queue */
};

/** A connection, as the store sees it; embedded in the owner's. */
struct tcpstore_client {
    struct list ready;             /* in tcpstore_server.ready */
    enum tcpstore_dialect dialect; /* known before the first request is handled */
    struct list waits;             /* of struct tcpstore_wait: the keys that it waits for */
    struct list watches;           /* of struct tcpstore_wait: the keys that it watches */
    size_t n_awaited;              /* keys that it still waits for */
    size_t n_watches;              /* length of @watches */
    struct tcpstore_out out;       /* answers to be sent */
    bool failed;                   /* an answer could not be added: end the connection */
};

/** tcpstore_server_init() - empty; @seed: random, unknown to strangers. @saver is copied. */
void tcpstore_server_init(struct tcpstore_server *ts, const struct rdzv_saver *saver,
    struct rdzv_quota *quota, uint64_t seed);

/** tcpstore_server_deinit() - after all clients. The saver is told as by tcpstore_server_clear().
 */
void tcpstore_server_deinit(struct tcpstore_server *ts);

/** tcpstore_server_clear() - drop all values and queues, and tell the saver. Waits go on. */
void tcpstore_server_clear(struct tcpstore_server *ts);

/**
 * tcpstore_server_load() - a blob as the saver got it
 * @hash:	of the name under which it is kept
 *
 * The quota may be exceeded: what was accepted once is not lost because a limit has become smaller.
 *
 * Return: 0, -EINVAL with words, or -ENOMEM; then nothing has changed.
 */
int tcpstore_server_load(struct tcpstore_server *ts, const void *p, size_t len,
    const struct rdzv_hash *hash, struct err *e);

/**
 * tcpstore_server_flush() - tell the saver what has changed
 * @max:	about how many bytes; a blob is always told whole
 *
 * Return: true when there is nothing more to tell.
 */
bool tcpstore_server_flush(struct tcpstore_server *ts, size_t max);

/** tcpstore_client_init() - a client has connected. */
void tcpstore_client_init(struct tcpstore_client *c, enum tcpstore_dialect dialect);

/** tcpstore_client_deinit() - the client has gone. */
void tcpstore_client_deinit(struct tcpstore_server *ts, struct tcpstore_client *c);

/** tcpstore_client_sent() - the first @len bytes of its output have been sent. */
void tcpstore_client_sent(struct tcpstore_client *c, size_t len);

/**
 * tcpstore_server_handle() - do what a request asks for
 *
 * A request that is over a limit is counted in the quota.
 *
 * Return: 0; TCPSTORE_SERVER_E_...: send the output that it has, and end the connection.
 */
int tcpstore_server_handle(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq);

/* Entries and waiting clients, as tcpstore_*.c share them. */

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
