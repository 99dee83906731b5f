/* ledger.c - see ledger.h. */
#include "cost/ledger.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/traffic.h"
#include "mesh/object/fields.h"
#include "mesh/object/traffic.h"
#include "store/keys.h"

/* The share from which on people are told that a budget comes to its end. */
#define SPENT_NEAR 0.8

/* ---- what bytes cost ------------------------------------------------------------------------- */

#define GB 1e9

static const char *island_of(const struct price_facts *facts, const char *node)
{
    return fields_text_of(json_object_get(facts->nodes, "islands"), node);
}

/* The node's own row, else its island's, else the one without a name, else one that says nothing.
 */
static const struct prices_island *row_of(const struct price_facts *facts, const char *node)
{
    const struct prices_island *own = prices_find(facts->prices, node);

    return own ? own : prices_of(facts->prices, island_of(facts, node));
}

/* @more into @sum; bytes stop as traffic_total() does. */
static void add_sum(struct price_sum *sum, const struct price_sum *more)
{
    sum->bytes = traffic_total(sum->bytes, more->bytes);
    sum->alone = traffic_total(sum->alone, more->alone);
    sum->unpriced = traffic_total(sum->unpriced, more->unpriced);
    sum->money += more->money;
}

void price_add(struct price_sum *sum, const struct price_facts *facts, const struct traffic_row *t)
{
    const struct prices_island *row = row_of(facts, t->from);
    const char *island = island_of(facts, t->from);
    const json_t *hubs = json_object_get(facts->nodes, "hubs");
    const char *hub = json_string_value(json_array_get(hubs, 0));
    bool is_relayed = t->path == PATH_KIND_RELAY || t->path == PATH_KIND_STREAM;
    bool is_inside = t->path == PATH_KIND_LAN ||
                     (!is_relayed && island[0] && strcmp(island, island_of(facts, t->to)) == 0);
    /* Per GB, of the sender's provider and of the hub's; NAN: it is not said. */
    double first = is_inside ? row->cross_zone : row->egress + row->nat;
    double again = 0;

    /* What goes to a hub itself ends there. */
    if (is_relayed && hub && !fields_list_has(hubs, t->to) && !fields_list_has(hubs, t->from)) {
        row = row_of(facts, hub);
        again = row->egress + row->nat;
    }
    add_sum(sum, &(struct price_sum){.bytes = t->bytes,
                     .alone = t->word == TRAFFIC_WORD_BOTH ? 0 : t->bytes,
                     .unpriced = isnan(first + again) ? t->bytes : 0,
                     .money = (double)t->bytes / GB * (fmax(first, 0) + fmax(again, 0))});
}

/* ---- how much of a budget is spent ----------------------------------------------------------- */

void spent_measure(struct spent *s)
{
    s->share = s->budget.cost > 0 ? s->sum.money / s->budget.cost
                                  : (double)s->sum.bytes / (double)s->budget.bytes;
    s->level = s->share >= 1 ? SPENT_ALL : s->share >= SPENT_NEAR ? SPENT_NEAR_END : SPENT_LOW;
}

const struct spent *spent_find(const struct spent_list *list, const char *job)
{
    for (unsigned i = 0; i < list->n; i++)
        if (strcmp(list->items[i].budget.job, job) == 0)
            return &list->items[i];
    return NULL;
}

/* Money to the millionth. */
static json_t *encode_sum(const struct price_sum *sum, bool is_priced)
{
    return json_pack("{s:I, s:I, s:I, s:o}", "bytes", (json_int_t)sum->bytes, "oneEndBytes",
        (json_int_t)sum->alone, "unpricedBytes", (json_int_t)sum->unpriced, "cost",
        is_priced ? json_real(round(sum->money * 1e6) / 1e6) : json_null());
}

json_t *spent_encode_one(const struct spent *s)
{
    static const char *const levels[] = {
        [SPENT_LOW] = "low", [SPENT_NEAR_END] = "near", [SPENT_ALL] = "spent"};
    const char *cap = s->budget.ignored_cap;
    json_t *json = budget_encode(&s->budget);

    (void)json_object_update_new(json, encode_sum(&s->sum, true));
    /* Readers of the answer may expect the rate of a cap, which budgets once had. */
    (void)json_object_update_new(json,
        json_pack("{s:s, s:f, s:n, s:s*}", "level", levels[s->level], "share",
            round(s->share * 1e4) / 1e4, "capBitsPerSecond", "ignoredCap", cap[0] ? cap : NULL));
    return json;
}

json_t *spent_encode(const struct spent_list *list)
{
    json_t *json = json_array();

    for (unsigned i = 0; i < list->n; i++)
        (void)json_array_append_new(json, spent_encode_one(&list->items[i]));
    return json;
}

/* ---- the same in words ----------------------------------------------------------------------- */

/* What a hub says goes to a terminal. */
static const char *text_of(const json_t *json, const char *field, const char *none)
{
    const char *text = json_string_value(json_object_get(json, field));

    /* jansson hands out its own writable memory as const. */
    if (text)
        text_make_plain((char *)text, '?');
    return text ? text : none;
}

static double number_of(const json_t *json, const char *field)
{
    return fmax(json_number_value(json_object_get(json, field)), 0);
}

static const char *bytes_text(
    const json_t *json, const char *field, char buf[static TRAFFIC_BYTES_TEXT_MAX])
{
    json_int_t n = json_integer_value(json_object_get(json, field));

    return traffic_bytes_format(n > 0 ? (uint64_t)n : 0, buf);
}

void spent_format(struct str *out, const json_t *line)
{
    const char *level = text_of(line, "level", "");
    const char *cap = text_of(line, "ignoredCap", NULL);
    char used[TRAFFIC_BYTES_TEXT_MAX];
    char all[TRAFFIC_BYTES_TEXT_MAX];

    if (json_object_get(line, "costPerDay"))
        str_addf(out, "%.2f of %.2f a day", number_of(line, "cost"), number_of(line, "costPerDay"));
    else if (json_object_get(line, "bytesPerDay"))
        str_addf(out, "%s of %s a day", bytes_text(line, "bytes", used),
            bytes_text(line, "bytesPerDay", all));
    else
        str_add(out, "of the day's budget"); /* An earlier hub does not say how much that is. */
    str_addf(out, " (%.1f %%)%s", 100 * number_of(line, "share"),
        strcmp(level, "near") == 0    ? ", near its end"
        : strcmp(level, "spent") == 0 ? ", spent"
                                      : "");
    if (cap)
        str_addf(out, "; its cap of %s has no effect", cap);
}

void spent_format_all(struct str *out, const json_t *lines)
{
    const json_t *line;
    size_t i;

    json_array_foreach(lines, i, line) {
        const char *job = text_of(line, "job", "");

        str_addf(out, "budget of %s%s: ", job[0] ? "job " : "the network", job);
        spent_format(out, line);
        str_add(out, "\n");
    }
}

/* ---- adding up ------------------------------------------------------------------------------- */

/* By what rows are summed up. */
enum part {
    PART_EDGES,
    PART_JOBS,
    PART_DAYS,
    PART_N,
};

static const struct {
    const char *list;  /* what the ledger calls it */
    const char *field; /* of the rows, and of the lines of the list; of edges the first of two */
    const char *head;  /* of the table's column */
    const char *none;  /* there, where no row has the field */
} parts[PART_N] = {
    [PART_EDGES] = {"edges", "from", "FROM", "?"},
    [PART_JOBS] = {"jobs", "job", "JOB", "(none)"},
    [PART_DAYS] = {"days", "day", "DAY", "?"},
};

/* A line of a part. */
struct line {
    struct keyed keyed; /* a day; a job ("": none); or "FROM TO", and TO may be empty */
    const json_t *row;  /* borrowed; the last one of it */
    unsigned paths;     /* bits 1 << enum path_kind: those that were used */
    struct price_sum sum;
};

struct ledger {
    struct price_facts facts;
    struct keys lines[PART_N]; /* of struct line */
    struct price_sum total;
};

static int read_row(struct ledger *l, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the hub's answer: a row", e);
    const char *day = fields_string(&f, "day", FIELDS_REQUIRED, 1, 16);
    size_t path =
        parse_word(fields_string(&f, "path", FIELDS_REQUIRED, 1, 16), path_kind_names, PATH_KIND_N);
    const char *word = fields_string(&f, "word", FIELDS_OPTIONAL, 1, 16);
    char from[NAME_MAX_LEN + 1] = "";
    char to[NAME_MAX_LEN + 1] = "";
    char job[NAME_MAX_LEN + 1] = "";
    char edge[2 * NAME_MAX_LEN + 2];
    const char *const names[] = {[PART_EDGES] = edge, [PART_JOBS] = job, [PART_DAYS] = day};
    struct traffic_row row = {.from = from, .to = to};
    struct price_sum sum = {.bytes = 0};

    fields_name(&f, "from", FIELDS_REQUIRED, from);
    fields_name(&f, "to", FIELDS_OPTIONAL, to);
    fields_name(&f, "job", FIELDS_OPTIONAL, job);
    fields_u64(&f, "bytes", FIELDS_REQUIRED, 0, INT64_MAX, &row.bytes);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    /* A path of a newer hub leaves the provider, as far as this program knows. */
    row.path = path < PATH_KIND_N ? (enum path_kind)path : PATH_KIND_DIRECT;
    row.word = word && strcmp(word, "both") != 0 ? TRAFFIC_WORD_ONE : TRAFFIC_WORD_BOTH;
    price_add(&sum, &l->facts, &row);
    add_sum(&l->total, &sum);
    (void)snprintf(edge, sizeof(edge), "%s %s", from, to);
    for (unsigned part = 0; part < PART_N; part++) {
        struct line *line = keys_open(&l->lines[part], names[part], sizeof(*line));

        if (!line)
            return err_set(e, -ENOMEM, "no memory for what was moved");
        line->row = json;
        line->paths |= 1u << row.path;
        add_sum(&line->sum, &sum);
    }
    return 0;
}

static json_t *encode_paths(unsigned used)
{
    json_t *paths = json_array();

    for (unsigned k = 0; k < PATH_KIND_N; k++)
        if (used & 1u << k)
            (void)json_array_append_new(paths, json_string(path_kind_names[k]));
    return paths;
}

/* What no row says is null. */
static json_t *encode_part(const struct ledger *l, enum part part)
{
    const char *field = parts[part].field;
    json_t *list = json_array();

    for (size_t i = 0; i < l->lines[part].n; i++) {
        const struct line *line = container_of(l->lines[part].items[i], struct line, keyed);
        json_t *json = encode_sum(&line->sum, l->facts.prices != NULL);

        (void)json_object_update_new(
            json, json_pack("{s:O?}", field, json_object_get(line->row, field)));
        if (part == PART_EDGES)
            (void)json_object_update_new(
                json, json_pack("{s:O?, s:o}", "to", json_object_get(line->row, "to"), "paths",
                          encode_paths(line->paths)));
        (void)json_array_append_new(list, json);
    }
    return list;
}

json_t *ledger_make(const struct prices *prices, const json_t *answer, struct err *e)
{
    struct fields f = fields_make(answer, "the hub's answer", e);
    const json_t *rows = fields_array(&f, "rows", FIELDS_REQUIRED, 0, SIZE_MAX);
    struct ledger l = {.facts = {.prices = prices, .nodes = answer}};
    struct prices own;
    json_t *json = NULL;
    int r;

    (void)fields_object(&f, "islands", FIELDS_OPTIONAL);
    r = fields_end(&f);
    if (r == 0 && !prices && json_object_get(answer, "prices")) {
        r = prices_decode(&own, json_object_get(answer, "prices"), OBJECT_STRICT, e);
        l.facts.prices = &own;
    }
    for (size_t i = 0; r == 0 && i < json_array_size(rows); i++)
        r = read_row(&l, json_array_get(rows, i), e);
    prices = l.facts.prices;
    if (r == 0)
        json = json_pack("{s:O?, s:O?, s:O?, s:s?, s:o, s:o, s:o, s:o, s:O?, s:O*, s:O*}",
            "network", json_object_get(answer, "network"), "since",
            json_object_get(answer, "since"), "until", json_object_get(answer, "until"), "currency",
            prices ? prices->currency : NULL, "total", encode_sum(&l.total, prices != NULL),
            "edges", encode_part(&l, PART_EDGES), "jobs", encode_part(&l, PART_JOBS), "days",
            encode_part(&l, PART_DAYS), "leftOut", json_object_get(answer, "leftOut"), "disputes",
            json_object_get(answer, "disputes"), "budgets", json_object_get(answer, "budgets"));
    if (r == 0 && !json)
        (void)err_set(e, -ENOMEM, "no memory for what was moved");
    for (unsigned part = 0; part < PART_N; part++)
        keys_free_all(&l.lines[part]);
    return json;
}

/* ---- bytes and money as tables --------------------------------------------------------------- */

/* Disputes that are shown to people. */
#define DISPUTES_SHOWN 8

static const char *cost_text(const json_t *line, const char *currency, char buf[static 48])
{
    const json_t *cost = json_object_get(line, "cost");

    if (json_is_number(cost))
        (void)snprintf(buf, 48, "%.4f %s", json_number_value(cost), currency);
    else
        (void)snprintf(buf, 48, "-");
    return buf;
}

static void add_paths(struct table *t, const json_t *paths)
{
    char text[64] = "";
    int n = 0;

    for (size_t i = 0; i < json_array_size(paths) && n >= 0 && (size_t)n < sizeof(text); i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s", i > 0 ? "," : "",
            json_string_value(json_array_get(paths, i)));
    table_add(t, "%s", text);
}

/* A table of the lines of @part; that of edges has two columns more. */
static void format_part(struct str *out, const json_t *lines, enum part part, const char *currency)
{
    bool are_edges = part == PART_EDGES;
    const json_t *line;
    struct table t = {.n_columns = are_edges ? 6 : 4};
    size_t i;

    table_add(&t, "%s", parts[part].head);
    if (are_edges) {
        table_add(&t, "TO");
        table_add(&t, "PATH");
    }
    table_add(&t, "BYTES");
    table_add(&t, "COST");
    table_add(&t, "UNPRICED");
    json_array_foreach(lines, i, line) {
        bool is_priced = number_of(line, "unpricedBytes") == 0;
        char buf[48];

        table_add(&t, "%s", text_of(line, parts[part].field, parts[part].none));
        if (are_edges) {
            table_add(&t, "%s", text_of(line, "to", "(others)"));
            add_paths(&t, json_object_get(line, "paths"));
        }
        table_add(&t, "%s", bytes_text(line, "bytes", buf));
        table_add(&t, "%s", cost_text(line, currency, buf));
        table_add(&t, "%s", is_priced ? "-" : bytes_text(line, "unpricedBytes", buf));
    }
    table_format(&t, out);
    str_add(out, "\n");
    table_deinit(&t);
}

static void format_total(struct str *out, const json_t *ledger, const char *currency)
{
    const json_t *total = json_object_get(ledger, "total");
    const json_t *left_out = json_object_get(ledger, "leftOut");
    bool is_priced = json_is_number(json_object_get(total, "cost"));
    char buf[48];

    str_addf(out, "total %s", bytes_text(total, "bytes", buf));
    if (!is_priced)
        str_add(out, "; no price table was given, so no cost is known");
    else
        str_addf(out, ", %s", cost_text(total, currency, buf));
    if (is_priced && number_of(total, "unpricedBytes") > 0)
        str_addf(out, " without %s that the price table has no price for",
            bytes_text(total, "unpricedBytes", buf));
    str_add(out, "\n");
    if (number_of(left_out, "bytes") > 0)
        str_addf(out, "%s more are in rows that the answer had no room for: ask for fewer days\n",
            bytes_text(left_out, "bytes", buf));
}

/* Where the two ends of an edge contradict each other. */
static void format_disputes(struct str *out, const json_t *disputes)
{
    size_t n = json_array_size(disputes);

    for (size_t i = 0; i < n && i < DISPUTES_SHOWN; i++) {
        const json_t *line = json_array_get(disputes, i);
        const char *job = text_of(line, "job", NULL);
        char buf[3][TRAFFIC_BYTES_TEXT_MAX];

        str_addf(out,
            "%s: %s says it has sent %s to %s%s%s, which says it has received %s; %s are counted\n",
            text_of(line, "day", "?"), text_of(line, "from", "?"), bytes_text(line, "sent", buf[0]),
            text_of(line, "to", "?"), job ? " for job " : "", job ? job : "",
            bytes_text(line, "received", buf[1]), bytes_text(line, "counted", buf[2]));
    }
    if (n > DISPUTES_SHOWN)
        str_addf(out, "%zu more such disputes: --json has them\n", n - DISPUTES_SHOWN);
}

void ledger_format(struct str *out, const json_t *ledger)
{
    const char *currency = text_of(ledger, "currency", "");

    str_addf(out, "network %s, %s to %s (UTC)\n\n", text_of(ledger, "network", "?"),
        text_of(ledger, "since", "?"), text_of(ledger, "until", "?"));
    for (unsigned part = 0; part < PART_N; part++) {
        const json_t *lines = json_object_get(ledger, parts[part].list);
        const char *first = text_of(json_array_get(lines, 0), parts[part].field, NULL);

        /* One day, or no job, is as much as the total. */
        if (json_array_size(lines) > 1 || (first && part != PART_DAYS))
            format_part(out, lines, part, currency);
    }
    format_total(out, ledger, currency);
    format_disputes(out, json_object_get(ledger, "disputes"));
    spent_format_all(out, json_object_get(ledger, "budgets"));
}
