/* pass_plan.c - see pass_plan.h. */
#include "agent/reconcile/pass_plan.h"

#include "base/metrics.h"

/* ---- the next pass --------------------------------------------------------------------------- */

#define RETRY_FIRST (NSEC_PER_SEC / 4)

void pass_plan_request(struct pass_plan *p, nsec_t at)
{
    p->due_at = nsec_min(p->due_at, nsec_max(at, p->held_until));
}

void pass_plan_on_success(struct pass_plan *p, bool has_mended, nsec_t now)
{
    *p = (struct pass_plan){
        .due_at = now + PASS_PLAN_PERIOD, .held_until = has_mended ? now + PASS_PLAN_PAUSE : 0};
}

void pass_plan_on_failure(
    struct pass_plan *p, const struct err *why, bool may_hurry, uint32_t random, nsec_t now)
{
    nsec_t wait = p->retry_for == 0 ? RETRY_FIRST : p->retry_for;

    p->fault = *why;
    p->n_failed++;
    p->due_at = now + nsec_scatter(wait, random);
    p->held_until = may_hurry ? nsec_min(p->due_at, now + PASS_PLAN_PAUSE) : p->due_at;
    p->retry_for = nsec_min(wait * 2, PASS_PLAN_PERIOD);
}

/* ---- the next poll --------------------------------------------------------------------------- */

#define PERIOD       (1 * NSEC_PER_SEC)
#define PERIOD_LARGE (10 * NSEC_PER_SEC)
#define LARGE_N      500

/* A poll at the latest after this time, though no packet has passed. */
#define REST_MAX (10 * NSEC_PER_SEC)

void poll_plan_request(struct poll_plan *p, nsec_t at)
{
    p->has_changes = true;
    p->due_at = nsec_min(p->due_at, at);
}

bool poll_plan_is_stale(const struct poll_plan *p, nsec_t now)
{
    return p->has_changes || now - p->polled_at >= REST_MAX;
}

bool poll_plan_is_idle(const struct poll_plan *p, uint64_t n_packets)
{
    return p->n_packets != 0 && p->n_packets == n_packets;
}

void poll_plan_begin(struct poll_plan *p, uint64_t n_packets, nsec_t now)
{
    p->polled_at = now;
    p->has_changes = false;
    p->n_packets = n_packets;
}

void poll_plan_end(struct poll_plan *p, size_t n_peers, nsec_t within, nsec_t now)
{
    nsec_t period = n_peers > LARGE_N ? PERIOD_LARGE : PERIOD;

    p->due_at = now + nsec_min(period, within);
}

void poll_plan_skip(struct poll_plan *p, nsec_t now)
{
    p->due_at = now + PERIOD;
}

/* ---- metrics of passes ----------------------------------------------------------------------- */

static const char *const result_names[] = {"unchanged", "changed", "failed"};

_Static_assert(sizeof(result_names) / sizeof(*result_names) == PASS_RESULT_N, "a name each");

/* The bars of the benchmark, 5 ms and 200 ms, are among them. */
static const double bounds[PASS_METRICS_BOUNDS] = {
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5}; /* s */

void pass_metrics_add(struct pass_metrics *m, enum pass_result result, nsec_t duration)
{
    unsigned i = 0;

    while (i < PASS_METRICS_BOUNDS && (double)duration / NSEC_PER_SEC > bounds[i])
        i++;
    m->n[result][i]++;
    m->sum[result] += duration;
}

void pass_metrics_add_samples(
    const struct pass_metrics *pm, unsigned n_failed, uint64_t n_foreign, struct metrics *m)
{
    for (unsigned i = 0; i < PASS_RESULT_N; i++) {
        const struct metrics_histogram h = {.bounds = bounds,
            .n = pm->n[i],
            .n_bounds = PASS_METRICS_BOUNDS,
            .sum = (double)pm->sum[i] / NSEC_PER_SEC};

        metrics_add_histogram(m, METRIC_AGENT_PASS_SECONDS, METRIC_LABELS(result_names[i]), &h);
    }
    metrics_add(m, METRIC_AGENT_PASSES_FAILING, n_failed);
    metrics_add(m, METRIC_AGENT_FOREIGN_PEERS_REMOVED, (double)n_foreign);
}
