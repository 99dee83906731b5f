/* filter_table.c - see filter_table.h. */
#include "agent/reconcile/filter_table.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "net/netlink/nft.h"

#define FAMILY    "inet"
#define TABLE_MAX 64

static int make_name(
    char ret[static TABLE_MAX], const char *what, const char *interface, struct err *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

    if (interface[strspn(interface, allowed)] != '\0')
        return err_set(e, -EINVAL,
            "the packet filter takes no interface \"%s\", only letters, digits, '_', '.', '-'",
            interface);
    (void)snprintf(ret, TABLE_MAX, "%s_%.*s", what, IFNAMSIZ - 1, interface);
    return 0;
}

int filter_table_replace(const char *what, const char *interface, const char *body, struct err *e)
{
    char table[TABLE_MAX];
    int r = make_name(table, what, interface, e);

    return r < 0 ? r : nft_replace_table(FAMILY, table, body, e);
}

int filter_table_remove(const char *what, const char *interface, struct err *e)
{
    char table[TABLE_MAX];
    int r = make_name(table, what, interface, e);

    return r < 0 ? r : nft_remove_table(FAMILY, table, e);
}
