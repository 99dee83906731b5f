/*
 * test-agent-core-hub.c - what an agent tells its hubs while they answer, and what it tells its
 * parts at a poll.
 *
 * Both hubs are servers in this process, on the agent's loop, in a network namespace. The interface
 * is a bridge, and the engine keeps what it is told. The hubs are asked through the loopback, since
 * no tunnel leads to them. The clock is the machine's, from which a test may go on by itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/agent_core.h"
#include "agent/paths/edge/path_driver.h"
#include "api/server/server.h"
#include "api/server/stream.h"
#include "base/err.h"
#include "base/version.h"
#include "mesh/snapshot/watch_event.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "test/support/heard_log.h"
#include "test/support/netns.h"
#include "test/support/sample_engine.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

#define WALL        (1790000000 * SEC)
#define API_PORT    9443
#define STREAMS_MAX 8

/* The numbers of both hubs: "hub" and "n3". */
static const unsigned numbers[] = {1, 3};

/** One of them, as it is. */
struct answering {
    struct server *server;
    struct stream streams[STREAMS_MAX];
    unsigned n_watches;
    json_t *report; /* owns; the last one */
    unsigned n_reports;
};

/** The node n2 of four. */
static struct world {
    struct agent agent;
    struct state state; /* as the hubs' links have it */
    struct sample_engine engine;
    struct answering answering[2];
    unsigned n_results;
    uv_timer_t limit; /* ends a test that waits for something that does not come */
    nsec_t now;
} w;

static nsec_t clock_of_test(void)
{
    return w.now;
}

static nsec_t wall_of_test(void)
{
    return WALL;
}

/* ---- the hubs -------------------------------------------------------------------------------- */

static void on_drained(struct stream *s, nsec_t now)
{
}

static void on_closed(struct stream *s)
{
    stream_deinit(s);
}

static void get_watch(void *ctx, const struct request *rq, struct response *rs)
{
    static const char heartbeat[] = "{\"type\": \"heartbeat\", \"revision\": 40}";
    struct answering *at = ctx;
    struct line *l = line_new(heartbeat, sizeof(heartbeat) - 1);

    assert_true(at->n_watches < STREAMS_MAX);
    rs->status = 200;
    rs->stream = &at->streams[at->n_watches++];
    stream_init(rs->stream, on_drained, on_closed);
    assert_true(stream_push(rs->stream, l, clock_now()));
    (void)line_unref(l);
}

static void put_status(void *ctx, const struct request *rq, struct response *rs)
{
    struct answering *at = ctx;

    json_decref(at->report);
    at->report = json_deep_copy(rq->body);
    at->n_reports++;
    response_json(rs, 200, json_object());
}

static const struct route routes[] = {
    {"GET", "/v1/watch", API_ACCESS_OVERLAY, get_watch, "", ROLE_VIEWER},
    {"PUT", "/v1/status", API_ACCESS_OVERLAY, put_status, "", ROLE_VIEWER},
    ROUTES_END,
};

static void open_hub(struct netlink *nl, unsigned lo, unsigned i)
{
    struct server_config config = {.loop = &w.agent.loop, .routes = routes, .ctx = &w.answering[i]};
    struct server_listener *listener;
    struct ip_prefix own;
    struct endpoint api;
    char text[40];

    (void)snprintf(text, sizeof(text), "10.42.0.%u/32", numbers[i]);
    own = netns_prefix(text);
    assert_int_equal(rtnl_add_address(nl, lo, &own, false), 0);
    (void)snprintf(text, sizeof(text), "10.42.0.%u:%u", numbers[i], API_PORT);
    assert_int_equal(endpoint_parse(&api, text, NULL), 0);
    assert_int_equal(server_new(&w.answering[i].server, &config, NULL), 0);
    assert_int_equal(
        server_listen_overlay(w.answering[i].server, &api, NULL, NULL, &listener, NULL), 0);
}

static void put_hub(unsigned n)
{
    struct object o = sample_node(n);
    char text[32];

    if (!o.node.hub)
        o.node.hub = calloc(1, sizeof(*o.node.hub));
    assert_non_null(o.node.hub);
    *o.node.hub = (struct node_hub){.n_endpoints = 1, .api_port = API_PORT};
    (void)snprintf(text, sizeof(text), "203.0.113.%u:51820", n);
    assert_int_equal(endpoint_parse(&o.node.hub->endpoints[0], text, NULL), 0);
    sample_put(&w.agent.snapshot, o);
}

/* ---- the agent ------------------------------------------------------------------------------- */

static int on_event(void *ctx, struct watch_event *ev, nsec_t at, struct err *e)
{
    watch_event_deinit(ev);
    return 0;
}

static void on_change(void *ctx, bool heard, const char *why, nsec_t at)
{
}

static void on_reported(void *ctx, enum edge_report_result result, const json_t *body)
{
    agent_hub_listener.on_reported(ctx, result, body);
    w.n_results++;
}

static void on_keepalive(void *ctx, bool is_measured, bool is_other)
{
}

static void on_nothing(void *ctx)
{
}

static void on_limit(uv_timer_t *timer)
{
    fail_msg("what was waited for did not come within 30 s");
}

/* The parts, as agent.c makes them. */
static void open_parts(struct agent *a, struct netlink *nl)
{
    const struct hub_link_listener hub = {
        .on_event = on_event, .on_change = on_change, .on_reported = on_reported, .ctx = a};
    struct path_driver_options opt = {
        .secret = &a->state.secret, .name = "n2", .interface = a->state.interface};
    struct path_driver_listener paths = {
        .on_routes = on_nothing, .on_self = on_nothing, .on_network = on_nothing};
    unsigned lo = netns_raise_loopback(nl);

    assert_int_equal(uv_loop_init(&a->loop), 0);
    assert_int_equal(uv_timer_init(&a->loop, &w.limit), 0);
    assert_int_equal(uv_timer_start(&w.limit, on_limit, 30000, 0), 0);
    for (unsigned i = 0; i < 2; i++) {
        open_hub(nl, lo, i);
        put_hub(numbers[i]);
    }
    node_keepalive_init(&a->keepalive, &a->loop, "/nonexistent", on_keepalive, NULL);
    assert_int_equal(reconcile_init(&a->reconcile, a->state.interface, a->state.engine,
                         SUBNETS_ACCEPT_PRIVATE, NULL),
        0);
    assert_int_equal(path_driver_new(&a->paths, &a->loop, &opt, &paths, NULL), 0);
    hub_set_init(&a->hubs, &a->loop, &w.state, &hub);
    job_calls_init(&a->jobs, agent_core_find_link, a);
    a->running = (struct node_jobs){.calls = &a->jobs, .meter = &a->meter.meter};
    path_driver_set_snapshot(a->paths, &a->snapshot, w.now);
    assert_int_equal(agent_core_take_hubs(a, NULL), 0);
}

static int enter(void **state)
{
    static const struct agent_config config = {.state_dir = "/nonexistent"};
    struct object self = sample_node(2);
    struct agent *a = &w.agent;

    if (netns_enter(state) != 0)
        return -1;
    if (!*state)
        return 0;
    w = (struct world){.agent = AGENT_NULL, .now = clock_now()};
    assert_int_equal(rtnl_add_link(*state, "weft0", "bridge"), 0);
    a->config = &config;
    a->clock = clock_of_test;
    a->wall_clock = wall_of_test;
    a->state.secret = (struct x25519_secret){.b = {5, [31] = 0x40}};
    a->state.engine = ENGINE_KIND_KERNEL;
    w.state = a->state;
    (void)snprintf(a->state.interface, sizeof(a->state.interface), "weft0");
    (void)snprintf(w.state.interface, sizeof(w.state.interface), "lo");
    a->snapshot = sample_snapshot(4, 2);
    assert_true(x25519_derive_public(&a->state.secret, &self.node.key));
    sample_put(&a->snapshot, self);
    open_parts(a, *state);
    sample_engine_init(&w.engine, ENGINE_KIND_KERNEL);
    a->reconcile.engine = &w.engine.engine;
    agent_core_poll(a);
    agent_core_pass(a);
    return 0;
}

static int leave(void **state)
{
    struct agent *a = &w.agent;

    if (!*state)
        return 0;
    node_jobs_stop(&a->running);
    hub_set_stop(&a->hubs);
    keepalive_probe_stop(&a->keepalive.probe);
    a->paths = path_driver_free(a->paths, false);
    for (unsigned i = 0; i < 2; i++)
        server_stop(w.answering[i].server);
    uv_close((uv_handle_t *)&w.limit, NULL);
    (void)uv_run(&a->loop, UV_RUN_DEFAULT);
    for (unsigned i = 0; i < 2; i++) {
        w.answering[i].server = server_free(w.answering[i].server);
        json_decref(w.answering[i].report);
    }
    assert_int_equal(uv_loop_close(&a->loop), 0);
    reconcile_deinit(&a->reconcile);
    observe_deinit(&a->seen);
    reach_deinit(&a->reach);
    findings_deinit(&a->findings);
    meter_deinit(&a->meter.meter);
    json_decref(a->copy.machine);
    free(a->routes);
    snapshot_deinit(&a->snapshot);
    sample_engine_deinit(&w.engine);
    return netns_leave(state);
}

static struct wg_peer *peer(unsigned n)
{
    struct x25519_public key = sample_key(n);

    return sample_engine_find(&w.engine, &key);
}

/* All peers have had a handshake so long ago. */
static void shake_hands(nsec_t ago)
{
    for (unsigned n = 1; n <= 4; n++)
        if (n != 2)
            peer(n)->facts.handshake_sec = (WALL - ago) / SEC;
}

static void hear_the_hub(void)
{
    while (!hub_link_is_heard(w.agent.hubs.serving->link))
        (void)uv_run(&w.agent.loop, UV_RUN_ONCE);
    hub_set_on_heard(&w.agent.hubs, w.agent.hubs.serving, w.now);
}

static unsigned serving(void)
{
    return w.agent.hubs.serving == w.agent.hubs.items[0] ? 0 : 1;
}

static unsigned n_reports(void)
{
    return w.answering[0].n_reports + w.answering[1].n_reports;
}

/* A poll, and the answers to what it reports. */
static void poll_and_report(unsigned expected)
{
    unsigned before = w.n_results;

    agent_core_poll(&w.agent);
    while (w.n_results < before + expected)
        (void)uv_run(&w.agent.loop, UV_RUN_ONCE);
    for (unsigned i = 0; i < 20; i++)
        (void)uv_run(&w.agent.loop, UV_RUN_NOWAIT);
    assert_int_equal(w.n_results, before + expected);
}

static const char *text_of(const json_t *o, const char *field)
{
    const char *text = json_string_value(json_object_get(o, field));

    return text ? text : "";
}

/* ---- reports --------------------------------------------------------------------------------- */

/* All hubs are told of this node and its peers, and one of what was moved. */
static void test_what_is_reported(void **state)
{
    struct agent *a = &w.agent;
    const json_t *report;
    const json_t *node;
    const json_t *other;

    (void)netns_need(state);
    assert_int_equal(unshare(CLONE_NEWUTS), 0);
    assert_int_equal(sethostname("Rack-7", 6), 0);
    a->copy.machine = json_string("m1");
    assert_int_equal(subnets_parse(&a->state.routes, "192.168.7.0/24", NULL), 0);
    (void)snprintf(a->reconcile.rates_why, sizeof(a->reconcile.rates_why), "no rates here");
    a->meter.meter.id = 7;
    a->meter.dir = "/nonexistent";
    hear_the_hub();
    shake_hands(10 * SEC);
    agent_core_poll(a);
    peer(4)->facts.tx_bytes = 1500;
    while (hub_link_is_reporting(a->hubs.items[0]->link) ||
           hub_link_is_reporting(a->hubs.items[1]->link))
        (void)uv_run(&a->loop, UV_RUN_ONCE);
    for (unsigned i = 0; i < 2; i++)
        node_report_on_hub(&a->hubs.items[i]->report);
    a->meter.is_urgent = true;
    poll_and_report(2);
    report = w.answering[serving()].report;
    other = w.answering[1 - serving()].report;
    node = json_object_get(report, "node");
    assert_string_equal(text_of(node, "engine"), "kernel");
    assert_string_equal(text_of(node, "version"), version_text);
    assert_string_equal(text_of(node, "hostname"), "rack-7");
    assert_string_equal(text_of(node, "machine"), "m1");
    assert_int_equal(json_array_size(json_object_get(node, "routes")), 1);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(report, "applied"), "revision")), 40);
    assert_null(json_object_get(json_object_get(report, "applied"), "error"));
    assert_int_equal(json_object_size(json_object_get(report, "edges")), 1);
    assert_non_null(json_object_get(report, "traffic"));
    assert_true(json_equal(json_object_get(other, "node"), node));
    assert_null(json_object_get(other, "traffic"));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(a->hubs.items[i]->report.sent_at, w.now);
        assert_false(a->hubs.items[i]->report.edges_changed);
    }
    assert_int_not_equal(a->meter.settled_at, 0);
}

/* What a report says of this machine's name; "": nothing. */
static const char *hostname_reported(const char *name)
{
    struct agent *a = &w.agent;

    assert_int_equal(sethostname(name, strlen(name)), 0);
    node_report_on_hub(&a->hubs.serving->report);
    json_decref(a->hubs.serving->report.node_reported);
    a->hubs.serving->report.node_reported = NULL;
    poll_and_report(1);
    return text_of(json_object_get(w.answering[serving()].report, "node"), "hostname");
}

static void test_the_names_of_this_machine_that_are_reported(void **state)
{
    static const char longest[] = "a23456789-123456789-123456789-123456789-123456789-123456789-123";
    static const char longer[] = "a23456789-123456789-123456789-123456789-123456789-123456789-1234";

    (void)netns_need(state);
    assert_int_equal(unshare(CLONE_NEWUTS), 0);
    hear_the_hub();
    assert_string_equal(hostname_reported("rack-7"), "rack-7");
    /* Its name as a node is told already. */
    assert_string_equal(hostname_reported("n2"), "");
    assert_string_equal(hostname_reported(longest), longest);
    assert_string_equal(hostname_reported(longer), "");
    assert_string_equal(hostname_reported("rack-7.example.org"), "");
}

static void test_the_clock_that_the_hub_tells(void **state)
{
    struct agent *a = &w.agent;

    (void)netns_need(state);
    hear_the_hub();
    (void)snprintf(a->time.off, sizeof(a->time.off), "it is wrong");
    poll_and_report(1);
    assert_string_equal(a->time.off, "");
}

/* One each minute while nothing changes. Why a pass has failed is told, and that no engine runs. */
static void test_when_it_is_reported(void **state)
{
    struct agent *a = &w.agent;
    const json_t *report;

    (void)netns_need(state);
    hear_the_hub();
    poll_and_report(1);
    assert_int_equal(n_reports(), 1);
    poll_and_report(0);
    w.now++;
    a->hubs.serving->report.edges_changed = false;
    a->hubs.serving->report.sent_at = w.now - (60 * SEC - 1);
    poll_and_report(0);
    a->hubs.serving->report.sent_at--;
    a->reconcile.engine = NULL;
    a->pass.fault = (struct err){.code = -1, .text = "it is broken"};
    poll_and_report(1);
    a->reconcile.engine = &w.engine.engine;
    report = w.answering[serving()].report;
    assert_string_equal(text_of(json_object_get(report, "node"), "engine"), "");
    assert_string_equal(text_of(json_object_get(report, "applied"), "error"), "it is broken");
}

/* While a report is on its way there is no other. */
static void test_one_report_at_once(void **state)
{
    struct agent *a = &w.agent;

    (void)netns_need(state);
    hear_the_hub();
    agent_core_poll(a);
    assert_true(hub_link_is_reporting(a->hubs.serving->link));
    a->hubs.serving->report.sent_at = 0;
    poll_and_report(1);
    assert_int_equal(n_reports(), 1);
    assert_int_equal(a->hubs.serving->report.sent_at, 0);
}

/* What a job has moved is told as soon as it has ended. */
static void test_a_job_that_has_ended(void **state)
{
    struct agent *a = &w.agent;

    (void)netns_need(state);
    hear_the_hub();
    poll_and_report(1);
    assert_false(a->meter.is_urgent);
    w.now += 10 * SEC;
    poll_and_report(0);
    a->running.has_ended = true;
    poll_and_report(1);
    assert_false(a->running.has_ended);
    assert_false(a->meter.is_urgent);
    assert_int_equal(a->meter.settled_at, w.now);
    assert_int_equal(a->poll.due_at, w.now + SEC);
}

/* ---- its parts ------------------------------------------------------------------------------- */

/* The hubs are told when a peer is reached another way, and when there is another peer. */
static void test_peers_that_are_reached_another_way(void **state)
{
    struct agent *a = &w.agent;

    (void)netns_need(state);
    a->hubs.serving->report.edges_changed = false;
    w.now += SEC;
    agent_core_poll(a);
    assert_int_equal(a->reach.n, 1);
    assert_false(a->hubs.serving->report.edges_changed);
    assert_true(a->reach.items[0].since < w.now);
    sample_put(&a->snapshot, sample_node(5));
    agent_core_poll(a);
    assert_int_equal(a->reach.n, 2);
    assert_true(a->hubs.serving->report.edges_changed);
    a->hubs.serving->report.edges_changed = false;
    w.now += SEC;
    agent_core_poll(a);
    assert_false(a->hubs.serving->report.edges_changed);
    assert_int_equal(snapshot_delete(&a->snapshot, &node_kind, "n5", NULL), 0);
    agent_core_poll(a);
    assert_true(a->hubs.serving->report.edges_changed);
    a->hubs.serving->report.edges_changed = false;
    /* Those there are, another way. */
    hear_the_hub();
    poll_and_report(1);
    w.now += SEC;
    a->hubs.serving->transport.transport.choice.by_stream = true;
    agent_core_poll(a);
    assert_int_equal(a->reach.items[0].kind, PATH_KIND_STREAM);
    assert_true(a->reach.items[0].since == w.now);
    assert_true(a->hubs.serving->report.edges_changed);
    a->hubs.serving->report.edges_changed = false;
    /* As they were, which is not wanted any more. */
    w.now += SEC;
    a->snapshot.network.topology = TOPOLOGY_MESH;
    agent_core_poll(a);
    assert_int_equal(a->reach.n_alarms, 1);
    assert_true(a->hubs.serving->report.edges_changed);
}

/* How long an idle mapping lives is measured where there is a session with the hub by UDP. */
static void test_where_idle_mappings_are_measured(void **state)
{
    struct agent *a = &w.agent;
    const struct keepalive_view *view = &a->keepalive.probe.plan.view;
    const struct endpoint *at;

    (void)netns_need(state);
    agent_core_poll(a);
    assert_int_equal(view->now, w.now);
    assert_int_equal(view->wall, wall_of_test());
    assert_true(endpoint_is_none(&view->hub));
    peer(1)->facts.handshake_sec = wall_of_test() / SEC - 10;
    w.now++;
    agent_core_poll(a);
    at = &a->hubs.serving->health.path.path.endpoint;
    assert_int_equal(view->now, w.now);
    assert_false(endpoint_is_none(at));
    assert_true(endpoint_equal(&view->hub, at));
    assert_false(view->is_natted);
    a->hubs.serving->transport.transport.choice.by_stream = true;
    w.now++;
    agent_core_poll(a);
    assert_int_equal(view->now, w.now);
    assert_true(endpoint_is_none(&view->hub));
}

static const char *log_of_a_pass(void)
{
    heard_log_begin();
    agent_core_pass(&w.agent);
    return heard_log_end();
}

static void test_how_much_has_changed(void **state)
{
    struct agent *a = &w.agent;

    (void)netns_need(state);
    sample_put(&a->snapshot, sample_node(5));
    assert_string_equal(log_of_a_pass(), "info: weft: revision 40 applied to weft0: 1 change\n");
    sample_put(&a->snapshot, sample_node(6));
    sample_put(&a->snapshot, sample_node(7));
    assert_string_equal(log_of_a_pass(), "info: weft: revision 40 applied to weft0: 2 changes\n");
}

/* Through an interface that nobody uses any more. */
static void make_quiet_link(struct netlink *nl)
{
    static const uint8_t frame[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5};
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = 6};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    struct rtnl_link link;

    assert_true(fd >= 0);
    assert_int_equal(rtnl_add_link(nl, "quiet0", "bridge"), 0);
    assert_int_equal(rtnl_find_link(nl, "quiet0", &link), 0);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    to.sll_ifindex = (int)link.ifindex;
    assert_int_equal(
        sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)), sizeof(frame));
    assert_int_equal(rtnl_set_link(nl, link.ifindex, false, 0), 0);
    (void)close(fd);
}

/* Is there a poll when it is due? */
static bool polls_when_due(void)
{
    struct agent *a = &w.agent;

    w.now++;
    a->poll.due_at = w.now;
    agent_core_run(a, w.now);
    assert_int_equal(a->poll.due_at, w.now + SEC);
    return a->poll.polled_at == w.now;
}

/* Nothing is to be reported, and no packet passes. */
static void be_idle(void **state)
{
    struct agent *a = &w.agent;

    make_quiet_link(netns_need(state));
    hear_the_hub();
    shake_hands(10 * SEC);
    agent_core_poll(a);
    poll_and_report(2);
    w.now++;
    poll_and_report(0);
    for (unsigned i = 0; i < 2; i++) {
        a->hubs.items[i]->report.edges_changed = false;
        a->hubs.items[i]->report.self_changed = false;
    }
    (void)snprintf(a->state.interface, sizeof(a->state.interface), "quiet0");
}

/* While no packet passes and nothing is waited for, a poll would show nothing new. */
static void test_a_poll_that_can_be_left_out(void **state)
{
    struct agent *a = &w.agent;

    be_idle(state);
    assert_true(polls_when_due());
    assert_false(polls_when_due());
    a->poll.has_changes = true;
    assert_true(polls_when_due());
    assert_false(polls_when_due());
    a->hubs.serving->report.edges_changed = true;
    assert_true(polls_when_due());
    a->hubs.serving->report.edges_changed = false;
    a->poll.n_packets++;
    assert_true(polls_when_due());
    assert_false(polls_when_due());
    node_jobs_begin(&a->running, "train", (int32_t)getpid(), w.now);
    assert_true(polls_when_due());
    assert_true(polls_when_due());
}

/* A hub that does not hear this node is looked after. */
static void test_a_poll_while_the_hub_is_silent(void **state)
{
    struct agent *a = &w.agent;

    be_idle(state);
    assert_true(polls_when_due());
    assert_false(polls_when_due());
    w.now += 15 * SEC;
    a->poll.polled_at = w.now;
    /* Nothing else is due that a poll would follow. */
    a->pass.due_at = NSEC_NEVER;
    a->hubs.choose_at = NSEC_NEVER;
    for (unsigned i = 0; i < 2; i++)
        a->hubs.items[i]->report.sent_at = w.now;
    assert_true(polls_when_due());
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_what_is_reported),
        TEST(test_when_it_is_reported),
        TEST(test_one_report_at_once),
        TEST(test_a_job_that_has_ended),
        TEST(test_peers_that_are_reached_another_way),
        TEST(test_where_idle_mappings_are_measured),
        TEST(test_how_much_has_changed),
        TEST(test_a_poll_that_can_be_left_out),
        TEST(test_a_poll_while_the_hub_is_silent),
        TEST(test_the_names_of_this_machine_that_are_reported),
        TEST(test_the_clock_that_the_hub_tells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
