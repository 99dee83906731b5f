/*
 * ratelimit.h - a token bucket per source address.
 *
 * For handshake messages whose source is proved by a cookie: 20 a second, 5 at
 * once, as the Linux kernel has it. A source is an IPv4 address or an IPv6 /64,
 * which one host can have whole.
 *
 * Theory of operation. A set-associative table: a source's hash picks a set of
 * RATELIMIT_WAYS entries. An entry whose bucket is full again is as good as
 * absent, so it is reused; when all entries of a set are busy a newcomer is
 * refused. No allocation, no sweep, and a bound that no stranger can move.
 *
 * Threads: control thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/rate.h"

#define RATELIMIT_PER_SECOND 20
#define RATELIMIT_BURST      5
#define RATELIMIT_COST       (NSEC_PER_SEC / RATELIMIT_PER_SECOND)
#define RATELIMIT_WAYS       8
#define RATELIMIT_SETS       512

/** One source's bucket. */
struct ratelimit_entry {
    uint64_t source; /* the v4 address or the v6 prefix, hashed under the seed */
    struct rate rate;
};

struct ratelimit {
    uint64_t seed; /* secret, for hash_bytes() */
    struct ratelimit_entry
        *entries; /* owns RATELIMIT_SETS * RATELIMIT_WAYS; NULL until first used */
};

/** ratelimit_init() - @seed: random, unknown to strangers. No allocation yet. */
void ratelimit_init(struct ratelimit *rl, uint64_t seed);

/** ratelimit_deinit() - release. Idempotent. */
void ratelimit_deinit(struct ratelimit *rl);

/**
 * ratelimit_allow() - take one token of @src
 *
 * Return: false when its bucket is empty, or when the table is full of busier
 * sources or cannot be had.
 */
bool ratelimit_allow(struct ratelimit *rl, const struct ip_addr *src, nsec_t now);
