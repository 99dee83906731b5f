/*
 * path_slot.c - when both ends of an edge try again: see path_checks.c.
 */
#include "path/path_internal.h"
#include "path/paths_internal.h"

/* Without a relay a pair that has no direct path does not talk at all; and one that has left a
 * direct path for a better relay may have done so in a bad moment. */
#define SLOT_PERIOD_URGENT (5 * NSEC_PER_SEC)
#define BACKOFF_URGENT     2
/* An edge without traffic uses at least each eighth slot. */
#define BACKOFF_MAX 3
/* For this time after traffic an edge is taken to be in use. */
#define INTEREST (60 * NSEC_PER_SEC)

bool path__has_interest(const struct path *pp, nsec_t now)
{
    return pp->traffic.moved_at != 0 && now - pp->traffic.moved_at < INTEREST;
}

static nsec_t slot_after(const struct path *pp, nsec_t period, nsec_t stride, nsec_t now)
{
    nsec_t shared = now + pp->owner->clock_offset;
    nsec_t into = (shared - pp->slot.phase % period) % stride;

    if (into < 0)
        into += stride;
    return now + stride - into;
}

nsec_t path__slot_after(const struct path *pp, unsigned skip, nsec_t now)
{
    return slot_after(pp, PATH_SLOT_PERIOD, PATH_SLOT_PERIOD << skip, now);
}

static bool is_urgent(const struct path *pp, nsec_t now)
{
    return pp->choice.pair == 0 &&
           (!pp->owner->relay_is_usable || (pp->choice.is_worse && path__has_interest(pp, now)));
}

void path__slot_plan(struct path *pp, nsec_t now)
{
    bool urgent = is_urgent(pp, now);
    nsec_t period = urgent ? SLOT_PERIOD_URGENT : PATH_SLOT_PERIOD;
    unsigned skip = urgent && pp->slot.backoff > BACKOFF_URGENT ? BACKOFF_URGENT : pp->slot.backoff;

    if (!path__wants_direct(pp) || !pp->has_side)
        pp->slot.next_at = NSEC_NEVER;
    else
        pp->slot.next_at = slot_after(pp, period, period << skip, now);
}

void path__slot_restart(struct path *pp, nsec_t now)
{
    pp->slot.backoff = 0;
    path__slot_plan(pp, now);
}

bool path__slot_pass(struct path *pp, nsec_t now)
{
    if (path__has_interest(pp, now))
        pp->slot.backoff = 0;
    else if (pp->slot.backoff < BACKOFF_MAX)
        pp->slot.backoff++;
    return pp->slot.backoff == BACKOFF_MAX;
}
