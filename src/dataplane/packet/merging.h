/*
 * merging.h - do datagrams of one flow arrive merged, as UDP_GRO would have them?
 *
 * That the kernel takes the option says nothing of the line: a network card, its driver and the
 * features that are set decide. So a receiving thread counts the datagrams that came right behind
 * one of the same flow and size, in a run with it or apart. When they come slowly there is nothing
 * to merge, so it takes many of them in a short time to conclude anything.
 *
 * Pure: runs and times in. A window is its thread's; what was concluded any thread may read.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "net/socket/udp_batch.h"

/** So many that followed another, within such a time, are enough to conclude something. */
#define MERGING_ENOUGH 8192
#define MERGING_WITHIN NSEC_PER_SEC
/** What was concluded holds for so long. */
#define MERGING_HOLDS (600 * NSEC_PER_SEC)
/** For so long it is not replaced by what another interface shows, if there they come merged. */
#define MERGING_STAYS (60 * NSEC_PER_SEC)
/** Below that share they come one by one. */
#define MERGING_PERCENT_LEAST 2

/** What one thread has counted. All zero: nothing. */
struct merging_window {
    nsec_t since;
    uint32_t ifindex; /* of all that is counted */
    uint32_t n_apart;
    uint32_t n_merged;
};

/** What was concluded last. All zero: nothing yet. */
struct merging {
    _Atomic uint64_t seen; /* the interface's index, shifted by 32, and the share in per cent */
    _Atomic nsec_t at;     /* monotonic; 0: nothing was */
};

/** The same, as it is read. */
struct merging_seen {
    uint32_t ifindex; /* of the interface that they came by; 0: nothing is known */
    uint32_t percent; /* of those that followed another, this share came in a run with it */
    nsec_t age;       /* since it was seen */
};

/** merging_take() - count the @n @runs of one receive call, and conclude when there are enough. */
void merging_take(struct merging *m, struct merging_window *w, const struct udp_run *runs,
    unsigned n, nsec_t now);

/** merging_read() - what is known at @now. */
struct merging_seen merging_read(const struct merging *m, nsec_t now);

/** merging_is_low() - do datagrams come one by one, as far as is known? */
bool merging_is_low(const struct merging_seen *seen);
