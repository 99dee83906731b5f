/*
 * rdzv_quota.h - how much a job, and all jobs of a network, may keep, and how that is counted.
 *
 * A job's quota has its network's as parent: what is taken from one is taken from both. All that
 * grows with what members send is counted, with the memory that it takes besides its bytes: keys
 * and values, items of queues, clients that wait, requests that are not complete, answers that have
 * not been sent, events, and the connections themselves.
 *
 * The arithmetic of a network's process, which must stay below 128 MiB resident:
 *
 *     what is counted here                          RDZV_NETWORK_BYTES_MAX      64 MiB
 *     a blob being put together for saving          RDZV_BLOB_MAX                9 MiB
 *     what malloc loses between its pieces          about a fifth               13 MiB
 *     program, libraries, tables, the read buffer                               12 MiB
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rendezvous/shared/rdzv_record.h"

struct writer;

/** Most bytes and entries of a job, and of a network. */
#define RDZV_JOB_BYTES_MAX       (48u << 20)
#define RDZV_JOB_ENTRIES_MAX     65536u
#define RDZV_NETWORK_BYTES_MAX   (64u << 20)
#define RDZV_NETWORK_ENTRIES_MAX 65536u

/** Memory of each thing besides its bytes: about, with malloc's own. */
#define RDZV_COST_ENTRY 224  /* of a TCPStore */
#define RDZV_COST_ITEM  96   /* of a queue */
#define RDZV_COST_WAIT  80   /* a client's wait for a key */
#define RDZV_COST_BUF   48   /* a value that answers share */
#define RDZV_COST_PIECE 80   /* of a client's output */
#define RDZV_COST_NODE  320  /* of an etcd tree */
#define RDZV_COST_EVENT 112  /* likewise */
#define RDZV_COST_CONN  1024 /* a connection, without the kernel's part */
/** More memory of a connection with HTTP: libmicrohttpd's own, and its memory for one request. */
#define RDZV_COST_HTTP (18u << 10)

/** Most unsent answers of a client: what they cost alone, and with the values that they share. */
#define RDZV_UNREAD_COST_MAX  (8u << 20)
#define RDZV_UNREAD_BYTES_MAX (48u << 20)

/** The most that changes of watched keys may add to: a client gets them without asking for each. */
#define RDZV_UNREAD_WATCH_MAX (1u << 20)

/** Longest answer from a tree. */
#define RDZV_ANSWER_MAX (16u << 20)

/** A quota, and how much of it is in use. */
struct rdzv_quota {
    struct rdzv_quota *parent; /* pins; NULL: none */
    size_t bytes;              /* in use */
    size_t bytes_max;          /* that may be */
    size_t entries;            /* in use */
    size_t entries_max;        /* that may be */
    uint64_t n_refused;        /* requests that were over a limit */
    const char *last_refusal;  /* the last of these limits, in words; a constant; NULL: none yet */
};

/** rdzv_quota_has() - is there room for @bytes more in @entries more? */
bool rdzv_quota_has(const struct rdzv_quota *q, size_t bytes, size_t entries);

/** rdzv_quota_take() - @bytes and @entries are in use now, even if there was no room (a load). */
void rdzv_quota_take(struct rdzv_quota *q, size_t bytes, size_t entries);

/** rdzv_quota_give() - @bytes and @entries are not in use any more. */
void rdzv_quota_give(struct rdzv_quota *q, size_t bytes, size_t entries);

/** rdzv_quota_refuse() - a request was over a limit; @which: in words, a constant. */
void rdzv_quota_refuse(struct rdzv_quota *q, const char *which);

/*
 * Bytes that a store and the answers to many clients share. Sans-I/O.
 *
 * Theory of operation. A buffer is counted by reference: a store's entry has a reference while it
 * is the key's value, and each output has one until it is sent. A buffer only grows at its end, and
 * readers remember the length that it had. So a value is appended to in place, whether it is shared
 * or not; when there is no room left, it is copied into a buffer twice as large. It counts in the
 * quota once, with all its room, until the last reference is dropped.
 */

/** A buffer. */
struct rdzv_buf {
    unsigned refs;            /* references to it */
    struct rdzv_quota *quota; /* pins */
    size_t len;               /* bytes in it */
    size_t cap;               /* room */
    uint8_t b[];              /* @cap of them */
};

/**
 * rdzv_buf_new() - an empty buffer with room for @cap bytes, and one reference
 * @quota:	pinned; has to have room for it
 *
 * Return: gives it; NULL: no room, or no memory.
 */
struct rdzv_buf *rdzv_buf_new(struct rdzv_quota *quota, size_t cap);

/** rdzv_buf_load() - the same, but the quota may be exceeded. */
struct rdzv_buf *rdzv_buf_load(struct rdzv_quota *quota, size_t cap);

/** rdzv_buf_ref() - add a reference. Returns @s. NULL is fine. */
struct rdzv_buf *rdzv_buf_ref(struct rdzv_buf *s);

/** rdzv_buf_unref() - drop a reference; the last one frees it. */
struct rdzv_buf *rdzv_buf_unref(struct rdzv_buf *s);

/** rdzv_buf_add() - append @len bytes, for which there is room. */
void rdzv_buf_add(struct rdzv_buf *s, const void *p, size_t len);

/*
 * A blob on its way to the disk and back, with a checksum in front. Pure.
 *
 *      0      1              9
 *     +------+--------------+-----------------
 *     | 0xb5 | checksum, LE | the plain blob
 *     +------+--------------+-----------------
 *
 * The checksum finds accidental damage to a record. It does not find deliberate changes: their
 * author could compute another checksum. Older hubs wrote plain blobs, whose first byte is 1, 2 or
 * 3; no single wrong bit makes 0xb5 of one of these.
 */

/** Whose blob it is: the checksums of the two kinds differ. */
enum rdzv_blob_of {
    RDZV_BLOB_OF_STORE,
    RDZV_BLOB_OF_TREE,
};

/** Bytes in front of a plain blob. */
#define RDZV_BLOB_HEAD 9u

/**
 * rdzv_blob_new() - room for a blob with @plain_len plain bytes
 * @ret:	writes the plain bytes
 *
 * Return: gives it, free(); @plain_len + RDZV_BLOB_HEAD bytes. NULL: no memory.
 */
uint8_t *rdzv_blob_new(size_t plain_len, struct writer *ret);

/** rdzv_blob_seal() - all plain bytes are written: set the checksum. @len: of the whole blob. */
void rdzv_blob_seal(enum rdzv_blob_of of, uint8_t *blob, size_t len);

/**
 * rdzv_blob_open() - check a blob, and find its plain bytes
 * @ret, @ret_len:	borrowed from @p
 *
 * Return: 0, or -EINVAL with words.
 */
int rdzv_blob_open(enum rdzv_blob_of of, const void *p, size_t len, const uint8_t **ret,
    size_t *ret_len, struct err *e);

/**
 * Where a TCPStore and an etcd tree say what has to be saved.
 *
 * They tell it as blobs, each under a name that no other of its kind in the job has. The calls come
 * while a request is handled, or while changes are flushed. They may not call back.
 */
struct rdzv_saver {
    void *ctx; /* pinned: handed to the calls */

    /* A TCPStore has something for tcpstore_server_flush() again. */
    void (*unsaved)(void *ctx);

    /* The blob called @name is now the @len bytes at @p. @before: how many it had; 0: it is new. */
    void (*put)(void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len,
        const void *p, size_t len, size_t before);

    /* The blob called @name is gone; it had @before bytes. */
    void (*drop)(
        void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before);
};
