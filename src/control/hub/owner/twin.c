/* twin.c - see twin.h. */
#include "twin.h"

#include "hub/owner/owner.h"

enum twin_verdict twin_hear(struct twin *t, uint64_t run, nsec_t stored_at, nsec_t now)
{
    bool is_new = run != t->other;

    if (run == t->own)
        t->has_begun = true;
    else if (!t->has_begun)
        t->former = run;
    if (run == t->own || !t->has_begun)
        return TWIN_NONE;
    t->n_heard = is_new ? 1 : t->n_heard + 1;
    t->other = run;
    t->heard_at = now;
    if (stored_at != 0 && now - stored_at >= OWNER_TAKE_AFTER)
        return TWIN_REPLACED;
    if (run == t->former)
        return t->n_heard >= TWIN_FORMER_BEATS ? TWIN_IS_OLDER : TWIN_NONE;
    return is_new ? TWIN_NEW : TWIN_NONE;
}

bool twin_has_left(struct twin *t, nsec_t now)
{
    if (t->other == 0 || now - t->heard_at < OWNER_TAKE_AFTER)
        return false;
    t->other = 0;
    return true;
}
