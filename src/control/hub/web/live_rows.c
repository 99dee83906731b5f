/* live_rows.c - see live_rows.h. */
#include "hub/web/live_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void live_rows_init(struct live_rows *r, uint64_t revision)
{
    *r = (struct live_rows){.revision = revision, .forgotten = revision};
    list_init(&r->order);
}

/* keys_free() releases the key and the struct. */
static void drop(struct live_rows *r, struct live_row *row)
{
    r->n_gone -= row->text == NULL;
    list_remove(&row->link);
    free(row->text);
    keys_free(&r->rows, &row->keyed);
}

void live_rows_deinit(struct live_rows *r)
{
    struct live_row *row;

    while ((row = list_first(&r->order, struct live_row, link))) {
        list_remove(&row->link);
        free(row->text);
    }
    keys_free_all(&r->rows);
    r->n_gone = 0;
}

void live_rows_begin(struct live_rows *r, uint64_t revision)
{
    struct live_row *row;

    r->next = revision;
    list_foreach(row, &r->order, link)
        row->is_seen = false;
}

static void change(struct live_rows *r, struct live_row *row, char *text)
{
    r->n_gone += (text == NULL) - (row->text == NULL);
    free(row->text);
    row->text = text;
    row->revision = r->next;
    list_remove(&row->link);
    list_add_tail(&r->order, &row->link);
    r->revision = r->next;
}

static struct live_row *open_row(struct live_rows *r, const char *key)
{
    struct live_row *row = keys_find(&r->rows, key);

    if (row || r->rows.n >= LIVE_ROWS_MAX + LIVE_GONE_MAX ||
        r->rows.n - r->n_gone >= LIVE_ROWS_MAX || strpbrk(key, "\"\\") ||
        !text_is_plain(key, strlen(key)))
        return row;
    row = keys_open(&r->rows, key, sizeof(*row));
    if (!row)
        return NULL;
    list_add_tail(&r->order, &row->link);
    r->n_gone++;
    return row;
}

void live_rows_put(struct live_rows *r, const char *key, char *text)
{
    struct live_row *row = text ? open_row(r, key) : NULL;

    if (!row) {
        free(text);
        return;
    }
    row->is_seen = true;
    if (row->text && strcmp(row->text, text) == 0)
        free(text);
    else
        change(r, row, text);
}

bool live_rows_end(struct live_rows *r)
{
    struct live_row *row;
    struct live_row *tmp;
    /* Rows that go are put at the end of the list, so the walk ends at the one that is last now. */
    const struct live_row *last =
        list_is_empty(&r->order) ? NULL : container_of(r->order.prev, struct live_row, link);

    list_foreach_safe(row, tmp, &r->order, link) {
        bool is_last = row == last;

        if (!row->is_seen && row->text)
            change(r, row, NULL);
        if (is_last)
            break;
    }
    list_foreach_safe(row, tmp, &r->order, link) {
        if (r->n_gone <= LIVE_GONE_MAX)
            break;
        if (!row->text) {
            r->forgotten = row->revision;
            drop(r, row);
        }
    }
    return r->revision == r->next;
}

static void add_row(struct str *out, const struct live_row *row, const char *between)
{
    str_add(out, between);
    str_add(out, "\"");
    str_add(out, row->keyed.key);
    str_add(out, "\":");
    str_add(out, row->text ? row->text : "null");
}

void live_rows_read(const struct live_rows *r, uint64_t since, struct str *out)
{
    bool is_all = since == 0 || since < r->forgotten || since > r->revision;
    const char *between = "";
    struct list *it;

    str_add(out, is_all ? "{\"all\":true,\"rows\":{" : "{\"rows\":{");
    for (it = r->order.prev; it != &r->order; it = it->prev) {
        const struct live_row *row = container_of(it, struct live_row, link);

        if (!is_all && row->revision <= since)
            break;
        if (is_all && !row->text)
            continue;
        add_row(out, row, between);
        between = ",";
    }
    str_add(out, "}}");
}
