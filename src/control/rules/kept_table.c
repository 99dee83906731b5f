/* kept_table.c - see kept_table.h. */
#include "rules/kept_table.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "net/netlink/nft.h"

void kept_table_name(const char *what, const char *interface, char ret[static KEPT_TABLE_MAX])
{
    (void)snprintf(ret, KEPT_TABLE_MAX, "%s_%.*s", what, IFNAMSIZ - 1, interface);
}

int kept_table_replace(
    const char *what, const char *interface, const struct str *body, struct err *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    char table[KEPT_TABLE_MAX];

    if (interface[strspn(interface, allowed)] != '\0')
        return err_set(e, -EINVAL,
            "the packet filter takes no interface \"%s\", only letters, digits, '_', '.', '-'",
            interface);
    if (body && body->failed)
        return err_set(e, -ENOMEM, "no memory for the packet filter");
    kept_table_name(what, interface, table);
    return nft_replace_table(KEPT_TABLE_FAMILY, table, body ? str_text(body) : NULL, e);
}

void kept_table_forget(struct kept_table *t)
{
    free(t->body);
    *t = (struct kept_table){.body = NULL};
}

bool kept_table_is_due(const struct kept_table *t, const struct str *body, nsec_t now)
{
    return body->failed || !t->body || strcmp(t->body, str_text(body)) != 0 ||
           now - t->put_at >= KEPT_TABLE_PERIOD;
}

int kept_table_put(struct kept_table *t, const char *what, const char *interface,
    const struct str *body, nsec_t now, struct err *e)
{
    int r = 1;

    if (!body) {
        if (!t->is_removed) {
            r = kept_table_replace(what, interface, NULL, e);
            kept_table_forget(t);
            t->is_removed = r == 0;
        }
        return r;
    }
    if (!kept_table_is_due(t, body, now))
        return 1;
    kept_table_forget(t);
    t->body = body->failed ? NULL : strdup(str_text(body));
    t->put_at = now;
    return kept_table_replace(what, interface, body, e);
}
