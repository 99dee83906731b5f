/* pass_metrics.c - see pass_metrics.h. */
#include "agent/reconcile/pass_metrics.h"

#include <inttypes.h>

#include "base/str.h"

static const char *const result_names[] = {"unchanged", "changed", "failed"};

_Static_assert(sizeof(result_names) / sizeof(*result_names) == PASS_RESULT_N, "a name each");

/* The bars of the benchmark, 5 ms and 200 ms, are among them. */
static const nsec_t bounds[PASS_METRICS_BOUNDS] = {
    1 * NSEC_PER_MSEC,
    2 * NSEC_PER_MSEC,
    5 * NSEC_PER_MSEC,
    10 * NSEC_PER_MSEC,
    20 * NSEC_PER_MSEC,
    50 * NSEC_PER_MSEC,
    100 * NSEC_PER_MSEC,
    200 * NSEC_PER_MSEC,
    500 * NSEC_PER_MSEC,
    1 * NSEC_PER_SEC,
    2 * NSEC_PER_SEC,
    5 * NSEC_PER_SEC,
};

enum metric { METRIC_SECONDS, METRIC_FAILING, METRIC_FOREIGN, METRIC_N };

static const struct {
    const char *name;
    const char *type;
    const char *help;
    const char *labels; /* of each sample, for the documents */
} metrics[METRIC_N] = {
    [METRIC_SECONDS] = {"weft_agent_pass_seconds", "histogram",
        "how long it took to make the interface what the hub wants", "result"},
    [METRIC_FAILING] = {"weft_agent_passes_failing", "gauge",
        "passes that have failed one after the other; 0: the last one succeeded", ""},
    [METRIC_FOREIGN] = {"weft_agent_foreign_peers_removed_total", "counter",
        "peers that somebody else had added to the interface", ""},
};

void pass_metrics_add(struct pass_metrics *m, enum pass_result result, nsec_t duration)
{
    unsigned i = 0;

    while (i < PASS_METRICS_BOUNDS && duration > bounds[i])
        i++;
    m->n[result][i]++;
    m->sum[result] += duration;
}

static void add_head(struct str *out, enum metric which)
{
    str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[which].name, metrics[which].help,
        metrics[which].name, metrics[which].type);
}

static void add_histogram(struct str *out, const struct pass_metrics *m, enum pass_result result)
{
    const char *name = metrics[METRIC_SECONDS].name;
    uint64_t n = 0;

    for (unsigned i = 0; i < PASS_METRICS_BOUNDS; i++) {
        n += m->n[result][i];
        str_addf(out, "%s_bucket{result=\"%s\",le=\"%g\"} %" PRIu64 "\n", name,
            result_names[result], (double)bounds[i] / NSEC_PER_SEC, n);
    }
    n += m->n[result][PASS_METRICS_BOUNDS];
    str_addf(
        out, "%s_bucket{result=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name, result_names[result], n);
    str_addf(out, "%s_sum{result=\"%s\"} %.6f\n", name, result_names[result],
        (double)m->sum[result] / NSEC_PER_SEC);
    str_addf(out, "%s_count{result=\"%s\"} %" PRIu64 "\n", name, result_names[result], n);
}

void pass_metrics_format(
    const struct pass_metrics *m, const struct pass_metrics_facts *facts, struct str *out)
{
    add_head(out, METRIC_SECONDS);
    for (unsigned i = 0; i < PASS_RESULT_N; i++)
        add_histogram(out, m, (enum pass_result)i);
    add_head(out, METRIC_FAILING);
    str_addf(out, "%s %u\n", metrics[METRIC_FAILING].name, facts->n_failed);
    add_head(out, METRIC_FOREIGN);
    str_addf(out, "%s %" PRIu64 "\n", metrics[METRIC_FOREIGN].name, facts->n_foreign);
}
