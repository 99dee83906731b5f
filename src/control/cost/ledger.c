/* ledger.c - see ledger.h. */
#include "cost/ledger.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/text.h"
#include "base/traffic.h"
#include "mesh/object/fields.h"
#include "mesh/object/traffic.h"

/* ---- what bytes cost ------------------------------------------------------------------------- */

#define GB 1e9

static const char *island_of(const struct price_facts *facts, const char *node)
{
    const char *island = json_string_value(json_object_get(facts->islands, node));

    return island ? island : "";
}

static const struct prices_island *find_row(const struct prices *p, const char *name)
{
    for (size_t i = 0; i < p->n_islands; i++)
        if (strcmp(p->islands[i].name, name) == 0)
            return &p->islands[i];
    return NULL;
}

/* The node's own row, else its island's, else the one without a name; NULL: there is none. */
static const struct prices_island *row_of(const struct price_facts *facts, const char *node)
{
    const struct prices_island *row = NULL;

    if (!facts->prices || !node)
        return NULL;
    if (node[0])
        row = find_row(facts->prices, node);
    if (!row)
        row = find_row(facts->prices, island_of(facts, node));
    return row ? row : find_row(facts->prices, "");
}

void price_sum_add(struct price_sum *sum, const struct price_sum *more)
{
    sum->bytes = traffic_total(sum->bytes, more->bytes);
    sum->alone = traffic_total(sum->alone, more->alone);
    sum->unpriced = traffic_total(sum->unpriced, more->unpriced);
    sum->money += more->money;
}

static void add_leaving(struct price_sum *sum, const struct prices_island *row, uint64_t bytes)
{
    if (row && row->has_egress)
        sum->money += (double)bytes / GB * (row->egress + row->nat);
    else
        sum->unpriced = traffic_total(sum->unpriced, bytes);
}

static bool is_hub(const struct price_facts *facts, const char *node)
{
    bool is_one = strcmp(node, facts->hub) == 0;

    for (size_t i = 0; !is_one && i < json_array_size(facts->hubs); i++) {
        const char *name = json_string_value(json_array_get(facts->hubs, i));

        is_one = name && strcmp(node, name) == 0;
    }
    return is_one;
}

void price_add(struct price_sum *sum, const struct price_facts *facts, const char *from,
    const char *to, enum path_kind path, uint64_t bytes)
{
    const struct prices_island *row = row_of(facts, from);
    const char *island = island_of(facts, from);
    bool is_relayed = path == PATH_KIND_RELAY || path == PATH_KIND_STREAM;
    bool is_inside = path == PATH_KIND_LAN || (!is_relayed && island[0] && to[0] &&
                                                  strcmp(island, island_of(facts, to)) == 0);

    sum->bytes = traffic_total(sum->bytes, bytes);
    if (is_inside && row && row->has_cross_zone)
        sum->money += (double)bytes / GB * row->cross_zone;
    else if (is_inside)
        sum->unpriced = traffic_total(sum->unpriced, bytes);
    else
        add_leaving(sum, row, bytes);
    /* What goes to a hub itself ends there. */
    if (is_relayed && facts->hub && !is_hub(facts, to) && !is_hub(facts, from))
        add_leaving(sum, row_of(facts, facts->hub), bytes);
}

/* ---- how much of a budget is spent ----------------------------------------------------------- */

static enum spent_level level_of(double share)
{
    if (share >= 1)
        return SPENT_ALL;
    return share >= SPENT_NEAR ? SPENT_NEAR_END : SPENT_LOW;
}

static double share_of(const struct budget *budget, const struct price_sum *sum)
{
    return budget->cost > 0 ? sum->money / budget->cost
                            : (double)sum->bytes / (double)budget->bytes;
}

struct spent spent_judge(const struct budget *budget, const struct price_sum *sum)
{
    struct spent s = {.budget = *budget, .sum = *sum};

    s.share = share_of(budget, sum);
    s.level = level_of(s.share);
    return s;
}

const struct spent *spent_find(const struct spent_list *list, const char *job)
{
    for (unsigned i = 0; i < list->n; i++)
        if (strcmp(list->items[i].budget.job, job) == 0)
            return &list->items[i];
    return NULL;
}

json_t *spent_encode_one(const struct spent *s)
{
    static const char *const levels[] = {
        [SPENT_LOW] = "low", [SPENT_NEAR_END] = "near", [SPENT_ALL] = "spent"};
    const struct budget *budget = &s->budget;
    bool is_cost = budget->cost > 0;

    /* Readers of the answer may expect the rate of a cap, which budgets once had. */
    return json_pack("{s:s*, s:s, s:f, s:I, s:I, s:f, s:I, s:o, s:n, s:s*}", "job",
        budget->job[0] ? budget->job : NULL, "level", levels[s->level], "share",
        round(s->share * 1e4) / 1e4, "bytes", (json_int_t)s->sum.bytes, "oneEndBytes",
        (json_int_t)s->sum.alone, "cost", round(s->sum.money * 1e6) / 1e6, "unpricedBytes",
        (json_int_t)s->sum.unpriced, is_cost ? "costPerDay" : "bytesPerDay",
        is_cost ? json_real(budget->cost) : json_integer((json_int_t)budget->bytes),
        "capBitsPerSecond", "ignoredCap", budget->ignored_cap[0] ? budget->ignored_cap : NULL);
}

json_t *spent_encode(const struct spent_list *list)
{
    json_t *json = json_array();

    for (unsigned i = 0; i < list->n; i++)
        (void)json_array_append_new(json, spent_encode_one(&list->items[i]));
    return json;
}

/* ---- the same in words ----------------------------------------------------------------------- */

static double number_of(const json_t *line, const char *name)
{
    double n = json_number_value(json_object_get(line, name));

    return n > 0 ? n : 0;
}

static const char *level_text(const json_t *line)
{
    const char *level = json_string_value(json_object_get(line, "level"));

    if (level && strcmp(level, "near") == 0)
        return ", near its end";
    return level && strcmp(level, "spent") == 0 ? ", spent" : "";
}

static uint64_t bytes_of(const json_t *line, const char *name)
{
    json_int_t n = json_integer_value(json_object_get(line, name));

    return n > 0 ? (uint64_t)n : 0;
}

void spent_format(struct str *out, const json_t *line)
{
    const char *cap = json_string_value(json_object_get(line, "ignoredCap"));
    char used[TRAFFIC_BYTES_TEXT_MAX];
    char all[TRAFFIC_BYTES_TEXT_MAX];

    if (!json_object_get(line, "costPerDay") && !json_object_get(line, "bytesPerDay"))
        str_add(out, "of the day's budget"); /* An earlier hub does not say how much that is. */
    else if (json_object_get(line, "costPerDay"))
        str_addf(out, "%.2f of %.2f a day", number_of(line, "cost"), number_of(line, "costPerDay"));
    else
        str_addf(out, "%s of %s a day", traffic_bytes_format(bytes_of(line, "bytes"), used),
            traffic_bytes_format(bytes_of(line, "bytesPerDay"), all));
    str_addf(out, " (%.1f %%)%s", 100 * number_of(line, "share"), level_text(line));
    if (cap)
        str_addf(out, "; its cap of %s has no effect", cap);
}

/* ---- life ------------------------------------------------------------------------------------ */

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

/* 0 or -ENOMEM. */
static int ledger_add(
    struct ledger *l, const struct price_facts *facts, const struct ledger_row *row)
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

/* ---- bytes and money as tables --------------------------------------------------------------- */

/* Disputes that are shown to people. */
#define DISPUTES_SHOWN 8

static const char *text_of(const json_t *json, const char *field, const char *none)
{
    const char *text = json_string_value(json_object_get(json, field));

    return text ? text : none;
}

static const char *bytes_text(
    const json_t *json, const char *field, char buf[static TRAFFIC_BYTES_TEXT_MAX])
{
    json_int_t n = json_integer_value(json_object_get(json, field));

    return traffic_bytes_format(n > 0 ? (uint64_t)n : 0, buf);
}

static const char *cost_text(const json_t *line, const char *currency, char buf[static 48])
{
    const json_t *cost = json_object_get(line, "cost");

    if (json_is_number(cost))
        (void)snprintf(buf, 48, "%.4f %s", json_number_value(cost), currency);
    else
        (void)snprintf(buf, 48, "-");
    return buf;
}

static void add_sums(struct table *t, const json_t *line, const char *currency)
{
    char buf[48];

    table_add(t, "%s", bytes_text(line, "bytes", buf));
    table_add(t, "%s", cost_text(line, currency, buf));
    if (json_integer_value(json_object_get(line, "unpricedBytes")) > 0)
        table_add(t, "%s", bytes_text(line, "unpricedBytes", buf));
    else
        table_add(t, "-");
}

static void add_heads(struct table *t)
{
    table_add(t, "BYTES");
    table_add(t, "COST");
    table_add(t, "UNPRICED");
}

static void print(struct str *out, struct table *t)
{
    table_format(t, out);
    str_add(out, "\n");
    table_deinit(t);
}

static void add_paths(struct table *t, const json_t *line)
{
    const json_t *paths = json_object_get(line, "paths");
    char text[64] = "";
    int n = 0;

    for (size_t i = 0; i < json_array_size(paths) && n >= 0 && (size_t)n < sizeof(text); i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s", i > 0 ? "," : "",
            json_string_value(json_array_get(paths, i)));
    table_add(t, "%s", text);
}

static void format_edges(struct str *out, const json_t *edges, const char *currency)
{
    struct table t;
    const json_t *line;
    size_t i;

    table_init(&t, 6);
    table_add(&t, "FROM");
    table_add(&t, "TO");
    table_add(&t, "PATH");
    add_heads(&t);
    json_array_foreach(edges, i, line) {
        table_add(&t, "%s", text_of(line, "from", "?"));
        table_add(&t, "%s", text_of(line, "to", "(others)"));
        add_paths(&t, line);
        add_sums(&t, line, currency);
    }
    print(out, &t);
}

static void format_part(struct str *out, const json_t *part, const char *field, const char *head,
    const char *none, const char *currency)
{
    struct table t;
    const json_t *line;
    size_t i;

    table_init(&t, 4);
    table_add(&t, "%s", head);
    add_heads(&t);
    json_array_foreach(part, i, line) {
        table_add(&t, "%s", text_of(line, field, none));
        add_sums(&t, line, currency);
    }
    print(out, &t);
}

static void format_total(struct str *out, const json_t *ledger, const char *currency)
{
    const json_t *total = json_object_get(ledger, "total");
    const json_t *left_out = json_object_get(ledger, "leftOut");
    char buf[48];

    str_addf(out, "total %s", bytes_text(total, "bytes", buf));
    if (json_is_number(json_object_get(total, "cost"))) {
        str_addf(out, ", %s", cost_text(total, currency, buf));
        if (json_integer_value(json_object_get(total, "unpricedBytes")) > 0)
            str_addf(out, " without %s that the price table has no price for",
                bytes_text(total, "unpricedBytes", buf));
    } else {
        str_add(out, "; no price table was given, so no cost is known");
    }
    str_add(out, "\n");
    if (json_integer_value(json_object_get(left_out, "bytes")) > 0)
        str_addf(out, "%s more are in rows that the answer had no room for: ask for fewer days\n",
            bytes_text(left_out, "bytes", buf));
}

/* Where the two ends of an edge contradict each other. */
static void format_disputes(struct str *out, const json_t *disputes)
{
    const json_t *line;
    size_t i;

    json_array_foreach(disputes, i, line) {
        const char *job = text_of(line, "job", NULL);
        char buf[3][TRAFFIC_BYTES_TEXT_MAX];

        if (i == DISPUTES_SHOWN) {
            str_addf(
                out, "%zu more such disputes: --json has them\n", json_array_size(disputes) - i);
            break;
        }
        str_addf(out,
            "%s: %s says it has sent %s to %s%s%s, which says it has received %s; %s are counted\n",
            text_of(line, "day", "?"), text_of(line, "from", "?"), bytes_text(line, "sent", buf[0]),
            text_of(line, "to", "?"), job ? " for job " : "", job ? job : "",
            bytes_text(line, "received", buf[1]), bytes_text(line, "counted", buf[2]));
    }
}

static void format_budgets(struct str *out, const json_t *budgets)
{
    const json_t *line;
    size_t i;

    json_array_foreach(budgets, i, line) {
        const char *job = text_of(line, "job", "");

        str_addf(out, "budget of %s%s: ", job[0] ? "job " : "the network", job);
        spent_format(out, line);
        str_add(out, "\n");
    }
}

void ledger_format(struct str *out, const json_t *ledger)
{
    const char *currency = text_of(ledger, "currency", "");
    const json_t *jobs = json_object_get(ledger, "jobs");
    const json_t *days = json_object_get(ledger, "days");
    bool has_jobs = json_array_size(jobs) > 1 ||
                    json_is_string(json_object_get(json_array_get(jobs, 0), "job"));

    str_addf(out, "network %s, %s to %s (UTC)\n\n", text_of(ledger, "network", "?"),
        text_of(ledger, "since", "?"), text_of(ledger, "until", "?"));
    if (json_array_size(json_object_get(ledger, "edges")) > 0)
        format_edges(out, json_object_get(ledger, "edges"), currency);
    if (has_jobs)
        format_part(out, jobs, "job", "JOB", "(none)", currency);
    if (json_array_size(days) > 1)
        format_part(out, days, "day", "DAY", "?", currency);
    format_total(out, ledger, currency);
    format_disputes(out, json_object_get(ledger, "disputes"));
    format_budgets(out, json_object_get(ledger, "budgets"));
}
