/*
 * metrics.c - see metrics.h. It reads all parts of the hub, and none of them knows it.
 */
#include "hub/handlers/metrics.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/server/server.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "hub/jobs/jobs.h"
#include "hub/model/model.h"
#include "hub/streams/streams.h"
#include "hub/watch/watch.h"

static unsigned count_alarms(const struct model_network *net)
{
    unsigned n = 0;

    for (size_t i = 0; i < net->nodes.n; i++)
        n += model_node_at(net, i)->heard.report.n_alarms;
    return n;
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
    for (size_t i = 0; i < h->model->networks.n; i++) {
        const struct model_network *net = model_network_at(h->model, i);

        (void)snprintf(labels, sizeof(labels), "network=\"%.63s\"", net->pub.spec.meta.name);
        hub_metric(m, HUB_METRIC_GAUGE, "weft_path_alarms",
            "ends of edges that report no direct path, though one is demanded", labels,
            (double)count_alarms(net));
    }
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

char *metrics_text(const struct handlers *h)
{
    struct hub_metrics *m = hub_metrics_new();

    if (!m)
        return NULL;
    add_networks(m, h);
    add_server(m, h);
    add_streams(m, h);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_watches", "nodes that listen", "", (double)h->watcher->n);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_watch_overruns_total",
        "watches that were too slow and got a new snapshot", "", (double)h->watcher->n_overrun);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_enrolments_total", "machines let in", "",
        (double)h->enrol->n_enrolled);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_enrolments_refused_total", "machines refused", "",
        (double)h->enrol->n_refused);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_store_revision", "revision of the store", "",
        (double)store_revision(h->model->store));
    hub_metric(m, HUB_METRIC_GAUGE, "weft_damaged_records",
        "records of the store that cannot be understood, and are set aside", "",
        (double)h->model->damaged.records.n);
    add_jobs(m, h);
    if (h->hooks->metrics)
        h->hooks->metrics(h->hooks->ctx, m);
    return hub_metrics_finish(m);
}
