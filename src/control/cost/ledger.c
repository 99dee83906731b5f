/* ledger.c - see ledger.h. */
#include "cost/ledger.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/sorted.h"
#include "mesh/object/fields.h"

static void part_deinit(struct ledger_part *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->lines[i].name);
    free(p->lines);
}

void ledger_deinit(struct ledger *l)
{
    part_deinit(&l->edges);
    part_deinit(&l->jobs);
    part_deinit(&l->days);
    *l = (struct ledger)LEDGER_NULL;
}

/* ---- adding --------------------------------------------------------------------------------- */

static int compare(const void *item, const void *name)
{
    return strcmp(((const struct ledger_line *)item)->name, name);
}

/* The line of that name; NULL: no memory. */
static struct ledger_line *line_of(struct ledger_part *p, const char *name)
{
    bool found;
    size_t i = sorted_place(p->lines, p->n, sizeof(*p->lines), compare, name, &found);
    char *copy = found ? NULL : strdup(name);
    struct ledger_line *lines;

    if (found)
        return &p->lines[i];
    lines = copy ? sorted_open(p->lines, p->n, sizeof(*lines), i, &p->cap) : NULL;
    if (!lines) {
        free(copy);
        return NULL;
    }
    p->lines = lines;
    p->n++;
    p->lines[i] = (struct ledger_line){.name = copy};
    return &p->lines[i];
}

static int add_to(
    struct ledger_part *p, const char *name, enum path_kind path, const struct price_sum *sum)
{
    struct ledger_line *line = line_of(p, name);

    if (!line)
        return -ENOMEM;
    line->paths |= 1u << path;
    price_sum_add(&line->sum, sum);
    return 0;
}

int ledger_add(struct ledger *l, const struct price_facts *facts, const struct ledger_row *row)
{
    struct price_sum sum = {.alone = row->is_alone ? row->bytes : 0};
    char edge[2 * NAME_MAX_LEN + 2];
    int r;

    (void)snprintf(edge, sizeof(edge), "%.63s\n%.63s", row->from, row->to);
    price_add(&sum, facts, row->from, row->to, row->path, row->bytes);
    r = add_to(&l->edges, edge, row->path, &sum);
    if (r == 0)
        r = add_to(&l->jobs, row->job, row->path, &sum);
    if (r == 0)
        r = add_to(&l->days, row->day, row->path, &sum);
    price_sum_add(&l->total, &sum);
    return r;
}

/* ---- what a hub answers --------------------------------------------------------------------- */

static enum path_kind path_named(const char *name)
{
    for (unsigned k = PATH_KIND_LAN; k < PATH_KIND_N; k++)
        if (strcmp(path_kind_name((enum path_kind)k), name) == 0)
            return (enum path_kind)k;
    return PATH_KIND_NONE;
}

static int read_row(
    struct ledger *l, const struct price_facts *facts, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the hub's answer: a row", e);
    const char *day = fields_string(&f, "day", FIELDS_REQUIRED, 1, 16);
    const char *path = fields_string(&f, "path", FIELDS_REQUIRED, 1, 16);
    const char *word = fields_string(&f, "word", FIELDS_OPTIONAL, 1, 16);
    char from[NAME_MAX_LEN + 1] = "";
    char to[NAME_MAX_LEN + 1] = "";
    char job[NAME_MAX_LEN + 1] = "";
    uint64_t bytes = 0;
    int r;

    fields_name(&f, "from", FIELDS_REQUIRED, from);
    fields_name(&f, "to", FIELDS_OPTIONAL, to);
    fields_name(&f, "job", FIELDS_OPTIONAL, job);
    fields_u64(&f, "bytes", FIELDS_REQUIRED, 0, INT64_MAX, &bytes);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    /* A path of a newer hub leaves the provider, as far as this program knows. */
    r = ledger_add(l, facts,
        &(struct ledger_row){.day = day,
            .from = from,
            .to = to,
            .job = job,
            .path = path_named(path) == PATH_KIND_NONE ? PATH_KIND_DIRECT : path_named(path),
            .is_alone = word && strcmp(word, "both") != 0,
            .bytes = bytes});
    return r == 0 ? 0 : err_set(e, r, "no memory for what was moved");
}

int ledger_read(struct ledger *l, const struct prices *prices, const json_t *answer, struct err *e)
{
    struct fields f = fields_make(answer, "the hub's answer", e);
    const json_t *rows = fields_array(&f, "rows", FIELDS_REQUIRED, 0, SIZE_MAX);
    struct price_facts facts = {.prices = prices,
        .islands = fields_object(&f, "islands", FIELDS_OPTIONAL),
        .hub = json_string_value(json_array_get(json_object_get(answer, "hubs"), 0)),
        .hubs = json_object_get(answer, "hubs")};
    int r = fields_end(&f);

    for (size_t i = 0; r == 0 && i < json_array_size(rows); i++)
        r = read_row(l, &facts, json_array_get(rows, i), e);
    return r;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

/* Money to the millionth. */
static json_t *money(double amount)
{
    return json_real(round(amount * 1e6) / 1e6);
}

static json_t *encode_sum(const struct price_sum *sum, bool is_priced)
{
    return json_pack("{s:I, s:I, s:I, s:o}", "bytes", (json_int_t)sum->bytes, "oneEndBytes",
        (json_int_t)sum->alone, "unpricedBytes", (json_int_t)sum->unpriced, "cost",
        is_priced ? money(sum->money) : json_null());
}

static json_t *encode_paths(unsigned paths)
{
    json_t *list = json_array();

    for (unsigned k = 0; k < PATH_KIND_N; k++)
        if (paths & 1u << k)
            (void)json_array_append_new(list, json_string(path_kind_name((enum path_kind)k)));
    return list;
}

static json_t *encode_edges(const struct ledger_part *p, bool is_priced)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->n; i++) {
        const struct ledger_line *line = &p->lines[i];
        const char *to = strchr(line->name, '\n') + 1;
        json_t *json = encode_sum(&line->sum, is_priced);

        (void)json_object_set_new(
            json, "from", json_stringn(line->name, (size_t)(to - line->name) - 1));
        (void)json_object_set_new(json, "to", to[0] ? json_string(to) : json_null());
        (void)json_object_set_new(json, "paths", encode_paths(line->paths));
        (void)json_array_append_new(list, json);
    }
    return list;
}

static json_t *encode_part(const struct ledger_part *p, const char *key, bool is_priced)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->n; i++) {
        const struct ledger_line *line = &p->lines[i];
        json_t *json = encode_sum(&line->sum, is_priced);

        (void)json_object_set_new(json, key, line->name[0] ? json_string(line->name) : json_null());
        (void)json_array_append_new(list, json);
    }
    return list;
}

json_t *ledger_encode(const struct ledger *l, const struct prices *prices, const json_t *answer)
{
    bool is_priced = prices != NULL;
    json_t *left_out = json_object_get(answer, "leftOut");

    return json_pack("{s:O?, s:O?, s:O?, s:s?, s:o, s:o, s:o, s:o, s:O?, s:O*, s:O*}", "network",
        json_object_get(answer, "network"), "since", json_object_get(answer, "since"), "until",
        json_object_get(answer, "until"), "currency", is_priced ? prices->currency : NULL, "total",
        encode_sum(&l->total, is_priced), "edges", encode_edges(&l->edges, is_priced), "jobs",
        encode_part(&l->jobs, "job", is_priced), "days", encode_part(&l->days, "day", is_priced),
        "leftOut", left_out, "disputes", json_object_get(answer, "disputes"), "budgets",
        json_object_get(answer, "budgets"));
}
