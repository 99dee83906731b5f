/* mss_clamp.c - see mss_clamp.h. */
#include "agent/reconcile/mss_clamp.h"

#include <errno.h>

#include "agent/reconcile/filter_table.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

#define TABLE "weft_mss"

/* In nft "rt mtu" is the smaller MTU of the routes to both ends, and the rule never raises the MSS
 * that was announced. */
static void add_rule(struct str *out, const char *direction, const char *interface)
{
    str_addf(out, "%s \"%s\" tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu\n",
        direction, interface);
}

int mss_clamp_put(const char *interface, struct err *e)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;

    str_add(&body, "chain forward {\ntype filter hook forward priority mangle;\n");
    add_rule(&body, "oifname", interface);
    add_rule(&body, "iifname", interface);
    str_add(&body, "}");
    if (body.failed)
        return err_set(e, -ENOMEM, "no memory for the packet filter");
    return filter_table_replace(TABLE, interface, str_text(&body), e);
}

int mss_clamp_remove(const char *interface, struct err *e)
{
    return filter_table_remove(TABLE, interface, e);
}
