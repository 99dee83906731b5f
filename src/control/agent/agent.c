/* agent.c - see agent.h. Life of the agent: start, events, deadlines, end. */
#include "agent/agent.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/cluster/cluster_resource.h"
#include "agent/cluster/cluster_watch.h"
#include "agent/cluster/cluster_writer.h"
#include "agent/node_jobs.h"
#include "agent/node_keepalive.h"
#include "agent/node_machine.h"
#include "agent/node_measure.h"
#include "agent/node_names.h"
#include "agent/node_report.h"
#include "agent/paths/edge/path_driver.h"
#include "agent/reconcile/pass_plan.h"
#include "agent/resolver.h"
#include "agent/state/snapshot_cache.h"
#include "agent/state/state.h"
#include "api/server/server.h"
#include "base/err.h"
#include "base/secret.h"
#include "crypto/aead.h"
#include "mesh/snapshot/watch_event.h"
#include "net/netlink/link_watch.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/hosts_file.h"

#define MEASURE_TIME (4 * NSEC_PER_MSEC) /* for each cipher */
#define NAMES_DELAY  (NSEC_PER_SEC / 5)  /* from a change of the snapshot to the hosts file */
#define END_POLL     (10 * NSEC_PER_MSEC)

#define RESOLV_CONF "/etc/resolv.conf"

/** An agent, and what wakes it. */
struct life {
    struct agent agent;
    int lock_fd;            /* owns: of the state directory; -1: none */
    struct server *server;  /* owns; the node's own socket */
    struct link_watch link; /* of the interface */
    uv_poll_t link_poll;    /* of link.fd; initialised while that is open */
    uv_prepare_t prepare;   /* before the loop waits: sets the timer */
    uv_timer_t timer;       /* the earliest deadline */
    uv_signal_t signals[2];
};

/* ---- deadlines ------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer)
{
    struct life *l = timer->data;
    nsec_t now = clock_now();

    if (!l->agent.is_ending)
        agent_core_run(&l->agent, now);
    else if (now >= l->agent.ends_at || server_counts(l->server).connections == 0)
        uv_stop(&l->agent.loop);
}

/* Sets the timer anew before each wait, because any event may have changed a deadline. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct life *l = prepare->data;
    const struct agent *a = &l->agent;
    nsec_t now = clock_now();
    nsec_t due = a->is_ending ? nsec_min(a->ends_at, now + END_POLL) : agent_core_due(a);
    nsec_t wait = nsec_max(due - now, 0);

    /* Rounded up, because a timer that is early would only be set again. */
    (void)uv_timer_start(&l->timer, on_timer, (uint64_t)(wait / NSEC_PER_MSEC + 1), 0);
}

/* ---- events --------------------------------------------------------------------------------- */

/* Writes removed.json, so that commands can tell later what has become of this node. */
static void keep_removal(const struct agent *a, const char *reason)
{
    struct removed rm = {.at = clock_wall() / NSEC_PER_SEC};
    struct err e = ERR_NULL;

    (void)snprintf(rm.node, sizeof(rm.node), "%s", a->snapshot.self);
    (void)snprintf(
        rm.network, sizeof(rm.network), "%.*s", NAME_MAX_LEN, a->snapshot.network.meta.name);
    removed_set_reason(&rm, reason);
    (void)snprintf(rm.socket_path, sizeof(rm.socket_path), "%s", a->config->socket_path);
    if (removed_write(&rm, a->config->state_dir, &e) < 0)
        log_warning("nobody will be told later that it was removed: %s", err_text(&e));
}

static void on_removed(struct agent *a, const char *reason)
{
    struct err names;
    struct err e = ERR_NULL;

    keep_removal(a, reason);
    log_info("the hub has removed this node: %s", reason[0] ? reason : "it gives no reason");
    if (agent_core_take_down(a, &names, &e) < 0 || state_remove(a->config->state_dir, &e) < 0)
        log_error("not all of it could be cleaned up: %s", err_text(&e));
    else if (names.code != 0)
        log_error("the nodes' names could not be removed: %s", err_text(&names));
    agent_core_finish(a, AGENT_END_REMOVED);
}

static void on_snapshot_change(struct agent *a, bool is_status, nsec_t now)
{
    pass_plan_request(&a->pass, now + AGENT_CORE_SOON);
    snapshot_cache_on_change(&a->cache, is_status, now);
    node_names_request(&a->names, now + NAMES_DELAY);
    path_driver_set_snapshot(a->paths, &a->snapshot, now);
    a->poll.has_changes = true;
}

/* Has that hub forgotten what it relayed, since it was started anew? What a hub said of its run
 * before this agent's start is known where there is only one. */
static bool is_hub_new(const struct agent *a, const struct agent_hub *hub, uint64_t before)
{
    uint64_t boot = hub->boot == 0 && a->hubs.n == 1 ? before : hub->boot;

    return boot != 0 && boot != a->snapshot.boot;
}

/* Is the snapshot that hub's, of this run of the agent? One from the disk may lack what an older
 * version did not understand. */
static bool is_known(void *ctx, uint64_t *ret_boot, uint64_t *ret_revision)
{
    const struct agent_hub *hub = ctx;
    const struct agent *a = hub->owner;

    if (a->cluster || hub->boot == 0 || hub->boot != a->snapshot.boot)
        return false;
    *ret_boot = a->snapshot.boot;
    *ret_revision = a->snapshot.revision;
    return true;
}

/* Does @ev change no more than the status of a node that @s has? That is so when the object has the
 * resourceVersion that @s has of it: what a node reports does not raise it. */
static bool is_status_alone(const struct watch_event *ev, const struct snapshot *s)
{
    const struct node *held;

    if (ev->kind != WATCH_EVENT_PUT || ev->object.kind != &node_kind)
        return false;
    held = snapshot_find_node(s, ev->object.node.meta.name);
    return held && held->meta.resource_version != 0 &&
           held->meta.resource_version == ev->object.node.meta.resource_version;
}

static int on_event(void *ctx, struct watch_event *ev, nsec_t now, struct err *e)
{
    struct agent_hub *hub = ctx;
    struct agent *a = hub->owner;
    enum watch_event_kind kind = ev->kind;
    bool has_changed = true;
    bool is_other_run;
    bool is_status;
    uint64_t boot;
    int r;

    if (a->is_ending || kind == WATCH_EVENT_REMOVED) {
        if (!a->is_ending)
            on_removed(a, ev->reason);
        watch_event_deinit(ev);
        return 0;
    }
    r = snapshot_cache_check_event(&a->state, ev, e);
    if (r < 0) {
        hub->refused = *e;
        watch_event_deinit(ev);
        return r;
    }
    hub->refused = (struct err)ERR_NULL;
    boot = a->snapshot.boot;
    is_status = a->cluster || is_status_alone(ev, &a->snapshot);
    /* Where the cluster says who is in the network, hubs only say how nodes are reached. */
    if (a->cluster)
        r = cluster_merge_hub(&a->snapshot, &a->hub_said, ev, &has_changed, e);
    else
        r = watch_event_apply(&a->snapshot, ev, e);
    if (r < 0)
        return r;
    hub_set_on_heard(&a->hubs, hub, now);
    is_other_run = a->snapshot.boot != boot;
    if (kind == WATCH_EVENT_SNAPSHOT || is_other_run) {
        if (is_hub_new(a, hub, boot))
            agent_core_on_hub_forgot(a, now);
        hub->boot = a->snapshot.boot;
    }
    a->knows_members |= kind == WATCH_EVENT_SNAPSHOT && !a->cluster;
    if (has_changed && (kind != WATCH_EVENT_HEARTBEAT || is_other_run) && kind != WATCH_EVENT_NONE)
        on_snapshot_change(a, is_status, now);
    /* Of a node that has just joined, somebody may wait for the names of the others. */
    if (kind == WATCH_EVENT_SNAPSHOT)
        node_names_request(&a->names, now + AGENT_CORE_SOON);
    return 0;
}

static bool is_own_deletion(const struct watch_event *ev, const struct snapshot *s)
{
    return ev->kind == WATCH_EVENT_DELETE && ev->deleted.kind == &node_kind &&
           strcmp(ev->deleted.name, s->self) == 0;
}

static void on_cluster_event(void *ctx, struct watch_event *ev, const json_t *kept)
{
    struct agent *a = ctx;
    struct err e = ERR_NULL;
    nsec_t now = a->clock();
    bool is_status;
    int r;

    if (a->is_ending)
        return;
    if (ev->skips.n > 0)
        log_warning("the cluster: %zu resources are passed over, one because of this: %s",
            ev->skips.n, err_text(&ev->skips.first));
    /* It is the hub that removes a node, and it may say so a moment after the cluster does. */
    if (is_own_deletion(ev, &a->snapshot)) {
        log_info("this node was deleted in the cluster: whether it is removed the hub will say");
        return;
    }
    r = snapshot_cache_check_event(&a->state, ev, &e);
    is_status = is_status_alone(ev, &a->snapshot);
    if (r == 0) {
        cluster_merge_cluster(
            &a->snapshot, &a->hub_said, ev, kept, hub_link_is_heard(a->hubs.serving->link));
        r = watch_event_apply(&a->snapshot, ev, &e);
    }
    if (r == 0) {
        a->knows_members = true;
        on_snapshot_change(a, is_status, now);
    } else {
        log_warning("the cluster's resources do not fit: %s", err_text(&e));
    }
}

static void on_cluster_change(void *ctx, bool heard, const char *why)
{
    struct agent *a = ctx;

    status_cluster_set(&a->cluster_seen, heard, why, a->clock());
    if (heard)
        log_info("the cluster says who is in the network");
    else if (!a->is_ending)
        log_warning("the cluster does not say who is in the network, known peers stay: %s", why);
}

static void on_hub_change(void *ctx, bool heard, const char *why, nsec_t now)
{
    struct agent_hub *hub = ctx;
    struct agent *a = hub->owner;

    if (a->is_ending)
        return;
    path_driver_set_hub(a->paths, heard, now);
    if (heard) {
        log_info("the hub answers");
        node_report_on_hub(&hub->report);
    } else {
        log_warning("the hub does not answer, known peers stay: %s", why);
        hub_set_on_lost(&a->hubs, hub);
    }
    poll_plan_request(&a->poll, now);
}

static void on_reported(void *ctx, enum edge_report_result result, const json_t *body)
{
    struct agent_hub *hub = ctx;
    struct agent *a = hub->owner;
    nsec_t now = a->clock();
    int64_t ahead_s;

    node_report_on_result(&hub->report, result);
    if (hub == a->hubs.serving && hub_link_clock_ahead(hub->link, &ahead_s)) {
        node_clock_compare(&a->time, ahead_s);
        path_driver_set_hub_clock(a->paths, ahead_s * NSEC_PER_SEC);
    }
    /* Of several hubs one: another may hear the other machine a little later. */
    if (result == EDGE_REPORT_TAKEN && hub == a->hubs.serving)
        node_copy_on_answer(&a->copy, body);
    hub->report_lost_at = result == EDGE_REPORT_LOST ? now : 0;
    if (node_report_within(&hub->report) != NSEC_NEVER && !a->is_ending)
        poll_plan_request(&a->poll, now + node_report_within(&hub->report));
}

static void on_routes(void *ctx)
{
    struct agent *a = ctx;

    a->poll.has_changes = true;
    pass_plan_request(&a->pass, a->clock());
}

static void on_self(void *ctx)
{
    struct agent *a = ctx;

    hub_set_on_self(&a->hubs);
    poll_plan_request(&a->poll, a->clock() + AGENT_CORE_SOON);
}

static void on_look(void *ctx)
{
    struct agent *a = ctx;

    poll_plan_request(&a->poll, a->clock());
}

static void on_network(void *ctx)
{
    struct agent *a = ctx;

    /* WireGuard sends to a peer from the address at which it was heard last, even if that address
     * is of no use by now. An endpoint that it is told again makes it choose again. */
    a->reconcile.tells_all = true;
    on_routes(a);
}

void agent_on_keepalive(void *ctx, bool is_measured, bool is_other)
{
    struct agent *a = ctx;

    if (a->is_ending)
        return;
    if (is_measured) {
        node_keepalive_on_result(&a->keepalive, &a->snapshot.network);
        hub_set_on_self(&a->hubs);
    }
    if (is_other) {
        node_keepalive_on_interval(&a->keepalive);
        pass_plan_request(&a->pass, a->clock());
    }
}

const struct hub_link_listener agent_hub_listener = {.known = is_known,
    .on_event = on_event,
    .on_change = on_hub_change,
    .on_reported = on_reported};
const struct path_driver_listener agent_path_listener = {
    .on_routes = on_routes, .on_self = on_self, .on_look = on_look, .on_network = on_network};
const struct cluster_listener agent_cluster_listener = {
    .on_event = on_cluster_event, .on_change = on_cluster_change};

/* The interface was changed, or is gone: have a pass at once. */
static void on_link(uv_poll_t *poll, int status, int events)
{
    struct life *l = poll->data;

    if (link_watch_read(&l->link))
        pass_plan_request(&l->agent.pass, clock_now() + AGENT_CORE_SOON);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct life *l = handle->data;

    agent_core_finish(&l->agent, AGENT_END_STOPPED);
}

/* ---- start ---------------------------------------------------------------------------------- */

static int load(struct life *l, struct err *e)
{
    struct agent *a = &l->agent;
    const char *dir = a->config->state_dir;
    struct err unkept = ERR_NULL;
    char text[REMOVED_TEXT_MAX];
    struct removed rm;
    int r = state_read(&a->state, dir, e);

    if (r == STATE_E_ABSENT && removed_read(&rm, dir, NULL) == 0)
        return err_set(e, AGENT_E_NOT_JOINED, "%s; weft join with a new token makes it one again",
            removed_explain(&rm, text));
    if (r == STATE_E_ABSENT)
        return err_set(e, AGENT_E_NOT_JOINED,
            "this machine has not joined a network (%s has no node.json): weft join TOKEN", dir);
    if (r == 0)
        r = state_lock(dir, &l->lock_fd, e);
    /* public.json is missing where an older version has joined. A full disk must not keep the node
     * from running. */
    if (r == 0 && state_write_public(&a->state, dir, &unkept) < 0)
        log_warning("weft probe will not know this node: %s", err_text(&unkept));
    return r == 0 ? snapshot_cache_load(&a->cache, dir, &a->state, &a->snapshot, e) : r;
}

/* None of these keeps the agent from running. */
static void init_handles(struct life *l)
{
    struct agent *a = &l->agent;
    struct rng rng = rng_kernel();
    struct err e = ERR_NULL;
    struct node_names_options names = {.is_on = a->state.keeps_hosts,
        .file = HOSTS_FILE_DEFAULT,
        .helper = a->config->hosts,
        .lookup = name_lookup,
        .born = &a->state.snapshot};

    (void)uv_loop_init(&a->loop);
    (void)uv_timer_init(&a->loop, &l->timer);
    l->timer.data = l;
    (void)uv_prepare_init(&a->loop, &l->prepare);
    l->prepare.data = l;
    (void)uv_prepare_start(&l->prepare, on_prepare);
    for (unsigned i = 0; i < 2; i++) {
        (void)uv_signal_init(&a->loop, &l->signals[i]);
        l->signals[i].data = l;
    }
    a->begun_at = a->clock();
    node_copy_init(&a->copy, &a->state);
    node_clock_init(&a->time, a->config->state_dir);
    node_meter_open(&a->meter, a->config->state_dir, rng_u64(&rng));
    node_keepalive_init(&a->keepalive, &a->loop, a->config->state_dir, agent_on_keepalive, a);
    if (a->state.answers_dns && resolver_new(&a->resolver, a->state.interface, RESOLV_CONF, &e) < 0)
        log_warning("the nodes' names are not answered by DNS: %s", err_text(&e));
    names.resolver = a->resolver;
    names.interface = a->state.interface;
    /* Root's unit looks at one file, that of the usual agent. */
    if (strcmp(a->config->socket_path, STATE_SOCKET_DEFAULT) == 0)
        names.link_file = RESOLVED_LINK_FILE;
    a->names.opt = names;
}

/* Watches the interface from now on, also after it was removed and made again. */
static void start_link_watch(struct life *l)
{
    const char *interface = l->agent.state.interface;
    int r = link_watch_open(&l->link);

    if (r < 0) {
        log_warning("%s cannot be watched, it is looked at every %d s: %s", interface,
            (int)(PASS_PLAN_PERIOD / NSEC_PER_SEC), strerror(-r));
        return;
    }
    /* One that is not there yet is found by its name when it appears. */
    (void)snprintf(l->link.adopts, sizeof(l->link.adopts), "%s", interface);
    (void)link_watch_find(&l->link, interface, -1);
    (void)uv_poll_init(&l->agent.loop, &l->link_poll, l->link.fd);
    l->link_poll.data = l;
    (void)uv_poll_start(&l->link_poll, UV_READABLE, on_link);
}

static int open_cluster(struct agent *a, struct err *e)
{
    struct cluster_listener listener = agent_cluster_listener;
    struct cluster_self self;

    if (!a->config->cluster)
        return 0;
    (void)snprintf(self.network, sizeof(self.network), "%.*s", NAME_MAX_LEN,
        a->state.snapshot.network.meta.name);
    (void)snprintf(self.node, sizeof(self.node), "%s", a->state.snapshot.self);
    a->cluster_seen.since = a->clock();
    listener.ctx = a;
    return cluster_watch_new(&a->cluster, &a->loop, a->config->cluster, &self, &listener, e);
}

static int open_edge_parts(struct agent *a, struct err *e)
{
    const struct cluster_writer_self self = {.network = a->state.snapshot.network.meta.name,
        .node = a->state.snapshot.self,
        .owner = EDGE_OWNER_AGENT};

    return a->config->edges_to ? cluster_writer_new(&a->edge_parts, a->config->edges_to, &self, e)
                               : 0;
}

/* Does all that can fail, before anything of the machine is changed. */
static int open_parts(struct life *l, struct err *e)
{
    struct agent *a = &l->agent;
    struct hub_link_listener hubs = agent_hub_listener;
    struct path_driver_listener paths = agent_path_listener;
    struct path_driver_options opt = {.secret = &a->state.secret,
        .name = a->state.snapshot.self,
        .interface = a->state.interface,
        .given = a->state.given,
        .n_given = a->state.n_given,
        .pings = a->config->pings};
    int r = reconcile_init(&a->reconcile, a->state.interface, a->state.engine, a->state.accepts, e);

    hubs.ctx = paths.ctx = a;
    a->reconcile.timestamps = a->time.path;
    if (r == 0)
        r = path_driver_new(&a->paths, &a->loop, &opt, &paths, e);
    if (r == 0) {
        hub_set_init(&a->hubs, &a->loop, &a->state, &hubs);
        job_calls_init(&a->jobs, agent_core_find_link, a);
        a->running = (struct node_jobs){.calls = &a->jobs, .meter = &a->meter.meter};
        path_driver_set_snapshot(a->paths, &a->snapshot, clock_now());
        r = agent_core_take_hubs(a, e);
        /* Each pass says what keeps it from using some of them. */
        r = a->hubs.serving ? 0 : r;
    }
    if (r == 0)
        r = open_cluster(a, e);
    if (r == 0)
        r = open_edge_parts(a, e);
    if (r == 0)
        r = agent_api_open(&l->server, a, e);
    if (r < 0)
        return r;
    for (unsigned i = 0; r == 0 && i < 2; i++)
        r = uv_signal_start(&l->signals[i], on_signal, i == 0 ? SIGTERM : SIGINT);
    return r == 0 ? 0 : err_set(e, r, "signals cannot be taken: %s", uv_strerror(r));
}

static int start(struct life *l, struct err *e)
{
    struct agent *a = &l->agent;
    struct rng rng = rng_kernel();
    struct render_input in;
    int r = open_parts(l, e);

    if (r < 0)
        return r;
    /* Measures the same implementations that the userspace engine uses. */
    for (unsigned c = 0; c < AEAD_CIPHER_N; c++) {
        const struct aead_algorithm *alg = aead_best((enum aead_cipher)c, NULL);

        a->speeds.mb_per_s[c] = alg ? aead_speed(alg, MEASURE_TIME, clock_now) : 0;
    }
    a->fabric = node_fabric_new();
    a->watch = node_watch_new(a->config->state_dir);
    if (a->config->asks_gpus)
        a->gpus = node_gpus_new(NULL);
    in = agent_core_render_input(a);
    reconcile_assume(&a->reconcile, &in);
    /* Before the first pass, which would take away a rate that an earlier agent has found. */
    if (!a->config->no_measure)
        node_uplink_init(&a->uplink, a->config->state_dir, rng_u32(&rng), clock_now(),
            clock_wall() / NSEC_PER_SEC);
    agent_core_poll(a);
    agent_core_pass(a);
    node_names_update(&a->names, &a->snapshot, a->reconcile.lacks_v6, clock_now());
    start_link_watch(l);
    if (a->config->no_measure)
        return 0;
    node_measure_start(&a->measure, &a->loop, &a->state.secret, a->state.interface,
        a->config->socket_path, &a->config->memlock);
    node_measure_tell(&a->measure, &a->snapshot, &a->reach);
    node_daily_init(&a->daily, rng_u64(&rng), clock_now());
    return 0;
}

/* ---- end ------------------------------------------------------------------------------------ */

static void stop(struct life *l)
{
    struct agent *a = &l->agent;

    if (a->is_ending && a->end <= AGENT_END_DOWN && a->cache.due_at != NSEC_NEVER)
        snapshot_cache_save(&a->cache, &a->snapshot, clock_now());
    node_measure_stop(&a->measure);
    node_jobs_stop(&a->running);
    if (l->server)
        server_stop(l->server);
    a->cluster = cluster_watch_free(a->cluster);
    a->edge_parts = cluster_writer_free(a->edge_parts);
    hub_set_stop(&a->hubs);
    a->fabric = node_fabric_free(a->fabric);
    a->watch = node_watch_free(a->watch);
    a->gpus = node_gpus_free(a->gpus);
    keepalive_probe_stop(&a->keepalive.probe);
    node_meter_close(&a->meter, a->is_ending && a->end <= AGENT_END_DOWN, clock_now());
    a->paths = path_driver_free(a->paths, a->end != AGENT_END_STOPPED);
    uv_close((uv_handle_t *)&l->timer, NULL);
    uv_close((uv_handle_t *)&l->prepare, NULL);
    for (unsigned i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&l->signals[i], NULL);
    if (l->link.fd >= 0)
        uv_close((uv_handle_t *)&l->link_poll, NULL);
    (void)uv_run(&a->loop, UV_RUN_DEFAULT);
    l->server = server_free(l->server);
    closep(&l->link.fd);
    reconcile_deinit(&a->reconcile);
    class_marks_forget(&a->marks);
    observe_deinit(&a->seen);
    reach_deinit(&a->reach);
    findings_deinit(&a->findings);
    free(a->routes);
    node_names_deinit(&a->names);
    json_decref(a->copy.machine);
    timestamp_file_end(&a->time.file, a->wall_clock(), a->clock());
    a->resolver = resolver_free(a->resolver);
    (void)uv_loop_close(&a->loop);
}

int agent_run(const struct agent_config *config, enum agent_end *ret, struct err *e)
{
    struct life l = {
        .agent = AGENT_NULL,
        .lock_fd = -1,
        .link = LINK_WATCH_NULL,
    };
    int r = state_check_dir(config->state_dir, e);
    const struct node *self;
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];

    l.agent.config = config;
    l.agent.clock = clock_now;
    l.agent.wall_clock = clock_wall;
    if (r == 0)
        r = load(&l, e);
    if (r == 0) {
        self = snapshot_self(&l.agent.snapshot);
        log_info("%s in the network %s: %s and %s on %s", self->meta.name, self->meta.network,
            ip_addr_format(&self->address4, a4), ip_addr_format(&self->address6, a6),
            l.agent.state.interface);
        init_handles(&l);
        r = start(&l, e);
        if (r == 0)
            (void)uv_run(&l.agent.loop, UV_RUN_DEFAULT);
        stop(&l);
    }
    if (r == 0)
        *ret = l.agent.end;
    snapshot_deinit(&l.agent.snapshot);
    snapshot_deinit(&l.agent.hub_said);
    state_deinit(&l.agent.state);
    closep(&l.lock_fd);
    return r;
}
