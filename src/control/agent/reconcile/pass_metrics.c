/* pass_metrics.c - see pass_metrics.h. */
#include "agent/reconcile/pass_metrics.h"

#include "base/metrics.h"

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

void pass_metrics_add(struct pass_metrics *m, enum pass_result result, nsec_t duration)
{
    unsigned i = 0;

    while (i < PASS_METRICS_BOUNDS && duration > bounds[i])
        i++;
    m->n[result][i]++;
    m->sum[result] += duration;
}

void pass_metrics_add_samples(
    const struct pass_metrics *pm, const struct pass_metrics_facts *facts, struct metrics *m)
{
    double seconds[PASS_METRICS_BOUNDS];

    for (unsigned i = 0; i < PASS_METRICS_BOUNDS; i++)
        seconds[i] = (double)bounds[i] / NSEC_PER_SEC;
    for (unsigned i = 0; i < PASS_RESULT_N; i++) {
        const struct metrics_histogram h = {.bounds = seconds,
            .n = pm->n[i],
            .n_bounds = PASS_METRICS_BOUNDS,
            .sum = (double)pm->sum[i] / NSEC_PER_SEC};

        metrics_add_histogram(m, METRIC_AGENT_PASS_SECONDS, METRIC_LABELS(result_names[i]), &h);
    }
    metrics_add(m, METRIC_AGENT_PASSES_FAILING, facts->n_failed);
    metrics_add(m, METRIC_AGENT_FOREIGN_PEERS_REMOVED, (double)facts->n_foreign);
}
