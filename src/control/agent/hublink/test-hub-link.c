/*
 * test-hub-link.c - the stream of events, as it is opened, heard, lost, and opened again.
 *
 * The hub is a server in this process, on the same loop, that says what the test has it say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/hublink/hub_link.h"
#include "api/server/server.h"
#include "api/server/stream.h"
#include "base/err.h"
#include "mesh/snapshot/watch_event.h"
#include "os/clock.h"
#include "os/log.h"
#include "test/support/captured_log.h"
#include "test/support/emulated.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"
#include "wire/member_proof.h"
#include "wire/stun.h"

/* Outside of the range that connections get theirs from. */
#define PORT 7000

#define SEC NSEC_PER_SEC

/* Watches that a test may open. */
#define STREAMS_MAX 8

/* One hub and one node, whose link is tested. */
struct world {
    uv_loop_t loop;
    uv_timer_t limit; /* ends a test that waits for something that does not come */
    struct server *server;
    struct endpoint api;
    struct stream streams[STREAMS_MAX]; /* the hub's ends of the watches, one after the other */
    unsigned n_streams;
    unsigned n_refusals; /* so many requests are told what stamp the hub takes */
    unsigned n_watches;
    unsigned n_reports;
    json_int_t reported; /* the number in the last one */
    unsigned n_results;
    enum edge_report_result result; /* of the last one */
    bool counts_reports;
    int refuses_report; /* with that status; 0: it takes them */
    const char *heard;  /* the answer to a question about a STUN request; NULL: 404 */

    struct member_proof_signer signer;
    struct hub_link *link;
    unsigned n_events;
    nsec_t event_at; /* time of the last one */
    unsigned n_changes;
    bool is_heard;
    char why[200];
    bool refuses_event; /* the node cannot use the next one */
    bool has_known;     /* the node has something of that hub's run 9, up to revision 41 */
    char since[32];     /* as the last watch was asked for; "": a snapshot */
    char boot[32];
    json_int_t result_body; /* the number in the last answer to a report; -1: it has no body */
    unsigned n_asked;       /* questions about a STUN request, and the last one's path */
    char asked[64];
    unsigned n_heard;
    struct endpoint heard_from;
    bool was_heard;
};

/* ---- the hub --------------------------------------------------------------------------------- */

static struct world w;

/* On the newest watch. */
static void say(const char *text)
{
    struct line *l = line_new(text, strlen(text));

    assert_non_null(l);
    assert_true(stream_push(&w.streams[w.n_streams - 1], l, clock_now()));
    (void)line_unref(l);
}

static void say_snapshot(void)
{
    struct snapshot snapshot = sample_snapshot(2, 2);
    json_t *event = snapshot_encode(&snapshot);
    char *text;

    (void)json_object_set_new(event, "type", json_string("snapshot"));
    text = json_dumps(event, JSON_COMPACT);
    say(text);
    free(text);
    json_decref(event);
    snapshot_deinit(&snapshot);
}

static void on_drained(struct stream *s, nsec_t now)
{
}

static void on_closed(struct stream *s)
{
    stream_deinit(s);
}

static bool refuses_stamp(struct response *rs)
{
    if (w.n_refusals == 0)
        return false;
    w.n_refusals--;
    response_json(
        rs, 401, json_pack("{s:s, s:i, s:i}", "error", "another stamp", "boot", 77, "after", 5));
    return true;
}

static void get_watch(void *ctx, const struct request *rq, struct response *rs)
{
    const char *since = request_query(rq, "since");
    const char *boot = request_query(rq, "boot");

    w.n_watches++;
    (void)snprintf(w.since, sizeof(w.since), "%s", since ? since : "");
    (void)snprintf(w.boot, sizeof(w.boot), "%s", boot ? boot : "");
    if (refuses_stamp(rs))
        return;
    assert_true(w.n_streams < STREAMS_MAX);
    rs->status = 200;
    rs->stream = &w.streams[w.n_streams++];
    stream_init(rs->stream, on_drained, on_closed);
    say("{\"type\": \"heartbeat\", \"revision\": 40}");
}

static void put_status(void *ctx, const struct request *rq, struct response *rs)
{
    w.n_reports++;
    w.reported = json_integer_value(json_object_get(rq->body, "number"));
    if (refuses_stamp(rs))
        return;
    if (w.refuses_report)
        response_refuse(rs, w.refuses_report, "not now");
    else if (w.counts_reports)
        response_json(rs, 200, json_pack("{s:i}", "number", 1));
    else
        response_empty(rs);
}

static void get_heard(void *ctx, const struct request *rq, struct response *rs)
{
    w.n_asked++;
    (void)snprintf(w.asked, sizeof(w.asked), "%s", rq->path);
    if (w.heard)
        response_json(rs, 200, json_loads(w.heard, 0, NULL));
    else
        response_refuse(rs, 404, "there is no such question");
}

static const struct route routes[] = {
    {"GET", "/v1/watch", API_ACCESS_OVERLAY, get_watch, "", ROLE_VIEWER},
    {"PUT", "/v1/status", API_ACCESS_OVERLAY, put_status, "", ROLE_VIEWER},
    {"GET", "/v1/heard/{transaction}", API_ACCESS_OVERLAY, get_heard, "", ROLE_VIEWER},
    ROUTES_END,
};

static void open_server(void)
{
    struct server_config config = {.loop = &w.loop, .routes = routes};
    struct server_listener *listener;
    struct err e = ERR_NULL;

    assert_int_equal(server_new(&w.server, &config, &e), 0);
    if (server_listen_overlay(w.server, &w.api, NULL, NULL, &listener, &e) != 0)
        fail_msg("%s", err_text(&e));
}

/* ---- the node -------------------------------------------------------------------------------- */

static bool is_known(void *ctx, uint64_t *ret_boot, uint64_t *ret_revision)
{
    *ret_boot = 9;
    *ret_revision = 41;
    return w.has_known;
}

static int on_event(void *ctx, struct watch_event *ev, nsec_t now, struct err *e)
{
    w.n_events++;
    w.event_at = now;
    watch_event_deinit(ev);
    if (!w.refuses_event)
        return 0;
    w.refuses_event = false;
    return err_set(e, -EINVAL, "it is about another node");
}

static void on_reported(void *ctx, enum edge_report_result result, const json_t *body)
{
    w.n_results++;
    w.result = result;
    w.result_body = body ? json_integer_value(json_object_get(body, "number")) : -1;
}

static void on_change(void *ctx, bool heard, const char *why, nsec_t now)
{
    w.n_changes++;
    w.is_heard = heard;
    (void)snprintf(w.why, sizeof(w.why), "%s", why);
}

static void on_heard(void *ctx, const struct endpoint *from)
{
    w.n_heard++;
    w.was_heard = from != NULL;
    if (from)
        w.heard_from = *from;
}

static void on_limit(uv_timer_t *timer)
{
    fail_msg("what was waited for did not come within 20 s");
}

static const struct hub_link_listener listener = {
    .known = is_known, .on_event = on_event, .on_change = on_change, .on_reported = on_reported};

static int enter(void **state)
{
    static const struct x25519_secret secret = {.b = {5, [31] = 0x40}};
    struct x25519_secret hub_secret = {.b = {6, [31] = 0x40}};
    struct x25519_public hub;
    char text[64];

    w = (struct world){.n_events = 0};
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.limit), 0);
    assert_int_equal(uv_timer_start(&w.limit, on_limit, 20000, 0), 0);
    (void)snprintf(text, sizeof(text), "127.0.0.1:%u", PORT);
    assert_int_equal(endpoint_parse(&w.api, text, NULL), 0);
    assert_true(x25519_derive_public(&hub_secret, &hub));
    assert_true(member_proof_signer_init(&w.signer, &secret, &hub));
    return hub_link_new(&w.link, &w.loop, "lo", &w.signer, &listener, NULL);
}

static int leave(void **state)
{
    w.link = hub_link_free(w.link);
    if (w.server)
        server_stop(w.server);
    uv_close((uv_handle_t *)&w.limit, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    w.server = server_free(w.server);
    return uv_loop_close(&w.loop);
}

/* Until @n is at least @wanted. */
static void wait_for(const unsigned *n, unsigned wanted)
{
    while (*n < wanted)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
}

static void connect_to_hub(void)
{
    open_server();
    hub_link_set_target(w.link, &w.api, clock_now());
    wait_for(&w.n_changes, 1);
    assert_true(w.is_heard);
}

static void take_link_timer(uv_handle_t *handle, void *ret)
{
    if (handle->type == UV_TIMER && handle->data == w.link)
        *(uv_timer_t **)ret = (uv_timer_t *)handle;
}

/* Of the loop's timers the link's. */
static uv_timer_t *link_timer(void)
{
    uv_timer_t *timer = NULL;

    uv_walk(&w.loop, take_link_timer, (void *)&timer);
    assert_non_null(timer);
    return timer;
}

/* After so many ms something is done: silence is given up, or the next try is made; 0: nothing. */
static uint64_t link_due_in(void)
{
    return uv_timer_get_due_in(link_timer());
}

static void let_timer_run_out_in(uint64_t ms)
{
    uv_timer_t *timer = link_timer();

    uv_timer_set_repeat(timer, ms);
    assert_int_equal(uv_timer_again(timer), 0);
}

/* What the link waits for comes about at once. */
static void let_timer_run_out(void)
{
    let_timer_run_out_in(1);
    (void)uv_run(&w.loop, UV_RUN_ONCE);
    while (link_due_in() == 1)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
}

/* Until no stream is being opened any more: how long the link waits then. */
static uint64_t wait_for_retry(void)
{
    while (link_due_in() > 8000 || !uv_is_active((uv_handle_t *)link_timer()))
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    return link_due_in();
}

/* So many s of silence are allowed to the connection before its kernel is asked for a sign. */
static int probe_seconds(void)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in to = {.sin_family = AF_UNSPEC};
        socklen_t len = sizeof(to);
        int idle_s = 0;

        if (getpeername(fd, (struct sockaddr *)&to, &len) != 0 || to.sin_family != AF_INET ||
            ntohs(to.sin_port) != PORT)
            continue;
        len = sizeof(idle_s);
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, &len), 0);
        return idle_s;
    }
    return -1;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_heard_with_the_first_line(void **state)
{
    assert_false(hub_link_is_heard(w.link));
    assert_true(hub_link_view(w.link, clock_now()).silent_for == NSEC_NEVER);
    connect_to_hub();
    assert_true(hub_link_is_heard(w.link));
    assert_int_equal(w.n_events, 1);
    assert_true(hub_link_view(w.link, clock_now()).silent_for < 5 * SEC);
    say("{\"type\": \"heartbeat\", \"revision\": 41}");
    wait_for(&w.n_events, 2);
    assert_int_equal(w.n_changes, 1);
    assert_int_equal(w.n_watches, 1);
    /* The same address again changes nothing. */
    hub_link_set_target(w.link, &w.api, clock_now());
    say("{\"type\": \"heartbeat\", \"revision\": 42}");
    wait_for(&w.n_events, 3);
    assert_int_equal(w.n_watches, 1);
}

/* A hub that does not hear what changes in its store says so until it does. */
static void test_hub_behind_its_store(void **state)
{
    connect_to_hub();
    assert_int_equal(hub_link_view(w.link, clock_now()).store_behind_s, 0);
    say("{\"type\": \"heartbeat\", \"revision\": 41, \"storeBehind\": 34}");
    wait_for(&w.n_events, 2);
    assert_int_equal(hub_link_view(w.link, clock_now()).store_behind_s, 34);
    say("{\"type\": \"heartbeat\", \"revision\": 41}");
    wait_for(&w.n_events, 3);
    assert_int_equal(hub_link_view(w.link, clock_now()).store_behind_s, 0);
}

/* What the hub takes it says when it refuses: that is no failure of the hub. */
static void test_stamp_is_learned(void **state)
{
    w.n_refusals = 1;
    connect_to_hub();
    assert_int_equal(w.n_watches, 2);
    assert_int_equal(w.n_changes, 1);
    assert_int_equal(w.signer.boot, 77);
    /* So it is with each call, and with the next stream. */
    w.n_refusals = 1;
    assert_true(hub_link_report(w.link, json_pack("{s:i}", "number", 8)));
    wait_for(&w.n_results, 1);
    assert_int_equal(w.n_reports, 2);
    assert_int_equal(w.reported, 8);
    assert_int_equal(w.result, EDGE_REPORT_OLD);
    w.n_refusals = 1;
    hub_link_restart(w.link, clock_now());
    wait_for(&w.n_events, 2);
    assert_int_equal(w.n_watches, 4);
    assert_int_equal(w.n_changes, 1);
}

/* A hub that refuses the stamp that it has just named is not asked on and on. */
static void test_stamp_is_learned_once(void **state)
{
    uint64_t wait_ms;

    open_server();
    w.n_refusals = 3;
    hub_link_set_target(w.link, &w.api, clock_now());
    wait_ms = wait_for_retry();
    assert_true(wait_ms >= 124 && wait_ms <= 250);
    assert_int_equal(w.n_watches, 2);
    assert_false(hub_link_is_heard(w.link));
    /* The next try may learn again. */
    let_timer_run_out();
    wait_for(&w.n_changes, 1);
    assert_true(w.is_heard);
    assert_int_equal(w.n_watches, 4);
    w.n_refusals = 2;
    assert_true(hub_link_report(w.link, json_object()));
    wait_for(&w.n_results, 1);
    assert_int_equal(w.n_reports, 2);
    assert_int_equal(w.result, EDGE_REPORT_LOST);
}

static void test_lost_and_found(void **state)
{
    connect_to_hub();
    stream_end(&w.streams[0]);
    wait_for(&w.n_changes, 2);
    assert_false(w.is_heard);
    assert_string_equal(w.why, "it ended the connection");
    wait_for(&w.n_changes, 3);
    assert_true(w.is_heard);
    assert_int_equal(w.n_watches, 2);
}

static void test_hub_that_is_away(void **state)
{
    hub_link_set_target(w.link, &w.api, clock_now());
    for (unsigned i = 0; i < 50; i++)
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    assert_false(hub_link_is_heard(w.link));
    assert_false(hub_link_report(w.link, json_object()));
    open_server();
    hub_link_poke(w.link, clock_now());
    wait_for(&w.n_changes, 1);
    assert_true(w.is_heard);
}

/* From a quarter of a second on each wait is up to twice as long, to 8 s; a half of each at least.
 */
static void test_tries_come_slower_and_slower(void **state)
{
    uint64_t most_ms = 250;

    hub_link_set_target(w.link, &w.api, clock_now());
    for (unsigned i = 0; i < 7; i++) {
        uint64_t wait_ms = wait_for_retry();

        assert_true(wait_ms <= most_ms);
        assert_true(wait_ms + 100 >= most_ms / 2);
        most_ms = most_ms < 4000 ? most_ms * 2 : 8000;
        let_timer_run_out();
    }
    (void)wait_for_retry();
    assert_int_equal(w.n_changes, 0);
    open_server();
    let_timer_run_out();
    wait_for(&w.n_changes, 1);
    assert_true(w.is_heard);
    /* One that was heard since is tried soon again. */
    stream_end(&w.streams[0]);
    wait_for(&w.n_changes, 2);
    assert_true(link_due_in() <= 250);
    wait_for(&w.n_changes, 3);
}

/* As soon as there is reason to believe in it, it is asked, and then as often as at first. */
static void test_restart_begins_with_short_waits(void **state)
{
    hub_link_set_target(w.link, &w.api, clock_now());
    for (unsigned i = 0; i < 4; i++) {
        (void)wait_for_retry();
        let_timer_run_out();
    }
    assert_true(wait_for_retry() > 250);
    hub_link_restart(w.link, clock_now());
    assert_true(link_due_in() > 29000);
    assert_true(wait_for_retry() <= 250);
}

/* A stream is given up after 30 s without a line. */
static void test_stream_that_says_nothing(void **state)
{
    uint64_t due_ms;

    connect_to_hub();
    due_ms = link_due_in();
    assert_true(due_ms > 25000 && due_ms <= 30000);
    let_timer_run_out_in(9000);
    assert_true(link_due_in() <= 9000);
    say("{\"type\": \"heartbeat\", \"revision\": 41}");
    wait_for(&w.n_events, 2);
    assert_true(link_due_in() > 25000);
    let_timer_run_out();
    assert_int_equal(w.n_changes, 2);
    assert_false(w.is_heard);
    assert_string_equal(w.why, "it says nothing any more");
    assert_true(link_due_in() <= 250);
    wait_for(&w.n_changes, 3);
    assert_true(w.is_heard);
    assert_string_equal(w.why, "");
    assert_int_equal(w.n_watches, 2);
}

/* To a hub that does not serve this node there is no stream, only reports. */
static void test_standby(void **state)
{
    static const struct stun_transaction id = {.b = {1}};

    connect_to_hub();
    assert_true(hub_link_unheard(w.link, NULL, w.event_at + 13 * SEC) == w.event_at);
    hub_link_set_standby(w.link, true, clock_now());
    assert_false(hub_link_is_heard(w.link));
    assert_int_equal(w.n_changes, 1);
    assert_false(uv_is_active((uv_handle_t *)link_timer()));
    assert_int_equal(hub_link_unheard(w.link, NULL, w.event_at + 1000 * SEC), 0);
    hub_link_poke(w.link, clock_now());
    hub_link_restart(w.link, clock_now());
    assert_false(uv_is_active((uv_handle_t *)link_timer()));
    assert_false(hub_link_ask_heard(w.link, &id, on_heard, NULL));
    assert_true(hub_link_report(w.link, json_object()));
    wait_for(&w.n_results, 1);
    assert_int_equal(w.result, EDGE_REPORT_OLD);
    /* The same again. */
    hub_link_set_standby(w.link, true, clock_now());
    assert_int_equal(w.n_watches, 1);
    hub_link_set_standby(w.link, false, w.event_at + 500 * SEC);
    assert_true(hub_link_unheard(w.link, NULL, w.event_at + 512 * SEC) == w.event_at + 500 * SEC);
    wait_for(&w.n_changes, 2);
    assert_true(w.is_heard);
    assert_int_equal(w.n_watches, 2);
    hub_link_set_standby(w.link, false, clock_now());
    assert_true(hub_link_is_heard(w.link));
}

/* Nothing is missed of a hub of which it is not known where it is. */
static void test_standby_without_a_target(void **state)
{
    hub_link_set_standby(w.link, true, 1000 * SEC);
    hub_link_set_standby(w.link, false, 1000 * SEC);
    assert_false(uv_is_active((uv_handle_t *)link_timer()));
    assert_int_equal(hub_link_unheard(w.link, NULL, 2000 * SEC), 0);
    hub_link_set_target(w.link, &w.api, 2000 * SEC);
    assert_int_equal(hub_link_unheard(w.link, NULL, 2012 * SEC - 1), 0);
    assert_true(hub_link_unheard(w.link, NULL, 2012 * SEC) == 2000 * SEC);
}

/* The stream follows the hub to another place. */
static void test_another_target(void **state)
{
    struct endpoint other;

    connect_to_hub();
    assert_int_equal(endpoint_parse(&other, "127.0.0.2:7000", NULL), 0);
    hub_link_set_target(w.link, &other, w.event_at + 100 * SEC);
    assert_true(hub_link_unheard(w.link, NULL, w.event_at + 112 * SEC) == w.event_at + 100 * SEC);
    (void)wait_for_retry();
    assert_int_equal(w.n_changes, 2);
    assert_false(w.is_heard);
    hub_link_set_target(w.link, &w.api, clock_now());
    wait_for(&w.n_changes, 3);
    assert_true(w.is_heard);
    assert_int_equal(w.n_watches, 2);
}

static void test_restart_opens_another_stream(void **state)
{
    connect_to_hub();
    /* Just heard: there is no reason for another one. */
    hub_link_poke(w.link, w.event_at + 15 * SEC - 1);
    say("{\"type\": \"heartbeat\", \"revision\": 41}");
    wait_for(&w.n_events, 2);
    assert_int_equal(w.n_watches, 1);
    hub_link_restart(w.link, clock_now());
    wait_for(&w.n_watches, 2);
    wait_for(&w.n_events, 3);
    /* A heartbeat is missing. */
    hub_link_poke(w.link, w.event_at + 15 * SEC);
    wait_for(&w.n_events, 4);
    assert_int_equal(w.n_watches, 3);
    /* Nobody was told that the hub was away. */
    assert_int_equal(w.n_changes, 1);
}

/* A stream that goes on where the last one broke off asks for no snapshot. */
static void test_goes_on(void **state)
{
    connect_to_hub();
    assert_string_equal(w.since, "");
    w.has_known = true;
    stream_end(&w.streams[0]);
    wait_for(&w.n_watches, 2);
    assert_string_equal(w.since, "41");
    assert_string_equal(w.boot, "9");
    wait_for(&w.n_changes, 3);
    /* Unless what it was told does not fit what it has, until a snapshot has come. */
    w.refuses_event = true;
    say("{\"type\": \"heartbeat\", \"revision\": 41}");
    wait_for(&w.n_watches, 3);
    assert_string_equal(w.since, "");
    stream_end(&w.streams[2]);
    wait_for(&w.n_watches, 4);
    assert_string_equal(w.since, "");
    wait_for(&w.n_events, 5);
    say_snapshot();
    wait_for(&w.n_events, 6);
    stream_end(&w.streams[3]);
    wait_for(&w.n_watches, 5);
    assert_string_equal(w.since, "41");
}

static void test_event_that_cannot_be_used(void **state)
{
    connect_to_hub();
    w.refuses_event = true;
    say("{\"type\": \"heartbeat\", \"revision\": 41}");
    wait_for(&w.n_watches, 2);
    say("not even JSON");
    wait_for(&w.n_watches, 3);
    assert_int_equal(w.n_changes, 1);
}

/* So long after the last line the connection is taken to be silent for less than that, because of
 * what the hub's kernel has answered: that is by the real clock, which may have gone on as well. */
static void assert_kernel_counts(nsec_t silence)
{
    nsec_t silent = hub_link_view(w.link, w.event_at + silence).silent_for;

    assert_true(silent <= silence);
    assert_true(silent < silence || clock_now() - w.event_at > silence - SEC);
}

/* By a clock that goes on while nothing is said. */
static void test_silence(void **state)
{
    bool is_late = false;
    nsec_t now;

    if (emulated_lacks("TCP_INFO"))
        skip();
    connect_to_hub();
    now = w.event_at;
    assert_int_equal(hub_link_unheard(w.link, &is_late, now + 12 * SEC - 1), 0);
    assert_false(is_late);
    assert_true(hub_link_unheard(w.link, &is_late, now + 12 * SEC) == now);
    assert_true(is_late);
    /* Its kernel's answers count until a heartbeat is missing. */
    assert_kernel_counts(11 * SEC - 1);
    assert_true(hub_link_view(w.link, now + 11 * SEC).silent_for == 11 * SEC);
    /* And of no connection. */
    hub_link_restart(w.link, clock_now());
    assert_true(hub_link_view(w.link, now + 10 * SEC).silent_for == 10 * SEC);
}

/* As long as new lines come, nothing is repeated, however many they are. */
static void test_lines_are_no_repetitions(void **state)
{
    connect_to_hub();
    for (unsigned i = 2; i <= 6; i++) {
        say("{\"type\": \"heartbeat\", \"revision\": 41}");
        wait_for(&w.n_events, i);
        assert_int_equal(hub_link_unheard(w.link, NULL, w.event_at), 0);
    }
}

/* The hub says that its heartbeats come slower, and then that they come as usual. */
static void test_slow_heartbeats(void **state)
{
    nsec_t now;

    if (emulated_lacks("TCP_INFO"))
        skip();
    connect_to_hub();
    say("{\"type\": \"heartbeat\", \"revision\": 41, \"next\": 20}");
    wait_for(&w.n_events, 2);
    now = w.event_at;
    assert_int_equal(hub_link_view(w.link, clock_now()).quiet_max, 23 * SEC);
    assert_int_equal(probe_seconds(), 21);
    assert_int_equal(hub_link_unheard(w.link, NULL, now + 21 * SEC), 0);
    assert_int_not_equal(hub_link_unheard(w.link, NULL, now + 23 * SEC), 0);
    assert_kernel_counts(20 * SEC);
    assert_true(hub_link_view(w.link, now + 22 * SEC).silent_for >= 22 * SEC);
    /* However long the hub says: it counts as away after HUB_LINK_SILENCE. */
    say("{\"type\": \"heartbeat\", \"revision\": 41, \"next\": 3600}");
    wait_for(&w.n_events, 3);
    assert_int_equal(hub_link_view(w.link, clock_now()).quiet_max, 23 * SEC);
    say("{\"type\": \"heartbeat\", \"revision\": 41, \"next\": 12}");
    wait_for(&w.n_events, 4);
    assert_int_equal(hub_link_view(w.link, clock_now()).quiet_max, 15 * SEC);
    assert_int_equal(probe_seconds(), 13);
    say("{\"type\": \"heartbeat\", \"revision\": 42}");
    wait_for(&w.n_events, 5);
    now = w.event_at;
    assert_int_equal(hub_link_view(w.link, clock_now()).quiet_max, HUB_LINK_QUIET_MAX);
    assert_int_equal(probe_seconds(), CLIENT_WATCH_PROBE_S);
    assert_int_not_equal(hub_link_unheard(w.link, NULL, now + 13 * SEC), 0);
    assert_int_equal(w.n_watches, 1);
    /* Nothing is known of the heartbeats of another stream. */
    say("{\"type\": \"heartbeat\", \"revision\": 41, \"next\": 20, \"storeBehind\": 3}");
    wait_for(&w.n_events, 6);
    hub_link_restart(w.link, clock_now());
    assert_int_equal(hub_link_view(w.link, clock_now()).quiet_max, HUB_LINK_QUIET_MAX);
    assert_int_equal(hub_link_view(w.link, clock_now()).store_behind_s, 0);
    assert_true(hub_link_view(w.link, clock_now()).is_heard);
}

static void test_reports(void **state)
{
    connect_to_hub();
    assert_true(hub_link_report(w.link, json_object()));
    /* One at a time. */
    assert_false(hub_link_report(w.link, json_object()));
    wait_for(&w.n_reports, 1);
    wait_for(&w.n_results, 1);
    /* Of none there is nothing to send. */
    assert_false(hub_link_report(w.link, NULL));
    assert_true(hub_link_report(w.link, json_pack("{s:i}", "number", 6)));
    wait_for(&w.n_results, 2);
    assert_int_equal(w.reported, 6);
    assert_int_equal(w.n_reports, 2);
}

/* Both are on this machine, whose clock agrees with itself, but for how long the answer took. */
static void test_what_time_it_is(void **state)
{
    nsec_t asked_at = clock_now();
    int64_t ahead_s;

    connect_to_hub();
    assert_false(hub_link_clock_ahead(w.link, &ahead_s));
    assert_true(hub_link_report(w.link, json_object()));
    wait_for(&w.n_results, 1);
    assert_true(hub_link_clock_ahead(w.link, &ahead_s));
    assert_true(ahead_s >= -1 && ahead_s <= (clock_now() - asked_at) / SEC + 2);
}

/* What has become of one is told, whatever has. */
static void test_what_becomes_of_reports(void **state)
{
    static const struct {
        bool counts;
        int refusal;
        enum edge_report_result result;
    } cases[] = {
        {false, 0, EDGE_REPORT_OLD},
        {true, 0, EDGE_REPORT_TAKEN},
        {true, 409, EDGE_REPORT_AGAIN},
        {true, 429, EDGE_REPORT_LOST},
    };

    connect_to_hub();
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        w.counts_reports = cases[i].counts;
        w.refuses_report = cases[i].refusal;
        assert_true(hub_link_report(w.link, json_object()));
        assert_true(hub_link_is_reporting(w.link));
        wait_for(&w.n_results, i + 1);
        assert_false(hub_link_is_reporting(w.link));
        assert_int_equal(w.result, cases[i].result);
        assert_int_equal(w.result_body, cases[i].result == EDGE_REPORT_TAKEN ? 1 : -1);
    }
}

/* Who is a stranger once may be a node that is just being removed, or one whose requests have
 * overtaken each other. */
static void test_reports_that_are_refused(void **state)
{
    static const struct {
        int refusal;
        bool is_said;
    } cases[] = {{403, false}, {0, false}, {403, false}, {403, true}, {400, true}, {401, false},
        {401, true}, {0, false}, {403, false}};
    const char *said = "warning: agent: the hub does not take this node's report: not now\n";

    log_init("agent", LOG_LEVEL_WARNING);
    connect_to_hub();
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct captured_log log = captured_log_begin();

        w.refuses_report = cases[i].refusal;
        (void)hub_link_report(w.link, json_object());
        wait_for(&w.n_results, i + 1);
        captured_log_end(&log, cases[i].is_said ? said : "");
    }
}

static void test_what_the_hub_has_heard(void **state)
{
    static const struct stun_transaction id = {.b = {1, 2, 3, [11] = 0xfe}};
    char text[ENDPOINT_TEXT_MAX];

    assert_false(hub_link_ask_heard(w.link, &id, on_heard, NULL));
    connect_to_hub();
    w.heard = "{\"heard\": true, \"endpoint\": \"203.0.113.5:3333\"}";
    assert_true(hub_link_ask_heard(w.link, &id, on_heard, NULL));
    assert_false(hub_link_ask_heard(w.link, &id, on_heard, NULL));
    wait_for(&w.n_heard, 1);
    assert_true(w.was_heard);
    assert_string_equal(endpoint_format(&w.heard_from, text), "203.0.113.5:3333");
    w.heard = "{\"heard\": false}";
    assert_true(hub_link_ask_heard(w.link, &id, on_heard, NULL));
    wait_for(&w.n_heard, 2);
    assert_false(w.was_heard);
    assert_string_equal(w.asked, "/v1/heard/0102030000000000000000fe");
}

/* An answer that says neither is none, and the next question may be asked. */
static void test_hub_that_does_not_say_what_it_has_heard(void **state)
{
    static const char *const answers[] = {NULL, "{}",
        "{\"heard\": 1, \"endpoint\": \"203.0.113.5:1\"}", "{\"heard\": true}",
        "{\"heard\": true, \"endpoint\": \"nowhere\"}"};
    static const struct stun_transaction id = {.b = {1}};

    connect_to_hub();
    for (unsigned i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        w.heard = answers[i];
        while (!hub_link_ask_heard(w.link, &id, on_heard, NULL))
            (void)uv_run(&w.loop, UV_RUN_ONCE);
        wait_for(&w.n_asked, i + 1);
    }
    w.heard = "{\"heard\": false}";
    while (!hub_link_ask_heard(w.link, &id, on_heard, NULL))
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    wait_for(&w.n_heard, 1);
    assert_int_equal(w.n_heard, 1);
    assert_false(w.was_heard);
}

/* Its API is reached through no other interface than that of the overlay. */
static void test_interface_that_is_not_there(void **state)
{
    (void)hub_link_free(w.link);
    assert_int_equal(hub_link_new(&w.link, &w.loop, "nosuch0", &w.signer, &listener, NULL), 0);
    open_server();
    hub_link_set_target(w.link, &w.api, clock_now());
    (void)wait_for_retry();
    assert_int_equal(w.n_watches, 0);
}

static void test_report_to_a_hub_that_is_away(void **state)
{
    int64_t ahead_s;

    hub_link_set_standby(w.link, true, clock_now());
    hub_link_set_target(w.link, &w.api, clock_now());
    assert_true(hub_link_report(w.link, json_object()));
    wait_for(&w.n_results, 1);
    assert_int_equal(w.result, EDGE_REPORT_LOST);
    assert_false(hub_link_is_reporting(w.link));
    assert_false(hub_link_clock_ahead(w.link, &ahead_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_heard_with_the_first_line, enter, leave),
        cmocka_unit_test_setup_teardown(test_hub_behind_its_store, enter, leave),
        cmocka_unit_test_setup_teardown(test_stamp_is_learned, enter, leave),
        cmocka_unit_test_setup_teardown(test_stamp_is_learned_once, enter, leave),
        cmocka_unit_test_setup_teardown(test_lost_and_found, enter, leave),
        cmocka_unit_test_setup_teardown(test_hub_that_is_away, enter, leave),
        cmocka_unit_test_setup_teardown(test_tries_come_slower_and_slower, enter, leave),
        cmocka_unit_test_setup_teardown(test_restart_begins_with_short_waits, enter, leave),
        cmocka_unit_test_setup_teardown(test_stream_that_says_nothing, enter, leave),
        cmocka_unit_test_setup_teardown(test_standby, enter, leave),
        cmocka_unit_test_setup_teardown(test_standby_without_a_target, enter, leave),
        cmocka_unit_test_setup_teardown(test_another_target, enter, leave),
        cmocka_unit_test_setup_teardown(test_restart_opens_another_stream, enter, leave),
        cmocka_unit_test_setup_teardown(test_goes_on, enter, leave),
        cmocka_unit_test_setup_teardown(test_event_that_cannot_be_used, enter, leave),
        cmocka_unit_test_setup_teardown(test_silence, enter, leave),
        cmocka_unit_test_setup_teardown(test_lines_are_no_repetitions, enter, leave),
        cmocka_unit_test_setup_teardown(test_slow_heartbeats, enter, leave),
        cmocka_unit_test_setup_teardown(test_reports, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_time_it_is, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_becomes_of_reports, enter, leave),
        cmocka_unit_test_setup_teardown(test_reports_that_are_refused, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_the_hub_has_heard, enter, leave),
        cmocka_unit_test_setup_teardown(test_hub_that_does_not_say_what_it_has_heard, enter, leave),
        cmocka_unit_test_setup_teardown(test_interface_that_is_not_there, enter, leave),
        cmocka_unit_test_setup_teardown(test_report_to_a_hub_that_is_away, enter, leave),
    };

    netns_be_alone();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
