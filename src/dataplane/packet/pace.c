/* pace.c - see pace.h. */
#include "packet/pace.h"

/* At TRAFFIC_RATE_MIN a run of 64 KiB is 5.2 s, so this never overflows for what one call sends. */
#define BYTES_MAX (UINT64_C(1) << 24)

void pace_set(struct pace *p, uint64_t bits_per_s)
{
    atomic_store_explicit(&p->at, 0, memory_order_relaxed);
    atomic_store_explicit(&p->bits_per_s, bits_per_s, memory_order_relaxed);
}

nsec_t pace_due(const struct pace *p, nsec_t now)
{
    if (pace_rate(p) == 0)
        return now;
    return atomic_load_explicit(&p->at, memory_order_relaxed);
}

void pace_take(struct pace *p, uint64_t n_bytes, nsec_t now)
{
    uint64_t rate = pace_rate(p);
    nsec_t at = atomic_load_explicit(&p->at, memory_order_relaxed);
    nsec_t next;

    if (rate == 0)
        return;
    if (n_bytes > BYTES_MAX)
        n_bytes = BYTES_MAX;
    do {
        next =
            nsec_max(at, now - PACE_BURST) + (nsec_t)(n_bytes * 8 * (uint64_t)NSEC_PER_SEC / rate);
    } while (!atomic_compare_exchange_weak_explicit(
        &p->at, &at, next, memory_order_relaxed, memory_order_relaxed));
}
