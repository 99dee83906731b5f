/*
 * rate.h - so much at once, and then so much a second: a token bucket.
 *
 * Kept as the time at which the bucket will be full again if nothing more is taken, as GCRA does
 * (ITU-T I.371): there is nothing to fill it up by the clock, and zeroes are a full one. What is
 * taken costs time, and the bucket holds as much as may be taken at once.
 *
 * Pure: no clock.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

struct rate {
    nsec_t full_at; /* in the past: it is full */
};

#define RATE_NULL                                                                                  \
    {                                                                                              \
        0                                                                                          \
    }

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
