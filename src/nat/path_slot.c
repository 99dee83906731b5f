/*
 * path_slot.c - when both ends of an edge try again: see path_round.c.
 */
#include "nat/path_internal.h"
#include "nat/paths_internal.h"

/* Without a relay a pair that has no direct path does not talk at all; and one that has left a
 * direct path for a better relay may have done so in a bad moment. */
#define SLOT_PERIOD_URGENT (10 * NSEC_PER_SEC)
#define BACKOFF_URGENT     2
/* An edge had traffic of late. */
#define INTEREST (60 * NSEC_PER_SEC)

bool path__has_interest(const struct path *e, nsec_t now)
{
    return e->traffic_at != 0 && now - e->traffic_at < INTEREST;
}

static nsec_t slot_after(const struct path *e, nsec_t period, nsec_t stride, nsec_t now)
{
    nsec_t shared = now + e->owner->clock_offset;
    nsec_t into = (shared - e->slot_phase % period) % stride;

    if (into < 0)
        into += stride;
    return now + stride - into;
}

nsec_t path__slot_after(const struct path *e, unsigned skip, nsec_t now)
{
    return slot_after(e, PATH_SLOT_PERIOD, PATH_SLOT_PERIOD << skip, now);
}

static bool is_urgent(const struct path *e, nsec_t now)
{
    return e->chosen == 0 &&
           (!e->owner->relay_is_usable || (e->is_worse && path__has_interest(e, now)));
}

void path__slot_plan(struct path *e, nsec_t now)
{
    bool urgent = is_urgent(e, now);
    nsec_t period = urgent ? SLOT_PERIOD_URGENT : PATH_SLOT_PERIOD;
    unsigned skip = urgent && e->backoff > BACKOFF_URGENT ? BACKOFF_URGENT : e->backoff;

    if (!path__wants_direct(e) || !e->has_side)
        e->slot = NSEC_NEVER;
    else
        e->slot = slot_after(e, period, period << skip, now);
}
