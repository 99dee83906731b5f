/* page.c - see page.h. */
#include "page/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/traffic.h"

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

static const char *text_of(const json_t *json, const char *field)
{
    const char *text = json_string_value(json_object_get(json, field));

    return text ? text : "";
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

/* A title, and a table with these heads up to NULL; "+NAME" is one of numbers. */
static void html_table(struct str *out, const char *title, const char *const *heads)
{
    str_add(out, "<h2>");
    html_text(out, title);
    str_add(out, "</h2>\n<table>\n<thead><tr>");
    for (size_t i = 0; heads[i]; i++) {
        bool is_number = heads[i][0] == '+';

        str_add(out, is_number ? "<th class=\"n\">" : "<th>");
        html_text(out, heads[i] + is_number);
        str_add(out, "</th>");
    }
    str_add(out, "</tr></thead>\n<tbody>\n");
}

/* A table's end. */
static void html_table_end(struct str *out)
{
    str_add(out, "</tbody>\n</table>\n");
}

/* A cell with @text. */
static void html_cell(struct str *out, const char *text)
{
    str_add(out, "<td>");
    html_text(out, text);
    str_add(out, "</td>");
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

static void add_bytes(struct str *out, const json_t *line, const char *field)
{
    json_int_t n = json_integer_value(json_object_get(line, field));
    char buf[TRAFFIC_BYTES_TEXT_MAX];

    html_number(out, "%s", traffic_bytes_format(n > 0 ? (uint64_t)n : 0, buf));
}

static void add_cost(struct str *out, const json_t *line)
{
    const json_t *cost = json_object_get(line, "cost");

    if (json_is_number(cost))
        html_number(out, "%.4f", json_number_value(cost));
    else
        html_number(out, "–");
}

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

/* How many rows are left out, and where they are. */
static void add_more(struct str *out, size_t n, const char *command)
{
    if (n > PAGE_ROWS_MAX)
        str_addf(
            out, "<p class=\"soft\">%zu more: <code>%s</code></p>\n", n - PAGE_ROWS_MAX, command);
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

/* ---- rows in an order ----------------------------------------------------------------------- */

/* What a row goes by: a greater weight is shown earlier. */
struct ranked {
    const json_t *row; /* borrowed */
    double weight;
    size_t place; /* in the list: equals stay as they were */
};

static int by_weight(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Up to PAGE_ROWS_MAX of @list, and how many there are in all: those with a weight. NULL: no
 * memory, or none. */
static struct ranked *rank(
    const json_t *list, double (*weight)(const json_t *row), size_t *ret_n, size_t *ret_all)
{
    size_t n = json_array_size(list);
    struct ranked *ranked = calloc(n + 1, sizeof(*ranked));

    *ret_n = 0;
    *ret_all = 0;
    for (size_t i = 0; ranked && i < n; i++) {
        double w = weight(json_array_get(list, i));

        if (w >= 0)
            ranked[(*ret_all)++] =
                (struct ranked){.row = json_array_get(list, i), .weight = w, .place = i};
    }
    if (ranked)
        qsort(ranked, *ret_all, sizeof(*ranked), by_weight);
    *ret_n = *ret_all < PAGE_ROWS_MAX ? *ret_all : PAGE_ROWS_MAX;
    return ranked;
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
            text_of(cost, "currency"));
    str_add(out, "</dl>\n");
}

static void add_budgets(struct str *out, const json_t *budgets)
{
    static const char *const heads[] = {"budget of the day", "", "+spent", "+moved", "+cost", NULL};
    const json_t *line;
    size_t i;

    if (json_array_size(budgets) == 0)
        return;
    html_table(out, "Budgets", heads);
    json_array_foreach(budgets, i, line) {
        double share = json_number_value(json_object_get(line, "share"));

        str_add(out, "<tr>");
        html_cell(out, text_of(line, "job")[0] ? text_of(line, "job") : "the network");
        str_addf(out,
            "<td><meter min=\"0\" max=\"1\" low=\".8\" high=\".999\" optimum=\"0\" "
            "value=\"%.4f\"></meter></td>",
            share < 1 ? share : 1);
        html_number(out, "%.1f %%", 100 * share);
        add_bytes(out, line, "bytes");
        add_cost(out, line);
        str_add(out, "</tr>\n");
    }
    html_table_end(out);
}

/* Nodes that are not reached first, then hubs. */
static double node_weight(const json_t *node)
{
    if (!json_is_true(json_object_get(node, "reachable")))
        return 2;
    return json_object_get(json_object_get(node, "spec"), "hub") ? 1 : 0;
}

static void add_node(struct str *out, const json_t *node)
{
    const json_t *spec = json_object_get(node, "spec");
    const json_t *status = json_object_get(node, "status");
    bool is_reached = json_is_true(json_object_get(node, "reachable"));

    str_add(out, "<tr>");
    html_cell(out, text_of(json_object_get(node, "metadata"), "name"));
    str_addf(out, "<td%s>%s</td>", is_reached ? "" : " class=\"bad\"",
        is_reached ? "reachable" : "not reachable");
    html_cell(out, text_of(spec, "address4"));
    html_cell(out, text_of(spec, "island"));
    html_cell(out, text_of(status, "engine"));
    html_cell(out, text_of(status, "version"));
    str_add(out, "</tr>\n");
}

static void add_nodes(struct str *out, const json_t *nodes)
{
    static const char *const heads[] = {"node", "", "address", "island", "engine", "version", NULL};
    size_t n;
    size_t n_all;
    struct ranked *ranked = rank(nodes, node_weight, &n, &n_all);

    html_table(out, "Nodes", heads);
    for (size_t i = 0; i < n; i++)
        add_node(out, ranked[i].row);
    html_table_end(out);
    add_more(out, n_all, "weft nodes");
    free(ranked);
}

static double trouble_weight(const json_t *edge)
{
    return json_is_true(json_object_get(edge, "trouble")) ? 1 : -1;
}

static void add_troubles(struct str *out, const json_t *edges)
{
    static const char *const heads[] = {"edge", "state", "why", NULL};
    size_t n;
    size_t n_all;
    struct ranked *ranked = rank(edges, trouble_weight, &n, &n_all);

    if (n > 0) {
        html_table(out, "Edges in trouble", heads);
        for (size_t i = 0; i < n; i++) {
            str_add(out, "<tr>");
            html_cell(out, text_of(ranked[i].row, "name"));
            html_cell(out, text_of(ranked[i].row, "state"));
            html_cell(out, text_of(ranked[i].row, "why"));
            str_add(out, "</tr>\n");
        }
        html_table_end(out);
        add_more(out, n_all, "weft get MeshEdge");
    }
    free(ranked);
}

static double bytes_weight(const json_t *line)
{
    return json_number_value(json_object_get(line, "bytes"));
}

static void add_paths(struct str *out, const json_t *line)
{
    const json_t *path;
    size_t i;

    str_add(out, "<td>");
    json_array_foreach(json_object_get(line, "paths"), i, path) {
        str_add(out, i > 0 ? ", " : "");
        html_text(out, json_string_value(path) ? json_string_value(path) : "?");
    }
    str_add(out, "</td>");
}

static void add_moved(struct str *out, const json_t *edges)
{
    static const char *const heads[] = {"from", "to", "path", "+moved", "+cost", NULL};
    size_t n;
    size_t n_all;
    struct ranked *ranked = rank(edges, bytes_weight, &n, &n_all);

    html_table(out, "Edges that have moved most", heads);
    for (size_t i = 0; i < n; i++) {
        const json_t *line = ranked[i].row;

        str_add(out, "<tr>");
        html_cell(out, text_of(line, "from"));
        html_cell(out, text_of(line, "to")[0] ? text_of(line, "to") : "(others)");
        add_paths(out, line);
        add_bytes(out, line, "bytes");
        add_cost(out, line);
        str_add(out, "</tr>\n");
    }
    html_table_end(out);
    add_more(out, n_all, "weft cost");
    free(ranked);
}

static void add_disputes(struct str *out, const json_t *disputes)
{
    static const char *const heads[] = {
        "day", "from", "to", "job", "+says it sent", "+says it received", "+counted", NULL};
    size_t n = json_array_size(disputes);

    if (n == 0)
        return;
    html_table(out, "Edges whose ends contradict each other", heads);
    for (size_t i = 0; i < n && i < PAGE_ROWS_MAX; i++) {
        const json_t *line = json_array_get(disputes, i);

        str_add(out, "<tr>");
        html_cell(out, text_of(line, "day"));
        html_cell(out, text_of(line, "from"));
        html_cell(out, text_of(line, "to"));
        html_cell(out, text_of(line, "job"));
        add_bytes(out, line, "sent");
        add_bytes(out, line, "received");
        add_bytes(out, line, "counted");
        str_add(out, "</tr>\n");
    }
    html_table_end(out);
    add_more(out, n, "weft cost --json");
}

/* @title by @field, as in ledger_make()'s "jobs" and "days". */
static void add_part(
    struct str *out, const char *title, const json_t *part, const char *field, const char *none)
{
    const char *heads[] = {field, "+moved", "+cost", NULL};
    size_t n = json_array_size(part);

    if (n == 0)
        return;
    html_table(out, title, heads);
    for (size_t i = 0; i < n && i < PAGE_ROWS_MAX; i++) {
        const json_t *line = json_array_get(part, i);

        str_add(out, "<tr>");
        html_cell(out, text_of(line, field)[0] ? text_of(line, field) : none);
        add_bytes(out, line, "bytes");
        add_cost(out, line);
        str_add(out, "</tr>\n");
    }
    html_table_end(out);
    add_more(out, n, "weft cost");
}

static void add_jobs(struct str *out, const json_t *jobs)
{
    static const char *const heads[] = {"job", "run", "+keys", "+limits met", "last limit", NULL};
    size_t n = json_array_size(jobs);

    if (n == 0)
        return;
    html_table(out, "Jobs", heads);
    for (size_t i = 0; i < n && i < PAGE_ROWS_MAX; i++) {
        const json_t *job = json_array_get(jobs, i);

        str_add(out, "<tr>");
        html_cell(out, text_of(job, "job"));
        html_cell(out, text_of(job, "run"));
        html_number(out, "%lld", (long long)json_integer_value(json_object_get(job, "keys")));
        html_number(out, "%lld", (long long)json_integer_value(json_object_get(job, "limitHits")));
        html_cell(out, text_of(job, "lastLimit"));
        str_add(out, "</tr>\n");
    }
    html_table_end(out);
    add_more(out, n, "weft jobs");
}

/* The last ones first. */
static void add_events(struct str *out, const json_t *events)
{
    static const char *const heads[] = {"time (UTC)", "event", "about", "", NULL};
    size_t n = json_array_size(events);

    if (n == 0)
        return;
    html_table(out, "Events", heads);
    for (size_t i = 0; i < n && i < PAGE_ROWS_MAX / 4; i++) {
        const json_t *ev = json_array_get(events, n - 1 - i);

        str_add(out, "<tr><td>");
        add_time(out, json_integer_value(json_object_get(ev, "time")));
        str_add(out, "</td>");
        html_cell(out, text_of(ev, "type"));
        html_cell(out, text_of(ev, "object"));
        html_cell(out, text_of(ev, "text"));
        str_add(out, "</tr>\n");
    }
    html_table_end(out);
}

void page_format(struct str *out, const json_t *facts)
{
    const json_t *cost = json_object_get(facts, "cost");

    html_begin(out, text_of(facts, "network"), page_style(), PAGE_STYLE_HASH);
    str_add(out, "<h1>");
    html_text(out, text_of(facts, "network"));
    str_add(out, "</h1>\n<p class=\"soft\">as of ");
    add_time(out, json_integer_value(json_object_get(facts, "at")));
    str_add(out, " UTC; moved and cost from ");
    html_text(out, text_of(cost, "since"));
    str_add(out, " to ");
    html_text(out, text_of(cost, "until"));
    str_add(out, "; weft ");
    html_text(out, text_of(facts, "version"));
    str_add(out, "</p>\n");
    add_summary(out, facts);
    add_budgets(out, json_object_get(cost, "budgets"));
    add_troubles(out, json_object_get(json_object_get(facts, "edges"), "edges"));
    add_nodes(out, json_object_get(json_object_get(facts, "nodes"), "nodes"));
    add_moved(out, json_object_get(cost, "edges"));
    add_disputes(out, json_object_get(cost, "disputes"));
    add_part(out, "By job", json_object_get(cost, "jobs"), "job", "(none)");
    add_part(out, "By day", json_object_get(cost, "days"), "day", "?");
    add_jobs(out, json_object_get(json_object_get(facts, "jobs"), "jobs"));
    add_events(out, json_object_get(json_object_get(facts, "events"), "events"));
    str_add(out, "</body>\n</html>\n");
}
