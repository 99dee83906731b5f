/* rtt.c - see rtt.h. */
#include "path/rtt.h"

#include <stdlib.h>

/* Least time between two looks at all samples. */
#define SPREAD_EACH (5 * NSEC_PER_SEC)

/* Round trips that differ by less are the same. */
#define LITTLE_US 1000

/* A round trip of more is no measurement. */
#define LONGEST (60 * NSEC_PER_SEC)

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

    if (rtt_spread_is_known(a) != rtt_spread_is_known(b))
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

void rtt_track_add(struct rtt_track *t, nsec_t rtt, nsec_t now)
{
    nsec_t bounded = nsec_min(nsec_max(rtt, NSEC_PER_USEC), LONGEST);

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
    static const struct rtt_spread unknown;

    return t && t->n > 0 && now - t->added_at < RTT_STALE ? t->spread : unknown;
}
