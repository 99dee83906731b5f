/* test-agent-events.c - what an agent does when its hub, the cluster or its paths say something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/agent_core.h"
#include "agent/cluster/cluster_watch.h"
#include "agent/paths/edge/path_driver.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "mesh/snapshot/watch_event.h"
#include "test/support/agent_world.h"
#include "test/support/heard_log.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

/* Runs of the hub. */
#define RUN   7
#define RERUN 8

/* From a change of the snapshot to the hosts file. */
#define NAMES_DELAY (SEC / 5)

/* Nothing is planned any more, as after a poll and a pass that took place a while ago. */
static void calm_down(struct agent_world *w)
{
    struct agent *a = &w->agent;

    w->now += SEC;
    a->pass = (struct pass_plan)PASS_PLAN_NULL;
    a->poll = (struct poll_plan)POLL_PLAN_NULL;
    a->names.due_at = NSEC_NEVER;
    a->cache.due_at = NSEC_NEVER;
    a->hubs.choice.is_heard = false;
    for (unsigned i = 0; i < a->hubs.n; i++)
        a->hubs.items[i]->report.self_changed = a->hubs.items[i]->report.edges_changed = false;
}

/* All peers had a handshake, and nothing is planned. */
static struct agent_world *make_calm(void **state)
{
    struct agent_world *w = agent_world_make(state);

    agent_core_poll(&w->agent);
    agent_core_pass(&w->agent);
    for (unsigned n = 1; n <= 4; n++)
        if (n != 2)
            agent_world_peer(w, n)->facts.handshake_sec = agent_world_wall() / SEC;
    agent_core_poll(&w->agent);
    calm_down(w);
    return w;
}

static bool is_calm(const struct agent *a)
{
    return a->pass.due_at == NSEC_NEVER && a->poll.due_at == NSEC_NEVER && !a->poll.has_changes &&
           a->names.due_at == NSEC_NEVER && a->cache.due_at == NSEC_NEVER;
}

/* The interface, and what is kept of the network, follow a change that is told at @now. */
static void expect_change(const struct agent *a, nsec_t now, nsec_t names_after, nsec_t kept_at)
{
    assert_int_equal(a->pass.due_at, now + AGENT_CORE_SOON);
    assert_int_equal(a->names.due_at, now + names_after);
    assert_int_equal(a->cache.due_at, kept_at);
    assert_true(a->poll.has_changes);
    assert_true(a->poll.due_at == NSEC_NEVER);
}

static struct watch_event event_of(enum watch_event_kind kind, uint64_t revision, uint64_t boot)
{
    return (struct watch_event){.kind = kind, .revision = revision, .boot = boot};
}

static struct watch_event put_event(struct object o, uint64_t revision)
{
    struct watch_event ev = event_of(WATCH_EVENT_PUT, revision, 0);

    ev.object = o;
    return ev;
}

/* What a hub of that run says first, with another peer than before, which finds paths. */
static struct watch_event snapshot_event(const struct agent *a, uint64_t boot)
{
    struct watch_event ev = event_of(WATCH_EVENT_SNAPSHOT, 50, 0);
    struct object self = sample_node(2);
    struct object n5 = sample_node(5);

    n5.node.side = calloc(1, sizeof(*n5.node.side));
    assert_non_null(n5.node.side);
    self.node.key = snapshot_self(&a->state.snapshot)->key;
    ev.snapshot = sample_snapshot(4, 2);
    sample_put(&ev.snapshot, self);
    sample_put(&ev.snapshot, n5);
    ev.snapshot.revision = 50;
    ev.snapshot.boot = boot;
    return ev;
}

static int hear_from(
    struct agent_world *w, struct agent_hub *hub, struct watch_event ev, struct err *e)
{
    return agent_hub_listener.on_event(hub, &ev, w->now, e);
}

/* From the hub that serves; what is said fits. */
static void hear(struct agent_world *w, struct watch_event ev)
{
    struct err e = ERR_NULL;

    if (hear_from(w, w->agent.hubs.serving, ev, &e) != 0)
        fail_msg("%s", err_text(&e));
}

/* ---- what the hub says ----------------------------------------------------------------------- */

static void test_a_snapshot(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;
    json_t *pairs;

    assert_false(a->knows_members);
    hear(w, snapshot_event(a, RUN));
    assert_int_equal(a->snapshot.revision, 50);
    assert_non_null(snapshot_find_node(&a->snapshot, "n5"));
    expect_change(a, w->now, AGENT_CORE_SOON, w->now + SNAPSHOT_CACHE_DELAY);
    assert_true(a->knows_members);
    assert_int_equal(a->hubs.serving->boot, RUN);
    assert_true(a->hubs.choice.is_heard);
    /* Paths to it are looked for. */
    pairs = path_driver_encode_pairs(a->paths, "n5", w->now);
    assert_non_null(pairs);
    json_decref(pairs);
    agent_world_end(w);
}

static void test_an_object(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;

    hear(w, put_event(sample_node(5), 41));
    assert_int_equal(a->snapshot.revision, 41);
    assert_non_null(snapshot_find_node(&a->snapshot, "n5"));
    expect_change(a, w->now, NAMES_DELAY, w->now + SNAPSHOT_CACHE_DELAY);
    assert_false(a->knows_members);
    assert_int_equal(a->hubs.serving->boot, 0);
    agent_world_end(w);
}

/* What is a status alone is kept less often. Each tells what is put beside the node n3 of
 * resourceVersion 3 which the agent has. */
static void test_what_is_a_status_alone(void **state)
{
    static const struct {
        unsigned node;
        uint64_t held;
        uint64_t said;
        bool is_edge;
        bool is_status;
    } cases[] = {
        {3, 3, 3, false, true},
        {3, 3, 4, false, false},
        {3, 0, 0, false, false},
        {5, 5, 5, false, false}, /* it is not known yet */
        {3, 3, 3, true, false},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct agent_world *w = make_calm(state);
        struct agent *a = &w->agent;
        struct object held = sample_node(3);
        struct object said =
            cases[i].is_edge ? sample_edge(2, 3, EDGE_PATH_AUTO) : sample_node(cases[i].node);

        held.node.meta.resource_version = cases[i].held;
        said.meta.resource_version = cases[i].said;
        sample_put(&a->snapshot, held);
        a->cache.saved_at = w->now - 1;
        hear(w, put_event(said, 41));
        expect_change(a, w->now, NAMES_DELAY,
            w->now - 1 + (cases[i].is_status ? SNAPSHOT_CACHE_STATUS_EACH : SNAPSHOT_CACHE_EACH));
        agent_world_end(w);
        assert_int_equal(netns_leave(state), 0);
        assert_int_equal(netns_enter(state), 0);
    }
}

static void test_an_object_that_is_gone(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;
    struct watch_event ev = event_of(WATCH_EVENT_DELETE, 41, 0);

    a->cache.saved_at = w->now;
    ev.deleted.kind = &node_kind;
    (void)snprintf(ev.deleted.name, sizeof(ev.deleted.name), "n3");
    hear(w, ev);
    assert_null(snapshot_find_node(&a->snapshot, "n3"));
    expect_change(a, w->now, NAMES_DELAY, w->now + SNAPSHOT_CACHE_EACH);
    agent_world_end(w);
}

/* Nothing has changed, but that the hub was heard; unless it is another run of it. */
static void test_a_heartbeat(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;
    unsigned before = w->engine.n_handshakes;

    a->snapshot.boot = RUN;
    a->hubs.serving->boot = RUN;
    hear(w, event_of(WATCH_EVENT_HEARTBEAT, 40, 0));
    hear(w, event_of(WATCH_EVENT_HEARTBEAT, 40, RUN));
    assert_true(is_calm(a));
    assert_true(a->hubs.choice.is_heard);
    assert_int_equal(w->engine.n_handshakes, before);
    hear(w, event_of(WATCH_EVENT_HEARTBEAT, 41, RERUN));
    expect_change(a, w->now, NAMES_DELAY, w->now + SNAPSHOT_CACHE_DELAY);
    assert_int_equal(a->hubs.serving->boot, RERUN);
    assert_int_equal(w->engine.n_handshakes, before + 2);
    assert_false(a->knows_members);
    agent_world_end(w);
}

static void test_what_a_later_version_says(void **state)
{
    struct agent_world *w = make_calm(state);

    hear(w, event_of(WATCH_EVENT_NONE, 0, 0));
    assert_true(is_calm(&w->agent));
    assert_true(w->agent.hubs.choice.is_heard);
    agent_world_end(w);
}

/* Does a hub that says its run for the first time since the start have to see handshakes? @kept: of
 * the snapshot on the disk. */
static bool is_forgotten(void **state, unsigned n_hubs, uint64_t kept, uint64_t before)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;
    struct agent_hub *hub;
    unsigned n;

    if (n_hubs > 1) {
        agent_world_put_hub(&a->snapshot, "hub-b");
        agent_core_pass(a);
    }
    hub = a->hubs.serving;
    hub->boot = before;
    a->snapshot.boot = kept;
    n = w->engine.n_handshakes;
    hear(w, snapshot_event(a, RUN));
    assert_int_equal(hub->boot, RUN);
    n = w->engine.n_handshakes - n;
    agent_world_end(w);
    assert_int_equal(netns_leave(state), 0);
    assert_int_equal(netns_enter(state), 0);
    return n > 0;
}

static void test_a_hub_that_was_started_anew(void **state)
{
    /* What it said of its run before this start is in the kept snapshot, if it is the only one. */
    assert_true(is_forgotten(state, 1, RERUN, 0));
    assert_false(is_forgotten(state, 1, RUN, 0));
    assert_false(is_forgotten(state, 1, 0, 0));
    assert_false(is_forgotten(state, 2, RERUN, 0));
    /* What it has said since is its own. */
    assert_true(is_forgotten(state, 2, RUN, RERUN));
    assert_false(is_forgotten(state, 2, RERUN, RUN));
    assert_false(is_forgotten(state, 1, RERUN, RUN));
}

/* A hub that says who this node is, and lies, is not believed, until it says something else. */
static void test_what_is_not_believed(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;
    struct err e = ERR_NULL;

    assert_true(hear_from(w, a->hubs.serving, put_event(sample_node(2), 41), &e) < 0);
    assert_string_equal(e.text, "they give \"n2\" another key than it has");
    assert_int_equal(a->hubs.serving->refused.code, e.code);
    assert_string_equal(a->hubs.serving->refused.text, e.text);
    assert_int_equal(a->snapshot.revision, 40);
    assert_true(is_calm(a));
    assert_false(a->hubs.choice.is_heard);
    hear(w, put_event(sample_node(3), 41));
    assert_int_equal(a->hubs.serving->refused.code, 0);
    agent_world_end(w);
}

/* The stream is then opened anew. */
static void test_what_does_not_fit(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;
    struct err e = ERR_NULL;

    assert_true(hear_from(w, a->hubs.serving, put_event(sample_node(5), 39), &e) < 0);
    assert_string_not_equal(e.text, "");
    assert_int_equal(a->hubs.serving->refused.code, 0);
    assert_null(snapshot_find_node(&a->snapshot, "n5"));
    assert_true(is_calm(a));
    assert_false(a->hubs.choice.is_heard);
    agent_world_end(w);
}

/* Of the run of the hub whose snapshot it is no new one is needed. */
static void test_what_is_known_already(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct agent_hub *hub = a->hubs.serving;
    uint64_t boot = 0;
    uint64_t revision = 0;

    assert_false(agent_hub_listener.known(hub, &boot, &revision));
    a->snapshot.boot = RUN;
    assert_false(agent_hub_listener.known(hub, &boot, &revision));
    hub->boot = RERUN;
    assert_false(agent_hub_listener.known(hub, &boot, &revision));
    assert_int_equal(boot, 0);
    hub->boot = RUN;
    assert_true(agent_hub_listener.known(hub, &boot, &revision));
    assert_int_equal(boot, RUN);
    assert_int_equal(revision, 40);
    /* With a cluster the snapshot is not the hub's. */
    a->cluster = (struct cluster_watch *)w;
    assert_false(agent_hub_listener.known(hub, &boot, &revision));
    agent_world_end(w);
}

/* ---- it is removed, or ends ------------------------------------------------------------------ */

static char dir[64];

static int enter_with_dir(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-test-events.XXXXXX");
    assert_non_null(mkdtemp(dir));
    return netns_enter(state);
}

static int leave_with_dir(void **state)
{
    (void)removed_forget(dir, NULL);
    (void)state_remove(dir, NULL);
    (void)rmdir(dir);
    return netns_leave(state);
}

static const char *log_of_removal(struct agent_world *w, const char *reason)
{
    struct watch_event ev = event_of(WATCH_EVENT_REMOVED, 0, 0);

    (void)snprintf(ev.reason, sizeof(ev.reason), "%s", reason);
    heard_log_begin();
    hear(w, ev);
    return heard_log_end();
}

static void test_it_is_removed(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct removed rm;

    w->config.state_dir = dir;
    assert_int_equal(state_write(&a->state, dir, NULL), 0);
    assert_string_equal(
        log_of_removal(w, "it is sold"), "info: weft: the hub has removed this node: it is sold\n");
    assert_true(a->is_ending);
    assert_int_equal(a->end, AGENT_END_REMOVED);
    assert_int_equal(a->ends_at, w->now + SEC);
    assert_null(a->reconcile.engine);
    assert_false(state_is_there(dir));
    assert_int_equal(removed_read(&rm, dir, NULL), 0);
    assert_string_equal(rm.node, "n2");
    assert_string_equal(rm.network, "default");
    assert_string_equal(rm.reason, "it is sold");
    assert_string_equal(rm.socket_path, "/nonexistent/sock");
    assert_true(rm.at > 1600000000);
    /* And it hears nothing any more. */
    hear(w, snapshot_event(a, RUN));
    assert_string_equal(log_of_removal(w, "it is sold again"), "");
    assert_int_equal(a->snapshot.revision, 40);
    agent_world_end(w);
}

/* What cannot be done is said, and the rest is done. */
static void test_a_removal_that_fails_in_part(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    const char *log;

    w->config.state_dir = dir;
    a->names.opt = (struct node_names_options){.is_on = true, .file = "/"};
    log = log_of_removal(w, "");
    assert_non_null(strstr(log, "info: weft: the hub has removed this node: it gives no reason\n"
                                "error: weft: the nodes' names could not be removed: "));
    assert_int_equal(a->end, AGENT_END_REMOVED);
    agent_world_end(w);
}

/* ---- the hub comes and goes ------------------------------------------------------------------ */

static const char *log_of_change(struct agent_world *w, bool heard, const char *why)
{
    heard_log_begin();
    agent_hub_listener.on_change(w->agent.hubs.serving, heard, why, w->now);
    return heard_log_end();
}

static void test_a_hub_that_answers_again(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;

    a->hubs.serving->report.sent_at = 5;
    assert_string_equal(log_of_change(w, true, ""), "info: weft: the hub answers\n");
    /* All is to be reported anew. */
    assert_int_equal(a->hubs.serving->report.sent_at, 0);
    assert_int_equal(a->poll.due_at, w->now);
    assert_true(a->poll.has_changes);
    assert_false(a->hubs.choice.is_lost);
    assert_true(a->pass.due_at == NSEC_NEVER);
    agent_world_end(w);
}

static void test_a_hub_that_is_lost(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;

    a->hubs.serving->report.sent_at = 5;
    assert_string_equal(log_of_change(w, false, "it hung up"),
        "warning: weft: the hub does not answer, known peers stay: it hung up\n");
    assert_true(a->hubs.choice.is_lost);
    assert_int_equal(a->hubs.serving->report.sent_at, 5);
    assert_int_equal(a->poll.due_at, w->now);
    calm_down(w);
    a->hubs.choice.is_lost = false;
    a->is_ending = true;
    assert_string_equal(log_of_change(w, false, "it hung up"), "");
    assert_true(is_calm(a));
    assert_false(a->hubs.choice.is_lost);
    agent_world_end(w);
}

/* ---- reports --------------------------------------------------------------------------------- */

static void test_what_became_of_a_report(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;
    struct agent_hub *hub = a->hubs.serving;
    json_t *body = json_pack("{s:{s:s, s:b}}", "copy", "why", "two of them", "isCopy", 1);

    agent_hub_listener.on_reported(hub, EDGE_REPORT_LOST, body);
    assert_int_equal(hub->report_lost_at, w->now);
    assert_true(is_calm(a));
    assert_string_equal(a->copy.why, "");
    agent_hub_listener.on_reported(hub, EDGE_REPORT_TAKEN, body);
    assert_int_equal(hub->report_lost_at, 0);
    assert_string_equal(a->copy.why, "two of them");
    assert_true(a->copy.is_copy);
    assert_true(is_calm(a));
    json_decref(body);
    /* There is more to be told, soon. */
    hub->report.self_changed = true;
    agent_hub_listener.on_reported(hub, EDGE_REPORT_LOST, NULL);
    assert_int_equal(a->poll.due_at, w->now + node_report_within(&hub->report));
    calm_down(w);
    hub->report.self_changed = true;
    a->is_ending = true;
    agent_hub_listener.on_reported(hub, EDGE_REPORT_LOST, NULL);
    assert_true(is_calm(a));
    agent_world_end(w);
}

/* Whether there is a copy of this node is for one hub to say. */
static void test_a_report_to_another_hub(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    json_t *body = json_pack("{s:{s:s, s:b}}", "copy", "why", "two of them", "isCopy", 1);
    struct agent_hub *other;

    agent_world_put_hub(&a->snapshot, "hub-b");
    agent_core_pass(a);
    other = a->hubs.items[a->hubs.serving == a->hubs.items[0] ? 1 : 0];
    agent_hub_listener.on_reported(other, EDGE_REPORT_LOST, NULL);
    assert_int_equal(other->report_lost_at, w->now);
    assert_int_equal(a->hubs.serving->report_lost_at, 0);
    agent_hub_listener.on_reported(other, EDGE_REPORT_TAKEN, body);
    assert_int_equal(other->report_lost_at, 0);
    assert_string_equal(a->copy.why, "");
    json_decref(body);
    agent_world_end(w);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static void test_what_the_paths_say(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;

    agent_path_listener.on_routes(a);
    assert_int_equal(a->pass.due_at, w->now);
    assert_true(a->poll.has_changes);
    assert_true(a->poll.due_at == NSEC_NEVER);
    assert_false(a->reconcile.tells_all);
    calm_down(w);
    agent_path_listener.on_self(a);
    assert_true(a->hubs.serving->report.self_changed);
    assert_int_equal(a->poll.due_at, w->now + AGENT_CORE_SOON);
    assert_true(a->pass.due_at == NSEC_NEVER);
    calm_down(w);
    agent_path_listener.on_look(a);
    assert_false(a->hubs.serving->report.self_changed);
    assert_int_equal(a->poll.due_at, w->now);
    assert_true(a->pass.due_at == NSEC_NEVER);
    calm_down(w);
    agent_path_listener.on_network(a);
    assert_true(a->reconcile.tells_all);
    assert_int_equal(a->pass.due_at, w->now);
    assert_true(a->poll.has_changes);
    agent_world_end(w);
}

static void test_what_is_measured_of_idle_mappings(void **state)
{
    struct agent_world *w = make_calm(state);
    struct agent *a = &w->agent;
    struct keepalive_plan *plan = &a->keepalive.probe.plan;

    a->keepalive.is_damaged = true; /* so that it is told alone */
    plan->machine = (struct keepalive){.bounds = {.dies = 20 * SEC}};
    heard_log_begin();
    agent_on_keepalive(a, false, true);
    (void)heard_log_end();
    assert_int_equal(a->pass.due_at, w->now);
    calm_down(w);
    heard_log_begin();
    agent_on_keepalive(a, true, false);
    assert_non_null(strstr(heard_log_end(), "keepalive"));
    assert_true(is_calm(a));
    a->is_ending = true;
    heard_log_begin();
    agent_on_keepalive(a, true, true);
    assert_string_equal(heard_log_end(), "");
    assert_true(is_calm(a));
    agent_world_end(w);
}

/* ---- the cluster ----------------------------------------------------------------------------- */

/* Whoever says who is in the network is there, and is not looked into. */
static struct agent_world *make_with_cluster(void **state)
{
    struct agent_world *w = make_calm(state);

    w->agent.cluster = (struct cluster_watch *)w;
    return w;
}

static const char *log_of_cluster(struct agent_world *w, struct watch_event ev)
{
    heard_log_begin();
    agent_cluster_listener.on_event(&w->agent, &ev, NULL);
    return heard_log_end();
}

static void test_what_the_cluster_says(void **state)
{
    struct agent_world *w = make_with_cluster(state);
    struct agent *a = &w->agent;
    struct watch_event ev = snapshot_event(a, 0);
    struct object n3 = sample_node(3);

    a->cache.saved_at = w->now;
    a->snapshot.boot = RUN;
    assert_string_equal(log_of_cluster(w, ev), "");
    assert_non_null(snapshot_find_node(&a->snapshot, "n5"));
    assert_true(a->knows_members);
    assert_int_equal(a->snapshot.boot, RUN);
    expect_change(a, w->now, NAMES_DELAY, w->now + SNAPSHOT_CACHE_EACH);
    calm_down(w);
    assert_string_equal(log_of_cluster(w, put_event(n3, 0)), "");
    expect_change(a, w->now, NAMES_DELAY, a->cache.saved_at + SNAPSHOT_CACHE_STATUS_EACH);
    agent_world_end(w);
}

static void test_what_the_cluster_says_amiss(void **state)
{
    struct agent_world *w = make_with_cluster(state);
    struct agent *a = &w->agent;
    struct watch_event ev = put_event(sample_node(5), 0);

    assert_string_equal(log_of_cluster(w, put_event(sample_node(2), 0)),
        "warning: weft: the cluster's resources do not fit: they give \"n2\" another key than it "
        "has\n");
    assert_false(a->knows_members);
    assert_true(is_calm(a));
    ev.skips.n = 2;
    (void)err_set(&ev.skips.first, -1, "it has no name");
    assert_string_equal(log_of_cluster(w, ev),
        "warning: weft: the cluster: 2 resources are passed over, one because of this: it has no "
        "name\n");
    assert_non_null(snapshot_find_node(&a->snapshot, "n5"));
    calm_down(w);
    ev = (struct watch_event){
        .kind = WATCH_EVENT_DELETE, .deleted = {.kind = &node_kind, .name = "n2"}};
    assert_string_equal(log_of_cluster(w, ev),
        "info: weft: this node was deleted in the cluster: whether it is removed the hub will "
        "say\n");
    assert_non_null(snapshot_find_node(&a->snapshot, "n2"));
    assert_true(is_calm(a));
    a->is_ending = true;
    ev = put_event(sample_node(6), 0);
    assert_string_equal(log_of_cluster(w, ev), "");
    assert_null(snapshot_find_node(&a->snapshot, "n6"));
    assert_true(is_calm(a));
    object_deinit(&ev.object);
    agent_world_end(w);
}

static const char *log_of_cluster_change(struct agent_world *w, bool heard, const char *why)
{
    heard_log_begin();
    agent_cluster_listener.on_change(&w->agent, heard, why);
    return heard_log_end();
}

static void test_a_cluster_that_comes_and_goes(void **state)
{
    struct agent_world *w = make_with_cluster(state);
    struct agent *a = &w->agent;

    assert_string_equal(
        log_of_cluster_change(w, true, ""), "info: weft: the cluster says who is in the network\n");
    assert_true(a->cluster_seen.is_heard);
    assert_int_equal(a->cluster_seen.since, w->now);
    w->now++;
    assert_string_equal(log_of_cluster_change(w, false, "nobody listens"),
        "warning: weft: the cluster does not say who is in the network, known peers stay: nobody "
        "listens\n");
    assert_false(a->cluster_seen.is_heard);
    assert_int_equal(a->cluster_seen.since, w->now);
    assert_string_equal(a->cluster_seen.why.text, "nobody listens");
    a->is_ending = true;
    assert_string_equal(log_of_cluster_change(w, false, "nobody listens"), "");
    agent_world_end(w);
}

/* Who is in the network is not the hub's to say then, only how nodes are reached. */
static void test_a_hub_beside_a_cluster(void **state)
{
    struct agent_world *w = make_with_cluster(state);
    struct agent *a = &w->agent;
    struct object reported = sample_node(3);

    a->cache.saved_at = w->now;
    hear(w, snapshot_event(a, RUN));
    assert_null(snapshot_find_node(&a->snapshot, "n5"));
    assert_non_null(snapshot_find_node(&a->hub_said, "n5"));
    assert_int_equal(a->snapshot.boot, RUN);
    assert_int_equal(a->snapshot.revision, 50);
    assert_false(a->knows_members);
    assert_true(a->pass.due_at == NSEC_NEVER);
    calm_down(w);
    reported.node.status = json_pack("{s:s}", "hostname", "rack-7");
    reported.node.meta.resource_version = 99;
    hear(w, put_event(reported, 51));
    assert_non_null(snapshot_find_node(&a->snapshot, "n3")->status);
    expect_change(a, w->now, NAMES_DELAY, a->cache.saved_at + SNAPSHOT_CACHE_STATUS_EACH);
    agent_world_end(w);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, netns_enter, netns_leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_snapshot),
        TEST(test_an_object),
        TEST(test_what_is_a_status_alone),
        TEST(test_an_object_that_is_gone),
        TEST(test_a_heartbeat),
        TEST(test_what_a_later_version_says),
        TEST(test_a_hub_that_was_started_anew),
        TEST(test_what_is_not_believed),
        TEST(test_what_does_not_fit),
        TEST(test_what_is_known_already),
        cmocka_unit_test_setup_teardown(test_it_is_removed, enter_with_dir, leave_with_dir),
        cmocka_unit_test_setup_teardown(
            test_a_removal_that_fails_in_part, enter_with_dir, leave_with_dir),
        TEST(test_a_hub_that_answers_again),
        TEST(test_a_hub_that_is_lost),
        TEST(test_what_became_of_a_report),
        TEST(test_a_report_to_another_hub),
        TEST(test_what_the_paths_say),
        TEST(test_what_is_measured_of_idle_mappings),
        TEST(test_what_the_cluster_says),
        TEST(test_what_the_cluster_says_amiss),
        TEST(test_a_cluster_that_comes_and_goes),
        TEST(test_a_hub_beside_a_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
