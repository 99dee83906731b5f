/* tai64n.c - see tai64n.h. */
#include "tai64n.h"

#include <string.h>

#include "base/bytes.h"

/* TAI was 10 s ahead of UTC in 1970; leap seconds since then are left out, as everybody does. */
#define TAI64_EPOCH (UINT64_C(0x4000000000000000) + 10)

/* The greatest power of two that keeps WG_INITIATIONS_PER_SECOND timestamps in a second apart. */
#define TAI64N_STEP (1u << 24)

static struct tai64n pack(uint64_t seconds, uint32_t nanoseconds)
{
    struct be64 s = be64_make(seconds);
    struct be32 ns = be32_make(nanoseconds);
    struct tai64n t;

    memcpy(t.b, &s, sizeof(s));
    memcpy(t.b + sizeof(s), &ns, sizeof(ns));
    return t;
}

static struct tai64n step_after(const struct tai64n *t)
{
    struct be64 s;
    struct be32 ns;
    uint32_t next;

    memcpy(&s, t->b, sizeof(s));
    memcpy(&ns, t->b + sizeof(s), sizeof(ns));
    next = be32_get(ns) + TAI64N_STEP;
    if (next >= NSEC_PER_SEC)
        return pack(be64_get(s) + 1, 0);
    return pack(be64_get(s), next);
}

struct tai64n tai64n_next(struct tai64n *last, nsec_t wall)
{
    uint64_t ns = (uint64_t)nsec_max(wall, 0);
    struct tai64n t = pack(TAI64_EPOCH + ns / (uint64_t)NSEC_PER_SEC,
        (uint32_t)(ns % (uint64_t)NSEC_PER_SEC) & ~(TAI64N_STEP - 1));

    if (tai64n_compare(&t, last) <= 0)
        t = step_after(last);
    *last = t;
    return t;
}

nsec_t tai64n_bound(const struct tai64n_bounds *b, nsec_t wall)
{
    wall = nsec_min(wall, b->upto);
    if (b->above > 0 && b->above < NSEC_NEVER - TAI64N_STEP)
        wall = nsec_max(wall, b->above + TAI64N_STEP);
    return wall;
}

nsec_t tai64n_wall(const struct tai64n *t)
{
    struct be64 s;
    struct be32 ns;
    uint64_t seconds;

    memcpy(&s, t->b, sizeof(s));
    memcpy(&ns, t->b + sizeof(s), sizeof(ns));
    seconds = be64_get(s);
    if (seconds < TAI64_EPOCH)
        return 0;
    seconds -= TAI64_EPOCH;
    if (seconds >= (uint64_t)(NSEC_NEVER / NSEC_PER_SEC))
        return NSEC_NEVER;
    return (nsec_t)seconds * NSEC_PER_SEC + (nsec_t)be32_get(ns);
}

int tai64n_compare(const struct tai64n *a, const struct tai64n *b)
{
    return memcmp(a->b, b->b, sizeof(a->b));
}
