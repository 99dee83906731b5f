/* agent_core.c - see agent_core.h. */
#include "agent/agent_core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/cluster/cluster_writer.h"
#include "agent/hublink/hub_choice.h"
#include "agent/hublink/hub_transport_io.h"
#include "agent/node_findings.h"
#include "agent/node_machine.h"
#include "agent/node_report.h"
#include "agent/paths/edge/path_driver.h"
#include "base/err.h"
#include "mesh/object/traffic.h"
#include "net/netlink/rtnl.h"
#include "net/tun/offload.h"
#include "os/clock.h"

/* ---- the hubs ------------------------------------------------------------------------------- */

static bool has_route(void *ctx, const struct ip_addr *to)
{
    struct agent *a = ctx;
    struct ip_addr source;

    return rtnl_source_for(&a->reconcile.nl, to, &source) == 0;
}

/* What hub_set.h asks for, as it is at @now. Refers to @a. */
static struct hub_set_facts see_hubs(struct agent *a, nsec_t now)
{
    return (struct hub_set_facts){.snapshot = &a->snapshot,
        .seen = &a->seen,
        .has_engine = a->reconcile.engine != NULL,
        .listen_port = a->listen_port,
        .lockout = a->time.lockout,
        .has_route = has_route,
        .has_route_ctx = a,
        .now = now};
}

/* What goes through a hub goes through @a->hubs.serving from now on. */
static void use_serving_hub(struct agent *a, nsec_t now)
{
    const struct agent_hub *serving = a->hubs.serving;
    const struct node *node = snapshot_find_node(&a->snapshot, serving->name);

    job_calls_set_hub(&a->jobs, serving->link);
    if (node && node->hub)
        path_driver_use_hub(a->paths, node, now);
    a->poll.has_changes = true;
}

struct hub_link *agent_core_find_link(void *ctx, const char *name)
{
    const struct agent *a = ctx;
    struct agent_hub *hub = hub_set_find(&a->hubs, name);

    return hub ? hub->link : NULL;
}

int agent_core_take_hubs(struct agent *a, struct err *e)
{
    struct hub_set_facts facts = see_hubs(a, a->clock());
    struct hub_set_actions actions = {.serving_changed = false};
    int r = hub_set_take(&a->hubs, &facts, &actions, e);

    if (actions.serving_changed)
        use_serving_hub(a, facts.now);
    for (unsigned i = 0; i < a->hubs.n_gone; i++)
        job_calls_on_gone(&a->jobs, a->hubs.gone[i]->link);
    hub_set_release_gone(&a->hubs);
    return r;
}

/* ---- handshakes ----------------------------------------------------------------------------- */

/*
 * Handshakes that an agent begins, rather than WireGuard when there is something to send. One that
 * cannot be begun is logged for who debugs: what comes next begins it anyway.
 */

static void begin_handshake(struct agent *a, const struct x25519_public *key, const char *who)
{
    struct err e = ERR_NULL;

    if (reconcile_handshake(&a->reconcile, key, &e) != 0)
        log_debug("no handshake with %s: %s", who, err_text(&e));
}

void agent_core_on_hub_forgot(struct agent *a, nsec_t now)
{
    for (size_t i = 0; i < a->snapshot.nodes.n; i++) {
        const struct node *node = &a->snapshot.nodes.items[i]->node;
        const struct observation *ob = observe_find(&a->seen, &node->key);

        /* With peers that find paths the driver settles which end begins; with stock peers this
         * node does. */
        if (!node->hub && !node->side && ob && ob->handshake_at != 0)
            begin_handshake(a, &node->key, node->meta.name);
    }
    path_driver_on_hub_forgot(a->paths, now);
}

/* With all that had a session with an engine that was replaced: a peer that only sends would go on
 * using a session that the new one lacks. */
static void renew_handshakes(struct agent *a)
{
    char key[X25519_BASE64_MAX];

    for (size_t i = 0; i < a->seen.n; i++) {
        const struct observation *ob = &a->seen.items[i];

        if (observation_has_session(ob, a->clock()))
            begin_handshake(a, &ob->key, x25519_public_format(&ob->key, key));
    }
}

/* ---- passes --------------------------------------------------------------------------------- */

/* Puts the hubs' paths among those that were found, all in order of their nodes' names. */
static size_t merge_paths(struct agent *a)
{
    struct render_path hubs[HUB_CHOICE_MAX];
    size_t n_hubs = hub_set_paths(&a->hubs, hubs);
    size_t n = 0;
    size_t k = 0;
    size_t n_found;
    const struct render_path *found = path_driver_routes(a->paths, &n_found);
    struct render_path *all = realloc(a->routes, (n_found + n_hubs + 1) * sizeof(*all));

    /* Without memory all peers are reached through the hub, and the hub at its first endpoint. */
    if (!all)
        return 0;
    a->routes = all;
    for (size_t i = 0; i < n_hubs; i++) {
        const struct node *hub = snapshot_find_node(&a->snapshot, hubs[i].node);

        hubs[i].mtu = hub ? path_driver_hub_mtu(a->paths, &hub->key) : 0;
    }
    for (size_t i = 0; i < n_found; i++) {
        while (k < n_hubs && strcmp(hubs[k].node, found[i].node) < 0)
            all[n++] = hubs[k++];
        all[n++] = found[i];
    }
    while (k < n_hubs)
        all[n++] = hubs[k++];
    return n;
}

struct render_input agent_core_render_input(struct agent *a)
{
    size_t n = merge_paths(a);

    return (struct render_input){
        .snapshot = &a->snapshot,
        .paths = a->routes,
        .n_paths = n,
        .relay = a->hubs.serving->name,
        .listen_port = a->state.listen_port ? a->state.listen_port : a->listen_port,
        .link_mtu = a->link_mtu,
        .keepalive = node_keepalive_interval(&a->keepalive),
        .pins = path_driver_pins(a->paths),
        .relays = a->state.wants_relay && a->state.engine == ENGINE_KIND_USERSPACE &&
                  snapshot_self(&a->snapshot)->relay,
    };
}

void agent_core_see_offloads(struct agent *a)
{
    struct engine *engine = a->reconcile.engine;
    struct err e = ERR_NULL;

    a->has_offloads = engine && engine->ops->offloads(engine, &a->offloads, &e) == 0;
}

/* The engine's process runs in the background, and nobody reads its own log. */
static void log_offloads(struct agent *a)
{
    agent_core_see_offloads(a);
    for (int i = 0; a->has_offloads && i < OFFLOAD_N; i++)
        if (!a->offloads.on[i])
            log_info("%s: the offload %s is off: %s", a->state.interface, offload_names[i],
                a->offloads.why[i]);
}

/* What somebody else has done to the interface, and that it is mended: one line each. */
static void log_mended(struct agent *a, const struct reconcile_result *result, nsec_t now)
{
    const char *interface = a->state.interface;
    char text[IP_PREFIX_TEXT_MAX];

    if (result->renamed[0] != '\0')
        log_limited(&a->mended_limit, now, LOG_LEVEL_INFO,
            "%s had been renamed to %s and has its name again", interface, result->renamed);
    if (result->was_gone)
        log_limited(&a->mended_limit, now, LOG_LEVEL_INFO,
            "%s had been deleted, or its data plane had ended: both are there again", interface);
    if (result->was_down)
        log_limited(&a->mended_limit, now, LOG_LEVEL_INFO, "%s had been set down and is up again",
            interface);
    if (result->lost_route)
        log_limited(&a->mended_limit, now, LOG_LEVEL_INFO,
            "the route to %s had been taken from %s and leads into it again",
            ip_prefix_format(&result->route, text), interface);
}

static void log_pass(struct agent *a, const struct reconcile_result *result, nsec_t now)
{
    log_mended(a, result, now);
    if (a->pass.fault.code == -EADDRINUSE && a->state.listen_port != 0)
        log_info("UDP port %u is free again, and %s listens on it", a->state.listen_port,
            a->state.interface);
    if (result->opened) {
        log_info("the %s engine runs %s%s%s", engine_kind_names[a->reconcile.engine->ops->kind],
            a->state.interface, a->reconcile.why[0] ? ": " : "", a->reconcile.why);
        log_offloads(a);
    }
    if (result->n_changes > 0)
        log_info("revision %llu applied to %s: %zu change%s",
            (unsigned long long)a->snapshot.revision, a->state.interface, result->n_changes,
            result->n_changes == 1 ? "" : "s");
}

/* Says once that rates are not kept, and once that they are. */
static void tell_rates(struct agent *a)
{
    const char *why = a->reconcile.rates_why;

    if (strcmp(why, a->rates_why) == 0)
        return;
    if (why[0] != '\0')
        log_warning("%s: its rates are not kept: %s", a->state.interface, why);
    else
        log_info("%s: nothing stands against its rates any more", a->state.interface);
    memcpy(a->rates_why, why, sizeof(a->rates_why));
    hub_set_on_edges(&a->hubs);
}

/* Peers that somebody else has added to the interface, with wg(8) say. */
static void tell_foreign(struct agent *a, const struct reconcile_result *result, nsec_t now)
{
    char key[X25519_BASE64_MAX];

    if (result->n_foreign == 0)
        return;
    a->foreign_at = now;
    log_limited(&a->foreign_limit, now, LOG_LEVEL_WARNING,
        "%zu peer%s of %s that neither the hub nor this agent had added %s removed, the last with "
        "the public key %s",
        result->n_foreign, result->n_foreign == 1 ? "" : "s", a->state.interface,
        result->n_foreign == 1 ? "was" : "were", x25519_public_format(&a->reconcile.foreign, key));
}

static void apply_rules(struct agent *a, nsec_t now)
{
    static const struct subnets none = SUBNETS_NULL;
    const struct node *self = snapshot_self(&a->snapshot);
    const struct subnets *routes = self->routes ? self->routes : &none;

    forward_rules_apply(&a->rules, a->state.interface, routes,
        routes->n > 0 || a->state.routes.n > 0, !a->state.keeps_sources, now);
    class_marks_apply(&a->marks, a->state.interface, &a->snapshot, &a->reconcile.applied, now);
}

static void fail_pass(struct agent *a, const struct err *e, nsec_t now)
{
    struct rng rng = rng_kernel();
    /* A port that is taken is not had sooner by asking for it more often. */
    bool may_hurry = a->reconcile.engine && e->code != -EADDRINUSE;

    /* Another program may have taken the port that an earlier engine had, so any port will do. */
    a->listen_port = 0;
    log_limited(&a->pass_limit, now, LOG_LEVEL_WARNING,
        "%s is not as the hub wants it, trying again: %s", a->state.interface, err_text(e));
    if (a->pass.fault.text[0] == '\0')
        hub_set_on_edges(&a->hubs);
    pass_plan_on_failure(&a->pass, e, may_hurry, rng_u32(&rng), now);
}

void agent_core_pass(struct agent *a)
{
    struct reconcile_result result = {0};
    struct err e = ERR_NULL;
    nsec_t since = a->clock();
    struct render_input in;
    nsec_t now;
    int r;
    struct agent_hub *hub;
    struct x25519_public key;
    const char *node;

    /* Where the engine sends to peers that only it knew is seen before it is told of them. */
    if (a->knows_members && a->reconcile.keeps_unknown) {
        agent_core_poll(a);
        a->reconcile.keeps_unknown = false;
    }
    if (agent_core_take_hubs(a, &e) < 0)
        log_limited(&a->pass_limit, a->clock(), LOG_LEVEL_WARNING, "not all hubs are used: %s",
            err_text(&e));
    a->link_mtu = reconcile_see_links(&a->reconcile);
    path_driver_set_link_mtu(a->paths, a->link_mtu);
    in = agent_core_render_input(a);
    a->reconcile.found_rate = node_uplink_rate(&a->uplink);
    r = reconcile_run(&a->reconcile, &in, &a->state.secret, &result, &e);
    /* The pass may have taken seconds. */
    now = a->clock();
    pass_metrics_add(&a->pass_metrics,
        r < 0                  ? PASS_RESULT_FAILED
        : result.n_changes > 0 ? PASS_RESULT_CHANGED
                               : PASS_RESULT_UNCHANGED,
        now - since);
    if (r < 0) {
        fail_pass(a, &e, now);
        return;
    }
    if (a->pass.fault.text[0] != '\0' || a->applied == 0)
        hub_set_on_edges(&a->hubs);
    a->applied = a->snapshot.revision;
    log_pass(a, &result, now);
    pass_plan_on_success(&a->pass,
        result.renamed[0] != '\0' || result.was_gone || result.was_down || result.lost_route, now);
    tell_foreign(a, &result, now);
    tell_rates(a);
    apply_rules(a, now);
    hub_set_on_applied(&a->hubs, &a->snapshot, now);
    if (result.opened) {
        /* The resolver listens on that interface's addresses. */
        node_names_request(&a->names, now);
        hub_link_poke(a->hubs.serving->link, now);
        poll_plan_request(&a->poll, now);
    }
    /* With hubs, where they are wanted. The engine has to have their endpoints by now. */
    while ((hub = hub_set_next_handshake(&a->hubs))) {
        begin_handshake(a, &hub->key, "the hub");
        hub_transport_io_speak(&hub->transport, now);
    }
    path_driver_set_relay(a->paths, in.relays, result.opened, now);
    path_driver_on_applied(a->paths);
    /* The engine has forgotten its sessions, and peers would go on sending in them for 15 s. */
    if (result.was_gone || result.was_down)
        renew_handshakes(a);
    /* Those that have waited until the engine had the routes. */
    while (path_driver_next_handshake(a->paths, &key, &node, now))
        begin_handshake(a, &key, node);
    node_measure_tell(&a->measure, &a->snapshot, &a->reach);
}

/* ---- polls: the hubs ------------------------------------------------------------------------ */

static void act_on_hubs(struct agent *a, const struct hub_set_actions *actions, nsec_t now)
{
    if (actions->serving_changed)
        use_serving_hub(a, now);
    if (actions->pass_soon)
        pass_plan_request(&a->pass, now);
    if (actions->pass_at_once) {
        agent_core_pass(a);
        hub_set_on_moved(&a->hubs, now);
    }
}

/* What is known of UDP to the hub: is it blocked, and how long does an idle mapping live? */
static void poll_udp(struct agent *a, const struct observation *ob, nsec_t now)
{
    bool is_blocked = a->hubs.serving->transport.transport.choice.by_stream;
    const struct endpoint *hub = &a->hubs.serving->health.path.path.endpoint;
    struct keepalive_view view = {.now = now, .wall = a->wall_clock()};

    if (observation_has_session(ob, now) && !is_blocked) {
        view.hub = *hub;
        view.outside = path_driver_outside(a->paths, hub);
        view.is_natted = ip_addr_is_v4(&hub->addr) && path_driver_self(a->paths)->nat.is_natted;
    }
    keepalive_probe_look(&a->keepalive.probe, &view, a->snapshot.nodes.n);
    path_driver_set_udp(
        a->paths, node_keepalive_to_tell(&a->keepalive, &a->snapshot.network), is_blocked, now);
}

/* ---- polls ---------------------------------------------------------------------------------- */

/* Has somebody changed the engine by hand? Smaller changes are found by the next regular pass. */
static bool is_changed_by_hand(const struct agent *a, const struct wg_config *have)
{
    return a->reconcile.has_applied &&
           (have->n_peers != a->reconcile.applied.n_peers ||
               !x25519_public_equal(&have->public, &a->reconcile.applied.public));
}

/* Return: the engine has answered; else @seen is as it was. */
static bool observe_engine(struct agent *a, nsec_t now)
{
    struct wg_config have = WG_CONFIG_NULL;
    struct err e = ERR_NULL;
    int r = reconcile_observe(&a->reconcile, &have, &e);
    bool is_changed =
        r == 0 && (is_changed_by_hand(a, &have) || have.listen_errno != a->reconcile.port_errno);

    if (r == 0) {
        a->listen_port = have.listen_errno == 0 ? have.listen_port : 0;
        r = observe_take(&a->seen, &have, now, a->wall_clock());
        /* With it the offload udp-gro is on, or off. */
        if (r == 0 && a->seen.has_new_merging)
            agent_core_see_offloads(a);
    }
    node_clock_look(&a->time, r == 0 && a->reconcile.engine->ops->kind == ENGINE_KIND_KERNEL,
        a->wall_clock(), now);
    path_driver_set_engine(a->paths, r == 0 ? a->reconcile.engine : NULL, a->listen_port, now);
    if (r == 0)
        path_driver_observe(a->paths, &a->seen, now);
    wg_config_deinit(&have);
    /* When the engine is gone a pass opens another one, and logs it. */
    if (r != 0 || is_changed)
        pass_plan_request(&a->pass, now);
    return r == 0;
}

/* The endpoints that the engine has learned, and may have been led astray by. */
static void resend_endpoints(struct agent *a, nsec_t now)
{
    struct peer_suspects_facts facts = {.snapshot = &a->snapshot,
        .seen = &a->seen,
        .may_be_at = path_driver_may_be_at,
        .ctx = a->paths,
        .now = now};
    struct peer_suspect suspect;

    while (peer_suspects_next(&a->suspects, &facts, &suspect)) {
        if (!reconcile_resend_endpoint(&a->reconcile, &suspect.peer->key, &suspect.peer->endpoint))
            continue;
        peer_suspects_log(&a->suspects, &suspect, now);
        pass_plan_request(&a->pass, now);
    }
}

static void evaluate_paths(struct agent *a, nsec_t now)
{
    struct render_input in = agent_core_render_input(a);
    struct reach_facts facts = {.in = &in,
        .hub_heard = hub_link_is_heard(a->hubs.serving->link),
        .stream_why = hub_transport_why(&a->hubs.serving->transport.transport),
        .seen = &a->seen,
        .now = now};
    struct reach before = {.n = a->reach.n, .n_alarms = a->reach.n_alarms};
    bool changed = a->seen.has_new_loss;

    a->seen.has_new_loss = false;
    if (a->seen.has_new_line)
        hub_set_on_self(&a->hubs);
    a->seen.has_new_line = false;
    /* While it matters the hub hears what the line carries each few seconds. */
    if (a->seen.has_line && a->seen.line.level != RELAY_LINE_OPEN)
        hub_set_on_edges(&a->hubs);
    if (reach_update(&a->reach, &facts, path_driver_view, a->paths) < 0)
        return;
    changed |= before.n != a->reach.n || before.n_alarms != a->reach.n_alarms;
    for (size_t i = 0; i < a->reach.n && !changed; i++)
        changed = a->reach.items[i].since == now;
    if (changed)
        hub_set_on_edges(&a->hubs);
}

struct status_input agent_core_status_input(
    struct agent *a, const struct render_input *render, nsec_t now)
{
    const struct agent_hub *serving = a->hubs.serving;
    const struct subnets *routes = snapshot_self(&a->snapshot)->routes;
    bool is_way = a->state.routes.n > 0 || (routes && routes->n > 0);
    const char *interface = a->state.interface;
    struct engine *engine = a->reconcile.engine;

    return (struct status_input){
        .agent = a,
        .render = render,
        .engine = engine ? engine_kind_names[engine->ops->kind] : NULL,
        .offloads = engine && a->has_offloads ? &a->offloads : NULL,
        .hub = hub_link_view(serving->link, now),
        .tls_failure = hub_transport_io_failure(&serving->transport),
        /* Nobody asks it where no subnet is behind this node. */
        .forwards4 = is_way ? interface_setting(interface, true, "forwarding") : -1,
        .forwards6 = is_way ? interface_setting(interface, false, "forwarding") : -1,
        .now = now,
        .wall = a->wall_clock(),
    };
}

static void find_faults(struct agent *a, nsec_t now)
{
    struct render_input render = agent_core_render_input(a);
    struct status_input in = agent_core_status_input(a, &render, now);

    node_findings_look(&a->findings, &in);
}

static void report_to(struct agent *a, struct agent_hub *hub, const struct node_report_facts *facts)
{
    struct node_report_facts own = *facts;
    bool is_serving = hub == a->hubs.serving;

    /* One hub is told what this node moves: of several copies none is more than the others. */
    own.meter = is_serving ? &a->meter.meter : NULL;
    if (is_serving && node_meter_is_due(&a->meter, facts->now))
        hub->report.edges_changed = true;
    node_report_on_findings(&hub->report, facts);
    if (!node_report_is_due(&hub->report, facts->now) ||
        !hub_set_takes_report(&a->hubs, hub, facts->now) || hub_link_is_reporting(hub->link))
        return;
    if (is_serving)
        node_meter_settle(&a->meter, facts->now);
    if (hub_link_report(hub->link, node_report_encode(&hub->report, &own)))
        node_report_on_sent(&hub->report, facts->now);
    else
        node_report_on_result(&hub->report, EDGE_REPORT_LOST);
}

/* This node's parts of its edges, where the agent writes them itself. */
static void tell_cluster(struct agent *a, const struct node_report_facts *facts)
{
    json_t *asked_for;
    json_t *parts;

    if (!a->edge_parts || !cluster_writer_is_due(a->edge_parts, a->reach.n, facts->now))
        return;
    parts = node_report_parts(facts, &asked_for);
    if (parts)
        cluster_writer_tell(a->edge_parts, parts, asked_for, a->snapshot.nodes.n, facts->now);
}

static void poll_report(struct agent *a, nsec_t now)
{
    const struct engine *engine = a->reconcile.engine;
    char host[NAME_MAX_LEN + 1] = "";
    const struct keepalive_plan *plan = &a->keepalive.probe.plan;
    const struct uplink_report uplink = node_uplink_report(
        &a->uplink, snapshot_self(&a->snapshot), a->seen.rates.all, a->wall_clock() / NSEC_PER_SEC);
    struct relay_line_report line = a->seen.line;
    struct node_report_facts facts = {.snapshot = &a->snapshot,
        .seen = &a->seen,
        .reach = &a->reach,
        .self = path_driver_self(a->paths),
        .routes = &a->state.routes,
        .speeds = &a->speeds,
        .fabric = node_fabric_report(a->fabric),
        .line = a->seen.has_line ? &line : NULL,
        .engine = engine ? engine->ops->kind : ENGINE_KIND_AUTO,
        .applied = a->applied,
        .fault = a->pass.fault.text,
        .rates_why = a->reconcile.rates_why,
        .machine = a->copy.machine,
        .counts = node_watch_look(a->watch, now),
        .metrics_port = metrics_port_overlay(&a->metrics),
        .findings = &a->findings,
        .daily = &a->daily,
        .uplink = &uplink,
        .nat = keepalive_plan_is_known(plan) ? &plan->known.bounds : NULL,
        .is_natted = plan->view.is_natted,
        .now = now,
        .wall_s = a->wall_clock() / NSEC_PER_SEC};

    line.is_measured = uplink.from == UPLINK_FROM_FOUND;
    if (gethostname(host, sizeof(host)) == 0 && node_report_hostname(host, a->snapshot.self))
        facts.hostname = host;
    for (unsigned i = 0; i < a->hubs.n; i++)
        report_to(a, a->hubs.items[i], &facts);
    tell_cluster(a, &facts);
}

/* Counts what has moved since the last poll. */
static void meter(struct agent *a, nsec_t now)
{
    struct meter_facts facts = {.snapshot = &a->snapshot,
        .seen = &a->seen,
        .reach = &a->reach,
        .is_streamed = hub_transport_why(&a->hubs.serving->transport.transport) != NULL,
        .wall_s = a->wall_clock() / NSEC_PER_SEC};

    node_meter_look(&a->meter, &facts, now);
    meter_forget(&a->meter.meter, a->hubs.serving->report.traffic_reported, facts.wall_s);
}

/* Packets that have gone through the interface so far; 0: there is no interface. */
static uint64_t count_packets(struct agent *a)
{
    struct rtnl_link link;
    int r = rtnl_find_link(&a->reconcile.nl, a->state.interface, &link);

    return r == 0 ? link.n_packets : 0;
}

static void poll_daily(struct agent *a, nsec_t now)
{
    const struct node_daily_facts facts = {.snapshot = &a->snapshot,
        .reach = &a->reach,
        .is_busy = a->running.n > 0,
        .now = now,
        .day = traffic_day(a->wall_clock() / NSEC_PER_SEC)};

    node_daily_poll(&a->daily, &facts, a->config->socket_path);
}

/* Finds what the uplink carries, and has the interface send no faster. */
static void poll_uplink(struct agent *a, nsec_t now)
{
    const struct engine *engine = a->reconcile.engine;
    const struct node_uplink_facts facts = {.snapshot = &a->snapshot,
        .reach = &a->reach,
        .seen = &a->seen,
        .outside = path_driver_outside(a->paths, &a->hubs.serving->health.path.path.endpoint),
        .keeps_rates = !engine || engine->ops->kind == ENGINE_KIND_USERSPACE,
        .is_busy = a->running.n > 0,
        .now = now,
        .wall_s = a->wall_clock() / NSEC_PER_SEC};

    if (node_uplink_poll(&a->uplink, &facts, a->config->socket_path))
        pass_plan_request(&a->pass, now);
}

void agent_core_poll(struct agent *a)
{
    nsec_t now = a->clock();
    struct hub_set_actions actions = {.serving_changed = false};
    struct hub_set_facts facts;
    const struct observation *ob;
    bool is_seen;

    poll_plan_begin(&a->poll, count_packets(a), now);
    is_seen = observe_engine(a, now);
    ob = observe_find(&a->seen, &a->hubs.serving->key);
    facts = see_hubs(a, now);
    hub_set_poll(&a->hubs, &facts, &actions);
    act_on_hubs(a, &actions, now);
    poll_udp(a, ob, now);
    resend_endpoints(a, now);
    evaluate_paths(a, now);
    find_faults(a, now);
    node_measure_tell(&a->measure, &a->snapshot, &a->reach);
    /* At its start an agent polls before its engine is open. A look without any peers would forget
     * up to where each one's bytes are counted. */
    if (is_seen)
        meter(a, now);
    node_jobs_poll(&a->running, now);
    node_measure_tell_jobs(&a->measure, node_jobs_started(&a->running));
    poll_daily(a, now);
    poll_uplink(a, now);
    /* What a job has moved is reported as soon as it has ended. */
    if (a->running.has_ended) {
        a->running.has_ended = false;
        a->meter.is_urgent = true;
    }
    poll_report(a, now);
    poll_plan_end(&a->poll, a->seen.n,
        nsec_min(
            hub_set_report_within(&a->hubs, now), a->running.n > 0 ? NSEC_PER_SEC : NSEC_NEVER),
        now);
}

/* Has nothing happened since the last poll, and is nothing waited for? */
static bool can_skip_poll(struct agent *a, nsec_t now)
{
    /* What it relays does not go through the interface. */
    if (poll_plan_is_stale(&a->poll, now) || a->running.n > 0 || a->seen.has_line ||
        hub_set_has_changes(&a->hubs, now) || !hub_set_is_settled(&a->hubs, now) ||
        path_driver_awaits_handshake(a->paths))
        return false;
    return poll_plan_is_idle(&a->poll, count_packets(a));
}

/* ---- deadlines ------------------------------------------------------------------------------ */

nsec_t agent_core_due(const struct agent *a)
{
    nsec_t due = nsec_min(nsec_min(a->pass.due_at, a->poll.due_at), hub_set_due(&a->hubs));

    return nsec_min(nsec_min(due, a->cache.due_at), nsec_min(a->names.due_at, a->metrics.due_at));
}

void agent_core_run(struct agent *a, nsec_t now)
{
    if (now >= a->pass.due_at)
        agent_core_pass(a);
    if (now >= hub_set_due(&a->hubs)) {
        struct hub_set_facts facts = see_hubs(a, now);
        struct hub_set_actions actions = {.serving_changed = false};

        hub_set_run(&a->hubs, &facts, &actions);
        act_on_hubs(a, &actions, now);
    }
    if (now >= a->poll.due_at && can_skip_poll(a, now))
        poll_plan_skip(&a->poll, now);
    else if (now >= a->poll.due_at)
        agent_core_poll(a);
    if (now >= a->cache.due_at)
        snapshot_cache_save(&a->cache, &a->snapshot, now);
    if (now >= a->names.due_at)
        node_names_update(&a->names, &a->snapshot, a->reconcile.lacks_v6, now);
    if (metrics_port_open(&a->metrics, now)) {
        /* The hubs name the port to Prometheus. */
        hub_set_on_self(&a->hubs);
        poll_plan_request(&a->poll, now + AGENT_CORE_SOON);
    }
}

/* ---- the end -------------------------------------------------------------------------------- */

#define END_PATIENCE (1 * NSEC_PER_SEC)

void agent_core_finish(struct agent *a, enum agent_end end)
{
    nsec_t now = a->clock();

    if (a->is_ending)
        return;
    a->is_ending = true;
    a->end = end;
    a->ends_at = now + END_PATIENCE;
    a->jobs.is_ending = true;
    /* WireGuard goes on without this process, but paths that lead through this process end. */
    if (end == AGENT_END_STOPPED && path_driver_retreat(a->paths, now))
        agent_core_pass(a);
}

int agent_core_take_down(struct agent *a, struct err *names, struct err *e)
{
    int r = reconcile_take_down(&a->reconcile, e);

    *names = (struct err)ERR_NULL;
    /* A hosts file that cannot be written must not hold back the rest. */
    if (r == 0)
        (void)node_names_remove(&a->names, &a->snapshot, names);
    return r;
}

int agent_core_renew_engine(struct agent *a, struct err *e)
{
    int r;

    /* Only the old engine knows the port, and which peers have a session. */
    agent_core_poll(a);
    r = reconcile_retire_engine(&a->reconcile, e);
    if (r != 0)
        return r;
    /* The new interface may be another one: its rules have to be there from the first packet on. */
    forward_rules_forget(&a->rules);
    class_marks_forget(&a->marks);
    agent_core_pass(a);
    if (!a->reconcile.engine) {
        if (a->pass.fault.code >= 0)
            return err_set(e, -EIO, "no engine runs %s", a->state.interface);
        *e = a->pass.fault;
        return e->code;
    }
    renew_handshakes(a);
    return 0;
}
