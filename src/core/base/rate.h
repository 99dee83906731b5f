/*
 * rate.h - token buckets: one, or one for each source address.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

/*
 * So much at once, and then so much a second: a token bucket.
 *
 * Kept as the time at which the bucket will be full again if nothing more is taken, as GCRA does
 * (ITU-T I.371): there is nothing to fill it up by the clock, and zeroes are a full one. What is
 * taken costs time, and the bucket holds as much as may be taken at once.
 *
 * Pure: no clock.
 */

struct rate {
    nsec_t full_at; /* in the past: it is full */
};

/** rate_is_spent() - is more than @burst taken and not come back? */
static inline bool rate_is_spent(const struct rate *r, nsec_t now, nsec_t burst)
{
    return nsec_max(r->full_at, now) - now > burst;
}

/** rate_pay() - take @cost, whether it is there or not. */
static inline void rate_pay(struct rate *r, nsec_t now, nsec_t cost)
{
    r->full_at = nsec_max(r->full_at, now) + cost;
}

/** rate_give_back() - @cost was paid for what did not come about. */
static inline void rate_give_back(struct rate *r, nsec_t cost)
{
    r->full_at -= cost;
}

/** rate_free_at() - when no more than @burst will be taken: @now, or later. */
static inline nsec_t rate_free_at(const struct rate *r, nsec_t now, nsec_t burst)
{
    return nsec_max(r->full_at - burst, now);
}

/**
 * rate_take() - may there be one more now?
 * @each:	how long one takes to come back
 * @burst:	how many there may be at once, at least 1
 */
static inline bool rate_take(struct rate *r, nsec_t now, nsec_t each, unsigned burst)
{
    if (rate_is_spent(r, now, (nsec_t)(burst - 1) * each))
        return false;
    rate_pay(r, now, each);
    return true;
}

/*
 * A token bucket for each source address: whoever limits strangers has one of these.
 *
 * A source is an ip_addr_block(), which one host may have whole.
 *
 * Theory of operation. A set-associative table: a source's hash picks a set of
 * RATELIMIT_ASSOCIATIVITY entries. An entry whose bucket is full again is as good as absent, so it
 * is reused. When all entries of a set are busy, a newcomer that asks beforehand is refused; one
 * that pays afterwards takes the place of the entry that is nearest to being full. No sweep, and a
 * bound that no stranger can move.
 *
 * Threads: its owner's.
 */

#define RATELIMIT_ASSOCIATIVITY 8
#define RATELIMIT_SETS          512

/** One source's bucket. */
struct ratelimit_entry {
    uint64_t source; /* its block, hashed under the seed */
    struct rate rate;
};

struct ratelimit {
    nsec_t each;    /* how long one takes to come back */
    unsigned burst; /* how many there may be at once */
    uint64_t seed;  /* secret, for hash_bytes() */
    struct ratelimit_entry
        *entries; /* owns RATELIMIT_SETS * RATELIMIT_ASSOCIATIVITY; NULL until first used */
};

/** ratelimit_init() - @each, @burst: as of rate_take(); @seed: random, unknown to strangers. No
 * allocation yet. */
void ratelimit_init(struct ratelimit *rl, nsec_t each, unsigned burst, uint64_t seed);

/** ratelimit_deinit() - release. */
void ratelimit_deinit(struct ratelimit *rl);

/**
 * ratelimit_allow() - take one token of @src
 *
 * Return: false when its bucket is empty, or when the table is full of busier
 * sources or cannot be had.
 */
bool ratelimit_allow(struct ratelimit *rl, const struct ip_addr *src, nsec_t now);

/** ratelimit_is_spent() - is there no token for @src? Nothing is taken. An address of none, as
 * clients of a unix socket have it, is nobody's, and always has one. */
bool ratelimit_is_spent(const struct ratelimit *rl, const struct ip_addr *src, nsec_t now);

/** ratelimit_pay() - take a token of @src, whether it is there or not; without memory, or of an
 * address of none, none. */
void ratelimit_pay(struct ratelimit *rl, const struct ip_addr *src, nsec_t now);
