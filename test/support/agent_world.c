/* agent_world.c - see agent_world.h. */
#include "test/support/agent_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "agent/paths/edge/path_driver.h"
#include "net/netlink/rtnl.h"
#include "test/support/heard_log.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

static struct agent_world world;

static nsec_t clock_of_world(void)
{
    return world.now;
}

nsec_t agent_world_wall(void)
{
    return AGENT_WORLD_WALL + world.now;
}

static void on_nothing(void *ctx)
{
}

/* The parts, as agent.c makes them. */
static void open_parts(struct agent *a)
{
    struct hub_link_listener hub = agent_hub_listener;
    struct path_driver_options opt = {
        .secret = &a->state.secret, .name = "n2", .interface = a->state.interface};
    struct path_driver_listener paths = {.on_routes = on_nothing,
        .on_self = on_nothing,
        .on_look = on_nothing,
        .on_network = on_nothing};
    struct node_names_options names = {.is_on = false};

    hub.ctx = a;
    assert_int_equal(uv_loop_init(&a->loop), 0);
    node_keepalive_init(&a->keepalive, &a->loop, "/nonexistent", agent_on_keepalive, a);
    a->names = (struct node_names){.opt = names, .due_at = NSEC_NEVER};
    assert_int_equal(reconcile_init(&a->reconcile, a->state.interface, a->state.engine,
                         SUBNETS_ACCEPT_PRIVATE, NULL),
        0);
    assert_int_equal(path_driver_new(&a->paths, &a->loop, &opt, &paths, NULL), 0);
    hub_set_init(&a->hubs, &a->loop, &a->state, &hub);
    job_calls_init(&a->jobs, agent_core_find_link, a);
    a->running = (struct node_jobs){.calls = &a->jobs, .meter = &a->meter.meter};
    key_change_open(&a->keys, NULL, &a->state, world.now);
    path_driver_set_snapshot(a->paths, &a->snapshot, world.now);
    assert_int_equal(agent_core_take_hubs(a, NULL), 0);
}

static struct snapshot make_snapshot(const struct x25519_secret *secret, bool has_hub)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct object self = sample_node(2);

    assert_true(x25519_derive_public(secret, &self.node.key));
    sample_put(&s, self);
    if (!has_hub)
        assert_int_equal(snapshot_delete(&s, &node_kind, "hub", NULL), 0);
    return s;
}

static struct agent_world *make(void **state, bool has_hub)
{
    struct netlink *nl = netns_need(state);
    struct agent *a = &world.agent;
    struct rtnl_link link;

    world = (struct agent_world){.nl = nl,
        .config = {.state_dir = "/nonexistent", .socket_path = "/nonexistent/sock"},
        .agent = AGENT_NULL,
        .now = 1000 * NSEC_PER_SEC};
    assert_int_equal(rtnl_add_link(nl, "weft0", "bridge"), 0);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), 0);
    world.ifindex = link.ifindex;
    a->config = &world.config;
    a->clock = clock_of_world;
    a->wall_clock = agent_world_wall;
    a->state.secret = (struct x25519_secret){.b = {5, [31] = 0x40}};
    a->state.engine = ENGINE_KIND_KERNEL;
    (void)snprintf(a->state.interface, sizeof(a->state.interface), "weft0");
    a->state.snapshot = make_snapshot(&a->state.secret, has_hub);
    a->snapshot = make_snapshot(&a->state.secret, has_hub);
    open_parts(a);
    sample_engine_init(&world.engine, ENGINE_KIND_KERNEL);
    a->reconcile.engine = &world.engine.engine;
    return &world;
}

struct agent_world *agent_world_make(void **state)
{
    return make(state, true);
}

struct agent_world *agent_world_make_without_hub(void **state)
{
    return make(state, false);
}

void agent_world_use(struct agent_world *w, enum engine_kind kind)
{
    sample_engine_deinit(&w->engine);
    sample_engine_init(&w->engine, kind);
    w->agent.reconcile.wanted = w->agent.state.engine = kind;
}

void agent_world_end(struct agent_world *w)
{
    struct agent *a = &w->agent;

    node_jobs_stop(&a->running);
    key_change_close(&a->keys);
    hub_set_stop(&a->hubs);
    keepalive_probe_stop(&a->keepalive.probe);
    a->paths = path_driver_free(a->paths, false);
    (void)uv_run(&a->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&a->loop), 0);
    reconcile_deinit(&a->reconcile);
    class_marks_forget(&a->marks);
    observe_deinit(&a->seen);
    reach_deinit(&a->reach);
    findings_deinit(&a->findings);
    meter_deinit(&a->meter.meter);
    free(a->routes);
    free(a->next_keys);
    node_names_deinit(&a->names);
    snapshot_deinit(&a->snapshot);
    snapshot_deinit(&a->hub_said);
    state_deinit(&a->state);
    sample_engine_deinit(&w->engine);
}

struct wg_peer *agent_world_peer(struct agent_world *w, unsigned n)
{
    struct x25519_public key = sample_key(n);

    return sample_engine_find(&w->engine, &key);
}

void agent_world_put_hub(struct snapshot *s, const char *name)
{
    struct object hub = sample_node(1);

    hub.node.key = sample_key(9);
    hub.node.address4.b[15] = 9;
    hub.node.address6.b[15] = 9;
    hub.node.hub->endpoints[0].port = 9999;
    (void)snprintf(hub.node.meta.name, sizeof(hub.node.meta.name), "%s", name);
    sample_put(s, hub);
}

const char *agent_world_pass(struct agent_world *w)
{
    heard_log_begin();
    agent_core_pass(&w->agent);
    return heard_log_end();
}

const char *agent_world_poll(struct agent_world *w)
{
    heard_log_begin();
    agent_core_poll(&w->agent);
    return heard_log_end();
}
