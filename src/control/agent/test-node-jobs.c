/*
 * test-node-jobs.c - the jobs of a node: their calls to the hub, and what is known of each.
 *
 * The hubs are servers in this process, on the same loop, that answer what the test has them say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/hublink/hub_link.h"
#include "agent/meter.h"
#include "agent/node_jobs.h"
#include "api/server/server.h"
#include "base/err.h"
#include "net/socket/socket.h"
#include "os/clock.h"
#include "wire/member_proof.h"

#define SEC NSEC_PER_SEC

#define HELD_MAX 8

/* ---- hubs ------------------------------------------------------------------------------------ */

/** A hub, and the node's link to it. */
struct hub {
    struct server *server;
    struct hub_link *link;
    struct member_proof_signer signer;
    char asked[1024]; /* method, path and body of all calls: "GET /v1/jobs|" */
    unsigned n_asked;
    int status;                     /* what it answers; 0: nothing yet */
    const char *body;               /* NULL: none */
    struct deferred held[HELD_MAX]; /* with @status 0: the answers to come */
    unsigned n_held;
};

static struct world {
    uv_loop_t loop;
    uv_timer_t limit; /* ends a test that waits for something that does not come */
    uv_timer_t pause;
    struct hub a;
    struct hub b;
    struct job_calls calls;
    unsigned n_answered; /* answers that wait for their taker */
    int next_fd;         /* the number that the next file gets */
} w;

static void on_held_closed(struct deferred *d)
{
}

static void handle(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    size_t len = strlen(hub->asked);
    char *body = rq->body ? json_dumps(rq->body, JSON_COMPACT) : NULL;

    (void)snprintf(hub->asked + len, sizeof(hub->asked) - len, "%s %s%s%s|", rq->method, rq->path,
        body ? " " : "", body ? body : "");
    free(body);
    hub->n_asked++;
    if (hub->status == 204) {
        response_empty(rs);
    } else if (hub->status != 0) {
        response_json(rs, hub->status, json_loads(hub->body, 0, NULL));
    } else {
        struct deferred *d = &hub->held[hub->n_held++];

        assert_true(hub->n_held <= HELD_MAX);
        *d = (struct deferred){.on_closed = on_held_closed};
        rs->deferred = d;
    }
}

static const struct route routes[] = {
    {"GET", "/v1/jobs", API_ACCESS_OVERLAY, handle, "", ROLE_VIEWER},
    {"GET", "/v1/jobs/{job}/{what}", API_ACCESS_OVERLAY, handle, "", ROLE_VIEWER},
    {"POST", "/v1/jobs/{job}/{what}", API_ACCESS_OVERLAY, handle, "", ROLE_VIEWER},
    {"PUT", "/v1/drain", API_ACCESS_OVERLAY, handle, "", ROLE_VIEWER},
    ROUTES_END,
};

static int on_event(void *ctx, struct watch_event *ev, nsec_t now, struct err *e)
{
    return 0;
}

static void on_change(void *ctx, bool heard, const char *why, nsec_t now)
{
}

static void on_reported(void *ctx, enum edge_report_result result, const json_t *body)
{
}

/* @address: of loopback; each hub has one of its own, and the same port. */
static void hub_begin(struct hub *hub, const char *address)
{
    static const struct x25519_secret secret = {.b = {5, [31] = 0x40}};
    static const struct x25519_secret hub_secret = {.b = {6, [31] = 0x40}};
    const struct hub_link_listener listener = {
        .on_event = on_event, .on_change = on_change, .on_reported = on_reported};
    struct server_config config = {.loop = &w.loop, .routes = routes, .ctx = hub};
    struct server_listener *listening;
    struct x25519_public public;
    struct endpoint api;
    struct err e = ERR_NULL;

    *hub = (struct hub){.status = 200, .body = "{\"is\":\"there\"}"};
    assert_int_equal(endpoint_parse(&api, address, NULL), 0);
    assert_true(x25519_derive_public(&hub_secret, &public));
    assert_true(member_proof_signer_init(&hub->signer, &secret, &public));
    assert_int_equal(server_new(&hub->server, &config, &e), 0);
    if (server_listen_overlay(hub->server, &api, NULL, NULL, &listening, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(hub_link_new(&hub->link, &w.loop, "lo", &hub->signer, &listener, &e), 0);
    hub_link_set_standby(hub->link, true, clock_now());
    hub_link_set_target(hub->link, &api, clock_now());
}

static void hub_end(struct hub *hub)
{
    hub->link = hub_link_free(hub->link);
    server_stop(hub->server);
}

static struct hub_link *find(void *ctx, const char *name)
{
    return strcmp(name, "b") == 0 ? w.b.link : NULL;
}

static void on_limit(uv_timer_t *timer)
{
    fail_msg("what was waited for did not come within 10 s");
}

static int next_fd(void)
{
    int fd = dup(STDIN_FILENO);

    (void)close(fd);
    return fd;
}

static int enter(void **state)
{
    char address[32];
    unsigned port = 20000 + (unsigned)getpid() % 10000;

    w = (struct world){.next_fd = next_fd()};
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.limit), 0);
    assert_int_equal(uv_timer_start(&w.limit, on_limit, 10000, 0), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.pause), 0);
    (void)snprintf(address, sizeof(address), "127.0.3.1:%u", port);
    hub_begin(&w.a, address);
    (void)snprintf(address, sizeof(address), "127.0.3.2:%u", port);
    hub_begin(&w.b, address);
    job_calls_init(&w.calls, find, NULL);
    job_calls_set_hub(&w.calls, w.a.link);
    return 0;
}

static int leave(void **state)
{
    hub_end(&w.a);
    hub_end(&w.b);
    uv_close((uv_handle_t *)&w.limit, NULL);
    uv_close((uv_handle_t *)&w.pause, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    w.a.server = server_free(w.a.server);
    w.b.server = server_free(w.b.server);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    assert_int_equal(next_fd(), w.next_fd);
    return 0;
}

static void hub_answer(struct hub *hub, unsigned i)
{
    struct response rs = {0};

    response_json(&rs, 200, json_pack("{s:i}", "number", (int)i));
    deferred_answer(&hub->held[i], &rs);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void on_answer(struct deferred *d)
{
    w.n_answered++;
}

static struct deferred *begin_call(const char *method, const char *job, const json_t *body)
{
    struct response rs = {0};

    job_calls_begin(&w.calls, method, job, "rendezvous", body, &rs);
    assert_non_null(rs.deferred);
    rs.deferred->wake = on_answer;
    return rs.deferred;
}

static void wait_until(const unsigned *n, unsigned wanted)
{
    while (*n < wanted)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
}

static void on_pause(uv_timer_t *timer)
{
}

/* Turns enough for whatever is on its way to arrive. */
static void settle(void)
{
    (void)uv_timer_start(&w.pause, on_pause, 50, 0);
    while (uv_is_active((uv_handle_t *)&w.pause))
        (void)uv_run(&w.loop, UV_RUN_ONCE);
}

static void end_call(struct deferred *d)
{
    response_deinit(&d->rs);
    d->on_closed(d);
}

static const char *text_of(const struct deferred *d, const char *field)
{
    return json_string_value(json_object_get(d->rs.body, field));
}

static void test_the_hubs_answer_is_handed_on(void **state)
{
    json_t *body = json_pack("{s:i}", "nodes", 2);
    struct deferred *d = begin_call("POST", "train", body);

    json_decref(body);
    wait_until(&w.n_answered, 1);
    assert_string_equal(w.a.asked, "POST /v1/jobs/train/rendezvous {\"nodes\":2}|");
    assert_int_equal(d->rs.status, 200);
    assert_string_equal(text_of(d, "is"), "there");
    end_call(d);
    assert_true(list_is_empty(&w.calls.calls));
}

static void test_all_jobs_have_no_name(void **state)
{
    struct deferred *d = begin_call("GET", NULL, NULL);

    wait_until(&w.n_answered, 1);
    assert_string_equal(w.a.asked, "GET /v1/jobs|");
    end_call(d);
}

/* What the node says of its health goes the same way. */
static void test_a_drain(void **state)
{
    json_t *body = json_pack("{s:i}", "failed", 3);
    struct response rs = {0};

    job_calls_drain(&w.calls, body, &rs);
    json_decref(body);
    assert_non_null(rs.deferred);
    rs.deferred->wake = on_answer;
    wait_until(&w.n_answered, 1);
    assert_string_equal(w.a.asked, "PUT /v1/drain {\"failed\":3}|");
    assert_string_equal(text_of(rs.deferred, "is"), "there");
    end_call(rs.deferred);
}

static void test_an_answer_without_a_body(void **state)
{
    struct deferred *d;

    w.a.status = 204;
    d = begin_call("GET", "train", NULL);
    wait_until(&w.n_answered, 1);
    assert_int_equal(d->rs.status, 204);
    assert_null(d->rs.body);
    end_call(d);
}

static void test_a_refusal_is_handed_on(void **state)
{
    struct deferred *d;

    w.a.status = 409;
    w.a.body = "{\"error\":\"it runs already\"}";
    d = begin_call("POST", "train", NULL);
    wait_until(&w.n_answered, 1);
    assert_int_equal(d->rs.status, 409);
    assert_string_equal(text_of(d, "error"), "it runs already");
    end_call(d);
}

static void test_a_name_that_no_job_has(void **state)
{
    struct response rs = {0};

    job_calls_begin(&w.calls, "GET", "Not/A/Name", "rendezvous", NULL, &rs);
    assert_null(rs.deferred);
    assert_int_equal(rs.status, 400);
    assert_true(list_is_empty(&w.calls.calls));
    response_deinit(&rs);
    settle();
    assert_int_equal(w.a.n_asked, 0);
}

/* Before the agent knows where a hub is. */
static void test_a_hub_that_is_not_known(void **state)
{
    const struct hub_link_listener listener = {
        .on_event = on_event, .on_change = on_change, .on_reported = on_reported};
    struct hub_link *unknown;
    struct deferred *d;

    assert_int_equal(hub_link_new(&unknown, &w.loop, "lo", &w.a.signer, &listener, NULL), 0);
    job_calls_set_hub(&w.calls, unknown);
    d = begin_call("GET", "train", NULL);
    assert_true(d->is_ready);
    assert_int_equal(d->rs.status, 502);
    assert_string_equal(text_of(d, "error"), "this node knows of no hub yet");
    end_call(d);
    (void)hub_link_free(unknown);
}

/* At the place where it was nobody listens. */
static void test_a_hub_that_is_away(void **state)
{
    struct endpoint nowhere;
    struct deferred *d;

    assert_int_equal(endpoint_parse(&nowhere, "127.0.3.9:9", NULL), 0);
    hub_link_set_target(w.a.link, &nowhere, clock_now());
    d = begin_call("GET", "train", NULL);
    wait_until(&w.n_answered, 1);
    assert_int_equal(d->rs.status, 502);
    assert_true(strlen(text_of(d, "error")) > 0);
    end_call(d);
}

static void test_another_hub_serves_the_jobs(void **state)
{
    struct deferred *d;

    w.a.status = 421;
    w.a.body = "{\"hub\":\"b\",\"error\":\"another one does\"}";
    d = begin_call("GET", "train", NULL);
    wait_until(&w.n_answered, 1);
    assert_string_equal(w.b.asked, "GET /v1/jobs/train/rendezvous|");
    assert_int_equal(w.a.n_asked, 1);
    assert_int_equal(d->rs.status, 200);
    end_call(d);
}

/* Two hubs that name each other must not be asked for ever. */
static void test_a_call_is_sent_on_once(void **state)
{
    struct deferred *d;

    w.a.status = w.b.status = 421;
    w.a.body = w.b.body = "{\"hub\":\"b\",\"error\":\"another one does\"}";
    d = begin_call("GET", "train", NULL);
    wait_until(&w.n_answered, 1);
    assert_int_equal(w.a.n_asked, 1);
    assert_int_equal(w.b.n_asked, 1);
    assert_int_equal(d->rs.status, 421);
    end_call(d);
}

static void test_a_hub_of_a_name_that_nobody_has(void **state)
{
    struct deferred *d;

    w.a.status = 421;
    w.a.body = "{\"hub\":\"c\",\"error\":\"another one does\"}";
    d = begin_call("GET", "train", NULL);
    wait_until(&w.n_answered, 1);
    assert_int_equal(d->rs.status, 421);
    assert_int_equal(w.b.n_asked, 0);
    end_call(d);
}

/* A field "hub" means that only with status 421. */
static void test_an_answer_that_names_a_hub(void **state)
{
    struct deferred *d;

    w.a.body = "{\"hub\":\"b\"}";
    d = begin_call("GET", "train", NULL);
    wait_until(&w.n_answered, 1);
    assert_int_equal(d->rs.status, 200);
    assert_int_equal(w.b.n_asked, 0);
    end_call(d);
}

/* The hub bounds a member's connections, so the fifth call waits until one has its answer. */
static void test_four_calls_at_once(void **state)
{
    struct deferred *d[6];

    w.a.status = 0;
    for (unsigned i = 0; i < 6; i++)
        d[i] = begin_call("GET", "train", NULL);
    wait_until(&w.a.n_asked, 4);
    settle();
    assert_int_equal(w.a.n_asked, 4);
    hub_answer(&w.a, 0);
    wait_until(&w.n_answered, 1);
    for (unsigned i = 0; i < 6; i++) {
        if (!d[i]->is_ready)
            continue;
        end_call(d[i]);
        d[i] = NULL;
    }
    wait_until(&w.a.n_asked, 5);
    settle();
    assert_int_equal(w.a.n_asked, 5);
    w.calls.is_ending = true;
    for (unsigned i = 0; i < 6; i++)
        if (d[i])
            end_call(d[i]);
    settle();
    assert_int_equal(w.a.n_asked, 5);
}

/* One that is answered, and whose answer is not taken yet, keeps no other from being sent. */
static void test_an_answered_call_takes_no_place(void **state)
{
    struct deferred *d[5];

    w.a.status = 0;
    for (unsigned i = 0; i < 4; i++)
        d[i] = begin_call("GET", "train", NULL);
    wait_until(&w.a.n_asked, 4);
    hub_answer(&w.a, 2);
    wait_until(&w.n_answered, 1);
    d[4] = begin_call("GET", "train", NULL);
    wait_until(&w.a.n_asked, 5);
    w.calls.is_ending = true;
    for (unsigned i = 0; i < 5; i++)
        end_call(d[i]);
}

static void test_another_hub_serves_this_node(void **state)
{
    struct deferred *d;

    w.a.status = 0;
    d = begin_call("GET", "train", NULL);
    wait_until(&w.a.n_asked, 1);
    /* The same one again changes nothing. */
    job_calls_set_hub(&w.calls, w.a.link);
    settle();
    assert_int_equal(w.a.n_asked, 1);
    job_calls_set_hub(&w.calls, w.b.link);
    wait_until(&w.n_answered, 1);
    assert_int_equal(w.b.n_asked, 1);
    assert_int_equal(d->rs.status, 200);
    end_call(d);
}

/* Only the calls that were sent to it; and they may be sent on once more. */
static void test_a_hub_that_goes_away(void **state)
{
    struct deferred *d;

    w.a.status = 421;
    w.a.body = "{\"hub\":\"b\"}";
    w.b.status = 0;
    d = begin_call("GET", "train", NULL);
    wait_until(&w.b.n_asked, 1);
    job_calls_on_gone(&w.calls, w.a.link);
    settle();
    assert_int_equal(w.a.n_asked, 1);
    job_calls_on_gone(&w.calls, w.b.link);
    wait_until(&w.b.n_asked, 2);
    assert_int_equal(w.a.n_asked, 2);
    w.calls.is_ending = true;
    job_calls_on_gone(&w.calls, NULL);
    settle();
    assert_int_equal(w.a.n_asked, 2);
    end_call(d);
}

/* ---- jobs that run here ---------------------------------------------------------------------- */

/** A node with its meter, whose hub answers what the test has written into hub a. */
struct runs {
    struct node_jobs nj;
    struct meter meter;
    nsec_t now;
};

static struct runs *make_runs(void)
{
    static struct runs r;

    r = (struct runs){.meter = {.id = 17}, .now = 1000 * SEC};
    r.nj = (struct node_jobs){.calls = &w.calls, .meter = &r.meter};
    return &r;
}

static void end_runs(struct runs *r)
{
    w.calls.is_ending = true;
    node_jobs_stop(&r->nj);
    assert_int_equal(r->nj.n, 0);
    meter_deinit(&r->meter);
}

/* A poll, and one more when what it has asked is answered. */
static void ask_and_take(struct runs *r)
{
    unsigned n = w.a.n_asked;

    node_jobs_poll(&r->nj, r->now);
    assert_non_null(r->nj.items[0].ask);
    assert_int_equal(r->nj.items[0].ask_at, r->now + 10 * SEC);
    while (!r->nj.items[0].ask->is_ready)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_int_equal(w.a.n_asked, n + 1);
    node_jobs_poll(&r->nj, r->now);
    assert_null(r->nj.items[0].ask);
}

static bool has_member(const struct runs *r, const char *name)
{
    const struct meter_job *job = &r->meter.jobs[0];

    for (size_t i = 0; i < job->len; i += strlen(job->members + i) + 1)
        if (strcmp(job->members + i, name) == 0)
            return true;
    return false;
}

static void test_the_hub_is_asked_who_is_in_a_run(void **state)
{
    struct runs *r = make_runs();

    w.a.body = "{\"members\":[\"n1\",\"n2\"]}";
    node_jobs_begin(&r->nj, "train", 0, r->now);
    ask_and_take(r);
    assert_string_equal(w.a.asked, "GET /v1/jobs/train/rendezvous|");
    assert_true(has_member(r, "n1"));
    assert_true(has_member(r, "n2"));
    assert_int_equal(r->meter.jobs[0].len, 6);
    /* A hub that is away knows nobody; those of before stay. */
    w.a.status = 503;
    w.a.body = "{\"error\":\"later\"}";
    r->now += 2 * SEC;
    ask_and_take(r);
    assert_true(has_member(r, "n1"));
    end_runs(r);
}

/* One whose name no job has is not asked about in each poll. */
static void test_a_run_that_cannot_be_asked_about(void **state)
{
    struct runs *r = make_runs();

    node_jobs_begin(&r->nj, "Not a name", 0, r->now);
    node_jobs_poll(&r->nj, r->now);
    assert_null(r->nj.items[0].ask);
    assert_int_equal(r->nj.items[0].ask_at, r->now + 10 * SEC);
    end_runs(r);
}

/* Every 2 s in the first minute, in which its nodes come, and then every 10 s. */
static void test_how_often_the_hub_is_asked(void **state)
{
    struct runs *r = make_runs();

    node_jobs_begin(&r->nj, "train", 0, r->now);
    ask_and_take(r);
    assert_int_equal(r->nj.items[0].ask_at, r->now + 2 * SEC);
    r->now += 2 * SEC - 1;
    node_jobs_poll(&r->nj, r->now);
    assert_null(r->nj.items[0].ask);
    r->now++;
    ask_and_take(r);
    r->now += 58 * SEC - 1;
    ask_and_take(r);
    assert_int_equal(r->nj.items[0].ask_at, r->now + 2 * SEC);
    r->now += 2 * SEC;
    ask_and_take(r);
    assert_int_equal(r->nj.items[0].ask_at, r->now + 10 * SEC);
    end_runs(r);
}

/* The command sees how its job's budget is; fields that are not what they should be are left out.
 */
static void test_the_budget_of_a_run(void **state)
{
    struct runs *r = make_runs();
    json_t *list = json_pack("[{s:s}, {s:s}]", "job", "train", "job", "other");
    const json_t *budget;
    char *text;

    w.a.body = "{\"members\":[\"n1\"],\"budget\":{\"level\":\"spent\",\"bytes\":5,"
               "\"cost\":\"much\",\"strange\":1}}";
    node_jobs_begin(&r->nj, "train", 0, r->now);
    node_jobs_begin(&r->nj, "other", 0, r->now + 100 * SEC);
    ask_and_take(r);
    node_jobs_tell(&r->nj, list);
    budget = json_object_get(json_array_get(list, 0), "budget");
    assert_string_equal(json_string_value(json_object_get(budget, "level")), "spent");
    assert_int_equal(json_integer_value(json_object_get(budget, "bytes")), 5);
    assert_null(json_object_get(budget, "cost"));
    assert_null(json_object_get(budget, "strange"));
    assert_true(json_is_null(json_object_get(budget, "capBitsPerSecond")));
    assert_true(json_is_null(json_object_get(json_array_get(list, 1), "budget")));
    /* What the caller does with its copy is not seen in the next one. */
    (void)json_object_clear((json_t *)budget);
    node_jobs_tell(&r->nj, list);
    budget = json_object_get(json_array_get(list, 0), "budget");
    assert_string_equal(json_string_value(json_object_get(budget, "level")), "spent");

    w.a.body = "{\"members\":[\"n1\"]}";
    r->now += 2 * SEC;
    ask_and_take(r);
    node_jobs_tell(&r->nj, list);
    assert_true(json_is_null(json_object_get(json_array_get(list, 0), "budget")));
    /* All that there may be of it. */
    w.a.body = "{\"members\":[\"n1\"],\"budget\":{\"level\":\"near\",\"share\":0.5,\"bytes\":5,"
               "\"cost\":1.5,\"unpricedBytes\":6,\"bytesPerDay\":7,\"costPerDay\":8}}";
    r->now += 2 * SEC;
    ask_and_take(r);
    node_jobs_tell(&r->nj, list);
    text = json_dumps(json_array_get(list, 0), JSON_COMPACT);
    assert_string_equal(text,
        "{\"job\":\"train\",\"nccl\":null,\"budget\":{\"level\":\"near\","
        "\"capBitsPerSecond\":null,\"share\":0.5,\"bytes\":5,\"cost\":1.5,\"unpricedBytes\":6,"
        "\"bytesPerDay\":7,\"costPerDay\":8}}");
    free(text);
    /* Without a level there is none. */
    w.a.body = "{\"members\":[\"n1\"],\"budget\":{\"level\":1,\"bytes\":5}}";
    r->now += 2 * SEC;
    ask_and_take(r);
    node_jobs_tell(&r->nj, list);
    assert_true(json_is_null(json_object_get(json_array_get(list, 0), "budget")));
    json_decref(list);
    end_runs(r);
}

static const char *nccl_verdict(const struct node_jobs *nj, const char *job)
{
    json_t *list = json_pack("[{s:s}]", "job", job);
    static char verdict[32];
    const char *said;

    node_jobs_tell(nj, list);
    said = json_string_value(
        json_object_get(json_object_get(json_array_get(list, 0), "nccl"), "verdict"));
    (void)snprintf(verdict, sizeof(verdict), "%s", said ? said : "");
    json_decref(list);
    return verdict;
}

/* Of several commands of a job, one that uses another network than it should is told of. */
static void test_what_nccl_took(void **state)
{
    struct runs *r = make_runs();
    int32_t pid = (int32_t)getpid();

    node_jobs_begin(&r->nj, "train", 0, r->now);
    node_jobs_begin(&r->nj, "train", pid, r->now);
    node_jobs_begin(&r->nj, "other", pid, r->now);
    assert_string_equal(nccl_verdict(&r->nj, "train"), "");
    node_jobs_set_nccl(&r->nj, "train", 0, json_pack("{s:s}", "verdict", "overlay"));
    assert_string_equal(nccl_verdict(&r->nj, "train"), "overlay");
    node_jobs_set_nccl(&r->nj, "train", pid, json_pack("{s:s}", "verdict", "other"));
    assert_string_equal(nccl_verdict(&r->nj, "train"), "other");
    node_jobs_set_nccl(&r->nj, "train", 0, json_pack("{s:s}", "verdict", "overlay"));
    assert_string_equal(nccl_verdict(&r->nj, "train"), "other");
    node_jobs_set_nccl(&r->nj, "train", pid, json_pack("{s:s}", "verdict", "lan"));
    assert_string_equal(nccl_verdict(&r->nj, "train"), "overlay");
    assert_string_equal(nccl_verdict(&r->nj, "other"), "");
    /* One that has ended has said nothing. */
    node_jobs_set_nccl(&r->nj, "other", pid, json_pack("{s:s}", "verdict", "lan"));
    node_jobs_end(&r->nj, "other", pid);
    assert_string_equal(nccl_verdict(&r->nj, "other"), "");
    /* A command that is not known. */
    node_jobs_set_nccl(&r->nj, "strange", pid, json_pack("{s:s}", "verdict", "other"));
    assert_string_equal(nccl_verdict(&r->nj, "strange"), "");
    end_runs(r);
}

/* A command that is killed says nothing, so its process is watched. */
static void test_a_command_that_is_killed(void **state)
{
    struct runs *r = make_runs();
    pid_t child = fork();

    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    node_jobs_begin(&r->nj, "train", child, r->now);
    node_jobs_begin(&r->nj, "other", 0, r->now);
    node_jobs_poll(&r->nj, r->now);
    assert_int_equal(r->nj.n, 2);
    assert_false(r->nj.has_ended);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    node_jobs_poll(&r->nj, r->now);
    assert_int_equal(r->nj.n, 1);
    assert_string_equal(r->nj.items[0].job, "other");
    assert_true(r->nj.has_ended);
    assert_null(meter_job_find(&r->meter, "train"));
    assert_non_null(meter_job_find(&r->meter, "other"));
    /* And one whose process is gone before it begins does not begin. */
    node_jobs_begin(&r->nj, "train", child, r->now);
    assert_int_equal(r->nj.n, 1);
    end_runs(r);
}

static void test_a_command_that_says_that_it_has_ended(void **state)
{
    struct runs *r = make_runs();

    node_jobs_begin(&r->nj, "train", 0, r->now);
    node_jobs_end(&r->nj, "train", 1);
    node_jobs_end(&r->nj, "other", 0);
    assert_int_equal(r->nj.n, 1);
    assert_false(r->nj.has_ended);
    node_jobs_end(&r->nj, "train", 0);
    assert_int_equal(r->nj.n, 0);
    assert_true(r->nj.has_ended);
    assert_null(meter_job_find(&r->meter, "train"));
    end_runs(r);
}

/* Several at once, of which each is told to the meter. */
static void test_commands_that_are_killed_together(void **state)
{
    struct runs *r = make_runs();
    pid_t children[3];

    for (unsigned i = 0; i < 3; i++) {
        static const char *const jobs[] = {"a", "b", "c"};

        children[i] = fork();
        if (children[i] == 0) {
            (void)pause();
            _exit(0);
        }
        node_jobs_begin(&r->nj, jobs[i], children[i], r->now);
    }
    for (unsigned i = 0; i < 3; i++)
        (void)kill(children[i], SIGKILL);
    for (unsigned i = 0; i < 3; i++)
        (void)waitpid(children[i], NULL, 0);
    node_jobs_poll(&r->nj, r->now);
    assert_int_equal(r->nj.n, 0);
    assert_null(meter_job_find(&r->meter, "b"));
    end_runs(r);
}

/* A command without a process is only known by what it says. */
static void test_a_command_without_a_process(void **state)
{
    struct runs *r = make_runs();

    errno = ESRCH;
    node_jobs_begin(&r->nj, "train", 0, r->now);
    assert_int_equal(r->nj.n, 1);
    assert_string_equal(r->nj.items[0].job, "train");
    assert_int_equal(r->nj.items[0].pid, 0);
    assert_int_equal(r->nj.items[0].pid_fd, -1);
    assert_int_equal(r->nj.items[0].began_at, r->now);
    assert_int_equal(r->nj.items[0].ask_at, r->now);
    assert_false(r->nj.items[0].is_started);
    assert_non_null(meter_job_find(&r->meter, "train"));
    end_runs(r);
}

static void test_how_many_have_started(void **state)
{
    struct runs *r = make_runs();

    node_jobs_begin(&r->nj, "a", 0, r->now);
    node_jobs_begin(&r->nj, "b", 0, r->now);
    node_jobs_start(&r->nj, "b", 0);
    node_jobs_start(&r->nj, "b", 7);
    assert_int_equal(node_jobs_started(&r->nj), 1);
    node_jobs_end(&r->nj, "a", 0);
    assert_int_equal(node_jobs_started(&r->nj), 1);
    node_jobs_end(&r->nj, "b", 0);
    assert_int_equal(node_jobs_started(&r->nj), 0);
    end_runs(r);
}

static void test_more_commands_than_are_known_of(void **state)
{
    struct runs *r = make_runs();
    char job[NAME_MAX_LEN + 1];

    for (unsigned i = 0; i <= NODE_JOBS_MAX; i++) {
        (void)snprintf(job, sizeof(job), "job-%u", i);
        node_jobs_begin(&r->nj, job, 0, r->now);
    }
    assert_int_equal(r->nj.n, NODE_JOBS_MAX);
    /* The same one again is the same one. */
    node_jobs_end(&r->nj, "job-0", 0);
    node_jobs_begin(&r->nj, "job-1", 0, r->now);
    assert_int_equal(r->nj.n, NODE_JOBS_MAX - 1);
    node_jobs_begin(&r->nj, "another", 0, r->now);
    assert_int_equal(r->nj.n, NODE_JOBS_MAX);
    assert_string_equal(r->nj.items[NODE_JOBS_MAX - 1].job, "another");
    end_runs(r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_hubs_answer_is_handed_on),
        TEST(test_all_jobs_have_no_name),
        TEST(test_a_drain),
        TEST(test_an_answer_without_a_body),
        TEST(test_a_refusal_is_handed_on),
        TEST(test_a_name_that_no_job_has),
        TEST(test_a_hub_that_is_not_known),
        TEST(test_a_hub_that_is_away),
        TEST(test_another_hub_serves_the_jobs),
        TEST(test_a_call_is_sent_on_once),
        TEST(test_a_hub_of_a_name_that_nobody_has),
        TEST(test_an_answer_that_names_a_hub),
        TEST(test_four_calls_at_once),
        TEST(test_an_answered_call_takes_no_place),
        TEST(test_another_hub_serves_this_node),
        TEST(test_a_hub_that_goes_away),
        TEST(test_the_hub_is_asked_who_is_in_a_run),
        TEST(test_a_run_that_cannot_be_asked_about),
        TEST(test_how_often_the_hub_is_asked),
        TEST(test_the_budget_of_a_run),
        TEST(test_what_nccl_took),
        TEST(test_a_command_that_is_killed),
        TEST(test_a_command_that_says_that_it_has_ended),
        TEST(test_commands_that_are_killed_together),
        TEST(test_a_command_without_a_process),
        TEST(test_how_many_have_started),
        TEST(test_more_commands_than_are_known_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
