/* test-agent-core.c - passes and polls of a whole agent, when they are due, and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/agent_core.h"
#include "agent/paths/edge/path_driver.h"
#include "base/err.h"
#include "net/netlink/rtnl.h"
#include "test/support/agent_world.h"
#include "test/support/netns.h"
#include "test/support/sample_engine.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

static bool *edges_changed(struct agent *a)
{
    return &a->hubs.serving->report.edges_changed;
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
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;

    agent_core_poll(a);
    /* Where its hub is was not known before. */
    assert_int_equal(a->pass.due_at, w->now);
    agent_core_pass(a);
    assert_int_equal(w->engine.config.n_peers, 3);
    assert_int_equal(a->pass.due_at, w->now + PASS_PLAN_PERIOD);
    assert_int_equal(a->pass.held_until, 0);
    assert_string_equal(a->pass.fault.text, "");
    assert_int_equal(n_passes(a, PASS_RESULT_CHANGED), 1);
    assert_int_equal(w->engine.n_handshakes, 0);
    a->hubs.serving->health.wants_handshake = true;
    agent_core_pass(a);
    assert_int_equal(n_passes(a, PASS_RESULT_CHANGED), 1);
    assert_int_equal(n_passes(a, PASS_RESULT_UNCHANGED), 1);
    assert_int_equal(n_passes(a, PASS_RESULT_FAILED), 0);
    assert_int_equal(a->pass_metrics.sum[PASS_RESULT_CHANGED], 0);
    assert_int_equal(w->engine.n_handshakes, 1);
    /* The earliest of all deadlines, which is the poll's. */
    assert_true(agent_core_due(a) <= w->now + SEC);
    agent_world_end(w);
}

/* A failure is dated when it came about, and repeated soon. */
static void test_a_pass_that_fails_is_repeated(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;

    assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
    a->pass.retry_for = SEC;
    agent_core_pass(a);
    assert_string_not_equal(a->pass.fault.text, "");
    assert_true(a->pass.due_at > w->now && a->pass.due_at < w->now + 2 * SEC);
    assert_int_equal(a->pass.held_until, w->now + PASS_PLAN_PAUSE);
    assert_int_equal(n_passes(a, PASS_RESULT_FAILED), 1);
    assert_int_equal(a->applied, 0);
    /* Without an engine nobody hurries it. */
    a->reconcile.engine = NULL;
    agent_core_pass(a);
    assert_int_equal(a->pass.held_until, a->pass.due_at);
    a->reconcile.engine = &w->engine.engine;
    assert_int_equal(rtnl_add_link(w->nl, "weft0", "bridge"), 0);
    w->now = a->pass.due_at;
    agent_core_run(a, w->now);
    assert_string_equal(a->pass.fault.text, "");
    assert_int_equal(a->pass.due_at, w->now + PASS_PLAN_PERIOD);
    agent_world_end(w);
}

static void test_peers_are_seen_with_their_ages(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    const struct x25519_public n3 = sample_key(3);
    const struct observation *ob;

    agent_core_poll(a);
    agent_core_pass(a);
    agent_core_poll(a);
    ob = observe_find(&a->seen, &n3);
    assert_non_null(ob);
    assert_int_equal(ob->handshake_at, 0);
    w->now += SEC;
    agent_world_peer(w, 3)->facts.handshake_sec = agent_world_wall() / SEC;
    agent_core_poll(a);
    assert_int_equal(observe_find(&a->seen, &n3)->handshake_at, w->now);
    assert_int_equal(a->reach.n, 2);
    assert_int_equal(a->seen.n, 3);
    agent_world_end(w);
}

/* Before an agent's first look only the wall clock knows when a handshake was. */
static void test_a_handshake_before_the_first_poll(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    const struct x25519_public n3 = sample_key(3);

    agent_core_pass(a);
    agent_world_peer(w, 3)->facts.handshake_sec = agent_world_wall() / SEC - 30;
    agent_core_poll(a);
    assert_int_equal(observe_find(&a->seen, &n3)->handshake_at, w->now - 30 * SEC);
    agent_world_end(w);
}

/* An agent that is started anew polls once before it opens the engine, whose counters went on. */
static void test_what_moved_is_counted_once(void **state)
{
    struct agent_world *w = agent_world_make(state);
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
    agent_world_peer(w, 3)->facts.tx_bytes = 1500;
    agent_world_peer(w, 1)->facts.rx_bytes = 70;
    agent_core_poll(a);
    agent_core_poll(a);
    assert_int_equal(m->n_days, 1);
    assert_int_equal(m->days[0].n, 2);
    assert_string_equal(m->days[0].flows[0].peer, "hub");
    assert_int_equal(m->days[0].flows[0].received, 70);
    assert_int_equal(m->days[0].flows[0].path, PATH_KIND_DIRECT);
    assert_string_equal(m->days[0].flows[1].peer, "n3");
    assert_int_equal(m->days[0].flows[1].sent, 500);
    /* What the hub was told is forgotten later. */
    assert_true(meter_settle(m));
    w->now += 2 * 86400 * SEC;
    agent_core_poll(a);
    assert_int_equal(m->n_days, 2);
    a->hubs.serving->report.traffic_reported = m->seq;
    agent_core_poll(a);
    assert_int_equal(m->n_days, 1);
    assert_int_equal(m->days[0].n, 0);
    agent_world_end(w);
}

/* A stock peer that does not answer where the engine follows it is told where it was. */
static void test_a_peer_that_was_led_astray_comes_back(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct wg_peer *hub;
    struct endpoint applied;

    agent_core_poll(a);
    agent_core_pass(a);
    hub = agent_world_peer(w, 1);
    assert_non_null(hub);
    applied = hub->endpoint;
    assert_false(endpoint_is_none(&applied));
    hub->endpoint.port++;
    agent_core_poll(a);
    hub->facts.tx_bytes = 1000;
    w->now += SEC;
    agent_core_poll(a);
    assert_true(a->pass.due_at > w->now);
    w->now += OBSERVE_SILENCE_MAX;
    /* A regular pass leaves alone what the engine has learned. */
    agent_core_pass(a);
    assert_non_null(strstr(agent_world_poll(w), "where it seemed to have moved: back to"));
    assert_true(a->pass.due_at <= w->now);
    agent_core_run(a, w->now);
    assert_true(endpoint_equal(&agent_world_peer(w, 1)->endpoint, &applied));
    agent_world_end(w);
}

/* The snapshot that an agent starts with may be older than a node's join: where the engine sends to
 * such a peer is seen before the engine is told. */
static void test_a_peer_that_only_the_engine_knows_keeps_its_path(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    const struct node self = *snapshot_self(&a->snapshot);
    struct object of_self = sample_node(2);
    struct object joined = sample_node(4);
    struct render_input in;
    struct endpoint at;

    agent_core_poll(a);
    agent_core_pass(a);
    assert_int_equal(endpoint_parse(&at, "198.51.100.4:51820", NULL), 0);
    agent_world_peer(w, 4)->endpoint = at;
    agent_world_peer(w, 4)->facts.heard = at;
    agent_world_peer(w, 4)->facts.handshake_sec = agent_world_wall() / SEC;
    of_self.node.key = self.key;
    snapshot_deinit(&a->snapshot);
    a->snapshot = sample_snapshot(3, 2);
    sample_put(&a->snapshot, of_self);
    path_driver_set_snapshot(a->paths, &a->snapshot, w->now);
    reconcile_assume(&a->reconcile, &(struct render_input){.snapshot = &a->snapshot});
    agent_core_pass(a);
    assert_true(a->reconcile.keeps_unknown);
    assert_true(endpoint_equal(&agent_world_peer(w, 4)->endpoint, &at));

    w->now++;
    joined.node.side = calloc(1, sizeof(*joined.node.side));
    assert_non_null(joined.node.side);
    joined.node.side->generation = 1;
    sample_put(&a->snapshot, joined);
    agent_world_put_hub(&a->snapshot, "zone");
    path_driver_set_snapshot(a->paths, &a->snapshot, w->now);
    a->knows_members = true;
    agent_core_pass(a);
    assert_true(endpoint_equal(&agent_world_peer(w, 4)->endpoint, &at));
    assert_false(a->reconcile.keeps_unknown);
    /* It was seen at a poll before that pass, and no other pass has one. */
    assert_int_equal(a->poll.polled_at, w->now);
    w->now++;
    agent_core_pass(a);
    assert_int_equal(a->poll.polled_at, w->now - 1);
    agent_core_poll(a);
    /* Its path is among those to the hubs, in order of names. */
    in = agent_core_render_input(a);
    assert_int_equal(in.n_paths, 3);
    assert_string_equal(in.paths[0].node, "hub");
    assert_string_equal(in.paths[1].node, "n4");
    assert_true(endpoint_equal(&in.paths[1].endpoint, &at));
    assert_string_equal(in.paths[2].node, "zone");
    assert_int_equal(in.paths[2].endpoint.port, 9999);
    agent_world_end(w);
}

static void test_an_engine_that_was_changed_by_hand_is_mended(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;

    agent_core_poll(a);
    agent_core_pass(a);
    wg_peer_deinit(&w->engine.config.peers[--w->engine.config.n_peers]);
    agent_core_poll(a);
    assert_true(a->pass.due_at <= w->now);
    agent_core_run(a, w->now);
    assert_int_equal(w->engine.config.n_peers, 3);
    assert_true(a->pass.due_at > w->now);
    agent_core_poll(a);
    assert_true(a->pass.due_at > w->now);
    w->engine.config.public = sample_key(9);
    agent_core_poll(a);
    assert_true(a->pass.due_at <= w->now);
    agent_core_run(a, w->now);
    assert_true(x25519_public_equal(&w->engine.config.public, &a->reconcile.applied.public));
    assert_false(x25519_public_is_none(&a->reconcile.applied.public));
    agent_world_end(w);
}

/* It is opened anew by a pass; what it has shown is kept until then. */
static void test_an_engine_that_does_not_answer(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;

    w->engine.config.listen_port = 4000;
    agent_core_poll(a);
    agent_core_pass(a);
    agent_core_poll(a);
    assert_int_equal(a->listen_port, 4000);
    assert_int_equal(a->seen.n, 3);
    assert_true(a->pass.due_at > w->now);
    assert_int_equal(w->engine.n_open, 1);
    w->engine.is_gone = true;
    agent_core_poll(a);
    assert_int_equal(w->engine.n_open, 0);
    assert_int_equal(a->listen_port, 4000);
    assert_int_equal(a->seen.n, 3);
    assert_int_equal(a->pass.due_at, w->now);
    agent_world_end(w);
}

/* A port that another program has is not asked for in a hurry; that it is free again is said. */
static void test_a_port_that_is_taken(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;

    a->state.listen_port = 8;
    agent_core_poll(a);
    assert_null(strstr(agent_world_pass(w), "free again"));
    w->engine.config.listen_errno = EADDRINUSE;
    agent_core_poll(a);
    assert_int_equal(a->listen_port, 0);
    assert_int_equal(a->pass.due_at, w->now);
    assert_string_equal(agent_world_pass(w),
        "warning: weft: weft0 is not as the hub wants it, trying again: UDP "
        "port 8 was in use (EADDRINUSE)\n");
    assert_int_equal(a->pass.fault.code, -EADDRINUSE);
    assert_int_equal(a->pass.held_until, a->pass.due_at);
    agent_core_poll(a);
    assert_true(a->pass.due_at > w->now);
    w->engine.config.listen_errno = 0;
    agent_core_poll(a);
    assert_int_equal(a->listen_port, w->engine.config.listen_port);
    assert_int_equal(a->pass.due_at, a->pass.held_until);
    *edges_changed(a) = false;
    assert_non_null(strstr(
        agent_world_pass(w), "info: weft: UDP port 8 is free again, and weft0 listens on it\n"));
    assert_true(*edges_changed(a));
    assert_null(strstr(agent_world_pass(w), "free again"));
    /* Any port will do for one that is to have no certain one. */
    a->state.listen_port = 0;
    a->pass.fault.code = -EADDRINUSE;
    assert_null(strstr(agent_world_pass(w), "free again"));
    agent_world_end(w);
}

/* All that goes through a hub goes through the other one; the sessions with both stay. */
static void test_another_hub_takes_over(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    const struct agent_hub *before;
    struct endpoint at_before;
    struct endpoint relayed;

    agent_world_put_hub(&a->snapshot, "hub-b");
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
    relayed = agent_world_peer(w, 3)->endpoint;
    assert_true(endpoint_equal(&relayed, &at_before));
    w->now += SEC;
    hub_set_on_heard(&a->hubs, before, w->now);
    agent_core_run(a, w->now);
    assert_ptr_equal(a->hubs.serving, before);
    hub_set_on_lost(&a->hubs, before);
    assert_true(agent_core_due(a) <= w->now);
    agent_core_run(a, w->now);
    assert_ptr_not_equal(a->hubs.serving, before);
    assert_ptr_equal(a->jobs.hub, a->hubs.serving->link);
    assert_string_equal(agent_core_render_input(a).relay, a->hubs.serving->name);
    agent_core_run(a, w->now);
    assert_int_equal(w->engine.config.n_peers, 4);
    assert_true(endpoint_equal(&agent_world_peer(w, 3)->endpoint,
        &sample_engine_find(&w->engine, &a->hubs.serving->key)->endpoint));
    assert_false(endpoint_equal(&agent_world_peer(w, 3)->endpoint, &relayed));
    assert_true(
        endpoint_equal(&sample_engine_find(&w->engine, &before->key)->endpoint, &at_before));
    agent_world_end(w);
}

/* Its packets go another way from now on, which the engine is told at once. */
static void test_udp_to_the_hub_passes_again(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct transport_choice *choice = &a->hubs.serving->transport.transport.choice;

    agent_core_poll(a);
    agent_core_pass(a);
    choice->by_stream = true;
    choice->n_answered = 3;
    choice->answered_at = w->now;
    assert_non_null(strstr(agent_world_poll(w), "UDP to the hub passes again"));
    assert_false(choice->by_stream);
    assert_int_equal(n_passes(a, PASS_RESULT_UNCHANGED), 1);
    assert_false(a->hubs.serving->has_moved);
    assert_int_equal(a->pass.due_at, w->now + PASS_PLAN_PERIOD);
    agent_world_end(w);
}

static void test_a_network_without_a_hub(void **state)
{
    struct agent_world *w = agent_world_make_without_hub(state);
    struct agent *a = &w->agent;

    assert_string_equal(a->hubs.serving->name, "");
    assert_ptr_equal(a->jobs.hub, a->hubs.serving->link);
    agent_core_poll(a);
    agent_core_pass(a);
    assert_string_equal(a->pass.fault.text, "the snapshot of \"n2\" has no hub");
    agent_world_end(w);
}

/* It is looked for where there is a route to. */
static void test_where_a_hub_is_looked_for(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct hub_health *health = &a->hubs.serving->health;
    struct ip_prefix here = netns_prefix("2001:db8::1/64");

    assert_int_equal(rtnl_add_address(w->nl, netns_raise_loopback(w->nl), &here, false), 0);
    a->reconcile.engine = NULL;
    agent_core_poll(a);
    assert_int_equal(health->path.path.endpoint.port, 51820);
    assert_false(ip_addr_is_v4(&health->path.path.endpoint.addr));
    /* Without an engine nothing was sent that it could have answered. */
    assert_int_equal(health->silent_since, 0);
    a->reconcile.engine = &w->engine.engine;
    agent_core_poll(a);
    assert_int_equal(health->silent_since, w->now);
    agent_world_end(w);
}

/* The kernel's engine cannot date its handshakes otherwise. */
static void test_a_clock_that_was_set_back(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;

    (void)snprintf(
        a->time.path, sizeof(a->time.path), "/tmp/weft-test-core-clock.%d", (int)getpid());
    agent_core_poll(a);
    assert_string_equal(a->time.lockout, "");
    a->time.before = agent_world_wall() + 3600 * SEC;
    assert_memory_equal(
        agent_world_poll(w), "warning: weft: this machine's clock was set back, and for 3600", 62);
    assert_string_not_equal(a->time.lockout, "");
    w->engine.is_gone = true;
    agent_core_poll(a);
    assert_string_equal(a->time.lockout, "");
    w->engine.is_gone = false;
    agent_core_poll(a);
    assert_string_not_equal(a->time.lockout, "");
    agent_world_use(w, ENGINE_KIND_USERSPACE);
    agent_core_poll(a);
    assert_string_equal(a->time.lockout, "");
    (void)unlink(a->time.path);
    agent_world_end(w);
}

/* Of a process that has ended nothing more is said. */
static void test_a_job_whose_command_has_ended(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    siginfo_t info;
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    node_jobs_begin(&a->running, "train", pid, w->now);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(a->running.n, 1);
    agent_core_poll(a);
    assert_int_equal(a->running.n, 0);
    assert_false(a->running.has_ended);
    assert_true(a->meter.is_urgent);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    agent_world_end(w);
}

/* The hub that serves this node is retired. */
static void test_a_hub_is_retired(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    char serving[NAME_MAX_LEN + 1];

    agent_world_put_hub(&a->snapshot, "hub-b");
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
    agent_world_end(w);
}

/* ---- when what is due ------------------------------------------------------------------------ */

/* The earliest deadline of any part is the agent's. */
static void test_the_earliest_deadline(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    nsec_t *const deadlines[] = {&a->pass.due_at, &a->poll.due_at, &a->hubs.choose_at,
        &a->cache.due_at, &a->names.due_at, &a->hubs.items[0]->transport.due_at};
    const unsigned n = sizeof(deadlines) / sizeof(*deadlines);

    for (unsigned i = 0; i < n; i++)
        *deadlines[i] = NSEC_NEVER;
    assert_true(agent_core_due(a) == NSEC_NEVER);
    for (unsigned i = 0; i < n; i++) {
        *deadlines[i] = w->now + (nsec_t)i;
        assert_int_equal(agent_core_due(a), w->now + (nsec_t)i);
        *deadlines[i] = NSEC_NEVER;
    }
    agent_world_end(w);
}

/* The engine's answer about many peers is long, so it is asked less often, but for a job's sake. */
static void test_a_large_network(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;

    for (unsigned n = 5; n <= 502; n++)
        sample_put(&a->snapshot, sample_node(n));
    agent_core_poll(a);
    assert_int_equal(a->poll.due_at, w->now + SEC);
    agent_core_pass(a);
    agent_core_poll(a);
    assert_int_equal(a->seen.n, 501);
    assert_int_equal(a->poll.due_at, w->now + 10 * SEC);
    node_jobs_begin(&a->running, "train", (int32_t)getpid(), w->now);
    agent_core_poll(a);
    assert_int_equal(a->poll.due_at, w->now + SEC);
    agent_world_end(w);
}

/* Each is done when it is due, and not before. */
static void test_what_is_done_when_it_is_due(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;

    agent_core_poll(a);
    agent_core_pass(a);
    a->pass.due_at = w->now + 1;
    a->poll.due_at = w->now + 1;
    a->poll.has_changes = true;
    a->names.due_at = w->now + 1;
    a->cache.due_at = w->now + 1;
    a->hubs.choose_at = w->now + 1;
    agent_core_run(a, w->now);
    assert_int_equal(a->pass.due_at, w->now + 1);
    assert_int_equal(a->poll.due_at, w->now + 1);
    assert_int_equal(a->names.due_at, w->now + 1);
    assert_int_equal(a->cache.due_at, w->now + 1);
    assert_int_equal(a->hubs.choose_at, w->now + 1);
    w->now++;
    agent_core_run(a, w->now);
    assert_int_equal(a->pass.due_at, w->now + PASS_PLAN_PERIOD);
    assert_true(a->poll.due_at > w->now);
    assert_int_equal(a->poll.polled_at, w->now);
    assert_false(a->poll.has_changes);
    assert_true(a->names.due_at == NSEC_NEVER);
    /* It cannot be written there, and is tried again. */
    assert_true(a->cache.due_at > w->now && a->cache.due_at != NSEC_NEVER);
    assert_true(a->hubs.choose_at == NSEC_NEVER);
    agent_world_end(w);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void test_it_is_taken_down(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct err names = {.code = -1};
    struct err e = ERR_NULL;

    agent_core_poll(a);
    agent_core_pass(a);
    if (agent_core_take_down(a, &names, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(names.code, 0);
    assert_null(a->reconcile.engine);
    /* Names that stay do not hold back the rest. */
    a->names.opt = (struct node_names_options){.is_on = true, .file = "/"};
    assert_int_equal(agent_core_take_down(a, &names, &e), 0);
    assert_true(names.code < 0);
    agent_world_end(w);
}

/* The kernel's is no process that could be replaced. */
static void test_an_engine_that_is_no_process(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct err e = ERR_NULL;

    agent_core_poll(a);
    agent_core_pass(a);
    w->now++;
    assert_int_equal(agent_core_renew_engine(a, &e), ENGINE_E_UNSUPPORTED);
    assert_int_equal(a->poll.polled_at, w->now);
    assert_ptr_equal(a->reconcile.engine, &w->engine.engine);
    agent_world_end(w);
}

/* The new process is to be there when it returns, or it says why it is not. */
static void test_an_engine_that_is_not_there_again(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct object edge = sample_edge(2, 3, EDGE_PATH_AUTO);
    struct err e = ERR_NULL;

    agent_world_use(w, ENGINE_KIND_USERSPACE);
    edge.edge.rate = 20000000;
    sample_put(&a->snapshot, edge);
    agent_core_poll(a);
    agent_core_pass(a);
    a->rules.clamped_at = w->now + 5;
    assert_non_null(a->marks.table.body);
    assert_int_equal(agent_core_renew_engine(a, &e), -EIO);
    assert_string_equal(e.text, "no engine runs weft0");
    assert_true(w->engine.is_closed);
    assert_null(a->reconcile.engine);
    assert_string_not_equal(a->pass.fault.text, "");
    /* Its rules are put again by the next pass that succeeds. */
    assert_int_equal(a->rules.clamped_at, 0);
    assert_null(a->marks.table.body);
    /* Without a hub no engine is begun. */
    a->reconcile.engine = &w->engine.engine;
    assert_int_equal(snapshot_delete(&a->snapshot, &node_kind, "hub", NULL), 0);
    assert_true(agent_core_renew_engine(a, &e) < 0);
    assert_string_equal(e.text, "the snapshot of \"n2\" has no hub");
    assert_int_equal(e.code, a->pass.fault.code);
    agent_world_end(w);
}

static void test_the_end_is_begun_once(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    nsec_t ends_at;

    assert_false(a->jobs.is_ending);
    agent_core_finish(a, AGENT_END_LEFT);
    ends_at = a->ends_at;
    assert_int_equal(a->end, AGENT_END_LEFT);
    assert_int_equal(ends_at, w->now + SEC);
    assert_true(a->is_ending && a->jobs.is_ending);
    w->now += SEC;
    agent_core_finish(a, AGENT_END_STOPPED);
    assert_int_equal(a->end, AGENT_END_LEFT);
    assert_int_equal(a->ends_at, ends_at);
    agent_world_end(w);
}

/* Paths that do not lead through this process go on without it. */
static void test_a_stop_without_a_pass(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;

    agent_core_finish(a, AGENT_END_STOPPED);
    assert_true(a->is_ending);
    assert_int_equal(a->end, AGENT_END_STOPPED);
    assert_true(a->pass.due_at == NSEC_NEVER);
    assert_int_equal(w->engine.n_applied, 0);
    agent_world_end(w);
}

/* The node n4 was reached directly, and is not to be any more: it has to hear of this node by
 * another way. An agent that is stopped sees to that; after one that leaves there is no way. */
static void test_a_path_that_is_given_up_at_the_end(void **state)
{
    static const enum agent_end ends[] = {AGENT_END_LEFT, AGENT_END_STOPPED};

    for (unsigned i = 0; i < 2; i++) {
        struct agent_world *w = agent_world_make(state);
        struct agent *a = &w->agent;
        struct object n4 = sample_node(4);
        struct endpoint at;
        unsigned before;

        agent_core_poll(a);
        agent_core_pass(a);
        assert_int_equal(endpoint_parse(&at, "198.51.100.4:51820", NULL), 0);
        agent_world_peer(w, 4)->endpoint = agent_world_peer(w, 4)->facts.heard = at;
        agent_world_peer(w, 4)->facts.handshake_sec = agent_world_wall() / SEC;
        assert_int_equal(snapshot_delete(&a->snapshot, &node_kind, "n4", NULL), 0);
        path_driver_set_snapshot(a->paths, &a->snapshot, w->now);
        n4.node.side = calloc(1, sizeof(*n4.node.side));
        assert_non_null(n4.node.side);
        n4.node.side->generation = 1;
        sample_put(&a->snapshot, n4);
        path_driver_set_snapshot(a->paths, &a->snapshot, w->now);
        agent_core_poll(a);
        agent_core_pass(a);
        assert_int_equal(agent_core_render_input(a).n_paths, 2);
        a->snapshot.network.topology = TOPOLOGY_HUB;
        path_driver_set_snapshot(a->paths, &a->snapshot, w->now);
        assert_true(path_driver_awaits_handshake(a->paths));
        before = w->engine.n_handshakes;
        agent_core_finish(a, ends[i]);
        assert_int_equal(w->engine.n_handshakes, before + i);
        agent_world_end(w);
        assert_int_equal(netns_leave(state), 0);
        assert_int_equal(netns_enter(state), 0);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, netns_enter, netns_leave)

int main(int argc, char *argv[])
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_pass_plans_the_next),
        TEST(test_a_pass_that_fails_is_repeated),
        TEST(test_peers_are_seen_with_their_ages),
        TEST(test_a_handshake_before_the_first_poll),
        TEST(test_what_moved_is_counted_once),
        TEST(test_a_peer_that_was_led_astray_comes_back),
        TEST(test_a_peer_that_only_the_engine_knows_keeps_its_path),
        TEST(test_an_engine_that_was_changed_by_hand_is_mended),
        TEST(test_an_engine_that_does_not_answer),
        TEST(test_a_port_that_is_taken),
        TEST(test_another_hub_takes_over),
        TEST(test_udp_to_the_hub_passes_again),
        TEST(test_a_network_without_a_hub),
        TEST(test_where_a_hub_is_looked_for),
        TEST(test_a_clock_that_was_set_back),
        TEST(test_a_job_whose_command_has_ended),
        TEST(test_a_hub_is_retired),
        TEST(test_the_earliest_deadline),
        TEST(test_a_large_network),
        TEST(test_what_is_done_when_it_is_due),
        TEST(test_it_is_taken_down),
        TEST(test_an_engine_that_is_no_process),
        TEST(test_an_engine_that_is_not_there_again),
        TEST(test_the_end_is_begun_once),
        TEST(test_a_stop_without_a_pass),
        TEST(test_a_path_that_is_given_up_at_the_end),
    };

    /* As the engine's process, which cannot run here. */
    if (argc > 1)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
