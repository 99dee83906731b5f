/* page.c - see page.h. */
#include "page/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/text.h"
#include "base/traffic.h"
#include "mesh/object/fields.h"

/* Most rows of each of its tables. */
#define PAGE_ROWS_MAX 100

const char *page_style(void)
{
    return ":root{color-scheme:light dark;--line:#8884;--soft:#888}"
           "body{font:15px/1.45 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 "
           "1rem}"
           "h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .4rem}"
           "p{margin:.3rem 0}.soft,th{color:var(--soft)}.bad{color:#c22;font-weight:600}"
           "dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.8rem;"
           "margin:1.2rem 0}dl div{border:1px solid var(--line);border-radius:.5rem;padding:.6rem "
           ".8rem}dt{color:var(--soft);font-size:.85rem}dd{margin:0;font-size:1.3rem}"
           "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .6rem "
           ".25rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}"
           "th{font-weight:400;font-size:.85rem}td.n,th.n{text-align:right;white-space:nowrap;"
           "font-variant-numeric:tabular-nums}meter{width:9rem}";
}

/* ==== the parts of an HTML document ========================================================== */

/* Whatever text is handed in is escaped. */

#define REPLACEMENT "\xef\xbf\xbd"

/* NULL: it stands for itself. */
static const char *escape(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    }
    return NULL;
}

void html_text(struct str *out, const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0, n; i < len; i += n) {
        enum text_kind kind;
        const char *escaped;

        n = text_next(text + i, len - i, &kind);
        escaped = kind == TEXT_KIND_PLAIN ? escape(text[i]) : REPLACEMENT;
        if (escaped)
            str_add(out, escaped);
        else
            str_add_bytes(out, text + i, n);
    }
}

/* Up to the body. @style: as it is, and @hash: base64 of its SHA-256. */
static void html_begin(struct str *out, const char *title, const char *style, const char *hash)
{
    str_add(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    /* A file has no header that would say so; frame-ancestors is not heeded here. */
    str_addf(out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; "
        "style-src &#39;sha256-%s&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;\">\n",
        hash);
    str_add(out, "<meta name=\"viewport\" content=\"width=device-width\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    html_text(out, title);
    str_addf(out, " · weft</title>\n<style>%s</style>\n</head>\n<body>\n", style);
}

/* A cell with a number, as printf() makes it; at most 127 bytes. */
static __attribute__((format(printf, 2, 3))) void html_number(
    struct str *out, const char *format, ...)
{
    char text[128];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    str_add(out, "<td class=\"n\">");
    html_text(out, text);
    str_add(out, "</td>");
}

/* ==== the page =============================================================================== */

/* ---- small parts ---------------------------------------------------------------------------- */

static void add_time(struct str *out, json_int_t at)
{
    time_t seconds = (time_t)at;
    struct tm tm;
    char buf[32];

    if (at < 0 || !gmtime_r(&seconds, &tm) ||
        strftime(buf, sizeof(buf), "%Y-%m-%d %H:%M:%S", &tm) == 0)
        (void)snprintf(buf, sizeof(buf), "?");
    html_text(out, buf);
}

static void add_fact(struct str *out, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_fact(struct str *out, const char *what, const char *format, ...)
{
    char text[128];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    str_add(out, "<div><dt>");
    html_text(out, what);
    str_add(out, "</dt><dd>");
    html_text(out, text);
    str_add(out, "</dd></div>\n");
}

/* ---- what is in it -------------------------------------------------------------------------- */

static void add_summary(struct str *out, const json_t *facts)
{
    const json_t *nodes = json_object_get(json_object_get(facts, "nodes"), "nodes");
    const json_t *counts = json_object_get(json_object_get(facts, "edges"), "counts");
    const json_t *jobs = json_object_get(json_object_get(facts, "jobs"), "jobs");
    const json_t *cost = json_object_get(facts, "cost");
    const json_t *total = json_object_get(cost, "total");
    const char *state;
    const json_t *n;
    const json_t *node;
    size_t n_reached = 0;
    size_t i;
    json_int_t moved = json_integer_value(json_object_get(total, "bytes"));
    char buf[TRAFFIC_BYTES_TEXT_MAX];

    json_array_foreach(nodes, i, node)
        n_reached += json_is_true(json_object_get(node, "reachable"));
    str_add(out, "<dl>\n");
    add_fact(out, "nodes reachable", "%zu of %zu", n_reached, json_array_size(nodes));
    json_object_foreach((json_t *)counts, state, n) {
        if (json_integer_value(n) > 0) {
            char what[64] = "edges: ";

            /* States are the hub's own words. */
            (void)snprintf(what, sizeof(what), "edges: %.40s", state);
            add_fact(out, what, "%lld", (long long)json_integer_value(n));
        }
    }
    if (jobs)
        add_fact(out, "jobs", "%zu", json_array_size(jobs));
    add_fact(out, "moved", "%s", traffic_bytes_format(moved > 0 ? (uint64_t)moved : 0, buf));
    if (json_is_number(json_object_get(total, "cost")))
        add_fact(out, "cost", "%.2f %.16s", json_number_value(json_object_get(total, "cost")),
            fields_text_of(cost, "currency"));
    str_add(out, "</dl>\n");
}

/* ---- cells of a row -------------------------------------------------------------------------- */

struct column;

/* Adds the cell of @c of that row. */
typedef void (*cell_fn)(struct str *out, const json_t *row, const struct column *c);

struct column {
    const char *head; /* "+NAME": it has numbers */
    cell_fn add;
    const char *field;
    const char *in;   /* the object of the row that has @field; NULL: the row itself */
    const char *none; /* instead of a text that is empty; NULL: it stays so */
};

static void add_text(struct str *out, const json_t *row, const struct column *c)
{
    const char *text = fields_text_of(c->in ? json_object_get(row, c->in) : row, c->field);

    str_add(out, "<td>");
    html_text(out, text[0] == '\0' && c->none ? c->none : text);
    str_add(out, "</td>");
}

static void add_bytes(struct str *out, const json_t *row, const struct column *c)
{
    json_int_t n = json_integer_value(json_object_get(row, c->field));
    char buf[TRAFFIC_BYTES_TEXT_MAX];

    html_number(out, "%s", traffic_bytes_format(n > 0 ? (uint64_t)n : 0, buf));
}

static void add_cost(struct str *out, const json_t *row, const struct column *c)
{
    const json_t *cost = json_object_get(row, c->field);

    if (json_is_number(cost))
        html_number(out, "%.4f", json_number_value(cost));
    else
        html_number(out, "–");
}

static void add_count(struct str *out, const json_t *row, const struct column *c)
{
    html_number(out, "%lld", (long long)json_integer_value(json_object_get(row, c->field)));
}

static void add_percent(struct str *out, const json_t *row, const struct column *c)
{
    html_number(out, "%.1f %%", 100 * json_number_value(json_object_get(row, c->field)));
}

static void add_meter(struct str *out, const json_t *row, const struct column *c)
{
    double share = json_number_value(json_object_get(row, c->field));

    str_addf(out,
        "<td><meter min=\"0\" max=\"1\" low=\".8\" high=\".999\" optimum=\"0\" "
        "value=\"%.4f\"></meter></td>",
        share < 1 ? share : 1);
}

static void add_severity(struct str *out, const json_t *row, const struct column *c)
{
    const char *severity = fields_text_of(row, c->field);

    str_addf(out, "<td%s>", strcmp(severity, "critical") == 0 ? " class=\"bad\"" : "");
    html_text(out, severity);
    str_add(out, "</td>");
}

static void add_reachable(struct str *out, const json_t *row, const struct column *c)
{
    bool is_reached = json_is_true(json_object_get(row, c->field));

    str_addf(out, "<td%s>%s</td>", is_reached ? "" : " class=\"bad\"",
        is_reached ? "reachable" : "not reachable");
}

static void add_when(struct str *out, const json_t *row, const struct column *c)
{
    str_add(out, "<td>");
    add_time(out, json_integer_value(json_object_get(row, c->field)));
    str_add(out, "</td>");
}

static void add_paths(struct str *out, const json_t *row, const struct column *c)
{
    const json_t *path;
    size_t i;

    str_add(out, "<td>");
    json_array_foreach(json_object_get(row, c->field), i, path) {
        str_add(out, i > 0 ? ", " : "");
        html_text(out, json_string_value(path) ? json_string_value(path) : "?");
    }
    str_add(out, "</td>");
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define COLUMNS_MAX 8

struct section {
    const char *title;
    const char *of;   /* the object of the page's facts that has the rows: "cost", ... */
    const char *rows; /* ... and their name in it */
    /* A row with a greater weight is shown earlier, and one with none, below 0, not at all. NULL:
     * all have the same. */
    double (*weight)(const json_t *row);
    bool is_last_first;                 /* among those of the same weight */
    bool is_always;                     /* also without a row */
    size_t max;                         /* rows that are shown; 0: PAGE_ROWS_MAX */
    const char *more;                   /* the command that has the rest; NULL: none */
    struct column columns[COLUMNS_MAX]; /* up to one without a head */
};

/* Nodes that are not reached first, then hubs. */
static double node_weight(const json_t *node)
{
    if (!json_is_true(json_object_get(node, "reachable")))
        return 2;
    return json_object_get(json_object_get(node, "spec"), "hub") ? 1 : 0;
}

static double bytes_weight(const json_t *line)
{
    return json_number_value(json_object_get(line, "bytes"));
}

static const struct section sections[] = {
    {"Findings", "findings", "findings", .more = "weft get findings",
        .columns = {{"", add_severity, "severity"}, {"code", add_text, "code"},
            {"about", add_text, "subject"}, {"since (UTC)", add_when, "since"},
            {"what", add_text, "text"}, {"what to do", add_text, "fix"}}},
    {"Budgets", "cost", "budgets", .max = SIZE_MAX,
        .columns = {{"budget of the day", add_text, "job", .none = "the network"},
            {"", add_meter, "share"}, {"+spent", add_percent, "share"},
            {"+moved", add_bytes, "bytes"}, {"+cost", add_cost, "cost"}}},
    {"Nodes", "nodes", "nodes", .weight = node_weight, .is_always = true, .more = "weft nodes",
        .columns = {{"node", add_text, "name", "metadata"}, {"", add_reachable, "reachable"},
            {"address", add_text, "address4", "spec"}, {"island", add_text, "island", "spec"},
            {"engine", add_text, "engine", "status"}, {"version", add_text, "version", "status"}}},
    {"Edges that have moved most", "cost", "edges", .weight = bytes_weight, .is_always = true,
        .more = "weft cost",
        .columns = {{"from", add_text, "from"}, {"to", add_text, "to", .none = "(others)"},
            {"path", add_paths, "paths"}, {"+moved", add_bytes, "bytes"},
            {"+cost", add_cost, "cost"}}},
    {"Edges whose ends contradict each other", "cost", "disputes", .more = "weft cost --json",
        .columns = {{"day", add_text, "day"}, {"from", add_text, "from"}, {"to", add_text, "to"},
            {"job", add_text, "job"}, {"+says it sent", add_bytes, "sent"},
            {"+says it received", add_bytes, "received"}, {"+counted", add_bytes, "counted"}}},
    {"By job", "cost", "jobs", .more = "weft cost",
        .columns = {{"job", add_text, "job", .none = "(none)"}, {"+moved", add_bytes, "bytes"},
            {"+cost", add_cost, "cost"}}},
    {"By day", "cost", "days", .more = "weft cost",
        .columns = {{"day", add_text, "day", .none = "?"}, {"+moved", add_bytes, "bytes"},
            {"+cost", add_cost, "cost"}}},
    {"Jobs", "jobs", "jobs", .more = "weft jobs",
        .columns = {{"job", add_text, "job"}, {"run", add_text, "run"},
            {"+keys", add_count, "keys"}, {"+limits met", add_count, "limitHits"},
            {"last limit", add_text, "lastLimit"}}},
    {"Events", "events", "events", .is_last_first = true, .max = PAGE_ROWS_MAX / 4,
        .columns = {{"time (UTC)", add_when, "time"}, {"event", add_text, "type"},
            {"about", add_text, "object"}, {"", add_text, "text"}}},
};

/* A row and what it goes by. */
struct ranked {
    const json_t *row; /* borrowed */
    double weight;
    size_t place; /* in the order of those of the same weight */
};

static int by_weight(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* The rows that have a weight, in their order; free(). NULL: no memory. */
static struct ranked *rank(const struct section *s, const json_t *rows, size_t *ret_n)
{
    size_t n = json_array_size(rows);
    struct ranked *ranked = calloc(n + 1, sizeof(*ranked));

    *ret_n = 0;
    for (size_t i = 0; ranked && i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        double weight = s->weight ? s->weight(row) : 0;

        if (weight >= 0)
            ranked[(*ret_n)++] = (struct ranked){
                .row = row, .weight = weight, .place = s->is_last_first ? n - i : i};
    }
    if (ranked)
        qsort(ranked, *ret_n, sizeof(*ranked), by_weight);
    return ranked;
}

static void add_section(struct str *out, const struct section *s, const json_t *facts)
{
    size_t n;
    size_t max = s->max ? s->max : PAGE_ROWS_MAX;
    _cleanup_(freep) struct ranked *ranked =
        rank(s, json_object_get(json_object_get(facts, s->of), s->rows), &n);

    if (n == 0 && !s->is_always)
        return;
    str_add(out, "<h2>");
    html_text(out, s->title);
    str_add(out, "</h2>\n<table>\n<thead><tr>");
    for (const struct column *c = s->columns; c->head; c++) {
        bool is_number = c->head[0] == '+';

        str_add(out, is_number ? "<th class=\"n\">" : "<th>");
        html_text(out, c->head + is_number);
        str_add(out, "</th>");
    }
    str_add(out, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < n && i < max; i++) {
        str_add(out, "<tr>");
        for (const struct column *c = s->columns; c->head; c++)
            c->add(out, ranked[i].row, c);
        str_add(out, "</tr>\n");
    }
    str_add(out, "</tbody>\n</table>\n");
    if (s->more && n > max)
        str_addf(out, "<p class=\"soft\">%zu more: <code>%s</code></p>\n", n - max, s->more);
}

void page_format(struct str *out, const json_t *facts)
{
    const json_t *cost = json_object_get(facts, "cost");

    html_begin(out, fields_text_of(facts, "network"), page_style(), PAGE_STYLE_HASH);
    str_add(out, "<h1>");
    html_text(out, fields_text_of(facts, "network"));
    str_add(out, "</h1>\n<p class=\"soft\">as of ");
    add_time(out, json_integer_value(json_object_get(facts, "at")));
    str_add(out, " UTC; moved and cost from ");
    html_text(out, fields_text_of(cost, "since"));
    str_add(out, " to ");
    html_text(out, fields_text_of(cost, "until"));
    str_add(out, "; weft ");
    html_text(out, fields_text_of(facts, "version"));
    str_add(out, "</p>\n");
    add_summary(out, facts);
    for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
        add_section(out, &sections[i], facts);
    str_add(out, "</body>\n</html>\n");
}
