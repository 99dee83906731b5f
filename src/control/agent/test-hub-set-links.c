/*
 * test-hub-set-links.c - what a node does with the hubs of its network while they answer: when a
 * stream is opened, and anew, what is sent by UDP, and when all is settled.
 *
 * Both hubs are servers in this process, on the same loop, in a network namespace. The clock is
 * the machine's, from which a test may go on by itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/hub_set.h"
#include "api/server/server.h"
#include "api/server/stream.h"
#include "base/err.h"
#include "mesh/snapshot/watch_event.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "test/support/heard_log.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"
#include "wire/stun.h"

#define SEC NSEC_PER_SEC

#define API_PORT    9443
#define UDP_PORT    51820
#define STREAMS_MAX 8

/* The numbers of both hubs: "hub" and "n3". */
static const unsigned numbers[] = {1, 3};

/** One of them, as it is. */
struct answering {
    struct server *server;
    struct stream streams[STREAMS_MAX];
    unsigned n_watches;
    bool is_mute; /* it opens streams, and says nothing */
    int outside;  /* owns: its UDP port */
    int inside;   /* owns: the same port on the overlay */
};

static struct world {
    uv_loop_t loop;
    uv_timer_t limit; /* ends a test that waits for something that does not come */
    struct state state;
    struct hub_set hubs;
    struct observe seen;
    struct observation items[2];
    struct answering answering[2];
    struct hub_set_actions actions; /* of the last call */
    void *changed;                  /* what a link that has changed was told as its owner */
    nsec_t now;
} w;

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

    assert_true(at->n_watches < STREAMS_MAX);
    rs->status = 200;
    rs->stream = &at->streams[at->n_watches++];
    stream_init(rs->stream, on_drained, on_closed);
    if (!at->is_mute) {
        struct line *l = line_new(heartbeat, sizeof(heartbeat) - 1);

        assert_true(stream_push(rs->stream, l, clock_now()));
        (void)line_unref(l);
    }
}

static const struct route routes[] = {
    {"GET", "/v1/watch", API_ACCESS_OVERLAY, get_watch, "", ROLE_VIEWER},
    ROUTES_END,
};

static int open_udp(const char *address)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(UDP_PORT)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_int_equal(inet_pton(AF_INET, address, &sin.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    return fd;
}

static void open_hub(struct netlink *nl, unsigned lo, unsigned i)
{
    struct answering *at = &w.answering[i];
    struct server_config config = {.loop = &w.loop, .routes = routes, .ctx = at};
    const char *const formats[] = {"203.0.113.%u", "10.42.0.%u"};
    struct server_listener *listener;
    struct endpoint api;
    char text[2][32];
    char prefix[80];

    for (unsigned k = 0; k < 2; k++) {
        struct ip_prefix own;

        (void)snprintf(text[k], sizeof(text[k]), formats[k], numbers[i]);
        (void)snprintf(prefix, sizeof(prefix), "%s/32", text[k]);
        own = netns_prefix(prefix);
        assert_int_equal(rtnl_add_address(nl, lo, &own, false), 0);
    }
    at->outside = open_udp(text[0]);
    at->inside = open_udp(text[1]);
    (void)snprintf(prefix, sizeof(prefix), "%s:%u", text[1], API_PORT);
    assert_int_equal(endpoint_parse(&api, prefix, NULL), 0);
    assert_int_equal(server_new(&at->server, &config, NULL), 0);
    assert_int_equal(server_listen_overlay(at->server, &api, NULL, NULL, &listener, NULL), 0);
}

static void add_hub(unsigned n)
{
    struct object o = sample_node(n);
    char text[32];

    if (!o.node.hub)
        o.node.hub = calloc(1, sizeof(*o.node.hub));
    *o.node.hub = (struct node_hub){
        .n_endpoints = 1, .api_port = API_PORT, .has_tls_pin = true, .tls_pin.b[0] = (uint8_t)n};
    (void)snprintf(text, sizeof(text), "203.0.113.%u:%u", n, UDP_PORT);
    assert_int_equal(endpoint_parse(&o.node.hub->endpoints[0], text, NULL), 0);
    sample_put(&w.state.snapshot, o);
}

/* ---- the node -------------------------------------------------------------------------------- */

static int on_event(void *ctx, struct watch_event *ev, nsec_t at, struct err *e)
{
    watch_event_deinit(ev);
    return 0;
}

static void on_change(void *ctx, bool heard, const char *why, nsec_t at)
{
    w.changed = ctx;
}

static bool has_route(void *ctx, const struct ip_addr *to)
{
    return true;
}

static void on_limit(uv_timer_t *timer)
{
    fail_msg("what was waited for did not come within 30 s");
}

static struct hub_set_facts facts(void)
{
    return (struct hub_set_facts){.snapshot = &w.state.snapshot,
        .seen = &w.seen,
        .has_engine = true,
        .listen_port = 1,
        .has_route = has_route,
        .now = w.now};
}

/* The engine has had a handshake with both hubs so long ago. */
static void see(nsec_t ago)
{
    w.seen = (struct observe){.items = w.items, .n = 2};
    for (unsigned i = 0; i < 2; i++)
        w.items[i] =
            (struct observation){.key = sample_key(numbers[i]), .handshake_at = w.now - ago};
}

/* The node n2 and two hubs, which it has taken and looked at. */
static int enter(void **state)
{
    const struct hub_link_listener listener = {
        .on_event = on_event, .on_change = on_change, .ctx = &w};
    struct hub_set_facts f;
    unsigned lo;

    if (netns_enter(state) != 0)
        return -1;
    if (!*state)
        return 0;
    w = (struct world){.now = clock_now()};
    w.state.secret = (struct x25519_secret){.b = {5, [31] = 0x40}};
    (void)snprintf(w.state.interface, sizeof(w.state.interface), "lo");
    w.state.hub_api.n_api = 1;
    (void)snprintf(w.state.hub_api.api[0], sizeof(w.state.hub_api.api[0]), "203.0.113.1:1");
    w.state.snapshot = sample_snapshot(3, 2);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.limit), 0);
    assert_int_equal(uv_timer_start(&w.limit, on_limit, 30000, 0), 0);
    lo = netns_raise_loopback(*state);
    for (unsigned i = 0; i < 2; i++) {
        open_hub(*state, lo, i);
        add_hub(numbers[i]);
    }
    hub_set_init(&w.hubs, &w.loop, &w.state, &listener);
    see(SEC);
    f = facts();
    assert_int_equal(hub_set_take(&w.hubs, &f, &w.actions, NULL), 0);
    hub_set_poll(&w.hubs, &f, &w.actions);
    return 0;
}

static int leave(void **state)
{
    if (!*state)
        return 0;
    hub_set_stop(&w.hubs);
    for (unsigned i = 0; i < 2; i++)
        server_stop(w.answering[i].server);
    uv_close((uv_handle_t *)&w.limit, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    for (unsigned i = 0; i < 2; i++) {
        w.answering[i].server = server_free(w.answering[i].server);
        (void)close(w.answering[i].outside);
        (void)close(w.answering[i].inside);
    }
    snapshot_deinit(&w.state.snapshot);
    (void)netns_leave(state);
    return uv_loop_close(&w.loop);
}

static void poll_all(void)
{
    struct hub_set_facts f = facts();

    w.actions = (struct hub_set_actions){.serving_changed = false};
    hub_set_poll(&w.hubs, &f, &w.actions);
}

static void run_all(void)
{
    struct hub_set_facts f = facts();

    w.actions = (struct hub_set_actions){.serving_changed = false};
    hub_set_run(&w.hubs, &f, &w.actions);
}

static unsigned index_of(const struct agent_hub *hub)
{
    return hub == w.hubs.items[0] ? 0 : 1;
}

static struct answering *serving(void)
{
    return &w.answering[index_of(w.hubs.serving)];
}

/* The one that does not serve. */
static struct agent_hub *other(void)
{
    return w.hubs.items[1 - index_of(w.hubs.serving)];
}

static void wait_for_watches(struct answering *at, unsigned n)
{
    while (at->n_watches < n)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_int_equal(at->n_watches, n);
}

/* As much as is on its way already has come. */
static void turn(void)
{
    for (unsigned i = 0; i < 50; i++)
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
}

static void connect_to_hub(void)
{
    hub_set_on_applied(&w.hubs, &w.state.snapshot, w.now);
    while (!hub_link_is_heard(w.hubs.serving->link))
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    hub_set_on_heard(&w.hubs, w.hubs.serving, w.now);
}

/* How many STUN requests have come there; the last one is answered if it is to. */
static unsigned take_requests(int fd, bool answers)
{
    uint8_t in[STUN_REQUEST_SIZE];
    uint8_t out[STUN_ANSWER_MAX];
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    struct endpoint seen;
    unsigned n = 0;
    ssize_t size;

    assert_int_equal(endpoint_parse(&seen, "203.0.113.5:4000", NULL), 0);
    while ((size = recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from, &len)) > 0) {
        struct stun_request rq;

        assert_int_equal(stun_decode_request(&rq, in, (size_t)size), 0);
        n++;
        if (answers)
            assert_true(sendto(fd, out, stun_encode_answer(&rq, &seen, out), 0,
                            (struct sockaddr *)&from, len) > 0);
    }
    return n;
}

/* ---- the links ------------------------------------------------------------------------------- */

/* Only the serving hub has a stream, once it can be reached. */
static void test_a_stream_with_the_serving_hub(void **state)
{
    struct snapshot elsewhere;

    (void)netns_need(state);
    /* A snapshot in which both are ordinary nodes, or are not there, tells nothing. */
    elsewhere = sample_snapshot(1, 2);
    elsewhere.nodes.items[0]->node.hub->n_endpoints = 0;
    assert_int_equal(snapshot_delete(&elsewhere, &node_kind, "hub", NULL), 0);
    sample_put(&elsewhere, sample_node(3));
    hub_set_on_applied(&w.hubs, &elsewhere, w.now);
    snapshot_deinit(&elsewhere);
    turn();
    assert_int_equal(w.answering[0].n_watches + w.answering[1].n_watches, 0);
    assert_false(hub_set_takes_report(&w.hubs, w.hubs.serving, w.now));
    connect_to_hub();
    turn();
    assert_int_equal(serving()->n_watches, 1);
    assert_int_equal(w.answering[index_of(other())].n_watches, 0);
    assert_ptr_equal(w.changed, w.hubs.serving);
    assert_true(hub_set_takes_report(&w.hubs, w.hubs.serving, w.now));
}

/* A hub that has a new handshake after a young one was started anew: its stream is, too. */
static void test_a_hub_that_was_started_anew(void **state)
{
    (void)netns_need(state);
    connect_to_hub();
    poll_all();
    turn();
    assert_int_equal(serving()->n_watches, 1);
    w.now += 20 * SEC;
    see(0);
    poll_all();
    wait_for_watches(serving(), 2);
    assert_int_equal(w.answering[index_of(other())].n_watches, 0);
}

/* With its first handshake a hub that has said nothing so far is asked again. */
static void test_a_hub_that_is_there_now(void **state)
{
    (void)netns_need(state);
    serving()->is_mute = true;
    hub_set_on_applied(&w.hubs, &w.state.snapshot, w.now);
    wait_for_watches(serving(), 1);
    poll_all();
    turn();
    assert_int_equal(serving()->n_watches, 1);
    w.hubs.serving->health.handshake_at = 0;
    poll_all();
    wait_for_watches(serving(), 2);
}

/* Packets to it go another way: it is told by one of them, and is asked again. */
static void test_a_hub_to_which_packets_go_another_way(void **state)
{
    (void)netns_need(state);
    serving()->is_mute = true;
    hub_set_on_applied(&w.hubs, &w.state.snapshot, w.now);
    wait_for_watches(serving(), 1);
    hub_set_on_moved(&w.hubs, w.now);
    turn();
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(take_requests(w.answering[i].inside, false), 0);
    assert_int_equal(serving()->n_watches, 1);
    for (unsigned i = 0; i < 2; i++)
        w.hubs.items[i]->has_moved = true;
    hub_set_on_moved(&w.hubs, w.now);
    wait_for_watches(serving(), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_false(w.hubs.items[i]->has_moved);
        assert_int_equal(take_requests(w.answering[i].inside, false), 1);
    }
    hub_set_on_moved(&w.hubs, w.now);
    turn();
    assert_int_equal(serving()->n_watches, 2);
    assert_int_equal(take_requests(serving()->inside, false), 0);
}

/* ---- what is settled ------------------------------------------------------------------------- */

static void test_nothing_is_waited_for(void **state)
{
    (void)netns_need(state);
    assert_false(hub_set_is_settled(&w.hubs, w.now));
    connect_to_hub();
    assert_true(hub_set_is_settled(&w.hubs, w.now));
    /* Something is being tried with any of them. */
    for (unsigned i = 0; i < 2; i++) {
        w.hubs.items[i]->transport.transport.silent_since = 1;
        assert_false(hub_set_is_settled(&w.hubs, w.now));
        w.hubs.items[i]->transport.transport.silent_since = 0;
    }
    assert_true(hub_set_is_settled(&w.hubs, w.now));
    /* A heartbeat is late. */
    assert_false(hub_set_is_settled(&w.hubs, w.now + 20 * SEC));
}

/* What the serving hub does not seem to hear is asked by UDP. */
static void test_a_heartbeat_that_is_late(void **state)
{
    struct hub_set_facts f;

    (void)netns_need(state);
    connect_to_hub();
    w.now += 13 * SEC;
    f = facts();
    f.has_engine = false;
    hub_set_poll(&w.hubs, &f, &w.actions);
    assert_int_equal(w.hubs.serving->transport.transport.silent_since, 0);
    assert_false(w.hubs.serving->transport.transport.is_suspect);
    poll_all();
    assert_true(w.hubs.serving->transport.transport.silent_since != 0);
    assert_true(w.hubs.serving->transport.transport.is_suspect);
    assert_int_equal(other()->transport.transport.silent_since, 0);
    assert_false(other()->transport.transport.is_suspect);
    /* Of one with which there is no session it is known that it is silent. */
    see(300 * SEC);
    poll_all();
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(w.hubs.items[i]->transport.transport.silent_since, w.now);
        assert_false(w.hubs.items[i]->transport.transport.is_suspect);
    }
}

/* ---- by UDP ---------------------------------------------------------------------------------- */

/* The serving hub is pinged, and another one is not. */
static void test_the_serving_hub_is_pinged(void **state)
{
    struct answering *spare;

    (void)netns_need(state);
    connect_to_hub();
    spare = &w.answering[index_of(other())];
    poll_all();
    assert_int_equal(hub_set_due(&w.hubs), w.now + SEC);
    w.now += SEC - 1;
    run_all();
    turn();
    assert_int_equal(take_requests(serving()->outside, false), 0);
    w.now++;
    run_all();
    turn();
    assert_int_equal(w.hubs.choice.n_unanswered, 1);
    assert_false(w.hubs.choice.has_answered);
    assert_int_equal(take_requests(serving()->outside, true), 1);
    assert_int_equal(take_requests(spare->outside, true), 0);
    while (!w.hubs.choice.has_answered)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_int_equal(w.hubs.choice.n_unanswered, 0);
    /* What answers elsewhere says nothing of the serving hub. */
    w.hubs.choice.has_answered = false;
    udp_probe_ask(&w.hubs.probe, &other()->health.path.path.endpoint, clock_now());
    for (unsigned i = 0; i < 20; i++) {
        turn();
        (void)take_requests(spare->outside, true);
    }
    assert_false(w.hubs.choice.has_answered);
}

/* It says nothing by UDP any more: another one serves, which has a stream then. */
static void test_the_serving_hub_answers_no_ping(void **state)
{
    struct agent_hub *before;
    char words[256];

    (void)netns_need(state);
    connect_to_hub();
    before = w.hubs.serving;
    w.hubs.choice.has_answered = true;
    heard_log_begin();
    for (unsigned i = 0; i < 20 && w.hubs.serving == before; i++) {
        w.now = hub_set_due(&w.hubs);
        run_all();
    }
    assert_ptr_not_equal(w.hubs.serving, before);
    (void)snprintf(words, sizeof(words),
        "info: weft: the hub %s serves this node now: %s, it does not answer any more\n",
        w.hubs.serving->name, before->name);
    assert_string_equal(heard_log_end(), words);
    assert_true(w.actions.serving_changed);
    assert_true(w.actions.pass_soon);
    assert_int_equal(w.answering[index_of(before)].n_watches, 1);
    wait_for_watches(serving(), 1);
    /* The link to the one that has failed is given up. */
    assert_false(hub_link_is_heard(before->link));
    assert_true(hub_set_takes_report(&w.hubs, before, w.now));
}

/* A hub without a session is asked by UDP; that it answers is looked at in the next run. */
static void test_a_silent_hub_answers_by_UDP(void **state)
{
    struct agent_hub *hub = NULL;
    unsigned i;

    (void)netns_need(state);
    w.seen.n = 0;
    poll_all();
    turn();
    assert_int_equal(take_requests(w.answering[0].outside, true), 1);
    assert_int_equal(take_requests(w.answering[1].outside, true), 1);
    for (i = 0; i < 2; i++)
        while (w.hubs.items[i]->transport.due_at != 0)
            (void)uv_run(&w.loop, UV_RUN_ONCE);
    hub = w.hubs.serving;
    assert_int_equal(hub_set_due(&w.hubs), 0);
    run_all();
    assert_int_equal(hub->transport.transport.choice.answered_at, w.now);
    assert_true(hub_set_due(&w.hubs) > w.now);
    w.now += SEC;
    poll_all();
    assert_int_equal(hub_set_due(&w.hubs), w.now + TRANSPORT_CHOICE_TICK);
    /* Each runs when it is due, and not before. */
    w.now += TRANSPORT_CHOICE_TICK - 1;
    run_all();
    assert_int_equal(hub_set_due(&w.hubs), w.now + 1);
    w.now++;
    run_all();
    assert_true(hub_set_due(&w.hubs) > w.now);
}

/* What answers elsewhere is looked for there. */
static void test_a_silent_hub_answers_elsewhere(void **state)
{
    struct agent_hub *hub;
    struct node_hub *places;
    const struct endpoint *at;
    int fd;

    (void)netns_need(state);
    fd = open_udp("127.0.0.1");
    hub = w.hubs.items[0];
    places = snapshot_find_node(&w.state.snapshot, "hub")->hub;
    at = &places->endpoints[places->n_endpoints++];
    assert_int_equal(endpoint_parse(&places->endpoints[1], "127.0.0.1:51820", NULL), 0);
    w.seen.n = 0;
    heard_log_begin();
    for (unsigned i = 0; i < 10 && !endpoint_equal(&hub->health.path.path.endpoint, at); i++) {
        w.now += SEC;
        poll_all();
        turn();
        if (take_requests(fd, true) > 0)
            while (hub->transport.due_at != 0)
                (void)uv_run(&w.loop, UV_RUN_ONCE);
        run_all();
    }
    assert_string_equal(heard_log_end(),
        "info: weft: the hub answers elsewhere hub, trying it at 127.0.0.1:51820\n");
    assert_true(endpoint_equal(&hub->health.path.path.endpoint, at));
    assert_true(w.actions.pass_soon);
    assert_ptr_equal(hub_set_next_handshake(&w.hubs), hub);
    (void)close(fd);
}

/* ---- in TLS ---------------------------------------------------------------------------------- */

/* UDP fails, and so a stream is held ready, which does not come about here. */
static struct agent_hub *hold_a_stream_ready(void)
{
    w.seen.n = 0;
    for (unsigned i = 0; i < 100 && !w.hubs.items[0]->transport.stream; i++) {
        w.now += TRANSPORT_CHOICE_TICK;
        poll_all();
    }
    assert_non_null(w.hubs.items[0]->transport.stream);
    return w.hubs.items[0];
}

/* Where packets go in TLS, the engine sends to the end of the stream on this machine. */
static void test_where_a_hub_is_in_TLS(void **state)
{
    struct render_path paths[HUB_CHOICE_MAX];
    struct endpoint local;
    struct agent_hub *hub;
    char text[ENDPOINT_TEXT_MAX];

    (void)netns_need(state);
    hub = hold_a_stream_ready();
    assert_int_equal(hub_set_paths(&w.hubs, paths), 2);
    assert_string_equal(endpoint_format(&paths[0].endpoint, text), "203.0.113.1:51820");
    hub->transport.transport.choice.by_stream = true;
    local = hub_transport_io_endpoint(&hub->transport);
    assert_int_equal(hub_set_paths(&w.hubs, paths), 2);
    assert_string_equal(paths[0].node, "hub");
    assert_true(endpoint_equal(&paths[0].endpoint, &local));
    assert_true(endpoint_equal(&paths[1].endpoint, &w.hubs.items[1]->health.path.path.endpoint));
}

/* Once UDP passes again the engine is told at once. */
static void test_a_hub_passes_by_UDP_again(void **state)
{
    struct agent_hub *hub;

    (void)netns_need(state);
    hub = hold_a_stream_ready();
    hub->transport.transport.choice.by_stream = true;
    for (unsigned i = 0; i < 10 && !hub->has_moved; i++) {
        assert_false(w.actions.pass_at_once);
        w.now += SEC;
        poll_all();
        turn();
        if (take_requests(w.answering[0].outside, true) > 0)
            while (hub->transport.due_at != 0)
                (void)uv_run(&w.loop, UV_RUN_ONCE);
        run_all();
    }
    assert_true(hub->has_moved);
    assert_true(w.actions.pass_at_once);
    assert_false(w.hubs.items[1]->has_moved);
    assert_false(hub->transport.transport.choice.by_stream);
}

/* The serving hub is heard, and the TLS connection that packets to it go by is broken. */
static void test_a_serving_hub_that_is_cut(void **state)
{
    struct agent_hub *hub;

    (void)netns_need(state);
    (void)hold_a_stream_ready();
    for (unsigned i = 0; i < 2; i++)
        w.hubs.choice.items[i].avoid_until = 0;
    hub = w.hubs.serving;
    assert_non_null(hub->transport.stream);
    hub_set_on_heard(&w.hubs, hub, w.now);
    w.hubs.choose_at = w.now;
    run_all();
    /* No packets go by it as long as UDP is used. */
    assert_ptr_equal(w.hubs.serving, hub);
    hub->transport.transport.choice.by_stream = true;
    w.hubs.choose_at = w.now;
    run_all();
    assert_ptr_not_equal(w.hubs.serving, hub);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_stream_with_the_serving_hub),
        TEST(test_a_hub_that_was_started_anew),
        TEST(test_a_hub_that_is_there_now),
        TEST(test_a_hub_to_which_packets_go_another_way),
        TEST(test_nothing_is_waited_for),
        TEST(test_a_heartbeat_that_is_late),
        TEST(test_the_serving_hub_is_pinged),
        TEST(test_the_serving_hub_answers_no_ping),
        TEST(test_a_silent_hub_answers_by_UDP),
        TEST(test_a_silent_hub_answers_elsewhere),
        TEST(test_where_a_hub_is_in_TLS),
        TEST(test_a_hub_passes_by_UDP_again),
        TEST(test_a_serving_hub_that_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
