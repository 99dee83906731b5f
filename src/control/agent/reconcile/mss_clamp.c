/* mss_clamp.c - see mss_clamp.h. */
#include "agent/reconcile/mss_clamp.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "net/netlink/nft.h"

#define FAMILY    "inet"
#define TABLE_MAX (sizeof("weft_mss_") + IFNAMSIZ)

static const char *table_name(const char *interface, char buf[static TABLE_MAX])
{
    (void)snprintf(buf, TABLE_MAX, "weft_mss_%.*s", IFNAMSIZ - 1, interface);
    return buf;
}

int mss_clamp_check_name(const char *interface, struct err *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

    if (interface[strspn(interface, allowed)] == '\0')
        return 0;
    return err_set(e, -EINVAL,
        "the packet filter takes no interface \"%s\", only letters, digits, '_', '.', '-'",
        interface);
}

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
    char table[TABLE_MAX];
    int r = mss_clamp_check_name(interface, e);

    if (r < 0)
        return r;
    str_add(&body, "chain forward {\ntype filter hook forward priority mangle;\n");
    add_rule(&body, "oifname", interface);
    add_rule(&body, "iifname", interface);
    str_add(&body, "}");
    if (body.failed)
        return err_set(e, -ENOMEM, "no memory for the packet filter");
    return nft_replace_table(FAMILY, table_name(interface, table), str_text(&body), e);
}

int mss_clamp_remove(const char *interface, struct err *e)
{
    char table[TABLE_MAX];
    int r = mss_clamp_check_name(interface, e);

    if (r < 0)
        return r;
    return nft_remove_table(FAMILY, table_name(interface, table), e);
}
