/*
 * pass_metrics.h - how long passes of reconcile.h take, and what they find: for Prometheus.
 *
 * A histogram for each result of a pass, in the bounds that the help of the metric has.
 *
 * Pure: durations and results in, samples out.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

struct metrics;

/** What a pass came to. */
enum pass_result {
    PASS_RESULT_UNCHANGED, /* all was as it should be, and nothing was written */
    PASS_RESULT_CHANGED,
    PASS_RESULT_FAILED,
    PASS_RESULT_N,
};

/** Upper bounds of the histogram; what is longer is counted in the last of the buckets. */
#define PASS_METRICS_BOUNDS 12

struct pass_metrics {
    uint64_t n[PASS_RESULT_N][PASS_METRICS_BOUNDS + 1]; /* passes, by the bound that they keep */
    nsec_t sum[PASS_RESULT_N];                          /* of their durations */
};

/** What is told beside the histogram. */
struct pass_metrics_facts {
    unsigned n_failed;  /* passes that have failed, one after the other, until now */
    uint64_t n_foreign; /* peers that were removed and that no agent of this node had added */
};

/** pass_metrics_add() - a pass has taken so long. */
void pass_metrics_add(struct pass_metrics *m, enum pass_result result, nsec_t duration);

/** pass_metrics_add_samples() - add all of it to @m. */
void pass_metrics_add_samples(
    const struct pass_metrics *pm, const struct pass_metrics_facts *facts, struct metrics *m);
