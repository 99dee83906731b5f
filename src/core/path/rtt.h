/*
 * rtt.h - how the round trips of the last minutes were spread: median, 99th percentile and jitter.
 *
 * Theory of operation. Each answered ping of the path in use is a sample. A track keeps the last
 * RTT_SAMPLES of them, and of these none that is older than RTT_FOR. While packets flow a path is
 * pinged twice a second, so these are two minutes; an idle path has some ten samples in ten
 * minutes. Sorting takes longer than adding does, so the spread is found anew each few seconds at
 * most, and reading it costs nothing. What has had no sample for RTT_STALE is known no more.
 *
 * Pure: round trips and times in, the spread out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** Samples that a track keeps at most. */
#define RTT_SAMPLES 256

/** With fewer samples than these nothing is said. */
#define RTT_SAMPLES_MIN 8

/** Samples that are older do not count. */
#define RTT_FOR (600 * NSEC_PER_SEC)

/** A path that is alive has a sample each minute at least. Without one for so long nothing is
 * known.
 */
#define RTT_STALE (150 * NSEC_PER_SEC)

/** Round trips over some time. All zero: nothing is known. */
struct rtt_spread {
    uint32_t p50_us;    /* half of them took no longer */
    uint32_t p99_us;    /* 99 of 100 took no longer; of few samples, the longest */
    uint32_t jitter_us; /* by how much one differed from the one before, on average */
    uint32_t samples;
};

/** rtt_spread_is_known() - are there enough samples? */
static inline bool rtt_spread_is_known(const struct rtt_spread *s)
{
    return s->samples >= RTT_SAMPLES_MIN;
}

/**
 * rtt_spread_differs() - is it another one, by more than round trips vary from minute to minute?
 *
 * By that a figure that was told is told again.
 */
bool rtt_spread_differs(const struct rtt_spread *a, const struct rtt_spread *b);

struct rtt_track {
    uint32_t us[RTT_SAMPLES];   /* a ring */
    uint32_t at_s[RTT_SAMPLES]; /* monotonic: when each came */
    unsigned next;              /* place of the next one */
    unsigned n;                 /* how many there are */
    uint32_t pair;              /* whose they are; the caller's */
    struct rtt_spread spread;   /* of those that counted at @spread_at */
    nsec_t spread_at;           /* 0: never */
    nsec_t added_at;            /* time of the last sample */
};

/** rtt_track_add() - a ping was answered after @rtt. */
void rtt_track_add(struct rtt_track *t, nsec_t rtt, nsec_t now);

/** rtt_track_spread() - of the last minutes; all zero: not known, or not known any more. @t: NULL:
 * nothing was measured. */
struct rtt_spread rtt_track_spread(const struct rtt_track *t, nsec_t now);
