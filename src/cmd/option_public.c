/* option_public.c - see option_public.h. */
#include "cmd/option_public.h"

#include "base/err.h"
#include "cmd/options.h"
#include "hub/networks/publics.h"

int option_public(const struct option *o, const char *text, struct err *e)
{
    struct hub_public place;
    struct err why = ERR_NULL;
    /* The port that is meant where none is said is decided later. */
    int r = hub_public_parse(&place, text, 1, &why);

    if (r != 0)
        return err_set(e, r, "%s %s", o->name, err_text(&why));
    return option_append(o, text, e);
}
