/* table.c - see table.h. */
#include "base/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

void table_init(struct table *t, unsigned n_columns)
{
    *t = (struct table){.n_columns = n_columns};
}

void table_deinit(struct table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct table){.n_columns = t->n_columns};
}

static bool make_room(struct table *t)
{
    size_t cap = t->cap ? t->cap * 2 : 64;
    char **grown;

    if (t->n < t->cap)
        return true;
    grown = realloc(t->cells, cap * sizeof(*grown));
    if (!grown)
        return false;
    t->cells = grown;
    t->cap = cap;
    return true;
}

void table_add(struct table *t, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0 || !make_room(t)) {
        if (n >= 0)
            free(text);
        t->failed = true;
        return;
    }
    t->cells[t->n++] = text;
}

static size_t width_of(const struct table *t, unsigned column)
{
    size_t width = 0;

    for (size_t i = column; i < t->n; i += t->n_columns)
        if (strlen(t->cells[i]) > width)
            width = strlen(t->cells[i]);
    return width;
}

void table_format(const struct table *t, struct str *out)
{
    size_t n = t->n - t->n % t->n_columns;

    if (t->failed)
        out->failed = true;
    for (size_t i = 0; i < n; i++) {
        unsigned column = (unsigned)(i % t->n_columns);

        if (column + 1 == t->n_columns)
            str_addf(out, "%s\n", t->cells[i]);
        else
            str_addf(out, "%-*s  ", (int)width_of(t, column), t->cells[i]);
    }
}
