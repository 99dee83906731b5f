/*
 * pace.h - a rate limit that several threads keep together.
 *
 * It is a clock of its own: each byte moves it on by the time that the byte takes at the rate, and
 * nothing is sent while it is ahead of the real one (the virtual scheduling form of the generic
 * cell rate algorithm, ITU-T I.371). One that fell behind, because there was nothing to send or
 * because a thread woke late, makes good for PACE_BURST at most; so timers that are late cost no
 * rate, and what follows a pause does not fill the queues behind us.
 *
 * No I/O; time is an argument. Threads: any.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** How much time that was not used may be made good. */
#define PACE_BURST (4 * NSEC_PER_MSEC)

struct pace {
    _Atomic uint64_t bits_per_s; /* 0: no limit */
    _Atomic nsec_t at;           /* the clock of its own */
};

/** pace_set() - @bits_per_s, as traffic_rate_is_allowed() allows; 0: no limit. What was sent before
 * counts no more. */
void pace_set(struct pace *p, uint64_t bits_per_s);

/** pace_rate() - in bit/s; 0: no limit. */
static inline uint64_t pace_rate(const struct pace *p)
{
    return atomic_load_explicit(&p->bits_per_s, memory_order_relaxed);
}

/** pace_due() - when something may be sent again; at most @now means at once. */
nsec_t pace_due(const struct pace *p, nsec_t now);

/** pace_take() - @n_bytes are sent at @now. */
void pace_take(struct pace *p, uint64_t n_bytes, nsec_t now);
