/*
 * pace.h - so many at once, and then one each so often: a token bucket.
 *
 * Kept as the time at which it will be full again, so that there is nothing to
 * fill it up by the clock, and zeroes are a full one.
 *
 * Pure: no clock.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

struct pace {
    nsec_t full_at; /* in the past: it is full */
};

#define PACE_NULL {0}

/**
 * pace_take() - may there be one more now?
 * @each:	how long one takes to come back
 * @burst:	how many there may be at once, at least 1
 */
static inline bool pace_take(struct pace *p, nsec_t now, nsec_t each, unsigned burst)
{
    nsec_t full_at = p->full_at > now ? p->full_at : now;

    if (full_at - now > (burst - 1) * each)
        return false;
    p->full_at = full_at + each;
    return true;
}
