/* check.c - what must never happen, and what must be possible. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/sim/path/world.h"

/* Switches of one end of an edge within a minute; more is flapping. */
#define SWITCHES_MAX 8
/* Ticks of one node in a second: its edges' deadlines, and no storm. */
#define TICKS_MAX 3000
/* Frames of one node in a second: both buckets, and their bursts. */
#define FRAMES_MAX (2 * (400 + 1000))
/* Data flows again after so long, whatever broke, as long as there is a relay. */
#define GAP_MAX (3000 * NSEC_PER_MSEC)

void check_fail(const struct world *w, const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "seed %llu, at %.3f s: ", (unsigned long long)w->opt.seed,
        (double)w->now / (double)NSEC_PER_SEC);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "\n");
    abort();
}

void check_switch(struct world *w, unsigned node, struct edge *e, unsigned end)
{
    struct end *d = &e->ends[end];
    nsec_t *slot = &d->switches[d->n_switches++ % SWITCHES_MAX];

    if (d->n_switches > SWITCHES_MAX && w->now - *slot < 60 * NSEC_PER_SEC)
        check_fail(w, "node %u switches the path to node %u more than %u times a minute", node,
            e->nodes[1 - end], SWITCHES_MAX);
    *slot = w->now;
}

void check_frame_accepted(const struct world *w, unsigned by, unsigned from, unsigned meant_for)
{
    if (by != meant_for)
        check_fail(w, "node %u takes in a frame of node %u for node %u", by, from, meant_for);
}

static void new_second(struct world *w, struct world_node *n)
{
    nsec_t second = w->now / NSEC_PER_SEC;

    if (second == n->second)
        return;
    n->second = second;
    n->n_ticks = n->n_frames = 0;
}

void check_tick(struct world *w, struct world_node *n)
{
    new_second(w, n);
    if (++n->n_ticks > n->most_ticks)
        n->most_ticks = n->n_ticks;
    if (n->n_ticks > TICKS_MAX)
        check_fail(w, "more than %u ticks of a node in a second", TICKS_MAX);
    if (paths_due(n->paths) <= w->now)
        check_fail(w, "a tick leaves work that was due");
}

void check_sent(struct world *w, struct world_node *n)
{
    new_second(w, n);
    if (++n->n_frames > n->most_frames)
        n->most_frames = n->n_frames;
    if (n->n_frames > FRAMES_MAX)
        check_fail(w, "more than %u frames of a node in a second", FRAMES_MAX);
}

void check_gap(struct world *w, struct edge *e, unsigned end, nsec_t gap)
{
    if (gap > w->worst_gap)
        w->worst_gap = gap;
    if (gap > GAP_MAX)
        check_fail(w, "no data from node %u to node %u for %.3f s, though there is a relay",
            e->nodes[1 - end], e->nodes[end], (double)gap / (double)NSEC_PER_SEC);
}

static bool is_hard(const struct sim_nat_kind *k)
{
    return !k->is_absent && k->mapping != BEHAVIOR_ENDPOINT_INDEPENDENT;
}

static bool is_port_filtering(const struct sim_nat_kind *k)
{
    return !k->is_absent && k->filtering == BEHAVIOR_PORT_DEPENDENT;
}

bool check_can_be_direct(const struct world *w, const struct edge *e)
{
    const struct world_node *a = &w->nodes[e->nodes[0]];
    const struct world_node *b = &w->nodes[e->nodes[1]];
    const struct sim_nat_kind *ka = &w->sites[a->site].nat.kind;
    const struct sim_nat_kind *kb = &w->sites[b->site].nat.kind;

    if (a->site == b->site || (a->has_v6 && b->has_v6))
        return true;
    if (ka->is_blocked || kb->is_blocked)
        return false;
    if (is_hard(ka) && is_hard(kb))
        return false;
    if (is_hard(ka))
        return !is_port_filtering(kb);
    if (is_hard(kb))
        return !is_port_filtering(ka);
    return true;
}
