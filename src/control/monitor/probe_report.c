/* probe_report.c - see probe_report.h. */
#include "monitor/probe_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most edges in one report, as an agent's. */
#define EDGES_MAX 150

#define PAUSE      (5 * NSEC_PER_SEC)
#define PAUSE_MORE (NSEC_PER_SEC / 5)
#define RETRY_MAX  (60 * NSEC_PER_SEC)
#define PAUSE_OLD  (3600 * NSEC_PER_SEC)

/* A round trip that differs by less is the same, us. */
#define RTT_LEAST 5000u

enum reported_state {
    REPORTED_NO,         /* the hub may not have it */
    REPORTED_ON_ITS_WAY, /* in the report that has no answer yet */
    REPORTED_YES,
};

/** What was reported last of one edge. */
struct probe_reported {
    struct probe_edge edge;
    enum reported_state state;
    bool is_gone; /* that the edge is no more */
};

void probe_report_init(struct probe_report *pr, uint64_t run)
{
    *pr = (struct probe_report){.run = run, .begins = true};
}

void probe_report_deinit(struct probe_report *pr)
{
    free(pr->reported);
    *pr = (struct probe_report){0};
}

static bool is_rtt_same(uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b;
    uint32_t high = a < b ? b : a;

    return (low == 0) == (high == 0) && (high - low < RTT_LEAST || high - low < low / 2);
}

static bool is_same(const struct edge_probed *a, const struct edge_probed *b)
{
    return a->tunnel == b->tunnel && a->underlay == b->underlay && a->is_heard == b->is_heard &&
           endpoint_equal(&a->endpoint, &b->endpoint) && is_rtt_same(a->rtt_us, b->rtt_us) &&
           is_rtt_same(a->underlay_rtt_us, b->underlay_rtt_us);
}

/* A report that is being made. */
struct making {
    json_t *edges;
    size_t n_edges;
    struct probe_reported *next; /* replaces what was told; it has room for all */
    size_t n_next;
    bool has_more;
};

static void keep(struct making *m, const struct probe_reported *reported)
{
    m->next[m->n_next++] = *reported;
}

static void say(struct making *m, const struct probe_reported *reported)
{
    json_t *line = reported->is_gone ? json_null() : edge_probed_encode(&reported->edge.probed);

    if (m->n_edges == EDGES_MAX) {
        m->has_more = true;
        return;
    }
    m->n_edges++;
    keep(m, reported);
    m->next[m->n_next - 1].state = REPORTED_ON_ITS_WAY;
    (void)json_object_set_new(m->edges, reported->edge.peer, line);
}

static void add_gone(struct making *m, const struct probe_reported *reported)
{
    struct probe_reported gone = *reported;

    gone.is_gone = true;
    if (m->n_edges == EDGES_MAX) {
        keep(m, reported);
        m->has_more = true;
    } else {
        say(m, &gone);
    }
}

static void add_edge(
    struct making *m, const struct probe_edge *edge, const struct probe_reported *reported)
{
    struct probe_reported next = {.edge = *edge};

    if (reported && reported->state == REPORTED_YES && !reported->is_gone &&
        is_same(&reported->edge.probed, &edge->probed))
        keep(m, reported);
    else if (m->n_edges < EDGES_MAX)
        say(m, &next);
    else {
        m->has_more = true;
        if (reported)
            keep(m, reported);
    }
}

/* Both lists are in order of the names. */
static void compare(
    struct making *m, const struct probe_report *pr, const struct probe_edge *edges, size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        const struct probe_reported *reported = NULL;

        for (; k < pr->n_reported && strcmp(pr->reported[k].edge.peer, edges[i].peer) < 0; k++)
            add_gone(m, &pr->reported[k]);
        if (k < pr->n_reported && strcmp(pr->reported[k].edge.peer, edges[i].peer) == 0)
            reported = &pr->reported[k++];
        add_edge(m, &edges[i], reported);
    }
    for (; k < pr->n_reported; k++)
        add_gone(m, &pr->reported[k]);
}

static json_t *wrap(struct probe_report *pr, const char *self, json_t *edges)
{
    char owner[sizeof("probe/") + NAME_MAX_LEN];

    (void)snprintf(
        owner, sizeof(owner), "%s/%.*s", edge_owner_names[EDGE_OWNER_PROBE], NAME_MAX_LEN, self);
    return json_pack("{s:I, s:I, s:o*, s:o*, s:s, s:o*}", "run", (json_int_t)pr->run, "number",
        (json_int_t)pr->number + 1, "begins", pr->begins ? json_true() : NULL, "ends",
        pr->ends ? json_true() : NULL, "owner", owner, "edges", edges);
}

json_t *probe_report_make(
    struct probe_report *pr, const char *self, const struct probe_edge *edges, size_t n, nsec_t now)
{
    struct making m = {.n_edges = 0};

    if (pr->is_on_its_way || now < pr->due_at)
        return NULL;
    if (!pr->knows_hub) {
        pr->is_on_its_way = true;
        pr->ends = false;
        return wrap(pr, self, NULL);
    }
    m.edges = json_object();
    if (pr->begins)
        pr->n_reported = 0;
    m.next = calloc(n + pr->n_reported + 1, sizeof(*m.next));
    if (!m.next || !m.edges) {
        free(m.next);
        json_decref(m.edges);
        return NULL;
    }
    compare(&m, pr, edges, n);
    if (m.n_edges == 0 && !pr->begins && !pr->is_anew) {
        free(m.next);
        json_decref(m.edges);
        return NULL;
    }
    free(pr->reported);
    pr->reported = m.next;
    pr->n_reported = m.n_next;
    pr->has_more = m.has_more;
    pr->ends = (pr->begins || pr->is_anew) && !m.has_more;
    pr->is_on_its_way = true;
    return wrap(pr, self, m.edges);
}

/* What the report said is with the hub, or is to be said again. */
static void settle(struct probe_report *pr, bool is_taken)
{
    size_t n = 0;

    for (size_t i = 0; i < pr->n_reported; i++) {
        struct probe_reported *t = &pr->reported[i];

        if (t->state == REPORTED_ON_ITS_WAY)
            t->state = is_taken ? REPORTED_YES : REPORTED_NO;
        if (!(t->is_gone && t->state == REPORTED_YES))
            pr->reported[n++] = *t;
    }
    pr->n_reported = n;
}

void probe_report_on_result(
    struct probe_report *pr, enum probe_report_result result, uint32_t random, nsec_t now)
{
    nsec_t wait = pr->has_more ? PAUSE_MORE : PAUSE;

    pr->is_on_its_way = false;
    settle(pr, result == PROBE_REPORT_TAKEN);
    switch (result) {
    case PROBE_REPORT_TAKEN:
        pr->number++;
        /* After the first one, which had no edges, all of them are reported at once. */
        pr->begins = !pr->knows_hub;
        wait = pr->knows_hub ? wait : 0;
        pr->knows_hub = true;
        pr->is_anew = !pr->ends && (pr->is_anew || pr->has_more);
        pr->n_failed = 0;
        break;
    case PROBE_REPORT_OLD:
        wait = PAUSE_OLD;
        break;
    case PROBE_REPORT_AGAIN:
        pr->begins = true;
        pr->is_anew = true;
        wait = PAUSE_MORE;
        break;
    case PROBE_REPORT_LOST:
        pr->n_failed++;
        wait = PAUSE;
        for (unsigned i = 1; i < pr->n_failed && wait < RETRY_MAX; i++)
            wait = nsec_min(wait * 2, RETRY_MAX);
        break;
    }
    pr->due_at = now + nsec_scatter(wait, random);
}
