/*
 * clock.h - time as a number.
 *
 * Everything above the I/O line takes `now` as an argument; the loop reads the
 * clock (os/clock.h) once per turn and passes it down.
 */
#pragma once

#include <stdint.h>

/** Nanoseconds. Monotonic, with an arbitrary start, unless the name says `wall`. */
typedef int64_t nsec_t;

#define NSEC_PER_USEC ((nsec_t)1000)
#define NSEC_PER_MSEC ((nsec_t)1000000)
#define NSEC_PER_SEC  ((nsec_t)1000000000)

/** A deadline that never comes. */
#define NSEC_NEVER INT64_MAX

static inline nsec_t nsec_min(nsec_t a, nsec_t b)
{
    return a < b ? a : b;
}

static inline nsec_t nsec_max(nsec_t a, nsec_t b)
{
    return a > b ? a : b;
}

/** nsec_scatter() - between three and five quarters of @wait; @random: any number */
static inline nsec_t nsec_scatter(nsec_t wait, uint32_t random)
{
    return wait * 3 / 4 + (nsec_t)((uint64_t)(wait / 2) * (random >> 16) >> 16);
}
