/*
 * test-agent-core.c - passes and polls of a whole agent, on a clock of the test's.
 *
 * The interface is a bridge in a network namespace of its own; the engine keeps what it is told;
 * the hub is away, so nothing is reported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/agent_core.h"
#include "agent/paths/edge/path_driver.h"
#include "base/err.h"
#include "net/netlink/rtnl.h"
#include "test/support/heard_log.h"
#include "test/support/netns.h"
#include "test/support/sample_engine.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

/* Of the wall clock when the monotonic one is 0. */
#define WALL (1790000000 * SEC)

static nsec_t now;

static nsec_t clock_of_test(void)
{
    return now;
}

static nsec_t wall_of_test(void)
{
    return WALL + now;
}

/* The node n2 of four. */
struct world {
    struct netlink *nl;
    struct agent agent;
    struct sample_engine engine;
    unsigned ifindex;
};

static int on_event(void *ctx, struct watch_event *ev, nsec_t at, struct err *e)
{
    return 0;
}

static void on_change(void *ctx, bool heard, const char *why, nsec_t at)
{
}

static void on_keepalive(void *ctx, bool is_measured, bool is_other)
{
}

static void on_nothing(void *ctx)
{
}

/* The parts, as agent.c makes them. */
static void open_parts(struct agent *a)
{
    struct hub_link_listener hub = {.on_event = on_event, .on_change = on_change, .ctx = a};
    struct path_driver_options opt = {
        .secret = &a->state.secret, .name = "n2", .interface = a->state.interface};
    struct path_driver_listener paths = {
        .on_routes = on_nothing, .on_self = on_nothing, .on_network = on_nothing};
    struct node_names_options names = {.is_on = false};

    assert_int_equal(uv_loop_init(&a->loop), 0);
    node_keepalive_init(&a->keepalive, &a->loop, "/nonexistent", on_keepalive, NULL);
    a->names = (struct node_names){.opt = names, .due_at = NSEC_NEVER};
    assert_int_equal(reconcile_init(&a->reconcile, a->state.interface, a->state.engine,
                         SUBNETS_ACCEPT_PRIVATE, NULL),
        0);
    assert_int_equal(path_driver_new(&a->paths, &a->loop, &opt, &paths, NULL), 0);
    hub_set_init(&a->hubs, &a->loop, &a->state, &hub);
    job_calls_init(&a->jobs, agent_core_find_link, a);
    path_driver_set_snapshot(a->paths, &a->snapshot, now);
    assert_int_equal(agent_core_take_hubs(a, NULL), 0);
}

static struct world *make_world(void **state)
{
    static const struct agent_config config = {.state_dir = "/nonexistent"};
    static struct world w;
    struct netlink *nl = netns_need(state);
    struct object self = sample_node(2);
    struct rtnl_link link;
    struct agent *a = &w.agent;

    now = 1000 * SEC;
    w = (struct world){.nl = nl, .agent = AGENT_NULL};
    assert_int_equal(rtnl_add_link(nl, "weft0", "bridge"), 0);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), 0);
    w.ifindex = link.ifindex;
    a->config = &config;
    a->clock = clock_of_test;
    a->wall_clock = wall_of_test;
    a->state.secret = (struct x25519_secret){.b = {5, [31] = 0x40}};
    a->state.engine = ENGINE_KIND_KERNEL;
    (void)snprintf(a->state.interface, sizeof(a->state.interface), "weft0");
    a->snapshot = sample_snapshot(4, 2);
    assert_true(x25519_derive_public(&a->state.secret, &self.node.key));
    sample_put(&a->snapshot, self);
    open_parts(a);
    sample_engine_init(&w.engine, ENGINE_KIND_KERNEL);
    a->reconcile.engine = &w.engine.engine;
    return &w;
}

static void end_world(struct world *w)
{
    struct agent *a = &w->agent;

    hub_set_stop(&a->hubs);
    keepalive_probe_stop(&a->keepalive.probe);
    a->paths = path_driver_free(a->paths, false);
    (void)uv_run(&a->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&a->loop), 0);
    reconcile_deinit(&a->reconcile);
    observe_deinit(&a->seen);
    reach_deinit(&a->reach);
    free(a->routes);
    node_names_deinit(&a->names);
    snapshot_deinit(&a->snapshot);
    sample_engine_deinit(&w->engine);
}

static struct wg_peer *peer(struct world *w, unsigned n)
{
    struct x25519_public key = sample_key(n);

    return sample_engine_find(&w->engine, &key);
}

static bool *edges_changed(struct agent *a)
{
    return &a->hubs.serving->report.edges_changed;
}

static const char *log_of_a_pass(struct agent *a)
{
    heard_log_begin();
    agent_core_pass(a);
    return heard_log_end();
}

static uint64_t n_passes(const struct agent *a, enum pass_result result)
{
    uint64_t n = 0;

    for (unsigned i = 0; i <= PASS_METRICS_BOUNDS; i++)
        n += a->pass_metrics.n[result][i];
    return n;
}

static void test_a_pass_plans_the_next(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;

    agent_core_poll(a);
    agent_core_pass(a);
    assert_int_equal(w->engine.config.n_peers, 3);
    assert_int_equal(a->pass.due_at, now + PASS_PLAN_PERIOD);
    assert_int_equal(a->pass.held_until, 0);
    assert_string_equal(a->pass.fault.text, "");
    assert_int_equal(n_passes(a, PASS_RESULT_CHANGED), 1);
    assert_int_equal(w->engine.n_handshakes, 0);
    a->hubs.serving->health.wants_handshake = true;
    agent_core_pass(a);
    assert_int_equal(n_passes(a, PASS_RESULT_CHANGED), 1);
    assert_int_equal(n_passes(a, PASS_RESULT_UNCHANGED), 1);
    assert_int_equal(n_passes(a, PASS_RESULT_FAILED), 0);
    assert_int_equal(w->engine.n_handshakes, 1);
    /* The earliest of all deadlines, which is the poll's. */
    assert_true(agent_core_due(a) <= now + SEC);
    end_world(w);
}

/* A failure is dated when it came about, and repeated soon. */
static void test_a_pass_that_fails_is_repeated(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;

    assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
    agent_core_pass(a);
    assert_string_not_equal(a->pass.fault.text, "");
    assert_true(a->pass.due_at > now && a->pass.due_at < now + SEC);
    assert_int_equal(n_passes(a, PASS_RESULT_FAILED), 1);
    assert_int_equal(a->applied, 0);
    assert_int_equal(rtnl_add_link(w->nl, "weft0", "bridge"), 0);
    now = a->pass.due_at;
    agent_core_run(a, now);
    assert_string_equal(a->pass.fault.text, "");
    assert_int_equal(a->pass.due_at, now + PASS_PLAN_PERIOD);
    end_world(w);
}

static void test_peers_are_seen_with_their_ages(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    const struct x25519_public n3 = sample_key(3);
    const struct observation *ob;

    agent_core_poll(a);
    agent_core_pass(a);
    agent_core_poll(a);
    ob = observe_find(&a->seen, &n3);
    assert_non_null(ob);
    assert_int_equal(ob->handshake_at, 0);
    now += SEC;
    peer(w, 3)->facts.handshake_sec = wall_of_test() / SEC;
    agent_core_poll(a);
    assert_int_equal(observe_find(&a->seen, &n3)->handshake_at, now);
    assert_int_equal(a->reach.n, 2);
    assert_int_equal(a->seen.n, 3);
    end_world(w);
}

/* Before an agent's first look only the wall clock knows when a handshake was. */
static void test_a_handshake_before_the_first_poll(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    const struct x25519_public n3 = sample_key(3);

    agent_core_pass(a);
    peer(w, 3)->facts.handshake_sec = wall_of_test() / SEC - 30;
    agent_core_poll(a);
    assert_int_equal(observe_find(&a->seen, &n3)->handshake_at, now - 30 * SEC);
    end_world(w);
}

/* An agent that is started anew polls once before it opens the engine, whose counters went on. */
static void test_what_moved_is_counted_once(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    struct meter *m = &a->meter.meter;

    *m = (struct meter){.id = 7};
    m->counters = calloc(1, sizeof(*m->counters));
    assert_non_null(m->counters);
    m->counters[m->n_counters++] = (struct meter_counter){.key = sample_key(3), .sent = 1000};
    m->has_counters = true;
    a->reconcile.engine = NULL;
    agent_core_poll(a);
    a->reconcile.engine = &w->engine.engine;
    agent_core_pass(a);
    peer(w, 3)->facts.tx_bytes = 1500;
    agent_core_poll(a);
    agent_core_poll(a);
    assert_int_equal(m->n_days, 1);
    assert_int_equal(m->days[0].n, 1);
    assert_int_equal(m->days[0].flows[0].sent, 500);
    meter_deinit(m);
    end_world(w);
}

/* A stock peer that does not answer where the engine follows it is told where it was. */
static void test_a_peer_that_was_led_astray_comes_back(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    struct wg_peer *hub;
    struct endpoint applied;

    agent_core_poll(a);
    agent_core_pass(a);
    hub = peer(w, 1);
    assert_non_null(hub);
    applied = hub->endpoint;
    assert_false(endpoint_is_none(&applied));
    hub->endpoint.port++;
    agent_core_poll(a);
    hub->facts.tx_bytes = 1000;
    now += SEC;
    agent_core_poll(a);
    assert_true(a->pass.due_at > now);
    now += OBSERVE_SILENCE_MAX;
    /* A regular pass leaves alone what the engine has learned. */
    agent_core_pass(a);
    agent_core_poll(a);
    assert_true(a->pass.due_at <= now);
    agent_core_run(a, now);
    assert_true(endpoint_equal(&peer(w, 1)->endpoint, &applied));
    end_world(w);
}

/* Number 9, a hub. */
static void put_second_hub(struct snapshot *s, const char *name)
{
    struct object hub = sample_node(1);

    hub.node.key = sample_key(9);
    hub.node.address4.b[15] = 9;
    hub.node.address6.b[15] = 9;
    hub.node.hub->endpoints[0].port = 9999;
    (void)snprintf(hub.node.meta.name, sizeof(hub.node.meta.name), "%s", name);
    sample_put(s, hub);
}

/* The snapshot that an agent starts with may be older than a node's join: where the engine sends to
 * such a peer is seen before the engine is told. */
static void test_a_peer_that_only_the_engine_knows_keeps_its_path(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    const struct node self = *snapshot_self(&a->snapshot);
    struct object of_self = sample_node(2);
    struct object joined = sample_node(4);
    struct render_input in;
    struct endpoint at;

    agent_core_poll(a);
    agent_core_pass(a);
    assert_int_equal(endpoint_parse(&at, "198.51.100.4:51820", NULL), 0);
    peer(w, 4)->endpoint = at;
    peer(w, 4)->facts.heard = at;
    peer(w, 4)->facts.handshake_sec = wall_of_test() / SEC;
    of_self.node.key = self.key;
    snapshot_deinit(&a->snapshot);
    a->snapshot = sample_snapshot(3, 2);
    sample_put(&a->snapshot, of_self);
    path_driver_set_snapshot(a->paths, &a->snapshot, now);
    reconcile_assume(&a->reconcile, &(struct render_input){.snapshot = &a->snapshot});
    agent_core_pass(a);
    assert_true(endpoint_equal(&peer(w, 4)->endpoint, &at));

    joined.node.side = calloc(1, sizeof(*joined.node.side));
    assert_non_null(joined.node.side);
    joined.node.side->generation = 1;
    sample_put(&a->snapshot, joined);
    put_second_hub(&a->snapshot, "zone");
    path_driver_set_snapshot(a->paths, &a->snapshot, now);
    a->knows_members = true;
    agent_core_pass(a);
    assert_true(endpoint_equal(&peer(w, 4)->endpoint, &at));
    assert_false(a->reconcile.keeps_unknown);
    agent_core_poll(a);
    /* Its path is among those to the hubs, in order of names. */
    in = agent_core_render_input(a);
    assert_int_equal(in.n_paths, 3);
    assert_string_equal(in.paths[0].node, "hub");
    assert_string_equal(in.paths[1].node, "n4");
    assert_true(endpoint_equal(&in.paths[1].endpoint, &at));
    assert_string_equal(in.paths[2].node, "zone");
    assert_int_equal(in.paths[2].endpoint.port, 9999);
    end_world(w);
}

static void test_an_engine_that_was_changed_by_hand_is_mended(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;

    agent_core_poll(a);
    agent_core_pass(a);
    wg_peer_deinit(&w->engine.config.peers[--w->engine.config.n_peers]);
    agent_core_poll(a);
    assert_true(a->pass.due_at <= now);
    agent_core_run(a, now);
    assert_int_equal(w->engine.config.n_peers, 3);
    assert_true(a->pass.due_at > now);
    agent_core_poll(a);
    assert_true(a->pass.due_at > now);
    w->engine.config.public = sample_key(9);
    agent_core_poll(a);
    assert_true(a->pass.due_at <= now);
    agent_core_run(a, now);
    assert_true(x25519_public_equal(&w->engine.config.public, &a->reconcile.applied.public));
    assert_false(x25519_public_is_none(&a->reconcile.applied.public));
    end_world(w);
}

/* It is opened anew by a pass; what it has shown is kept until then. */
static void test_an_engine_that_does_not_answer(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;

    w->engine.config.listen_port = 4000;
    agent_core_poll(a);
    agent_core_pass(a);
    agent_core_poll(a);
    assert_int_equal(a->listen_port, 4000);
    assert_int_equal(a->seen.n, 3);
    assert_true(a->pass.due_at > now);
    w->engine.is_gone = true;
    agent_core_poll(a);
    assert_int_equal(a->listen_port, 4000);
    assert_int_equal(a->seen.n, 3);
    assert_int_equal(a->pass.due_at, now);
    end_world(w);
}

/* A port that another program has is not asked for in a hurry; that it is free again is said. */
static void test_a_port_that_is_taken(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;

    a->state.listen_port = 8;
    agent_core_poll(a);
    assert_null(strstr(log_of_a_pass(a), "free again"));
    w->engine.config.listen_errno = EADDRINUSE;
    agent_core_poll(a);
    assert_int_equal(a->listen_port, 0);
    assert_int_equal(a->pass.due_at, now);
    assert_string_equal(log_of_a_pass(a),
        "warning: weft: weft0 is not as the hub wants it, trying again: UDP "
        "port 8 was in use (EADDRINUSE)\n");
    assert_int_equal(a->pass.fault.code, -EADDRINUSE);
    assert_int_equal(a->pass.held_until, a->pass.due_at);
    agent_core_poll(a);
    assert_true(a->pass.due_at > now);
    w->engine.config.listen_errno = 0;
    agent_core_poll(a);
    assert_int_equal(a->listen_port, w->engine.config.listen_port);
    assert_int_equal(a->pass.due_at, a->pass.held_until);
    *edges_changed(a) = false;
    assert_non_null(strstr(
        log_of_a_pass(a), "info: weft: UDP port 8 is free again, and weft0 listens on it\n"));
    assert_true(*edges_changed(a));
    assert_null(strstr(log_of_a_pass(a), "free again"));
    /* Any port will do for one that is to have no certain one. */
    a->state.listen_port = 0;
    a->pass.fault.code = -EADDRINUSE;
    assert_null(strstr(log_of_a_pass(a), "free again"));
    end_world(w);
}

/* All that goes through a hub goes through the other one; the sessions with both stay. */
static void test_another_hub_takes_over(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    const struct agent_hub *before;
    struct endpoint at_before;
    struct endpoint relayed;

    put_second_hub(&a->snapshot, "hub-b");
    agent_core_poll(a);
    agent_core_pass(a);
    assert_int_equal(w->engine.config.n_peers, 4);
    assert_int_equal(a->hubs.n, 2);
    before = a->hubs.serving;
    assert_ptr_equal(a->jobs.hub, before->link);
    for (unsigned i = 0; i < 2; i++)
        assert_ptr_equal(agent_core_find_link(a, a->hubs.items[i]->name), a->hubs.items[i]->link);
    assert_null(agent_core_find_link(a, "n3"));
    at_before = sample_engine_find(&w->engine, &before->key)->endpoint;
    relayed = peer(w, 3)->endpoint;
    assert_true(endpoint_equal(&relayed, &at_before));
    now += SEC;
    hub_set_on_heard(&a->hubs, before, now);
    agent_core_run(a, now);
    assert_ptr_equal(a->hubs.serving, before);
    hub_set_on_lost(&a->hubs, before);
    assert_true(agent_core_due(a) <= now);
    agent_core_run(a, now);
    assert_ptr_not_equal(a->hubs.serving, before);
    assert_ptr_equal(a->jobs.hub, a->hubs.serving->link);
    assert_string_equal(agent_core_render_input(a).relay, a->hubs.serving->name);
    agent_core_run(a, now);
    assert_int_equal(w->engine.config.n_peers, 4);
    assert_true(endpoint_equal(
        &peer(w, 3)->endpoint, &sample_engine_find(&w->engine, &a->hubs.serving->key)->endpoint));
    assert_false(endpoint_equal(&peer(w, 3)->endpoint, &relayed));
    assert_true(
        endpoint_equal(&sample_engine_find(&w->engine, &before->key)->endpoint, &at_before));
    end_world(w);
}

/* The hub that serves this node is retired. */
static void test_a_hub_is_retired(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    char serving[NAME_MAX_LEN + 1];

    put_second_hub(&a->snapshot, "hub-b");
    agent_core_poll(a);
    agent_core_pass(a);
    (void)snprintf(serving, sizeof(serving), "%s", a->hubs.serving->name);
    assert_int_equal(snapshot_delete(&a->snapshot, &node_kind, serving, NULL), 0);
    agent_core_pass(a);
    assert_int_equal(a->hubs.n, 1);
    assert_int_equal(a->hubs.n_gone, 0);
    assert_string_not_equal(a->hubs.serving->name, serving);
    assert_ptr_equal(a->jobs.hub, a->hubs.serving->link);
    assert_true(a->poll.has_changes);
    assert_null(agent_core_find_link(a, serving));
    assert_int_equal(w->engine.config.n_peers, 3);
    /* Between two states a snapshot may have none. */
    assert_int_equal(snapshot_delete(&a->snapshot, &node_kind, a->hubs.serving->name, NULL), 0);
    agent_core_pass(a);
    agent_core_poll(a);
    assert_int_equal(a->hubs.n, 1);
    end_world(w);
}

/* ---- when what is due ------------------------------------------------------------------------ */

/* The earliest deadline of any part is the agent's. */
static void test_the_earliest_deadline(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    nsec_t *const deadlines[] = {&a->pass.due_at, &a->poll.due_at, &a->hubs.choose_at,
        &a->cache.due_at, &a->names.due_at, &a->hubs.items[0]->transport.due_at};
    const unsigned n = sizeof(deadlines) / sizeof(*deadlines);

    for (unsigned i = 0; i < n; i++)
        *deadlines[i] = NSEC_NEVER;
    assert_true(agent_core_due(a) == NSEC_NEVER);
    for (unsigned i = 0; i < n; i++) {
        *deadlines[i] = now + (nsec_t)i;
        assert_int_equal(agent_core_due(a), now + (nsec_t)i);
        *deadlines[i] = NSEC_NEVER;
    }
    end_world(w);
}

/* Each is done when it is due, and not before. */
static void test_what_is_done_when_it_is_due(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;

    agent_core_poll(a);
    agent_core_pass(a);
    a->pass.due_at = now + 1;
    a->poll.due_at = now + 1;
    a->poll.has_changes = true;
    a->names.due_at = now + 1;
    a->cache.due_at = now + 1;
    a->hubs.choose_at = now + 1;
    agent_core_run(a, now);
    assert_int_equal(a->pass.due_at, now + 1);
    assert_int_equal(a->poll.due_at, now + 1);
    assert_int_equal(a->names.due_at, now + 1);
    assert_int_equal(a->cache.due_at, now + 1);
    assert_int_equal(a->hubs.choose_at, now + 1);
    now++;
    agent_core_run(a, now);
    assert_int_equal(a->pass.due_at, now + PASS_PLAN_PERIOD);
    assert_true(a->poll.due_at > now);
    assert_int_equal(a->poll.polled_at, now);
    assert_false(a->poll.has_changes);
    assert_true(a->names.due_at == NSEC_NEVER);
    /* It cannot be written there, and is tried again. */
    assert_true(a->cache.due_at > now && a->cache.due_at != NSEC_NEVER);
    assert_true(a->hubs.choose_at == NSEC_NEVER);
    end_world(w);
}

/* ---- what is logged of a pass ---------------------------------------------------------------- */

static void test_what_somebody_has_done_is_logged(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    struct ip_prefix block = netns_prefix("10.42.0.0/16");
    char words[400];
    char key[X25519_BASE64_MAX];
    const struct x25519_public first = sample_key(77);
    struct wg_peer foreign = WG_PEER_NULL;

    agent_core_poll(a);
    assert_non_null(strstr(log_of_a_pass(a), "info: weft: revision 40 applied to weft0: "));
    assert_string_equal(log_of_a_pass(a), "");
    assert_int_equal(a->applied, 40);
    assert_int_equal(rtnl_set_link(w->nl, w->ifindex, false, 0), 0);
    assert_non_null(
        strstr(log_of_a_pass(a), "info: weft: weft0 had been set down and is up again\n"));
    assert_int_equal(a->pass.due_at, now + PASS_PLAN_PERIOD);
    assert_int_equal(a->pass.held_until, now + PASS_PLAN_PAUSE);
    assert_string_equal(log_of_a_pass(a), "");
    assert_int_equal(a->pass.held_until, 0);
    assert_int_equal(rtnl_remove_route(w->nl, w->ifindex, &block, NULL), 0);
    assert_non_null(strstr(log_of_a_pass(a), "info: weft: the route to 10.42.0.0/16 had been taken "
                                             "from weft0 and leads into it again\n"));
    assert_int_equal(a->pass.held_until, now + PASS_PLAN_PAUSE);
    assert_int_equal(a->foreign_at, 0);
    foreign.key = first;
    assert_int_equal(wg_config_add(&w->engine.config, &foreign), 0);
    now++;
    (void)snprintf(words, sizeof(words),
        "warning: weft: 1 peer of weft0 that neither the hub nor this agent had added was removed, "
        "the last with the public key %s\n",
        x25519_public_format(&first, key));
    assert_non_null(strstr(log_of_a_pass(a), words));
    assert_int_equal(a->foreign_at, now);
    foreign = (struct wg_peer)WG_PEER_NULL;
    foreign.key = sample_key(78);
    assert_int_equal(wg_config_add(&w->engine.config, &foreign), 0);
    foreign = (struct wg_peer)WG_PEER_NULL;
    foreign.key = sample_key(79);
    assert_int_equal(wg_config_add(&w->engine.config, &foreign), 0);
    assert_non_null(strstr(log_of_a_pass(a),
        "warning: weft: 2 peers of weft0 that neither the hub nor this agent had added were "
        "removed, the last with the public key "));
    assert_string_equal(log_of_a_pass(a), "");
    end_world(w);
}

/* The hub is told when a pass begins to fail, and when one succeeds again. */
static void test_a_fault_is_reported_once(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    nsec_t failed_at;

    agent_core_poll(a);
    *edges_changed(a) = false;
    agent_core_pass(a);
    assert_true(*edges_changed(a));
    *edges_changed(a) = false;
    agent_core_pass(a);
    assert_false(*edges_changed(a));
    a->listen_port = 7;
    w->engine.is_gone = true;
    assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
    assert_non_null(strstr(
        log_of_a_pass(a), "warning: weft: weft0 is not as the hub wants it, trying again: "));
    failed_at = now;
    assert_int_equal(a->listen_port, 0);
    assert_int_equal(a->pass.n_failed, 1);
    assert_true(a->pass.due_at > failed_at);
    assert_true(*edges_changed(a));
    *edges_changed(a) = false;
    agent_core_pass(a);
    assert_int_equal(a->pass.n_failed, 2);
    assert_false(*edges_changed(a));
    end_world(w);
}

/* A reason why rates are not kept is logged once, and that it is over. */
static void test_rates_that_are_not_kept(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    struct object edge = sample_edge(2, 3, EDGE_PATH_AUTO);
    char words[400];

    agent_core_poll(a);
    (void)log_of_a_pass(a);
    edge.edge.rate = 20000000;
    sample_put(&a->snapshot, edge);
    *edges_changed(a) = false;
    heard_log_begin();
    agent_core_pass(a);
    (void)snprintf(words, sizeof(words), "warning: weft: weft0: its rates are not kept: %s\n",
        a->reconcile.rates_why);
    assert_non_null(strstr(heard_log_end(), words));
    assert_string_not_equal(a->rates_why, "");
    assert_true(*edges_changed(a));
    *edges_changed(a) = false;
    assert_null(strstr(log_of_a_pass(a), "rates"));
    assert_false(*edges_changed(a));
    sample_put(&a->snapshot, sample_edge(2, 3, EDGE_PATH_AUTO));
    assert_non_null(
        strstr(log_of_a_pass(a), "info: weft: weft0: nothing stands against its rates any more\n"));
    assert_string_equal(a->rates_why, "");
    end_world(w);
}

/* ---- what is rendered, and begun ------------------------------------------------------------- */

static void test_what_is_rendered(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    struct render_input in;

    put_second_hub(&a->snapshot, "hub-b");
    agent_core_poll(a);
    agent_core_pass(a);
    agent_core_poll(a);
    a->listen_port = 7;
    in = agent_core_render_input(a);
    assert_ptr_equal(in.snapshot, &a->snapshot);
    assert_string_equal(in.relay, a->hubs.serving->name);
    assert_int_equal(in.listen_port, 7);
    assert_int_equal(in.link_mtu, a->link_mtu);
    assert_int_equal(in.keepalive, node_keepalive_interval(&a->keepalive));
    assert_int_equal(in.pins, path_driver_pins(a->paths));
    assert_false(in.relays);
    assert_int_equal(in.n_paths, 2);
    assert_string_equal(in.paths[0].node, "hub");
    assert_string_equal(in.paths[1].node, "hub-b");
    a->state.listen_port = 8;
    assert_int_equal(agent_core_render_input(a).listen_port, 8);
    /* A relay is a node that wants to be one, may be one, and has the engine for it. */
    a->state.wants_relay = true;
    ((struct node *)snapshot_self(&a->snapshot))->relay = true;
    assert_false(agent_core_render_input(a).relays);
    a->state.engine = ENGINE_KIND_USERSPACE;
    assert_true(agent_core_render_input(a).relays);
    a->state.wants_relay = false;
    assert_false(agent_core_render_input(a).relays);
    a->state.wants_relay = true;
    ((struct node *)snapshot_self(&a->snapshot))->relay = false;
    assert_false(agent_core_render_input(a).relays);
    end_world(w);
}

/* A hub that was started anew sees a handshake of each edge to a stock peer that had one. */
static void test_a_hub_that_has_forgotten(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    struct object finder = sample_node(4);
    unsigned before;

    agent_core_poll(a);
    agent_core_pass(a);
    agent_core_poll(a);
    before = w->engine.n_handshakes;
    agent_core_on_hub_forgot(a, now);
    assert_int_equal(w->engine.n_handshakes, before);
    for (unsigned n = 1; n <= 4; n++)
        if (n != 2)
            peer(w, n)->facts.handshake_sec = wall_of_test() / SEC - 10;
    agent_core_poll(a);
    before = w->engine.n_handshakes;
    agent_core_on_hub_forgot(a, now);
    assert_int_equal(w->engine.n_handshakes, before + 2);
    /* With one that finds paths the end that begins is settled otherwise. */
    finder.node.side = calloc(1, sizeof(*finder.node.side));
    assert_non_null(finder.node.side);
    sample_put(&a->snapshot, finder);
    before = w->engine.n_handshakes;
    agent_core_on_hub_forgot(a, now);
    assert_int_equal(w->engine.n_handshakes, before + 1);
    end_world(w);
}

/* Who had a session hears of this node when the interface was down, since the engine has forgotten
 * it. */
static void test_sessions_that_the_engine_has_forgotten(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    unsigned before;

    agent_core_poll(a);
    agent_core_pass(a);
    peer(w, 3)->facts.handshake_sec = wall_of_test() / SEC - 10;
    peer(w, 4)->facts.handshake_sec = wall_of_test() / SEC - 300;
    agent_core_poll(a);
    before = w->engine.n_handshakes;
    agent_core_pass(a);
    assert_int_equal(w->engine.n_handshakes, before);
    assert_int_equal(rtnl_set_link(w->nl, w->ifindex, false, 0), 0);
    agent_core_pass(a);
    assert_int_equal(w->engine.n_handshakes, before + 1);
    end_world(w);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void test_it_is_taken_down(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    struct err names = {.code = -1};
    struct err e = ERR_NULL;

    agent_core_poll(a);
    agent_core_pass(a);
    if (agent_core_take_down(a, &names, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(names.code, 0);
    assert_null(a->reconcile.engine);
    end_world(w);
}

/* The kernel's is no process that could be replaced. */
static void test_an_engine_that_is_no_process(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    struct err e = ERR_NULL;

    agent_core_poll(a);
    agent_core_pass(a);
    now++;
    assert_int_equal(agent_core_renew_engine(a, &e), ENGINE_E_UNSUPPORTED);
    assert_int_equal(a->poll.polled_at, now);
    assert_ptr_equal(a->reconcile.engine, &w->engine.engine);
    end_world(w);
}

/* The new process is to be there when it returns, or it says why it is not. */
static void test_an_engine_that_is_not_there_again(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    struct err e = ERR_NULL;

    w->engine.engine.ops = NULL;
    sample_engine_deinit(&w->engine);
    sample_engine_init(&w->engine, ENGINE_KIND_USERSPACE);
    a->reconcile.wanted = a->state.engine = ENGINE_KIND_USERSPACE;
    agent_core_poll(a);
    agent_core_pass(a);
    a->rules.clamped_at = now + 5;
    assert_int_equal(agent_core_renew_engine(a, &e), -EIO);
    assert_string_equal(e.text, "no engine runs weft0");
    assert_true(w->engine.is_closed);
    assert_null(a->reconcile.engine);
    assert_string_not_equal(a->pass.fault.text, "");
    /* Its rules are put again by the next pass that succeeds. */
    assert_int_equal(a->rules.clamped_at, 0);
    /* Without a hub no engine is begun. */
    a->reconcile.engine = &w->engine.engine;
    assert_int_equal(snapshot_delete(&a->snapshot, &node_kind, "hub", NULL), 0);
    assert_true(agent_core_renew_engine(a, &e) < 0);
    assert_string_equal(e.text, "the snapshot of \"n2\" has no hub");
    assert_int_equal(e.code, a->pass.fault.code);
    end_world(w);
}

static void test_the_end_is_begun_once(void **state)
{
    struct world *w = make_world(state);
    struct agent *a = &w->agent;
    nsec_t ends_at;

    assert_false(a->jobs.is_ending);
    agent_core_finish(a, AGENT_END_LEFT);
    ends_at = a->ends_at;
    assert_int_equal(ends_at, now + SEC);
    assert_true(a->is_ending && a->jobs.is_ending);
    now += SEC;
    agent_core_finish(a, AGENT_END_STOPPED);
    assert_int_equal(a->end, AGENT_END_LEFT);
    assert_int_equal(a->ends_at, ends_at);
    end_world(w);
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_pass_plans_the_next, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_a_pass_that_fails_is_repeated, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_peers_are_seen_with_their_ages, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_a_handshake_before_the_first_poll, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_what_moved_is_counted_once, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_a_peer_that_was_led_astray_comes_back, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_a_peer_that_only_the_engine_knows_keeps_its_path, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_an_engine_that_was_changed_by_hand_is_mended, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_another_hub_takes_over, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_a_hub_is_retired, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_the_earliest_deadline, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_what_is_done_when_it_is_due, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_what_somebody_has_done_is_logged, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_a_fault_is_reported_once, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_rates_that_are_not_kept, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_what_is_rendered, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_a_hub_that_has_forgotten, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_an_engine_that_does_not_answer, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_a_port_that_is_taken, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_sessions_that_the_engine_has_forgotten, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_an_engine_that_is_not_there_again, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_it_is_taken_down, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_an_engine_that_is_no_process, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_the_end_is_begun_once, netns_enter, netns_leave),
    };

    /* As the engine's process, which cannot run here. */
    if (argc > 1)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
