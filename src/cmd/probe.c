/*
 * probe.c - weft probe: is every member reached? Pings through the tunnel, without the agent; and,
 * where the hub is to be told, UDP beside it.
 */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "agent/cluster/cluster_writer.h"
#include "agent/node_metrics.h"
#include "agent/probe_link.h"
#include "agent/state/state.h"
#include "api/server/server.h"
#include "backends/kubernetes/kube_client.h"
#include "base/err.h"
#include "base/metrics.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/agent_privileges.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/privileges.h"
#include "monitor/ping_monitor.h"
#include "monitor/probe_report.h"
#include "monitor/underlay_monitor.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/interrupt.h"
#include "os/log.h"
#include "train/names/members.h"

/* With --once: the time between two rounds, the longest that it takes, and the number of answers
 * from each member after which it ends earlier. */
#define ONCE_PERIOD  (200 * NSEC_PER_MSEC)
#define ONCE_TIME    (5 * NSEC_PER_SEC)
#define ONCE_ANSWERS 3

/* How often the members are read again, and the metrics written. */
#define REREAD_PERIOD (5 * NSEC_PER_SEC)

#define PROMETHEUS_TYPE "text/plain; version=0.0.4"

#define METRICS_MODE 0644

/* With --report: how often it is looked what differs from what the hub has, and when for the first
 * time: what is known of most members by then. */
#define COMPARE_PERIOD (1 * NSEC_PER_SEC)
#define REPORT_AFTER   (5 * NSEC_PER_SEC)

static struct {
    const char *state_dir;
    const char *metrics;         /* a file; NULL: none is written */
    struct metrics_place listen; /* where Prometheus asks; nowhere: it does not */
    const char *user;
    const char *nodes;
    nsec_t period;
    bool once;
    bool json;
    bool report;
    const char *edges_to; /* what follows "kubernetes:"; NULL: not given */
} arg;

/* What has a slash is a file. Without one, what has a colon is an address, and what is none is a
 * file. */
static int option_metrics(const struct option *o, const char *text, struct err *e)
{
    int r =
        strchr(text, '/') ? -EINVAL : metrics_place_parse(&arg.listen, text, METRICS_PORT_PROBE, e);

    if (r == 0 || (!strchr(text, '/') && strchr(text, ':')))
        return r;
    return option_text(o, text, e);
}

static int option_edges_to(const struct option *o, const char *text, struct err *e)
{
    return kube_access_parse(o->field, o->name, text, e);
}

static const struct option options[] = {
    {"--once", NULL, option_flag, &arg.once, NULL,
        "ping for some seconds, print what was found, and end"},
    {"--json", NULL, option_flag, &arg.json, NULL,
        "print JSON; without --once an object for each change, on a line of its own"},
    {"--report", NULL, option_flag, &arg.report, NULL,
        "tell the hub what is found, for weft get edges; and ask members by UDP, too"},
    {"--edges-to", "URL", option_edges_to, &arg.edges_to, NULL,
        "with --report: kubernetes: - the cluster to whose MeshEdges the probe writes its own "
        "parts itself, and not the hub"},
    {"--period", "DURATION", option_duration, &arg.period, "1s", "how often each member is pinged",
        .min = NSEC_PER_SEC, .max = 3600 * NSEC_PER_SEC},
    {"--nodes", "NAMES", option_text, &arg.nodes, NULL,
        "watch these alone, \"n2,n3\"; by default every member but stock WireGuards"},
    {"--metrics", "FILE|ADDRESS", option_metrics, &arg.metrics, NULL,
        "keep counters in this file, as Prometheus' node exporter collects them; or, as weft agent "
        "does, answer Prometheus at this ADDRESS[:PORT], port 9587, or overlay"},
    {"--metrics-tls", "DIR", option_text, &arg.listen.tls_dir, NULL, "as weft agent does"},
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT, "as given to weft join"},
    PRIVILEGES_OPTION(&arg.user),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "probe",
    .summary = "Watch every edge of this node from outside of the agent, by pings.",
    .options = options,
    .notes =
        "Exit status of --once: 0 every member that is watched answers over IPv4, 3 one does not,\n"
        "1 that could not be found out.",
};

/** The process that watches. */
struct probe {
    struct ping_monitor monitor;
    char network[NAME_MAX_LEN + 1];
    char interface[STATE_INTERFACE_MAX];
    char self[NAME_MAX_LEN + 1]; /* this node */
    nsec_t read_at;              /* monotonic; when the members were read last */
    int signal_fd;               /* owns */
    bool is_silent;              /* changes of state are not logged */

    /* With --report. */
    struct rng rng;
    struct underlay_monitor underlay;
    struct probe_report report;
    struct probe_link *link;  /* owns; NULL: without it */
    struct x25519_public key; /* with @link: of the node as which the hub is told */
    nsec_t compared_at;       /* monotonic; when it was looked what differs from what the hub has */
    struct cluster_writer *edge_parts; /* owns; NULL: without --edges-to */
    json_t *asked_for;                 /* owns; with it: of whom a MeshEdge says something */
    struct log_limit limit;

    /* With --metrics ADDRESS. */
    uv_loop_t loop;
    struct server *server; /* owns; NULL: without it */
    struct metrics_port port;
};

/* ---- members -------------------------------------------------------------------------------- */

static bool is_watched(const struct snapshot *s, const struct node *node)
{
    return strcmp(node->meta.name, s->self) != 0 &&
           members_takes_part(node->meta.name, node->stock, arg.nodes);
}

/* Is everybody a member that --nodes names? Later a member may leave, and come again. */
static int check_nodes(const struct snapshot *s, struct err *e)
{
    char name[NAME_MAX_LEN + 2];

    for (const char *list = arg.nodes; list && members_next_name(&list, name);)
        if (!snapshot_find_node(s, name) || strcmp(name, s->self) == 0)
            return err_set(e, -EINVAL, "--nodes: \"%s\" is no other member of the network %s", name,
                s->network.meta.name);
    return 0;
}

static struct ping_monitor_member *list_members(const struct snapshot *s, size_t *ret_n)
{
    struct ping_monitor_member *members = calloc(s->nodes.n + 1, sizeof(*members));
    size_t n = 0;

    for (size_t i = 0; members && i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (!is_watched(s, node))
            continue;
        (void)snprintf(
            members[n].name, sizeof(members[n].name), "%.*s", NAME_MAX_LEN, node->meta.name);
        members[n].address[PING_MONITOR_V4] = node->address4;
        members[n].address[PING_MONITOR_V6] = node->address6;
        n++;
    }
    *ret_n = n;
    return members;
}

/* The same members in the same order as list_members(). 0 or negative errno with words. */
static int set_underlay(struct probe *p, const struct snapshot *s, struct err *e)
{
    const struct path_side *own = snapshot_self(s)->side;
    struct underlay_member *members = calloc(s->nodes.n + 1, sizeof(*members));
    uint16_t port = 0;
    size_t n = 0;

    if (!members)
        return err_set(e, -ENOMEM, "no memory for the members");
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        struct underlay_member *m = &members[n];

        if (!is_watched(s, node))
            continue;
        n++;
        (void)snprintf(m->name, sizeof(m->name), "%.*s", NAME_MAX_LEN, node->meta.name);
        m->public = node->key;
        /* Candidates of a kind that another machine may reach, the most likely first. */
        for (unsigned k = 0; node->side && k < node->side->candidates.n; k++)
            if (m->n_at < UNDERLAY_ENDPOINTS_MAX)
                m->at[m->n_at++] = node->side->candidates.items[k].endpoint;
    }
    if (underlay_monitor_set(&p->underlay, members, n, clock_now()) < 0)
        return err_set(e, -ENOMEM, "no memory for the members");
    /* What its agent has reported of this node tells the port of its WireGuard. */
    for (unsigned i = 0; own && port == 0 && i < own->candidates.n; i++)
        if (own->candidates.items[i].kind == CANDIDATE_HOST)
            port = own->candidates.items[i].endpoint.port;
    return underlay_monitor_set_port(&p->underlay, port, e);
}

/* Tells the hub as the node that node.json holds, from the beginning. */
static int begin_link(struct probe *p, const struct state *st, struct err *e)
{
    int r;

    if (!underlay_monitor_init(&p->underlay, &st->secret, arg.period, &p->rng))
        return err_set(e, -EINVAL, "the key in node.json is one that nobody can have");
    r = probe_link_new(&p->link, st, e);
    if (r < 0)
        return r;
    p->key = snapshot_self(&st->snapshot)->key;
    probe_report_init(&p->report, rng_u64(&p->rng) >> 1 | 1);
    p->report.due_at = clock_now() + REPORT_AFTER;
    return 0;
}

/* Has the machine left, and joined again, since the hub was told last? Then it is another node,
 * with another key, and the hub is told as that one as soon as the key can be read. */
static int follow_join(struct probe *p, const struct state *now, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    struct err why = ERR_NULL;

    if (!p->link || x25519_public_equal(&p->key, &snapshot_self(&now->snapshot)->key))
        return 0;
    if (state_read(&st, arg.state_dir, &why) != 0 ||
        !x25519_public_equal(
            &snapshot_self(&st.snapshot)->key, &snapshot_self(&now->snapshot)->key)) {
        log_limited(&p->limit, clock_now(), LOG_LEVEL_WARNING,
            "this machine has joined anew, and its key cannot be read yet: %s", err_text(&why));
        return 0;
    }
    log_info("this machine has joined anew: the hub is told as %s", st.snapshot.self);
    p->link = probe_link_free(p->link);
    p->edge_parts = cluster_writer_free(p->edge_parts);
    probe_report_deinit(&p->report);
    underlay_monitor_close(&p->underlay);
    return begin_link(p, &st, e);
}

/* Those of the members' edges of which a MeshEdge says something: the cluster has them. */
static void note_asked_for(struct probe *p, const struct snapshot *s)
{
    json_t *asked_for = json_object();

    for (size_t i = 0; i < s->nodes.n; i++) {
        const char *name = s->nodes.items[i]->meta.name;

        if (strcmp(name, s->self) != 0 && snapshot_find_edge(s, s->self, name))
            (void)json_object_set_new(asked_for, name, json_true());
    }
    json_decref(p->asked_for);
    p->asked_for = asked_for;
}

/* The members are in the last snapshot that the agent has kept, or, before it has kept one, in the
 * one that the join got. The node's key is not read. */
static int read_members(struct probe *p, struct err *e)
{
    _cleanup_(snapshot_deinit) struct snapshot snapshot = SNAPSHOT_NULL;
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    struct ping_monitor_member *members;
    const struct snapshot *s;
    size_t n;
    int r = state_check_dir(arg.state_dir, e);

    if (r == 0)
        r = state_read_public(&st, arg.state_dir, e);
    if (r == STATE_E_ABSENT)
        return err_set(
            e, r, "this machine has not joined a network (%s has no public.json)", arg.state_dir);
    if (r == 0)
        r = state_read_snapshot(&snapshot, arg.state_dir, e);
    if (r < 0)
        return r;
    s = r == STATE_E_ABSENT ? &st.snapshot : &snapshot;
    if (p->self[0] == '\0' && (r = check_nodes(s, e)) < 0)
        return r;
    r = follow_join(p, &st, e);
    if (r == 0 && p->link)
        r = set_underlay(p, s, e);
    if (r < 0)
        return r;
    if (arg.edges_to)
        note_asked_for(p, s);
    (void)snprintf(p->self, sizeof(p->self), "%s", s->self);
    members = list_members(s, &n);
    if (!members)
        return err_set(e, -ENOMEM, "no memory for the members");
    memcpy(p->interface, st.interface, sizeof(p->interface));
    memcpy(p->network, st.snapshot.network.meta.name, sizeof(p->network));
    /* The overlay address is another one after the machine has joined anew. */
    if (p->server &&
        (p->port.at.port == 0 ||
            (p->port.is_overlay && !ip_addr_equal(&p->port.own, &snapshot_self(s)->address4))))
        metrics_port_init(&p->port, &arg.listen, p->server, s);
    ping_monitor_set(&p->monitor, members, n);
    return 0;
}

/* ---- what is told --------------------------------------------------------------------------- */

static void tell(const struct ping_monitor_member *m, enum ping_monitor_family family,
    const struct reachability *reach, nsec_t now)
{
    json_auto_t *json = NULL;

    if (!arg.json && reach->state == REACHABILITY_REACHED)
        log_info("%s is reached over %s, in %.1f ms", m->name, ping_monitor_family_names[family],
            (double)reach->rtt / NSEC_PER_MSEC);
    if (!arg.json && reach->state == REACHABILITY_SILENT)
        log_warning("%s does not answer over %s: %u pings in %llu s", m->name,
            ping_monitor_family_names[family], reach->silent_pings,
            (unsigned long long)((now - reach->silent_since) / NSEC_PER_SEC));
    if (!arg.json)
        return;
    json = json_pack("{s:I, s:s, s:s, s:s, s:o}", "time", (json_int_t)(clock_wall() / NSEC_PER_SEC),
        "node", m->name, "family", ping_monitor_family_names[family], "state",
        reachability_state_names[reach->state], "rttMs",
        reach->state == REACHABILITY_REACHED ? json_real((double)reach->rtt / NSEC_PER_MSEC)
                                             : json_null());
    (void)json_dumpf(json, stdout, JSON_COMPACT);
    (void)putchar('\n');
    (void)fflush(stdout);
}

static void on_change(
    void *ctx, const struct ping_monitor_member *m, enum ping_monitor_family family, nsec_t now)
{
    const struct probe *p = ctx;

    if (!p->is_silent)
        tell(m, family, &m->reach[family], now);
}

static char *format_metrics(const struct probe *p)
{
    struct metrics m = METRICS_NULL;

    ping_monitor_add_metrics(&p->monitor, &m);
    return metrics_take(&m);
}

/* 0 or negative errno with words. */
static int write_metrics(const struct probe *p, struct err *e)
{
    _cleanup_(freep) char *text = NULL;
    int r;

    if (!arg.metrics)
        return 0;
    text = format_metrics(p);
    if (!text)
        return err_set(e, -ENOMEM, "the metrics are not written: no memory");
    r = statefile_replace(arg.metrics, text, strlen(text), METRICS_MODE, e);
    return r < 0 ? err_prefix(e, "the metrics are not written") : 0;
}

static void get_metrics(void *ctx, const struct request *rq, struct response *rs)
{
    const struct probe *p = ctx;

    if (metrics_port_admits(&p->port, rq, rs))
        response_text(rs, 200, format_metrics(p), PROMETHEUS_TYPE);
}

static const struct route routes[] = {
    {"GET", "/metrics", API_ACCESS_METRICS, get_metrics, "which members are reached"},
    {"GET", "/v1/metrics", API_ACCESS_METRICS, get_metrics, "the same"},
    ROUTES_END,
};

/* 0 or negative errno with words. */
static int open_server(struct probe *p, struct err *e)
{
    const struct server_config config = {.loop = &p->loop, .routes = routes, .ctx = p};
    int r;

    if (arg.listen.at.port == 0)
        return 0;
    (void)signal(SIGPIPE, SIG_IGN);
    r = uv_loop_init(&p->loop);
    if (r < 0)
        return err_set(e, r, "no loop for --metrics: %s", uv_strerror(r));
    r = metrics_place_server(&p->server, &arg.listen, &config, e);
    if (r < 0)
        (void)uv_loop_close(&p->loop);
    return r;
}

static void close_server(struct probe *p)
{
    if (!p->server)
        return;
    server_stop(p->server);
    (void)uv_run(&p->loop, UV_RUN_DEFAULT);
    p->server = server_free(p->server);
    (void)uv_loop_close(&p->loop);
}

/* Answers who has asked, and says when it is to be called again at the latest, monotonic time. */
static nsec_t run_server(struct probe *p)
{
    int wait_ms;

    if (!p->server)
        return NSEC_NEVER;
    (void)metrics_port_open(&p->port, clock_now());
    (void)uv_run(&p->loop, UV_RUN_NOWAIT);
    wait_ms = uv_backend_timeout(&p->loop);
    return nsec_min(
        p->port.due_at, wait_ms < 0 ? NSEC_NEVER : clock_now() + wait_ms * NSEC_PER_MSEC);
}

/* ---- the report ----------------------------------------------------------------------------- */

/* 0, STATE_E_ABSENT or negative errno with words. */
static int open_report(struct probe *p, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    int r = state_check_dir(arg.state_dir, e);

    if (r == 0)
        r = state_read(&st, arg.state_dir, e);
    if (r == STATE_E_ABSENT)
        return err_set(
            e, r, "this machine has not joined a network (%s has no node.json)", arg.state_dir);
    return r == 0 ? begin_link(p, &st, e) : r;
}

/* Through the tunnel a member is reached when it answers in either family. */
static void tell_tunnel(const struct ping_monitor_member *m, struct edge_probed *ret)
{
    for (unsigned f = PING_MONITOR_FAMILY_N; f-- > 0;) {
        const struct reachability *reach = &m->reach[f];

        if (reach->state == REACHABILITY_REACHED) {
            ret->tunnel = EDGE_REACH_REACHED;
            ret->rtt_us = (uint32_t)(reach->rtt / NSEC_PER_USEC);
        } else if (reach->state == REACHABILITY_SILENT && ret->tunnel == EDGE_REACH_UNKNOWN) {
            ret->tunnel = EDGE_REACH_SILENT;
        }
    }
}

/* All edges of which something is known. Return: on the heap; NULL: no memory. */
static struct probe_edge *list_edges(const struct probe *p, size_t *ret_n, nsec_t now)
{
    struct probe_edge *edges = calloc(p->monitor.n + 1, sizeof(*edges));
    size_t n = 0;

    for (size_t i = 0; edges && i < p->monitor.n; i++) {
        const struct ping_monitor_member *m = &p->monitor.members[i];
        struct probe_edge edge = {.probed = {.rtt_us = 0}};

        tell_tunnel(m, &edge.probed);
        underlay_monitor_tell(&p->underlay, i, &edge.probed, now);
        if (edge.probed.tunnel == EDGE_REACH_UNKNOWN && edge.probed.underlay == EDGE_REACH_UNKNOWN)
            continue;
        (void)snprintf(edge.head.peer, sizeof(edge.head.peer), "%s", m->name);
        edges[n++] = edge;
    }
    *ret_n = n;
    return edges;
}

static void take_answer(struct probe *p, nsec_t now)
{
    enum edge_report_result result;
    struct err why = ERR_NULL;

    if (!probe_link_take(p->link, &result, &why))
        return;
    if (result == EDGE_REPORT_LOST)
        log_limited(&p->limit, now, LOG_LEVEL_WARNING, "the hub is not told, trying again: %s",
            err_text(&why));
    if (result == EDGE_REPORT_OLD)
        log_info("the hub is of a version that takes no reports of probes");
    probe_report_on_result(&p->report, result, rng_u32(&p->rng), now);
}

/* This node's parts of its edges, where the probe writes them itself. */
static void tell_cluster(struct probe *p, nsec_t now)
{
    _cleanup_(freep) struct probe_edge *edges = NULL;
    json_t *parts;
    nsec_t since;
    size_t n;

    if (!p->edge_parts)
        return;
    /* Logs what has changed. */
    (void)cluster_writer_fault(p->edge_parts, &since);
    if (!cluster_writer_is_due(p->edge_parts, p->monitor.n, now))
        return;
    edges = list_edges(p, &n, now);
    parts = edges ? json_object() : NULL;
    for (size_t i = 0; parts && i < n; i++)
        (void)json_object_set_new(parts, edges[i].head.peer, edge_probed_encode(&edges[i].probed));
    if (parts)
        cluster_writer_tell(
            p->edge_parts, parts, json_deep_copy(p->asked_for), p->monitor.n + 1, now);
}

/* It starts a thread, so privileges have to be dropped by then. Once more when the machine has
 * joined anew. */
static int open_edge_parts(struct probe *p, struct err *e)
{
    const struct cluster_writer_self self = {
        .network = p->network, .node = p->self, .owner = EDGE_OWNER_PROBE};

    return arg.edges_to && !p->edge_parts
               ? cluster_writer_new(&p->edge_parts, arg.edges_to, &self, e)
               : 0;
}

static void report(struct probe *p, nsec_t now)
{
    _cleanup_(freep) struct probe_edge *edges = NULL;
    json_t *body;
    size_t n;

    take_answer(p, now);
    if (p->report.is_on_its_way || now < p->report.due_at || now - p->compared_at < COMPARE_PERIOD)
        return;
    p->compared_at = now;
    edges = list_edges(p, &n, now);
    body = edges ? probe_report_make(&p->report, p->self, edges, n, now) : NULL;
    if (body && probe_link_send(p->link, body) < 0)
        probe_report_on_result(&p->report, EDGE_REPORT_LOST, rng_u32(&p->rng), now);
}

/* ---- watching ------------------------------------------------------------------------------- */

/* Waits until a ping is due or @deadline; true when a signal says to end. */
static bool wait(struct probe *p, nsec_t deadline)
{
    struct ping_monitor *m = &p->monitor;
    struct pollfd fds[] = {{.fd = m->fd[PING_MONITOR_V4], .events = POLLIN},
        {.fd = m->fd[PING_MONITOR_V6], .events = POLLIN}, {.fd = p->signal_fd, .events = POLLIN},
        {.fd = p->underlay.udp.poll_fd, .events = POLLIN},
        {.fd = p->link ? probe_link_fd(p->link) : -1, .events = POLLIN},
        {.fd = p->server ? uv_backend_fd(&p->loop) : -1, .events = POLLIN}};
    nsec_t due = nsec_min(nsec_min(ping_monitor_due(m), p->underlay.due_at), run_server(p));
    nsec_t left = nsec_min(due, deadline) - clock_now();
    int n = poll(fds, sizeof(fds) / sizeof(*fds), left > 0 ? (int)(left / NSEC_PER_MSEC) + 1 : 0);

    for (unsigned f = 0; n > 0 && f < PING_MONITOR_FAMILY_N; f++)
        if (fds[f].revents)
            ping_monitor_take(m, (enum ping_monitor_family)f, clock_now());
    if (n > 0 && fds[3].revents)
        underlay_monitor_take(&p->underlay, clock_now());
    return n > 0 && fds[2].revents != 0;
}

static bool have_all_answered(const struct ping_monitor *m)
{
    for (size_t i = 0; i < m->n; i++)
        for (unsigned f = 0; f < PING_MONITOR_FAMILY_N; f++)
            if (m->fd[f] >= 0 && m->members[i].reach[f].n_answers < ONCE_ANSWERS)
                return false;
    return true;
}

static int print_report(const struct probe *p)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    nsec_t now = clock_now();
    json_t *json = NULL;

    if (arg.json) {
        json = ping_monitor_encode(&p->monitor, now);
        (void)json_object_set_new(json, "network", json_string(p->network));
    } else {
        ping_monitor_format(&p->monitor, now, &out);
    }
    return admin_print(usage.command, arg.json, json, &out);
}

static int watch_once(struct probe *p)
{
    const struct ping_monitor *m = &p->monitor;
    nsec_t end = clock_now() + ONCE_TIME;
    struct err e = ERR_NULL;
    int status;

    p->is_silent = true;
    while (clock_now() < end && !have_all_answered(m)) {
        (void)ping_monitor_run(&p->monitor, clock_now());
        if (wait(p, end))
            return cmd_fail(usage.command, "ended by a signal");
    }
    if (write_metrics(p, &e) < 0)
        return cmd_fail(usage.command, "%s", err_text(&e));
    status = print_report(p);
    for (size_t i = 0; status == CMD_OK && i < m->n; i++)
        if (m->members[i].reach[PING_MONITOR_V4].state != REACHABILITY_REACHED)
            status = CMD_VERDICT_NO;
    return status;
}

static int keep_watching(struct probe *p)
{
    struct err e = ERR_NULL;
    nsec_t now = clock_now();
    int r;

    log_info(
        "watching %zu members of network %s through %s", p->monitor.n, p->network, p->interface);
    do {
        now = clock_now();
        (void)ping_monitor_run(&p->monitor, now);
        if (p->link) {
            underlay_monitor_run(&p->underlay, now);
            report(p, now);
            tell_cluster(p, now);
        }
        if (now - p->read_at < REREAD_PERIOD)
            continue;
        p->read_at = now;
        /* A disk that is full now may have room the next time. */
        if (write_metrics(p, &e) < 0)
            log_warning("%s", err_text(&e));
        r = read_members(p, &e);
        if (r == 0)
            r = open_edge_parts(p, &e);
        if (r < 0)
            return cmd_fail(usage.command, "%s", err_text(&e));
        /* It has left, and may join anew. */
        if (r == STATE_E_ABSENT)
            log_limited(&p->limit, now, LOG_LEVEL_INFO, "%s", err_text(&e));
    } while (!wait(p, p->read_at + REREAD_PERIOD));
    return CMD_OK;
}

/* The sockets are open by now. Later only the files of the members and the metrics are needed. */
static int drop_privileges(struct err *e)
{
    /* A request to the hub opens a socket, and a thread waits for it; the port for Prometheus may
     * open only after its address has come. Raw sockets are opened again
     * when the port of WireGuard is another one. */
    struct privileges p = {
        .kind = arg.report || arg.listen.at.port != 0 ? SANDBOX_AGENT : SANDBOX_PROBE,
        .user = arg.user,
        .capabilities = arg.report ? SANDBOX_CAP(CAP_NET_RAW) : 0};
    char node[PATH_MAX];
    _cleanup_(kube_config_deinit) struct kube_config kube = KUBE_CONFIG_NULL;
    char snapshot[PATH_MAX];
    char folder[PATH_MAX];
    char token[PATH_MAX];

    if (arg.edges_to && kube_access_add(&p, &kube, arg.edges_to, token, e) != 0)
        return -EINVAL;
    (void)snprintf(node, sizeof(node), "%.*s/node.json", STATE_DIR_MAX, arg.state_dir);
    (void)snprintf(snapshot, sizeof(snapshot), "%.*s/snapshot.json", STATE_DIR_MAX, arg.state_dir);
    privileges_add(&p, arg.state_dir, PRIVILEGES_READ);
    privileges_add(&p, node, PRIVILEGES_READ);
    if (access(snapshot, F_OK) == 0)
        privileges_add(&p, snapshot, PRIVILEGES_READ);
    privileges_add_folder_of(&p, arg.metrics, folder, PRIVILEGES_WRITE);
    return privileges_drop(&p, e);
}

int cmd_probe(int argc, char **argv)
{
    struct probe p = {.monitor = PING_MONITOR_NULL,
        .underlay = UNDERLAY_MONITOR_NULL,
        .rng = rng_kernel(),
        .port = METRICS_PORT_NULL};
    struct err e = ERR_NULL;
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (arg.once && arg.report)
        return cmd_refuse(usage.command, "--once ends before there is much to report: choose one");
    if (arg.listen.tls_dir && arg.listen.at.port == 0)
        return cmd_refuse(usage.command,
            "--metrics-tls says how --metrics ADDRESS answers, and no address is given");
    if (arg.edges_to && !arg.report)
        return cmd_refuse(usage.command, "--edges-to needs --report: it writes what is reported");
    if (arg.once && arg.listen.at.port != 0)
        return cmd_refuse(usage.command,
            "--once ends before Prometheus asks: --metrics takes a file then, or leave --once out");
    log_init("probe", LOG_LEVEL_INFO);
    p.signal_fd = end_signals_open();
    if (p.signal_fd < 0)
        return cmd_fail(usage.command, "cannot wait for signals: %s", strerror(-p.signal_fd));
    p.read_at = clock_now();
    p.monitor.pace = arg.once ? 0 : PING_MONITOR_PACE;
    r = arg.report ? open_report(&p, &e) : 0;
    if (r == 0)
        r = open_server(&p, &e);
    if (r == 0)
        r = read_members(&p, &e);
    if (r == 0)
        r = ping_monitor_open(&p.monitor, p.interface, arg.once ? ONCE_PERIOD : arg.period,
            rng_u64(&p.rng), on_change, &p, &e);
    if (r == 0)
        r = drop_privileges(&e);
    if (r == 0)
        r = open_edge_parts(&p, &e);
    if (r == 0)
        r = write_metrics(&p, &e);
    if (r != 0)
        status = cmd_fail(usage.command, "%s", err_text(&e));
    else
        status = arg.once ? watch_once(&p) : keep_watching(&p);
    close_server(&p);
    p.link = probe_link_free(p.link);
    p.edge_parts = cluster_writer_free(p.edge_parts);
    json_decref(p.asked_for);
    probe_report_deinit(&p.report);
    underlay_monitor_close(&p.underlay);
    ping_monitor_close(&p.monitor);
    closep(&p.signal_fd);
    return status;
}
