/*
 * htab.h - intrusive hash table, chained, growing.
 *
 * The caller hashes (hash_bytes() with the table's random seed, so that
 * strangers cannot choose colliding keys) and compares. The table stores links
 * only and never frees what it holds.
 *
 *     for (struct htab_link *l = htab_first(t, hash); l; l = htab_next(l, hash)) {
 *         struct peer *p = container_of(l, struct peer, link);
 *         if (key_equal(&p->key, key))
 *             return p;
 *     }
 *
 * Threads: none of its own; the owner guards it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

/** A member's link. */
struct htab_link {
    struct htab_link *next; /* in the chain */
    uint64_t hash;          /* as given to htab_add() */
};

struct htab {
    struct htab_link **buckets; /* owns; 1 << bits chains, NULL until the first add */
    size_t n;                   /* members */
    unsigned bits;              /* log2 of the number of chains */
    uint64_t seed;              /* for hash_bytes() */
};

#define HTAB_NULL                                                                                  \
    {                                                                                              \
        0                                                                                          \
    }

/** htab_init() - an empty table; @seed: random, unknown to strangers. No allocation yet. */
void htab_init(struct htab *t, uint64_t seed);

/** htab_deinit() - release the chains; members are not touched. Idempotent. */
void htab_deinit(struct htab *t);

/**
 * htab_add() - link a member in
 *
 * Does not look for an equal one: that is the caller's. Grows by doubling when
 * there is a member per chain; if that fails the chains just get longer.
 *
 * Return: 0, or -ENOMEM when not even the first chains could be had.
 */
int htab_add(struct htab *t, struct htab_link *link, uint64_t hash);

/** htab_remove() - unlink a member that is in the table. */
void htab_remove(struct htab *t, struct htab_link *link);

/** htab_first() - the first member whose hash equals @hash, or NULL. */
struct htab_link *htab_first(const struct htab *t, uint64_t hash);

/** htab_next() - the next after @link whose hash equals @hash, or NULL. */
struct htab_link *htab_next(const struct htab_link *link, uint64_t hash);

/**
 * htab_each() - walk all members, in no order
 * @cursor:	0 at first; advanced
 * @link:	the last one returned, NULL at first; it may have been removed since, not freed
 *
 * Return: the next, NULL at the end.
 */
struct htab_link *htab_each(const struct htab *t, size_t *cursor, const struct htab_link *link);

/**
 * hash_bytes() - keyed hash for tables
 *
 * A multiply-fold construction: fast and flood resistant as long as @seed is
 * secret; not a MAC.
 */
uint64_t hash_bytes(uint64_t seed, const void *p, size_t len);

/** hash_u64() - the same for one number. */
uint64_t hash_u64(uint64_t seed, uint64_t v);
