/* probe_report.c - see probe_report.h. */
#include "monitor/probe_report.h"

#include <stdio.h>

/* Most edges in one report, as an agent's. */
#define EDGES_MAX 150

#define PAUSE      (5 * NSEC_PER_SEC)
#define PAUSE_MORE (NSEC_PER_SEC / 5)
#define RETRY_MAX  (60 * NSEC_PER_SEC)
#define PAUSE_OLD  (3600 * NSEC_PER_SEC)

/* A report comes at least each so many seconds, and a second for each so many members more, as the
 * probe asks them: all probes of a network together make a hundred reports a second. */
#define EVERY_S       10
#define EVERY_S_EDGES 100

/* A round trip that differs by less is the same, us. */
#define RTT_LEAST 5000u

static bool is_rtt_same(uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b;
    uint32_t high = a < b ? b : a;

    return (low == 0) == (high == 0) && (high - low < RTT_LEAST || high - low < low / 2);
}

static bool is_same(const void *x, const void *y)
{
    const struct edge_probed *a = &((const struct probe_edge *)x)->probed;
    const struct edge_probed *b = &((const struct probe_edge *)y)->probed;

    return a->tunnel == b->tunnel && a->underlay == b->underlay && a->is_heard == b->is_heard &&
           endpoint_equal(&a->endpoint, &b->endpoint) && is_rtt_same(a->rtt_us, b->rtt_us) &&
           is_rtt_same(a->underlay_rtt_us, b->underlay_rtt_us);
}

static json_t *encode(const void *edge, const void *ctx)
{
    return edge_probed_encode(&((const struct probe_edge *)edge)->probed);
}

void probe_report_init(struct probe_report *pr, uint64_t run)
{
    static const struct edge_report_kind kind = {
        .size = sizeof(struct probe_edge), .is_same = is_same, .encode = encode};

    *pr = (struct probe_report){.edges = {.kind = &kind, .run = run, .begins = true}};
}

void probe_report_deinit(struct probe_report *pr)
{
    edge_report_forget(&pr->edges);
}

/* A report comes after so many seconds, whatever differs. @n: members. */
static unsigned every_s(size_t n)
{
    return n < EVERY_S * EVERY_S_EDGES ? EVERY_S : (unsigned)(n / EVERY_S_EDGES);
}

static json_t *wrap(struct probe_report *pr, const char *self, json_t *edges, size_t n)
{
    char owner[sizeof("probe/") + NAME_MAX_LEN];
    json_t *body;

    (void)snprintf(
        owner, sizeof(owner), "%s/%.*s", edge_owner_names[EDGE_OWNER_PROBE], NAME_MAX_LEN, self);
    body = json_pack(
        "{s:s, s:i, s:o*}", "owner", owner, "everySeconds", (int)every_s(n), "edges", edges);
    edge_report_sign(&pr->edges, body);
    pr->is_on_its_way = true;
    return body;
}

json_t *probe_report_make(
    struct probe_report *pr, const char *self, const struct probe_edge *edges, size_t n, nsec_t now)
{
    bool is_overdue = now - pr->taken_at >= every_s(n) * NSEC_PER_SEC;
    json_t *said;

    if (pr->is_on_its_way || now < pr->due_at)
        return NULL;
    if (!pr->knows_hub) {
        pr->edges.ends = false;
        return wrap(pr, self, NULL, n);
    }
    said = edge_report_make(&pr->edges, edges, n, EDGES_MAX, NULL);
    if (!said ||
        (json_object_size(said) == 0 && !pr->edges.begins && !pr->edges.is_anew && !is_overdue)) {
        json_decref(said);
        return NULL;
    }
    return wrap(pr, self, said, n);
}

void probe_report_on_result(
    struct probe_report *pr, enum edge_report_result result, uint32_t random, nsec_t now)
{
    nsec_t wait = pr->edges.has_more ? PAUSE_MORE : PAUSE;

    pr->is_on_its_way = false;
    edge_report_on_result(&pr->edges, result);
    switch (result) {
    case EDGE_REPORT_TAKEN:
        /* After the first one, which had no edges, all of them are reported at once. */
        pr->edges.begins = !pr->knows_hub;
        wait = pr->knows_hub ? wait : 0;
        pr->knows_hub = true;
        pr->taken_at = now;
        pr->n_failed = 0;
        break;
    case EDGE_REPORT_OLD:
        wait = PAUSE_OLD;
        break;
    case EDGE_REPORT_AGAIN:
        wait = PAUSE_MORE;
        break;
    case EDGE_REPORT_LOST:
        pr->n_failed++;
        wait = PAUSE;
        for (unsigned i = 1; i < pr->n_failed && wait < RETRY_MAX; i++)
            wait = nsec_min(wait * 2, RETRY_MAX);
        break;
    }
    pr->due_at = now + nsec_scatter(wait, random);
}
