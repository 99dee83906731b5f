/* ledger_text.c - bytes and money as tables; see ledger.h. */
#include <stdio.h>

#include "base/str.h"
#include "base/table.h"
#include "base/traffic.h"
#include "cost/ledger.h"
#include "cost/spent_text.h"

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
