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
 *     a blob being put together for saving          RDZV_SCRATCH_MAX             9 MiB
 *     what malloc loses between its pieces          about a fifth               13 MiB
 *     program, libraries, tables, the read buffer                               12 MiB
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/** Longest blob of a TCPStore or a tree. One is put together at a time. */
#define RDZV_SCRATCH_MAX (9u << 20)

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
static inline bool rdzv_quota_has(const struct rdzv_quota *q, size_t bytes, size_t entries)
{
    for (; q; q = q->parent)
        if (q->bytes + bytes > q->bytes_max || q->entries + entries > q->entries_max)
            return false;
    return true;
}

/** rdzv_quota_take() - @bytes and @entries are in use now, even if there was no room (a load). */
static inline void rdzv_quota_take(struct rdzv_quota *q, size_t bytes, size_t entries)
{
    for (; q; q = q->parent) {
        q->bytes += bytes;
        q->entries += entries;
    }
}

/** rdzv_quota_try() - take them if there is room. */
static inline bool rdzv_quota_try(struct rdzv_quota *q, size_t bytes, size_t entries)
{
    if (!rdzv_quota_has(q, bytes, entries))
        return false;
    rdzv_quota_take(q, bytes, entries);
    return true;
}

/** rdzv_quota_give() - @bytes and @entries are not in use any more. */
static inline void rdzv_quota_give(struct rdzv_quota *q, size_t bytes, size_t entries)
{
    for (; q; q = q->parent) {
        q->bytes -= bytes;
        q->entries -= entries;
    }
}

/** rdzv_quota_refuse() - a request was over a limit; @which: in words, a constant. */
static inline void rdzv_quota_refuse(struct rdzv_quota *q, const char *which)
{
    for (; q; q = q->parent) {
        q->n_refused++;
        q->last_refusal = which;
    }
}
