/* owner.c - see owner.h. */
#include "owner.h"

enum owner_wish owner_decide(const struct owner_facts *f)
{
    bool is_alive = f->stored_at > 0 && f->now - f->stored_at < OWNER_SERVE_FOR;
    bool is_late = f->now - f->heard_at >= OWNER_TAKE_AFTER;

    /* Who cannot write could not keep what it takes, either. */
    if (!is_alive)
        return OWNER_WAIT;
    if (!f->has_record)
        return f->is_maker || is_late ? OWNER_TAKE : OWNER_WAIT;
    if (f->is_own)
        return OWNER_SERVE;
    return f->is_nobodys || is_late ? OWNER_TAKE : OWNER_WAIT;
}
