/*
 * rdzv_quota.h - how much a job, and all jobs of a network, may keep.
 *
 * A job's quota has its network's as parent: what is taken from one is taken
 * from both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Bytes of keys and values, and how many entries: of a job, and of a network. */
#define RDZV_JOB_BYTES_MAX     (64u << 20)
#define RDZV_JOB_ENTRIES_MAX   65536u
#define RDZV_NETWORK_BYTES_MAX (256u << 20)

struct rdzv_quota {
    struct rdzv_quota *parent; /* pins; NULL: none */
    size_t bytes;              /* in use */
    size_t bytes_max;          /* that may be */
    size_t entries;            /* in use */
    size_t entries_max;        /* that may be */
};

/** rdzv_quota_has() - is there room for @bytes more in @entries more? */
static inline bool rdzv_quota_has(const struct rdzv_quota *q, size_t bytes, size_t entries)
{
    for (; q; q = q->parent)
        if (q->bytes + bytes > q->bytes_max || q->entries + entries > q->entries_max)
            return false;
    return true;
}

/** rdzv_quota_take() - they are in use; may go over what there is room for (a load). */
static inline void rdzv_quota_take(struct rdzv_quota *q, size_t bytes, size_t entries)
{
    for (; q; q = q->parent) {
        q->bytes += bytes;
        q->entries += entries;
    }
}

/** rdzv_quota_give() - they are in use no more. */
static inline void rdzv_quota_give(struct rdzv_quota *q, size_t bytes, size_t entries)
{
    for (; q; q = q->parent) {
        q->bytes -= bytes;
        q->entries -= entries;
    }
}
