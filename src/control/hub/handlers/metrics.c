/*
 * metrics.c - see metrics.h. It reads all parts of the hub, and none of them knows it.
 */
#include "hub/handlers/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server/server.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "hub/jobs/jobs.h"
#include "hub/model/model.h"
#include "hub/streams/streams.h"
#include "hub/traffic/spending.h"
#include "hub/traffic/traffic_book.h"
#include "hub/watch/reports.h"
#include "hub/watch/watch.h"
#include "os/clock.h"
#include "store/store.h"

/* What the agents and probes of a network say, in figures. */
struct edge_figures {
    const char *network;
    char labels[OBJECT_NAME_MAX];
    struct model_edge_counts ends;
    unsigned n_agents;
    unsigned n_failing;   /* agents */
    unsigned n_unapplied; /* likewise */
    unsigned n_silent;    /* likewise */
};

static struct edge_figures count_edges(const struct model_network *net)
{
    struct edge_figures f = {.network = net->pub.spec.meta.name};
    char labels[OBJECT_NAME_MAX];

    (void)snprintf(labels, sizeof(labels), "network=\"%.63s\"", f.network);
    memcpy(f.labels, labels, sizeof(f.labels));
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);
        const struct model_edge_counts *c = &node->counts;

        for (unsigned k = 0; k < PATH_KIND_N; k++)
            f.ends.by_path[k] += c->by_path[k];
        f.ends.alarms += c->alarms;
        f.ends.fallen += c->fallen;
        f.ends.failing += c->failing;
        f.ends.unreached += c->unreached;
        f.n_agents += node_has_agent(&node->pub.spec);
        f.n_failing += node->heard.report.error != NULL;
        f.n_unapplied += node->was_unapplied;
        f.n_silent += node->was_silent;
    }
    return f;
}

/* Samples of one name stand together, so each is a walk of its own. */
static void add_ends(struct hub_metrics *m, const struct edge_figures *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *labels = f[i].labels;

        hub_metric(m, HUB_METRIC_GAUGE, "weft_path_alarms",
            "ends of edges that report no direct path, though one is demanded", labels,
            (double)f[i].ends.alarms);
    }
    for (size_t i = 0; i < n; i++) {
        const char *labels = f[i].labels;

        hub_metric(m, HUB_METRIC_GAUGE, "weft_edge_ends_fallen",
            "ends of edges that had a direct path and have lost it", labels,
            (double)f[i].ends.fallen);
    }
    for (size_t i = 0; i < n; i++) {
        const char *labels = f[i].labels;

        hub_metric(m, HUB_METRIC_GAUGE, "weft_edge_ends_failing",
            "ends of edges that their agents do not apply", labels, (double)f[i].ends.failing);
    }
    for (size_t i = 0; i < n; i++) {
        const char *labels = f[i].labels;

        hub_metric(m, HUB_METRIC_GAUGE, "weft_edge_ends_unreached",
            "ends of edges whose probes get no answer through the tunnel", labels,
            (double)f[i].ends.unreached);
    }
}

static void add_agents(struct hub_metrics *m, const struct edge_figures *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *labels = f[i].labels;

        hub_metric(m, HUB_METRIC_GAUGE, "weft_agents",
            "members that run an agent: all but hubs and stock WireGuards", labels,
            (double)f[i].n_agents);
    }
    for (size_t i = 0; i < n; i++) {
        const char *labels = f[i].labels;

        hub_metric(m, HUB_METRIC_GAUGE, "weft_agents_failing",
            "nodes whose agents cannot apply what they are told", labels, (double)f[i].n_failing);
    }
    for (size_t i = 0; i < n; i++) {
        const char *labels = f[i].labels;

        hub_metric(m, HUB_METRIC_GAUGE, "weft_agents_never_applied",
            "nodes whose agents have applied nothing since they joined", labels,
            (double)f[i].n_unapplied);
    }
    for (size_t i = 0; i < n; i++) {
        const char *labels = f[i].labels;

        hub_metric(m, HUB_METRIC_GAUGE, "weft_agents_silent",
            "nodes whose agents have stopped to report", labels, (double)f[i].n_silent);
    }
}

static void add_paths(struct hub_metrics *m, const struct edge_figures *f)
{
    char labels[2 * OBJECT_NAME_MAX];

    for (unsigned k = 0; k < PATH_KIND_N; k++) {
        (void)snprintf(labels, sizeof(labels), "network=\"%.63s\",path=\"%s\"", f->network,
            path_kind_name((enum path_kind)k));
        hub_metric(m, HUB_METRIC_GAUGE, "weft_edge_ends",
            "ends of edges, by how their agents reach the other end", labels,
            (double)f->ends.by_path[k]);
    }
}

static void add_edges(struct hub_metrics *m, const struct handlers *h)
{
    size_t n = h->model->networks.n;
    struct edge_figures *f = calloc(n + 1, sizeof(*f));
    char labels[64];

    if (!f)
        return;
    for (size_t i = 0; i < n; i++)
        f[i] = count_edges(model_network_at(h->model, i));
    add_ends(m, f, n);
    add_agents(m, f, n);
    for (size_t i = 0; i < n; i++)
        add_paths(m, &f[i]);
    free(f);
    for (unsigned k = 0; k < EDGE_EVENT_N; k++) {
        (void)snprintf(
            labels, sizeof(labels), "type=\"%s\"", edge_event_kind_name((enum edge_event_kind)k));
        hub_metric(m, HUB_METRIC_COUNTER, "weft_edge_events_total", "events of edges and agents",
            labels, (double)h->reports->events.counts[k]);
    }
    hub_metric(m, HUB_METRIC_GAUGE, "weft_edge_parts", "what is said about edges, in memory", "",
        (double)h->reports->n_parts);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_edge_parts_left_out_total",
        "what was said about edges and had no room", "", (double)h->reports->n_parts_left_out);
}

static void add_budgets(struct hub_metrics *m, const struct handlers *h)
{
    char labels[2 * OBJECT_NAME_MAX];

    for (size_t i = 0; i < h->model->networks.n; i++) {
        const char *network = model_network_at(h->model, i)->pub.spec.meta.name;
        const struct spent_list *spent = spending_of(h->spending, network);

        for (unsigned k = 0; k < spent->n; k++) {
            (void)snprintf(labels, sizeof(labels), "network=\"%.63s\",job=\"%.63s\"", network,
                spent->items[k].budget.job);
            hub_metric(m, HUB_METRIC_GAUGE, "weft_budget_share",
                "how much of the day's budget is spent, by job; 1: all of it", labels,
                spent->items[k].share);
        }
    }
}

static void add_traffic(struct hub_metrics *m, const struct handlers *h)
{
    char labels[2 * OBJECT_NAME_MAX];

    for (size_t i = 0; i < h->model->networks.n; i++) {
        const struct model_network *net = model_network_at(h->model, i);

        for (unsigned k = PATH_KIND_LAN; k < PATH_KIND_N; k++) {
            (void)snprintf(labels, sizeof(labels), "network=\"%.63s\",path=\"%s\"",
                net->pub.spec.meta.name, path_kind_name((enum path_kind)k));
            hub_metric(m, HUB_METRIC_COUNTER, "weft_traffic_sent_bytes_total",
                "bytes that nodes have told this hub to have sent", labels,
                (double)net->sent_bytes[k]);
        }
    }
    add_budgets(m, h);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_traffic_left_out_total",
        "sums of bytes that nodes have told and that had no room, or were of a day that is not "
        "kept",
        "", (double)h->traffic->n_left_out);
}

static void add_networks(struct hub_metrics *m, const struct handlers *h)
{
    char labels[2 * OBJECT_NAME_MAX];

    for (size_t i = 0; i < h->model->networks.n; i++) {
        const struct model_network *net = model_network_at(h->model, i);

        (void)snprintf(labels, sizeof(labels), "network=\"%.63s\"", net->pub.spec.meta.name);
        hub_metric(m, HUB_METRIC_GAUGE, "weft_nodes", "members of the network, with the hub",
            labels, (double)net->nodes.n);
    }
    add_edges(m, h);
}

static void add_server(struct hub_metrics *m, const struct handlers *h)
{
    struct server_counts c = h->server ? server_counts(h->server) : (struct server_counts){0};

    hub_metric(m, HUB_METRIC_COUNTER, "weft_api_connections_total", "connections taken", "",
        (double)c.accepted);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_api_connections_refused_total",
        "connections closed at once, over a limit", "", (double)c.refused);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_api_connections_cut_total",
        "connections ended by a deadline", "", (double)c.cut);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_api_requests_total", "requests answered", "",
        (double)c.requests);
    hub_metric(
        m, HUB_METRIC_GAUGE, "weft_api_connections", "connections open", "", (double)c.connections);
}

static void add_streams(struct hub_metrics *m, const struct handlers *h)
{
    uint64_t rx;
    uint64_t tx;

    streams_count_bytes(h->streams, &rx, &tx);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_streams", "members that come in TLS, for want of UDP", "",
        (double)h->streams->n);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_stream_bytes_total", "bytes of datagrams in TLS",
        "direction=\"rx\"", (double)rx);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_stream_bytes_total", "bytes of datagrams in TLS",
        "direction=\"tx\"", (double)tx);
}

static void add_jobs(struct hub_metrics *m, const struct handlers *h)
{
    struct jobs_counts c = jobs_count(h->jobs);

    hub_metric(m, HUB_METRIC_GAUGE, "weft_rendezvous_jobs", "jobs, the default ones included", "",
        (double)c.n_jobs);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_rendezvous_connections", "connections to jobs", "",
        (double)c.n_connections);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_store_requests_total",
        "requests of TCPStore", "", (double)c.n_store_requests);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_etcd_requests_total", "requests of etcd", "",
        (double)c.n_etcd_requests);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_hung_up_total",
        "connections that were ended or refused", "", (double)c.n_hung_up);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_accepts_deferred_total",
        "times that nothing was accepted for a while, for want of descriptors", "",
        (double)c.n_accepts_deferred);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_rendezvous_unsaved", "changes not on the disk yet", "",
        (double)c.n_unsaved);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_commits_total", "commits of changes in jobs",
        "", (double)c.n_commits);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_commits_failed_total",
        "of them, those that the disk refused", "", (double)c.n_failed);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_rendezvous_restarts_total",
        "processes of rendezvous that ended, and were started again", "", (double)c.n_restarts);
}

static void add_resources(struct hub_metrics *m, const struct handlers *h)
{
    const struct resource_counts *c = h->resources;

    if (!c)
        return;
    hub_metric(m, HUB_METRIC_GAUGE, "weft_kubernetes_leading",
        "1: this hub writes the resources in Kubernetes", "", atomic_load(&c->is_leading) ? 1 : 0);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_kubernetes_applied_total",
        "writes of resources, without their status", "", (double)atomic_load(&c->n_applied));
    hub_metric(m, HUB_METRIC_COUNTER, "weft_kubernetes_status_total", "writes of parts of a status",
        "", (double)atomic_load(&c->n_status));
    hub_metric(m, HUB_METRIC_COUNTER, "weft_kubernetes_failed_total", "writes that failed", "",
        (double)atomic_load(&c->n_failed));
    hub_metric(m, HUB_METRIC_COUNTER, "weft_kubernetes_wishes_total",
        "changes that people made to resources", "", (double)atomic_load(&c->n_wishes));
    hub_metric(m, HUB_METRIC_COUNTER, "weft_kubernetes_refused_total",
        "of them, those that the hub has refused", "", (double)atomic_load(&c->n_refused));
    hub_metric(m, HUB_METRIC_COUNTER, "weft_kubernetes_conflicts_total",
        "resources with a field that somebody owns and that is not as the hub has it", "",
        (double)atomic_load(&c->n_conflicts));
}

static void add_store(struct hub_metrics *m, const struct handlers *h)
{
    struct store_lag lag = store_lag(h->model->store, clock_now());
    struct store_refusal refusal = store_refusal(h->model->store);

    hub_metric(m, HUB_METRIC_GAUGE, "weft_store_revision", "revision of the store", "",
        (double)store_revision(h->model->store));
    hub_metric(m, HUB_METRIC_GAUGE, "weft_store_refuses",
        "1: the store does not take what is to be written, and changes are refused", "",
        refusal.since != 0 ? 1 : 0);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_store_commits_refused_total",
        "commits that the store did not take", "", (double)refusal.n);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_store_behind_seconds",
        "since it was last known that the hub has heard of all changes in its store", "",
        (double)lag.behind_for / (double)NSEC_PER_SEC);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_store_relists_total",
        "times that changes in the store were lost, and all of it was read again", "",
        (double)lag.n_relists);
}

char *metrics_text(const struct handlers *h)
{
    struct hub_metrics *m = hub_metrics_new();

    if (!m)
        return NULL;
    add_networks(m, h);
    add_traffic(m, h);
    add_server(m, h);
    add_streams(m, h);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_watches", "nodes that listen", "", (double)h->watcher->n);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_watch_overruns_total",
        "watches that were too slow and got a new snapshot", "", (double)h->watcher->n_overrun);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_watches_resumed_total",
        "watches that went on where they broke off, without a snapshot", "",
        (double)h->watcher->n_resumed);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_enrolments_total", "machines let in", "",
        (double)h->enrol->n_enrolled);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_enrolments_refused_total", "machines refused", "",
        (double)h->enrol->n_refused);
    add_store(m, h);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_damaged_records",
        "records of the store that cannot be understood, and are set aside", "",
        (double)h->model->damaged.records.n);
    add_jobs(m, h);
    add_resources(m, h);
    if (h->hooks->metrics)
        h->hooks->metrics(h->hooks->ctx, m);
    return hub_metrics_finish(m);
}
