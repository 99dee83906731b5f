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

/* Is there something to put? */
static bool is_due(const struct kept_table *t, const struct str *body, nsec_t now)
{
    return body->failed || !t->body || strcmp(t->body, str_text(body)) != 0 ||
           now - t->put_at >= KEPT_TABLE_PERIOD;
}

/* One object of a table's body. */
struct block {
    const char *text;
    size_t len;
    size_t kind; /* characters of "chain" */
    size_t head; /* of "chain NAME" */
    bool is_changed;
};

/* The objects of @body, the number in @ret_n; NULL: no memory. The caller owns it. */
static struct block *split(const char *body, size_t *ret_n)
{
    size_t max = 1;
    size_t n = 0;
    struct block *all;

    for (const char *p = body; *p != '\0'; p++)
        max += *p == '\n';
    all = calloc(max, sizeof(*all));
    while (all && *body != '\0') {
        struct block *b = &all[n++];
        size_t line = strcspn(body, "\n");
        const char *end = body + line;

        *b = (struct block){.text = body, .kind = strcspn(body, " {\n")};
        b->head = b->kind + 1 + strcspn(body + b->kind + (body[b->kind] == ' '), " {\n");
        if (line == 0 || body[line - 1] != '}') {
            end = strstr(body, "\n}\n");
            end = end ? end + 2 : body + strlen(body);
        }
        b->len = (size_t)(end - body) + (*end == '\n');
        body += b->len;
    }
    *ret_n = n;
    return all;
}

static int by_head(const void *a, const void *b)
{
    const struct block *x = a;
    const struct block *y = b;
    int r = memcmp(x->text, y->text, x->head < y->head ? x->head : y->head);

    return r != 0 ? r : (x->head > y->head) - (x->head < y->head);
}

static void add_command(struct str *out, const char *verb, const char *table, const struct block *b)
{
    str_addf(out, "%s %.*s " KEPT_TABLE_FAMILY " %s%.*s\n", verb, (int)b->kind, b->text, table,
        (int)(b->head - b->kind), b->text + b->kind);
}

/* A chain goes before the sets and counters that it uses. */
static void add_deletions(
    struct str *out, const char *table, const struct block *gone, size_t n, bool is_of_chains)
{
    for (size_t i = 0; i < n; i++)
        if (gone[i].is_changed && (strncmp(gone[i].text, "chain ", 6) == 0) == is_of_chains)
            add_command(out, "delete", table, &gone[i]);
}

bool kept_table_changes(const char *table, const char *before, const char *after, struct str *ret)
{
    size_t n_old = 0;
    size_t n_new = 0;
    _cleanup_(freep) struct block *old = split(before, &n_old);
    _cleanup_(freep) struct block *new = split(after, &n_new);
    size_t n_flushed = 0;

    if (!old || !new)
        return false;
    qsort(old, n_old, sizeof(*old), by_head);
    for (size_t i = 0; i < n_old; i++)
        old[i].is_changed = true;
    for (size_t i = 0; i < n_new; i++) {
        struct block *was = n_old ? bsearch(&new[i], old, n_old, sizeof(*old), by_head) : NULL;

        new[i].is_changed =
            !was || was->len != new[i].len || memcmp(was->text, new[i].text, was->len) != 0;
        if (!was)
            continue;
        was->is_changed = false; /* it is not to be deleted */
        if (!new[i].is_changed)
            continue;
        add_command(ret, "flush", table, &new[i]);
        n_flushed++;
    }
    add_deletions(ret, table, old, n_old, true);
    add_deletions(ret, table, old, n_old, false);
    str_addf(ret, "table " KEPT_TABLE_FAMILY " %s {\n", table);
    for (size_t i = 0; i < n_new; i++)
        if (new[i].is_changed)
            str_addf(ret, "%.*s%s", (int)new[i].len, new[i].text,
                new[i].text[new[i].len - 1] == '\n' ? "" : "\n");
    str_add(ret, "}\n");
    return n_flushed > 0 && !ret->failed;
}

/* What changes what differs; false: it is to be put whole. */
static bool find_changes(const struct kept_table *t, const char *what, const char *interface,
    const struct str *body, nsec_t now, struct str *ret)
{
    char table[KEPT_TABLE_MAX];

    if (!t->is_in || !t->body || body->failed || now - t->put_at >= KEPT_TABLE_PERIOD)
        return false;
    kept_table_name(what, interface, table);
    return kept_table_changes(table, t->body, str_text(body), ret);
}

enum kept_table_loss kept_table_loses(const struct kept_table *t, const char *what,
    const char *interface, const struct str *body, nsec_t now)
{
    _cleanup_(str_deinit) struct str commands = STR_NULL;

    if (!is_due(t, body, now))
        return KEPT_TABLE_LOSES_NONE;
    if (!find_changes(t, what, interface, body, now, &commands) ||
        strstr(str_text(&commands), "\ndelete set ") != NULL)
        return KEPT_TABLE_LOSES_ALL;
    return strstr(str_text(&commands), "\ndelete counter ") != NULL ? KEPT_TABLE_LOSES_SOME
                                                                    : KEPT_TABLE_LOSES_NONE;
}

static void keep_body(struct kept_table *t, const struct str *body, nsec_t put_at)
{
    kept_table_forget(t);
    t->body = body->failed ? NULL : strdup(str_text(body));
    t->put_at = put_at;
}

int kept_table_put(struct kept_table *t, const char *what, const char *interface,
    const struct str *body, nsec_t now, struct err *e)
{
    _cleanup_(str_deinit) struct str commands = STR_NULL;
    int r = 1;

    if (!body) {
        if (!t->is_removed) {
            r = kept_table_replace(what, interface, NULL, e);
            kept_table_forget(t);
            t->is_removed = r == 0;
        }
        return r;
    }
    if (!is_due(t, body, now))
        return 1;
    if (find_changes(t, what, interface, body, now, &commands) &&
        nft_run(str_text(&commands), NULL) == 0) {
        keep_body(t, body, t->put_at);
        t->is_in = true;
        return 2;
    }
    keep_body(t, body, now);
    r = kept_table_replace(what, interface, body, e);
    t->is_in = r == 0;
    return r;
}
