/*
 * rtt.h - how the round trips of the last minutes were spread: median, 99th percentile and jitter.
 *
 * Theory of operation. Each answered ping of the path in use is a sample. A track keeps the last
 * RTT_SAMPLES of them, and of these none that is older than RTT_FOR. While packets flow a path is
 * pinged twice a second, so these are two minutes; an idle path has some ten samples in ten
 * minutes. Sorting takes longer than adding does, so the spread is found anew each few seconds at
 * most, and reading it costs nothing. What has had no sample for RTT_STALE is known no more.
 *
 * What is usual of a path is the median of the last hour or so. Where a line or a core is full,
 * round trips are as long as its queue, which says nothing of the path. So only those count that
 * were measured while the node itself moved little, and a path has become longer if for some
 * minutes each of them took twice as long and more than usual. Meanwhile nothing is added to what
 * is usual; after an hour it is the new one.
 *
 * Pure: round trips and times in, the spread out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/rate_memory.h"

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
    uint32_t usual_us; /* the median of the last hour or so, while the node moved little; 0: not
                          known */
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

/** Round trips take longer than usual. All zero: they do not, or it is not known. */
struct rtt_longer {
    nsec_t since;      /* monotonic: each since then took much longer */
    uint32_t least_us; /* of them */
    uint32_t usual_us;
};

/** So long, and so many of them. */
#define RTT_LONGER_FOR (120 * NSEC_PER_SEC)
#define RTT_LONGER_MIN 4

/** What is usual. All zero: nothing is known. */
struct rtt_usual {
    struct rate_memory memory; /* ns; each counts for the time until the next one */
    unsigned n;                /* that were seen, up to as many as it takes to know */
    nsec_t added_at;           /* the last one that counts */
    nsec_t seen_at;            /* the last one, while the node moved little */
    nsec_t longer_since;       /* each since then takes much longer than usual; 0: it does not */
    uint32_t least_us;         /* of those since then ... */
    unsigned n_longer;         /* ... and how many they are */
};

struct rtt_track {
    uint32_t us[RTT_SAMPLES];   /* a ring */
    uint32_t at_s[RTT_SAMPLES]; /* monotonic: when each came */
    unsigned next;              /* place of the next one */
    unsigned n;                 /* how many there are */
    uint32_t pair;              /* whose they are; the caller's */
    struct rtt_spread spread;   /* of those that counted at @spread_at */
    nsec_t spread_at;           /* 0: never */
    nsec_t added_at;            /* time of the last sample */
    struct rtt_usual usual;
};

/** rtt_track_add() - a ping was answered after @rtt. @is_calm: while the node moved little. */
void rtt_track_add(struct rtt_track *t, nsec_t rtt, bool is_calm, nsec_t now);

/** rtt_track_spread() - of the last minutes; all zero: not known, or not known any more. @t: NULL:
 * nothing was measured. */
struct rtt_spread rtt_track_spread(const struct rtt_track *t, nsec_t now);

/** rtt_track_longer() - do they take longer than usual? @t: NULL: nothing was measured. */
struct rtt_longer rtt_track_longer(const struct rtt_track *t, nsec_t now);
