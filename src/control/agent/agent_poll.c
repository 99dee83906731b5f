/* agent_poll.c - see agent_poll.h. */
#include "agent/agent_poll.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_hubs.h"
#include "agent/agent_parts.h"
#include "agent/agent_pass.h"
#include "agent/node_fabric.h"
#include "agent/paths/edge/peer_table.h"
#include "base/err.h"
#include "net/netlink/rtnl.h"

/* ---- the hubs ------------------------------------------------------------------------------- */

static void act_on_hubs(struct agent *a, const struct hub_set_wish *wish, nsec_t now)
{
    if (wish->home_changed)
        agent_hubs_use_home(a, now);
    if (wish->pass_soon)
        pass_plan_request(&a->pass, now);
    if (wish->pass_at_once) {
        agent_pass_run(a);
        hub_set_on_moved(&a->hubs, now);
    }
}

static void poll_hubs(struct agent *a, nsec_t now)
{
    struct hub_set_facts facts = agent_hubs_see(a, now);
    struct hub_set_wish wish = {.home_changed = false};

    hub_set_poll(&a->hubs, &facts, &wish);
    act_on_hubs(a, &wish, now);
}

void agent_poll_run_hubs(struct agent *a, nsec_t now)
{
    struct hub_set_facts facts = agent_hubs_see(a, now);
    struct hub_set_wish wish = {.home_changed = false};

    hub_set_run(&a->hubs, &facts, &wish);
    act_on_hubs(a, &wish, now);
}

static void poll_keepalive(struct agent *a, const struct observation *ob, nsec_t now)
{
    const struct endpoint *hub = &a->hubs.home->health.path.path.endpoint;
    struct keepalive_view view = {.now = now, .wall = a->wall_clock()};

    if (observation_has_session(ob, now) &&
        !hub_transport_why(&a->hubs.home->transport.transport)) {
        view.hub = *hub;
        view.outside = path_driver_outside(a->paths, hub);
        view.is_natted = ip_addr_is_v4(&hub->addr) && path_driver_self(a->paths)->nat.is_natted;
    }
    node_keepalive_poll(&a->keepalive, &view, a->snapshot.nodes.n);
    path_driver_set_keepalive(
        a->paths, node_keepalive_to_tell(&a->keepalive, &a->snapshot.network), now);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static const struct observation *find_hub_observation(const struct agent *a)
{
    return observe_find(&a->seen, &a->hubs.home->key);
}

/* Has somebody changed the engine by hand? Smaller changes are found by the next regular pass. */
static bool is_changed_by_hand(const struct agent *a, const struct wg_config *have)
{
    return a->reconcile.has_told &&
           (have->n_peers != a->reconcile.told.n_peers ||
               !x25519_public_equal(&have->public, &a->reconcile.told.public));
}

/* Without memory the paths are judged by what was seen last. */
static void show_paths(struct agent *a, nsec_t now)
{
    struct peer_seen *seen = calloc(a->seen.n + 1, sizeof(*seen));

    for (size_t i = 0; seen && i < a->seen.n; i++) {
        const struct observation *ob = &a->seen.items[i];

        seen[i] = (struct peer_seen){.key = ob->key,
            .endpoint = ob->endpoint,
            .heard = ob->heard,
            .handshake_at = ob->handshake_at,
            .has_session = observation_has_session(ob, now),
            .rx_bytes = ob->facts.rx_bytes,
            .tx_bytes = ob->facts.tx_bytes};
    }
    if (seen)
        path_driver_observe(a->paths, seen, a->seen.n, now);
    free(seen);
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
    }
    node_clock_look(&a->time, r == 0 && engine_kind_of(a->reconcile.engine) == ENGINE_KIND_KERNEL,
        a->wall_clock(), now);
    path_driver_set_engine(a->paths, r == 0 ? a->reconcile.engine : NULL, a->listen_port, now);
    if (r == 0)
        show_paths(a, now);
    wg_config_deinit(&have);
    /* When the engine is gone a pass opens another one, and logs it. */
    if (r != 0 || is_changed)
        pass_plan_request(&a->pass, now);
    return r == 0;
}

static bool may_be_at(void *ctx, const char *node, const struct endpoint *at)
{
    const struct agent *a = ctx;

    return path_driver_may_be_at(a->paths, node, at);
}

/* The endpoints that the engine has learned, and may have been led astray by. */
static void doubt_endpoints(struct agent *a, nsec_t now)
{
    struct peer_doubt_facts facts = {
        .snapshot = &a->snapshot, .seen = &a->seen, .may_be_at = may_be_at, .ctx = a, .now = now};
    struct peer_doubt_wish wish;

    while (peer_doubt_next(&a->doubt, &facts, &wish)) {
        if (!reconcile_doubt(&a->reconcile, &wish.peer->key, &wish.peer->endpoint))
            continue;
        peer_doubt_log(&a->doubt, &wish, now);
        pass_plan_request(&a->pass, now);
    }
}

static void judge_paths(struct agent *a, nsec_t now)
{
    struct render_input in = agent_pass_input(a);
    struct reach_facts facts = {.in = &in,
        .hub_heard = hub_link_is_heard(a->hubs.home->link),
        .stream_why = hub_transport_why(&a->hubs.home->transport.transport),
        .now = now};
    struct reach before = {.n = a->reach.n, .n_alarms = a->reach.n_alarms};
    bool changed = false;

    if (path_driver_evaluate(a->paths, &a->reach, &facts) < 0)
        return;
    changed = before.n != a->reach.n || before.n_alarms != a->reach.n_alarms;
    for (size_t i = 0; i < a->reach.n && !changed; i++)
        changed = a->reach.items[i].since == now;
    if (changed)
        hub_set_on_edges(&a->hubs);
}

static void report_to(struct agent *a, struct agent_hub *hub, const struct node_report_facts *facts)
{
    struct node_report_facts own = *facts;
    bool is_home = hub == a->hubs.home;

    /* One hub is told what this node moves: of several copies none is more than the others. */
    own.meter = is_home ? &a->meter.meter : NULL;
    if (is_home && node_meter_is_due(&a->meter, facts->now))
        node_report_on_edges(&hub->report);
    if (!node_report_is_due(&hub->report, facts->now) ||
        !hub_set_takes_report(&a->hubs, hub, facts->now) || hub_link_is_reporting(hub->link))
        return;
    if (is_home)
        node_meter_settle(&a->meter, facts->now);
    if (hub_link_report(hub->link, node_report_encode(&hub->report, &own)))
        node_report_on_sent(&hub->report, facts->now);
    else
        node_report_on_result(&hub->report, NODE_REPORT_LOST);
}

static void report(struct agent *a, nsec_t now)
{
    const struct engine *engine = a->reconcile.engine;
    char host[NAME_MAX_LEN + 2] = "";
    struct node_report_facts facts = {.snapshot = &a->snapshot,
        .seen = &a->seen,
        .reach = &a->reach,
        .self = path_driver_self(a->paths),
        .routes = &a->state.routes,
        .speeds = &a->speeds,
        .fabric = node_fabric_report(a->fabric),
        .engine = engine ? engine_kind_of(engine) : ENGINE_KIND_AUTO,
        .applied = a->applied,
        .fault = a->pass.fault.text,
        .rates_why = a->reconcile.rates_why,
        .machine = a->copy.machine,
        .now = now};

    if (gethostname(host, sizeof(host) - 1) == 0 && node_report_hostname(host, a->snapshot.self))
        facts.hostname = host;
    for (unsigned i = 0; i < a->hubs.n; i++)
        report_to(a, a->hubs.items[i], &facts);
}

/* Counts what has moved since the last poll. */
static void meter(struct agent *a, nsec_t now)
{
    struct meter_facts facts = {.snapshot = &a->snapshot,
        .seen = &a->seen,
        .reach = &a->reach,
        .is_streamed = hub_transport_why(&a->hubs.home->transport.transport) != NULL,
        .wall_s = a->wall_clock() / NSEC_PER_SEC};

    node_meter_look(&a->meter, &facts, now);
    meter_forget(&a->meter.meter, node_report_traffic_told(&a->hubs.home->report), facts.wall_s);
}

/* What a job has moved is reported as soon as it has ended. */
static void follow_jobs(struct agent *a, nsec_t now)
{
    node_jobs_poll(&a->running, now);
    if (!a->running.has_ended)
        return;
    a->running.has_ended = false;
    a->meter.is_urgent = true;
}

void agent_poll_end_job(struct agent *a, const char *job, int32_t pid)
{
    /* What it has moved up to now is its own. */
    agent_poll_run(a);
    node_jobs_end(&a->running, job, pid);
    poll_plan_request(&a->poll, a->clock());
}

/* Packets that have gone through the interface so far; 0: there is no interface. */
static uint64_t count_packets(struct agent *a)
{
    struct rtnl_link link;
    int r = rtnl_find_link(&a->reconcile.nl, a->state.interface, &link);

    return r == 0 ? link.n_packets : 0;
}

void agent_poll_run(struct agent *a)
{
    nsec_t now = a->clock();
    const struct observation *ob;
    bool is_seen;

    poll_plan_begin(&a->poll, count_packets(a), now);
    is_seen = observe_engine(a, now);
    ob = find_hub_observation(a);
    poll_hubs(a, now);
    poll_keepalive(a, ob, now);
    path_driver_set_blocked(
        a->paths, hub_transport_why(&a->hubs.home->transport.transport) != NULL, now);
    doubt_endpoints(a, now);
    judge_paths(a, now);
    node_measure_tell(&a->measure, &a->snapshot, &a->reach);
    /* At its start an agent polls before its engine is open. A look without any peers would forget
     * up to where each one's bytes are counted. */
    if (is_seen)
        meter(a, now);
    follow_jobs(a, now);
    report(a, now);
    poll_plan_end(&a->poll, a->seen.n,
        nsec_min(hub_set_report_within(&a->hubs, now), node_jobs_within(&a->running)), now);
}

/* Has nothing happened since the last poll, and is nothing waited for? */
static bool can_skip_poll(struct agent *a, nsec_t now)
{
    if (poll_plan_is_stale(&a->poll, now) || a->running.n > 0 || hub_set_has_news(&a->hubs, now) ||
        !hub_set_is_settled(&a->hubs, now) || path_driver_awaits_handshake(a->paths))
        return false;
    return poll_plan_is_idle(&a->poll, count_packets(a));
}

void agent_poll_if_changed(struct agent *a, nsec_t now)
{
    if (can_skip_poll(a, now))
        poll_plan_skip(&a->poll, now);
    else
        agent_poll_run(a);
}
