/*
 * test-metrics.c - Prometheus' text, and docs/METRICS.md, which this prints with --print.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/metrics.h"

static void assert_text(struct metrics *m, const char *expected)
{
    char *text = metrics_take(m);

    assert_string_equal(text, expected);
    free(text);
}

static void test_samples_of_one_metric_stand_together(void **state)
{
    struct metrics m = METRICS_NULL;

    for (unsigned i = 1; i <= 2; i++) {
        const char *network = i == 1 ? "a" : "b";

        metrics_add_labelled(&m, METRIC_NODES, METRIC_LABELS(network), i);
        metrics_add_labelled(&m, METRIC_EDGE_ENDS, METRIC_LABELS(network, "lan"), 10 * i);
    }
    metrics_add(&m, METRIC_STORE_REVISION, 9007199254740991.0);
    assert_text(&m, "# HELP weft_edge_ends ends of edges, by how their agents reach the other end\n"
                    "# TYPE weft_edge_ends gauge\n"
                    "weft_edge_ends{network=\"a\",path=\"lan\"} 10\n"
                    "weft_edge_ends{network=\"b\",path=\"lan\"} 20\n"
                    "# HELP weft_nodes members of the network, with the hub\n"
                    "# TYPE weft_nodes gauge\n"
                    "weft_nodes{network=\"a\"} 1\n"
                    "weft_nodes{network=\"b\"} 2\n"
                    "# HELP weft_store_revision revision of the store\n"
                    "# TYPE weft_store_revision gauge\n"
                    "weft_store_revision 9007199254740991\n");
}

static void test_any_text_is_a_label(void **state)
{
    struct metrics m = METRICS_NULL;

    metrics_add_labelled(&m, METRIC_DROPS, METRIC_LABELS("a \"b\"\\\nc"), 0.1);
    assert_text(&m, "# HELP weft_drops_total packets that went no further\n"
                    "# TYPE weft_drops_total counter\n"
                    "weft_drops_total{reason=\"a \\\"b\\\"\\\\\\nc\"} 0.1\n");
}

static void test_histogram(void **state)
{
    const struct metrics_histogram h = {.bounds = (const double[]){0.001, 5},
        .n = (const uint64_t[]){1, 0, 2},
        .n_bounds = 2,
        .sum = 12.5};
    struct metrics m = METRICS_NULL;

    metrics_add_histogram(&m, METRIC_AGENT_PASS_SECONDS, METRIC_LABELS("failed"), &h);
    assert_text(&m,
        "# HELP weft_agent_pass_seconds how long it took to make the interface what the hub wants\n"
        "# TYPE weft_agent_pass_seconds histogram\n"
        "weft_agent_pass_seconds_bucket{result=\"failed\",le=\"0.001\"} 1\n"
        "weft_agent_pass_seconds_bucket{result=\"failed\",le=\"5\"} 1\n"
        "weft_agent_pass_seconds_bucket{result=\"failed\",le=\"+Inf\"} 3\n"
        "weft_agent_pass_seconds_sum{result=\"failed\"} 12.5\n"
        "weft_agent_pass_seconds_count{result=\"failed\"} 3\n");
}

/* ---- docs/METRICS.md ------------------------------------------------------------------------ */

struct row {
    const char *name;
    const char *type;
    const char *unit;
    const char *labels;
    const char *help;
};

#define X(NAME, name, type, unit, labels, help) {name, #type, unit, labels, help},
static const struct row hub_rows[] = {METRICS_HUB(X)};
static const struct row overlay_rows[] = {METRICS_OVERLAY(X)};
static const struct row rendezvous_rows[] = {METRICS_RENDEZVOUS(X)};
static const struct row agent_rows[] = {METRICS_AGENT(X)};
static const struct row probe_rows[] = {METRICS_PROBE(X)};
#undef X

static void add_row(struct str *out, const struct row *row)
{
    str_addf(out, "| `%s` | ", row->name);
    for (const char *c = row->type; *c; c++)
        str_addf(out, "%c", tolower(*c));
    str_addf(out, " | %s | ", row->unit);
    for (const char *c = row->labels; *c; c++) {
        if (c == row->labels || c[-1] == ' ')
            str_add(out, "`");
        str_addf(out, *c == ',' ? "`%c" : "%c", *c);
        if (c[1] == '\0')
            str_add(out, "`");
    }
    str_addf(out, " | %s |\n", row->help);
}

static void add_part(struct str *out, const char *title, const struct row *rows, size_t n)
{
    str_addf(out, "\n## %s\n\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n",
        title);
    for (size_t i = 0; i < n; i++)
        add_row(out, &rows[i]);
}

static void make_document(struct str *out)
{
    str_add(out,
        "# Metrics\n\n"
        "Made from the rows in `src/core/base/metrics.h` by `make docs`; a unit test compares.\n"
        "Names and labels stay from version to version. How to scrape them, and what to be woken\n"
        "by: [OPERATIONS.md](OPERATIONS.md#metrics).\n");
#define N(rows) rows, sizeof(rows) / sizeof(*(rows))
    add_part(out, "The hub: `GET /v1/metrics`", N(hub_rows));
    add_part(out, "The hub's relay and data plane", N(overlay_rows));
    add_part(out, "The hub's rendezvous for jobs", N(rendezvous_rows));
    add_part(out, "A node's agent: `weft agent --metrics`, and `GET /v1/metrics` on its socket",
        N(agent_rows));
    add_part(out, "A node's probe: `weft probe --metrics`", N(probe_rows));
#undef N
}

static void test_document(void **state)
{
    static char kept[1 << 16];
    const char *root = getenv("WEFT_SOURCE_ROOT");
    struct str made = STR_NULL;
    char path[4096];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/docs/METRICS.md", root ? root : ".");
    f = fopen(path, "rb");
    assert_non_null(f);
    kept[fread(kept, 1, sizeof(kept) - 1, f)] = '\0';
    (void)fclose(f);
    make_document(&made);
    if (strcmp(kept, str_text(&made)) != 0)
        fail_msg("docs/METRICS.md is not what the rows say; run `make docs`");
    str_deinit(&made);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_of_one_metric_stand_together),
        cmocka_unit_test(test_any_text_is_a_label),
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_document),
    };

    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        struct str made = STR_NULL;

        make_document(&made);
        (void)fputs(str_text(&made), stdout);
        str_deinit(&made);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
