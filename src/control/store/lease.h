/*
 * lease.h - which keys have a lease, and when it ends.
 *
 * The store keeps the length of the lease with each key. The time at which a lease ends is known
 * only here, in memory and in monotonic time. A restart begins every lease anew, so a key may stay
 * too long, but is never deleted too early.
 */
#pragma once

#include "base/clock.h"
#include "base/heap.h"
#include "store/keys.h"

struct leases {
    struct keys by_key; /* owns struct lease */
    struct heap by_end; /* pins the same structs, ordered by when they end */
};

#define LEASES_NULL                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

/** leases_deinit() - forget all. Idempotent. */
void leases_deinit(struct leases *l);

/**
 * leases_set() - @key's lease begins at @now
 * @ttl_seconds:	0: the key has no lease any more
 *
 * Return: 0 or -ENOMEM.
 */
int leases_set(struct leases *l, const char *key, uint32_t ttl_seconds, nsec_t now);

/** leases_keep() - begin the lease of @key anew; false if it has none. */
bool leases_keep(struct leases *l, const char *key, nsec_t now);

/** leases_due() - when the next lease ends; NSEC_NEVER if there is none. */
nsec_t leases_due(const struct leases *l);

/**
 * leases_ended() - the keys whose lease has ended by @now, in byte order
 * @ret:	room for @cap texts, borrowed until their leases are set anew
 *
 * Return: how many, at most @cap.
 */
size_t leases_ended(const struct leases *l, nsec_t now, const char **ret, size_t cap);
