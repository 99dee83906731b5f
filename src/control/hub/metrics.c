/*
 * metrics.c - what the hub counts, in Prometheus' text format.
 *
 * It reads all parts of the hub, and none of them knows it. What plugs in adds its own by
 * hub_metric() (struct hub_hooks).
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "hub/hub_internal.h"

struct hub_metrics {
    struct str text;
    char last[96]; /* the name whose help has been said */
};

void hub_metric(struct hub_metrics *m, enum hub_metric_type type, const char *name,
    const char *help, const char *labels, double value)
{
    const char *word = type == HUB_METRIC_COUNTER ? "counter" : "gauge";

    if (strcmp(m->last, name) != 0) {
        str_addf(&m->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, word);
        (void)snprintf(m->last, sizeof(m->last), "%s", name);
    }
    if (labels[0])
        str_addf(&m->text, "%s{%s} %.17g\n", name, labels, value);
    else
        str_addf(&m->text, "%s %.17g\n", name, value);
}

static unsigned count_alarms(const struct model_network *net)
{
    unsigned n = 0;

    for (size_t i = 0; i < net->nodes.n; i++)
        n += model_node_at(net, i)->heard.report.n_alarms;
    return n;
}

static void add_networks(struct hub_metrics *m, const struct hub *hub)
{
    char labels[2 * OBJECT_NAME_MAX];

    for (size_t i = 0; i < hub->model.networks.n; i++) {
        const struct model_network *net = model_network_at(&hub->model, i);

        (void)snprintf(labels, sizeof(labels), "network=\"%.63s\"", net->pub.spec.meta.name);
        hub_metric(m, HUB_METRIC_GAUGE, "weft_nodes", "members of the network, with the hub",
            labels, (double)net->nodes.n);
    }
    for (size_t i = 0; i < hub->model.networks.n; i++) {
        const struct model_network *net = model_network_at(&hub->model, i);

        (void)snprintf(labels, sizeof(labels), "network=\"%.63s\"", net->pub.spec.meta.name);
        hub_metric(m, HUB_METRIC_GAUGE, "weft_path_alarms",
            "ends of edges that report no direct path, though one is demanded", labels,
            (double)count_alarms(net));
    }
}

static void add_server(struct hub_metrics *m, const struct hub *hub)
{
    struct server_counts c = server_counts(hub->server);

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

static void add_streams(struct hub_metrics *m, const struct hub *hub)
{
    uint64_t rx;
    uint64_t tx;

    streams_count_bytes(&hub->streams, &rx, &tx);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_streams", "members that come in TLS, for want of UDP", "",
        (double)hub->streams.n);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_stream_bytes_total", "bytes of datagrams in TLS",
        "direction=\"rx\"", (double)rx);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_stream_bytes_total", "bytes of datagrams in TLS",
        "direction=\"tx\"", (double)tx);
}

static void add_jobs(struct hub_metrics *m, const struct hub *hub)
{
    struct jobs_counts c = jobs_count(hub->jobs);

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

char *hub__metrics(struct hub *hub)
{
    struct hub_metrics m = {.text = STR_NULL};

    add_networks(&m, hub);
    add_server(&m, hub);
    add_streams(&m, hub);
    hub_metric(
        &m, HUB_METRIC_GAUGE, "weft_watches", "nodes that listen", "", (double)hub->watcher.n);
    hub_metric(&m, HUB_METRIC_COUNTER, "weft_watch_overruns_total",
        "watches that were too slow and got a new snapshot", "", (double)hub->watcher.n_overrun);
    hub_metric(&m, HUB_METRIC_COUNTER, "weft_enrolments_total", "machines let in", "",
        (double)hub->enrol.n_enrolled);
    hub_metric(&m, HUB_METRIC_COUNTER, "weft_enrolments_refused_total", "machines refused", "",
        (double)hub->enrol.n_refused);
    hub_metric(&m, HUB_METRIC_GAUGE, "weft_store_revision", "revision of the store", "",
        (double)store_revision(hub->store));
    hub_metric(&m, HUB_METRIC_GAUGE, "weft_damaged_records",
        "records of the store that cannot be understood, and are set aside", "",
        (double)hub->model.damaged.records.n);
    add_jobs(&m, hub);
    if (hub->hooks.metrics)
        hub->hooks.metrics(hub->hooks.ctx, &m);
    return str_take(&m.text, NULL);
}
