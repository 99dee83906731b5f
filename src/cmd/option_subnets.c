/* option_subnets.c - see option_subnets.h. Apart from options.c, which weft-wg has, too. */
#include "cmd/option_subnets.h"

#include "cmd/options.h"
#include "mesh/subnets.h"

int option_subnets(const struct option *o, const char *text, struct err *e)
{
    return subnets_parse(o->field, text, e);
}
