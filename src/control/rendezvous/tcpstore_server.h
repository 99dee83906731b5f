/*
 * tcpstore_server.h - a TCPStore: keys, values, queues, and clients that wait. Sans-I/O.
 *
 * Behaves as PyTorch's own server does, of the dialect that the client speaks.
 * Where that one depends on luck it is made certain: a client that asks for
 * something else has given up waiting, so no late answer to a wait can be taken
 * for the answer to what came after it.
 *
 * Theory of operation. An *entry* is everything known of a key: its value, its
 * queue, who waits for it and who watches it; it is there for as long as any of
 * these is. A request changes entries and appends answers to the clients'
 * output, the asking one's and those of whoever waited; all clients with output
 * are in rdzv_kv.ready, where the owner collects and sends it. Values are shared
 * with the outputs, not copied into them.
 *
 * What has changed is told, as blobs (rdzv_blob.h), to the owner, who saves them.
 * A value is not told at once: its entry goes into rdzv_kv.unsaved, and the owner
 * asks for what is in there when it has room for it, so a value that is appended
 * to a thousand times meanwhile is told once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/htab.h"
#include "base/list.h"
#include "rendezvous/tcpstore_out.h"
#include "rendezvous/rdzv_quota.h"
#include "wire/tcpstore.h"

struct err;

/** Keys that a client may wait for or watch at once. */
#define RDZV_KV_WAITS_MAX 16384

/* Outcomes. */
#define RDZV_KV_E_REFUSED 1 /* the real one would have hung up: no such key, no number */
#define RDZV_KV_E_FULL    2 /* no room left in the job or its network, or no memory */
#define RDZV_KV_E_LONG    3 /* the value would be over TCPSTORE_VALUE_MAX */

/** What has to be saved. Called while a request is handled, or by rdzv_kv_flush(); may not call
 * back. */
struct rdzv_kv_saver {
    void *ctx; /* pinned: handed to the calls */

    /* There is something for rdzv_kv_flush() now, where there was nothing. */
    void (*unsaved)(void *ctx);

    /* The blob called @name is now @len bytes; it had @before (0: is new). */
    void (*put)(
        void *ctx, const void *name, size_t name_len, const void *p, size_t len, size_t before);

    /* It is gone. */
    void (*drop)(void *ctx, const void *name, size_t name_len, size_t before);
};

struct rdzv_kv {
    struct rdzv_kv_saver saver; /* see there */
    struct rdzv_quota *quota;   /* pins */
    struct htab entries;        /* owns struct rdzv_entry, by key */
    struct list ready;          /* of struct rdzv_client: those with output */
    struct list unsaved;        /* of struct rdzv_entry: values to be told to the saver */
    size_t n_unsaved;           /* in it */
    size_t n_keys;              /* with a value */
    size_t keys_len;            /* bytes of those keys */
    struct rdzv_shared *listed; /* counted; the answer to LIST, while it is still right */
    uint64_t next_item;         /* number of the next item in any queue */
};

/** A connection, as the store sees it; embedded in the owner's. */
struct rdzv_client {
    struct list ready;             /* in rdzv_kv.ready */
    enum tcpstore_dialect dialect; /* known before the first request is handled */
    struct list waits;             /* of struct rdzv_wait: the keys that it waits for */
    struct list watches;           /* of struct rdzv_wait: the keys that it watches */
    size_t n_awaited;              /* keys that must come before it goes on */
    size_t n_watches;              /* in @watches */
    struct rdzv_out out;           /* answers to be sent */
    bool failed;                   /* it cannot be given an answer any more: hang up */
};

/** rdzv_kv_init() - empty; @seed: random, unknown to strangers. @saver is copied. */
void rdzv_kv_init(
    struct rdzv_kv *kv, const struct rdzv_kv_saver *saver, struct rdzv_quota *quota, uint64_t seed);

/** rdzv_kv_deinit() - after all clients. Nothing is told to the saver. Idempotent. */
void rdzv_kv_deinit(struct rdzv_kv *kv);

/** rdzv_kv_clear() - forget all values and queues, and tell the saver; who waits goes on waiting.
 */
void rdzv_kv_clear(struct rdzv_kv *kv);

/**
 * rdzv_kv_load() - a blob as the saver got it
 *
 * May go over the quota: what was taken once is not lost because a limit became smaller.
 *
 * Return: 0, -EINVAL with words, or -ENOMEM; then nothing has changed.
 */
int rdzv_kv_load(struct rdzv_kv *kv, const void *p, size_t len, struct err *e);

/**
 * rdzv_kv_name() - what a blob was called when the saver got it
 * @ret, @ret_len:	borrowed from @p
 *
 * Return: 0, or -EINVAL with words.
 */
int rdzv_kv_name(const void *p, size_t len, const uint8_t **ret, size_t *ret_len, struct err *e);

/**
 * rdzv_kv_flush() - tell the saver what has changed
 * @max:	bytes, about; it ends with a whole blob
 *
 * Return: true when there is nothing more to tell.
 */
bool rdzv_kv_flush(struct rdzv_kv *kv, size_t max);

/** rdzv_client_init() - it has connected. */
void rdzv_client_init(struct rdzv_client *c, enum tcpstore_dialect dialect);

/** rdzv_client_deinit() - it has gone. Idempotent. */
void rdzv_client_deinit(struct rdzv_kv *kv, struct rdzv_client *c);

/** rdzv_client_sent() - the first @len bytes of its output have been sent. */
void rdzv_client_sent(struct rdzv_client *c, size_t len);

/**
 * rdzv_kv_handle() - do what a request asks for
 *
 * A limit that it is over is counted in the quota.
 *
 * Return: 0; RDZV_KV_E_...: there is no answer but to hang up, behind what is in its output.
 */
int rdzv_kv_handle(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq);
