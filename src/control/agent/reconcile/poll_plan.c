/* poll_plan.c - see poll_plan.h. */
#include "agent/reconcile/poll_plan.h"

#define PERIOD       (1 * NSEC_PER_SEC)
#define PERIOD_LARGE (10 * NSEC_PER_SEC)
#define LARGE_N      500

/* A poll at the latest after this time, though no packet has passed. */
#define REST_MAX (10 * NSEC_PER_SEC)

void poll_plan_on_news(struct poll_plan *p)
{
    p->has_news = true;
}

void poll_plan_request(struct poll_plan *p, nsec_t at)
{
    p->has_news = true;
    p->due_at = nsec_min(p->due_at, at);
}

bool poll_plan_is_stale(const struct poll_plan *p, nsec_t now)
{
    return p->has_news || now - p->polled_at >= REST_MAX;
}

bool poll_plan_is_idle(const struct poll_plan *p, uint64_t n_packets)
{
    return p->n_packets != 0 && p->n_packets == n_packets;
}

void poll_plan_begin(struct poll_plan *p, uint64_t n_packets, nsec_t now)
{
    p->polled_at = now;
    p->has_news = false;
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
