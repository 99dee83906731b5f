/* rtt.c - see rtt.h. */
#include "path/rtt.h"

#include <stdlib.h>

/* Least time between two looks at all samples. */
#define SPREAD_EACH (5 * NSEC_PER_SEC)

/* Round trips that differ by less are the same. */
#define LITTLE_US 1000

/* A round trip of more is no measurement. */
#define LONGEST (60 * NSEC_PER_SEC)

/* What is usual is an hour of entries, each of this time. One that comes after a longer time has
 * several. */
#define USUAL_EACH     (3 * NSEC_PER_SEC)
#define USUAL_EACH_MAX 20

/* It is known after so many, which stand for a minute at least. */
#define USUAL_MIN     8
#define USUAL_ENTRIES 20

/* Twice as long and more than this longer is much longer. */
#define MUCH (5 * NSEC_PER_MSEC)

/* After so long it is usual. */
#define LONGER_MAX (3600 * NSEC_PER_SEC)

/* What was before so long a silence says nothing of what is now. */
#define GAP_MAX (300 * NSEC_PER_SEC)

static uint32_t difference(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

bool rtt_spread_differs(const struct rtt_spread *a, const struct rtt_spread *b)
{
    uint32_t p50 = greater(a->p50_us, b->p50_us);
    uint32_t p99 = greater(a->p99_us, b->p99_us);

    if (rtt_spread_is_known(a) != rtt_spread_is_known(b) ||
        (a->usual_us == 0) != (b->usual_us == 0) ||
        difference(a->usual_us, b->usual_us) >
            greater(LITTLE_US, greater(a->usual_us, b->usual_us) / 4))
        return true;
    return difference(a->p50_us, b->p50_us) > greater(LITTLE_US, p50 / 4) ||
           difference(a->p99_us, b->p99_us) > greater(2 * LITTLE_US, p99 / 2);
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Of all samples that are not too old. */
static struct rtt_spread find_spread(const struct rtt_track *t, nsec_t now)
{
    uint32_t since_s = (uint32_t)(nsec_max(now - RTT_FOR, 0) / NSEC_PER_SEC);
    struct rtt_spread s = {.samples = 0};
    uint32_t sorted[RTT_SAMPLES];
    uint64_t steps = 0;
    uint32_t n = 0;

    for (unsigned i = 0; i < t->n; i++) {
        unsigned place = (t->next + RTT_SAMPLES - t->n + i) % RTT_SAMPLES;

        if (t->at_s[place] < since_s)
            continue;
        if (n > 0)
            steps += difference(t->us[place], sorted[n - 1]);
        sorted[n++] = t->us[place];
    }
    if (n < RTT_SAMPLES_MIN)
        return s;
    qsort(sorted, n, sizeof(*sorted), compare);
    s.samples = n;
    s.p50_us = sorted[(n - 1) / 2];
    s.p99_us = sorted[(n * 99 + 99) / 100 - 1];
    s.jitter_us = (uint32_t)(steps / (n - 1));
    return s;
}

/* ---- what is usual -------------------------------------------------------------------------- */

/* 0: not known. */
static nsec_t usual_of(const struct rtt_usual *u)
{
    return u->n >= USUAL_MIN && u->memory.total >= USUAL_ENTRIES
               ? (nsec_t)rate_memory_median(&u->memory)
               : 0;
}

static void remember(struct rtt_usual *u, nsec_t rtt, nsec_t now)
{
    nsec_t since = now - u->added_at;
    nsec_t entries = u->added_at == 0 ? 1 : nsec_min(since / USUAL_EACH, USUAL_EACH_MAX);

    for (nsec_t i = 0; i < entries; i++)
        rate_memory_add(&u->memory, (uint64_t)rtt);
    if (entries > 0)
        u->added_at = now;
    if (u->n < USUAL_MIN)
        u->n++;
}

/* It took much longer than usual. */
static void count_longer(struct rtt_usual *u, nsec_t rtt, nsec_t now)
{
    uint32_t us = (uint32_t)(rtt / NSEC_PER_USEC);

    if (u->longer_since == 0) {
        u->longer_since = now;
        u->least_us = us;
        u->n_longer = 0;
    }
    u->least_us = us < u->least_us ? us : u->least_us;
    u->n_longer++;
}

static void usual_add(struct rtt_usual *u, nsec_t rtt, nsec_t now)
{
    nsec_t usual = usual_of(u);
    bool is_longer = usual > 0 && rtt >= 2 * usual && rtt >= usual + MUCH;

    if (u->longer_since != 0 && now - u->longer_since > LONGER_MAX) {
        *u = (struct rtt_usual){.n = 0};
        is_longer = false;
    }
    if (!is_longer || now - u->seen_at > GAP_MAX)
        u->longer_since = 0;
    u->seen_at = now;
    if (is_longer)
        count_longer(u, rtt, now);
    else
        remember(u, rtt, now);
}

struct rtt_longer rtt_track_longer(const struct rtt_track *t, nsec_t now)
{
    const struct rtt_usual *u = t ? &t->usual : NULL;

    if (!u || u->longer_since == 0 || now - u->longer_since < RTT_LONGER_FOR ||
        u->n_longer < RTT_LONGER_MIN || now - u->seen_at >= RTT_STALE)
        return (struct rtt_longer){.since = 0};
    return (struct rtt_longer){.since = u->longer_since,
        .least_us = u->least_us,
        .usual_us = (uint32_t)(usual_of(u) / NSEC_PER_USEC)};
}

/* ---- a track -------------------------------------------------------------------------------- */

void rtt_track_add(struct rtt_track *t, nsec_t rtt, bool is_calm, nsec_t now)
{
    nsec_t bounded = nsec_min(nsec_max(rtt, NSEC_PER_USEC), LONGEST);

    if (is_calm)
        usual_add(&t->usual, bounded, now);
    t->us[t->next] = (uint32_t)(bounded / NSEC_PER_USEC);
    t->at_s[t->next] = (uint32_t)(now / NSEC_PER_SEC);
    t->next = (t->next + 1) % RTT_SAMPLES;
    t->n += t->n < RTT_SAMPLES;
    t->added_at = now;
    if (t->spread_at != 0 && now - t->spread_at < SPREAD_EACH)
        return;
    t->spread = find_spread(t, now);
    t->spread_at = rtt_spread_is_known(&t->spread) ? now : 0;
}

struct rtt_spread rtt_track_spread(const struct rtt_track *t, nsec_t now)
{
    struct rtt_spread s = {.samples = 0};

    if (!t || t->n == 0 || now - t->added_at >= RTT_STALE || !rtt_spread_is_known(&t->spread))
        return s;
    s = t->spread;
    s.usual_us = (uint32_t)(usual_of(&t->usual) / NSEC_PER_USEC);
    return s;
}
