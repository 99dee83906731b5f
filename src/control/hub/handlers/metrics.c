/*
 * metrics.c - GET /v1/metrics. It reads all parts of the hub, and none of them knows it.
 */

#include "api/server/server.h"
#include "base/err.h"
#include "base/metrics.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "hub/jobs/jobs.h"
#include "hub/model/model.h"
#include "hub/overlay/overlay.h"
#include "hub/streams/streams.h"
#include "hub/traffic/spending.h"
#include "hub/traffic/traffic_book.h"
#include "hub/watch/nat_view.h"
#include "hub/watch/reports.h"
#include "hub/watch/watch.h"
#include "os/clock.h"
#include "store/store.h"

/* What the agents and probes of a network say, in figures. */
static void add_edges_of(struct metrics *m, const struct model_network *net)
{
    const char *const *labels = METRIC_LABELS(net->spec.meta.name);
    struct reported_counts ends = {0};
    unsigned n_agents = 0;
    unsigned n_failing = 0;
    unsigned n_unapplied = 0;
    unsigned n_silent = 0;

    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);
        const struct reported_counts *c = &node->reported->counts;

        n_agents += node_has_agent(&node->spec);
        n_unapplied += node->reported->was_unapplied;
        n_silent += node->reported->was_silent || node->reported->is_down;
        /* What a machine said that is down is old. */
        if (node->reported->is_down)
            continue;
        for (unsigned k = 0; k < PATH_KIND_N; k++)
            ends.by_path[k] += c->by_path[k];
        ends.alarms += c->alarms;
        ends.fallen += c->fallen;
        ends.failing += c->failing;
        ends.unreached += node->reported->is_probe_silent ? 0 : c->unreached;
        n_failing += node->reported->heard.report.error != NULL;
    }
    metrics_add_labelled(m, METRIC_PATH_ALARMS, labels, ends.alarms);
    metrics_add_labelled(m, METRIC_EDGE_ENDS_FALLEN, labels, ends.fallen);
    metrics_add_labelled(m, METRIC_EDGE_ENDS_FAILING, labels, ends.failing);
    metrics_add_labelled(m, METRIC_EDGE_ENDS_UNREACHED, labels, ends.unreached);
    metrics_add_labelled(m, METRIC_AGENTS, labels, n_agents);
    metrics_add_labelled(m, METRIC_AGENTS_FAILING, labels, n_failing);
    metrics_add_labelled(m, METRIC_AGENTS_NEVER_APPLIED, labels, n_unapplied);
    metrics_add_labelled(m, METRIC_AGENTS_SILENT, labels, n_silent);
    for (unsigned k = 0; k < PATH_KIND_N; k++)
        metrics_add_labelled(
            m, METRIC_EDGE_ENDS, METRIC_LABELS(labels[0], path_kind_names[k]), ends.by_path[k]);
}

/* Most findings of a network that have a sample each. */
#define FINDING_SAMPLES_MAX 1000

/* How many there are of each code, and each by its subject, the gravest first. */
static void add_findings(struct metrics *m, const struct handlers *h, const char *network)
{
    const struct findings *found = health_of(&h->reports->health, network);
    _cleanup_(freep) const struct finding **sorted = findings_sorted(found);
    unsigned counts[FINDING_CODE_N] = {0};

    for (size_t i = 0; sorted && i < found->n; i++) {
        const struct finding_kind *kind = &finding_kinds[sorted[i]->code];
        const char *severity = finding_severity_names[kind->severity];

        counts[sorted[i]->code]++;
        if (i < FINDING_SAMPLES_MAX)
            metrics_add_labelled(m, METRIC_FINDING,
                METRIC_LABELS(network, kind->code, severity, sorted[i]->subject), 1);
    }
    for (unsigned k = 0; k < FINDING_CODE_N; k++)
        metrics_add_labelled(m, METRIC_FINDINGS,
            METRIC_LABELS(
                network, finding_kinds[k].code, finding_severity_names[finding_kinds[k].severity]),
            counts[k]);
}

static void add_nats(struct metrics *m, const struct model_network *net)
{
    struct nat_view view;

    nat_view_make(&view, net);
    for (size_t i = 0; i < view.n; i++) {
        const struct nat_group *g = &view.groups[i];
        const char *const *labels = METRIC_LABELS(net->spec.meta.name, g->provider, g->region);

        metrics_add_labelled(m, METRIC_NAT_NODES, labels, g->n_natted);
        if (g->forgotten_ms[0] > 0)
            metrics_add_labelled(m, METRIC_NAT_FORGOTTEN, labels, g->forgotten_ms[0] / 1e3);
    }
}

static void add_networks(struct metrics *m, const struct handlers *h)
{
    for (size_t i = 0; i < h->model->networks.n; i++) {
        const struct model_network *net = model_network_at(h->model, i);
        const char *name = net->spec.meta.name;
        const struct spent_list *spent = spending_of(h->spending, name);

        metrics_add_labelled(m, METRIC_NODES, METRIC_LABELS(name), (double)net->nodes.n);
        add_edges_of(m, net);
        add_findings(m, h, name);
        add_nats(m, net);
        access_view_add_metrics(&h->reports->access, net, m);
        for (unsigned k = PATH_KIND_LAN; k < PATH_KIND_N; k++)
            metrics_add_labelled(m, METRIC_TRAFFIC_SENT_BYTES,
                METRIC_LABELS(name, path_kind_names[k]), (double)net->sent_bytes[k]);
        for (unsigned k = 0; k < spent->n; k++)
            metrics_add_labelled(m, METRIC_BUDGET_SHARE,
                METRIC_LABELS(name, spent->items[k].budget.job), spent->items[k].share);
    }
    for (unsigned k = 0; k < EDGE_EVENT_N; k++)
        metrics_add_labelled(m, METRIC_EDGE_EVENTS, METRIC_LABELS(edge_event_names[k]),
            (double)h->reports->events.counts[k]);
    metrics_add(m, METRIC_EDGE_PARTS, (double)h->reports->n_parts);
    metrics_add(m, METRIC_EDGE_PARTS_LEFT_OUT, (double)h->reports->n_parts_left_out);
    metrics_add(m, METRIC_TRAFFIC_LEFT_OUT, (double)h->traffic->n_left_out);
}

static void add_jobs(struct metrics *m, const struct handlers *h)
{
    struct jobs_counts c = jobs_count(h->jobs);

    metrics_add(m, METRIC_RENDEZVOUS_JOBS, (double)c.n_jobs);
    metrics_add(m, METRIC_RENDEZVOUS_CONNECTIONS, (double)c.n_connections);
    metrics_add(m, METRIC_RENDEZVOUS_STORE_REQUESTS, (double)c.processes.n_store_requests);
    metrics_add(m, METRIC_RENDEZVOUS_ETCD_REQUESTS, (double)c.processes.n_etcd_requests);
    metrics_add(m, METRIC_RENDEZVOUS_HUNG_UP, (double)c.processes.n_hung_up);
    metrics_add(m, METRIC_RENDEZVOUS_ACCEPTS_DEFERRED, (double)c.processes.n_accepts_deferred);
    metrics_add(m, METRIC_RENDEZVOUS_UNSAVED, (double)c.n_unsaved);
    metrics_add(m, METRIC_RENDEZVOUS_COMMITS, (double)c.n_commits);
    metrics_add(m, METRIC_RENDEZVOUS_COMMITS_FAILED, (double)c.n_failed);
    metrics_add(m, METRIC_RENDEZVOUS_RESTARTS, (double)c.n_restarts);
}

static void add_resources(struct metrics *m, const struct handlers *h)
{
    const struct resource_counts *c = h->resources;

    if (!c)
        return;
    metrics_add(m, METRIC_KUBERNETES_LEADING, atomic_load(&c->is_leading) ? 1 : 0);
    metrics_add(m, METRIC_KUBERNETES_APPLIED, (double)atomic_load(&c->n_applied));
    metrics_add(m, METRIC_KUBERNETES_STATUS, (double)atomic_load(&c->n_status));
    metrics_add(m, METRIC_KUBERNETES_FAILED, (double)atomic_load(&c->n_failed));
    metrics_add(m, METRIC_KUBERNETES_REQUESTS, (double)atomic_load(&c->n_requests));
    metrics_add(m, METRIC_KUBERNETES_REFUSED, (double)atomic_load(&c->n_refused));
    metrics_add(m, METRIC_KUBERNETES_CONFLICTS, (double)atomic_load(&c->n_conflicts));
}

void handlers_metrics(void *ctx, const struct request *rq, struct response *rs)
{
    const struct handlers *h = ctx;
    struct store_lag lag = store_lag(h->model->store, clock_now());
    struct store_refusal refusal = store_refusal(h->model->store);
    struct server_counts api = h->server ? server_counts(h->server) : (struct server_counts){0};
    struct metrics metrics = METRICS_NULL;
    struct metrics *m = &metrics;
    uint64_t rx;
    uint64_t tx;

    add_networks(m, h);
    metrics_add(m, METRIC_API_CONNECTIONS, (double)api.accepted);
    metrics_add(m, METRIC_API_CONNECTIONS_REFUSED, (double)api.refused);
    metrics_add(m, METRIC_API_CONNECTIONS_CUT, (double)api.cut);
    metrics_add(m, METRIC_API_REQUESTS, (double)api.requests);
    metrics_add(m, METRIC_API_CONNECTIONS_OPEN, (double)api.connections);
    streams_count_bytes(h->streams, &rx, &tx);
    metrics_add(m, METRIC_STREAMS, (double)h->streams->n);
    metrics_add_labelled(m, METRIC_STREAM_BYTES, METRIC_LABELS("rx"), (double)rx);
    metrics_add_labelled(m, METRIC_STREAM_BYTES, METRIC_LABELS("tx"), (double)tx);
    metrics_add(m, METRIC_WATCHES, (double)h->watcher->n);
    metrics_add(m, METRIC_WATCH_OVERRUNS, (double)h->watcher->n_overrun);
    metrics_add(m, METRIC_WATCHES_RESUMED, (double)h->watcher->n_resumed);
    metrics_add(m, METRIC_ENROLMENTS, (double)h->enrol->n_enrolled);
    metrics_add(m, METRIC_ENROLMENTS_REFUSED, (double)h->enrol->n_refused);
    metrics_add(m, METRIC_STORE_REVISION, (double)store_revision(h->model->store));
    metrics_add(m, METRIC_STORE_REFUSES, refusal.since != 0 ? 1 : 0);
    metrics_add(m, METRIC_STORE_COMMITS_REFUSED, (double)refusal.n);
    metrics_add(m, METRIC_STORE_BEHIND_SECONDS, (double)lag.behind_for / (double)NSEC_PER_SEC);
    metrics_add(m, METRIC_STORE_RELISTS, (double)lag.n_relists);
    metrics_add(m, METRIC_DAMAGED_RECORDS, (double)h->model->damaged.n);
    add_jobs(m, h);
    add_resources(m, h);
    if (h->overlay)
        overlay_add_metrics(h->overlay, m);
    response_text(rs, 200, metrics_take(m), "text/plain; version=0.0.4; charset=utf-8");
}
