/* option_subnets.c - see option_subnets.h. Apart from options.c, which weft-wg has, too. */
#include "cmd/option_subnets.h"

#include <stdio.h>

#include "cmd/options.h"
#include "mesh/object/subnets.h"

int option_subnets(const struct option *o, const char *text, struct err *e)
{
    return subnets_parse(o->field, text, e);
}

void option_subnets_print(const char *node, const struct subnets *routes)
{
    char text[IP_PREFIX_TEXT_MAX];

    (void)printf("weft node set %s", node);
    for (unsigned i = 0; i < routes->n; i++)
        (void)printf(" --route %s", ip_prefix_format(&routes->items[i], text));
}
