/*
 * load.h - is a port quiet enough for one thread to carry both directions?
 *
 * A port is busy for QUIET_AFTER after one of its data threads had more than QUIET_PACKETS packets
 * in one turn, and quiet otherwise. While it is quiet the tx workers lend their queues to the rx
 * workers, which saves wake-ups: see tx.c and docs/DATAPLANE.md.
 *
 * Threads: any.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"

/** Packets in one turn that need no second thread. */
#define QUIET_PACKETS 4

/** Time without more than that in one turn, after which a port is quiet again. */
#define QUIET_AFTER (20 * NSEC_PER_MSEC)

struct load {
    _Atomic nsec_t busy_at; /* monotonic: when a worker last had many packets in one turn */
};

/** load_count() - the calling worker has handled @n packets in one turn, at @now. */
static inline void load_count(struct load *l, unsigned n, nsec_t now)
{
    /* Not at every turn: all workers share the cache line. */
    if (n > QUIET_PACKETS &&
        now - atomic_load_explicit(&l->busy_at, memory_order_relaxed) > NSEC_PER_MSEC)
        atomic_store_explicit(&l->busy_at, now, memory_order_relaxed);
}

/** load_is_quiet() - has no worker had many packets at once for QUIET_AFTER? */
static inline bool load_is_quiet(const struct load *l, nsec_t now)
{
    return now - atomic_load_explicit(&l->busy_at, memory_order_relaxed) > QUIET_AFTER;
}
