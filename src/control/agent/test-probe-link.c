/*
 * test-probe-link.c - a probe's reports on their way to the hub, and what becomes of each.
 *
 * The hub is a server in this process, on a loop that turns while a report is on its way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/probe_link.h"
#include "agent/state/state.h"
#include "api/server/server.h"
#include "base/err.h"
#include "test/support/sample_mesh.h"
#include "wire/member_proof.h"

#define ASKED_MAX 2

static const struct x25519_secret secret = {.b = {5, [31] = 0x40}};
static const struct x25519_secret hub_secret = {.b = {6, [31] = 0x40}};

/** What the hub answers. */
struct answer {
    int status;
    const char *body;
};

static struct world {
    uv_loop_t loop;
    uv_timer_t limit; /* ends a test that waits for something that does not come */
    struct server *server;
    struct member_proof_key key; /* as the hub derives it */
    struct answer answers[ASKED_MAX];
    struct member_proof proofs[ASKED_MAX]; /* of what was asked */
    char asked[256];                       /* method, path and body: "PUT /v1/status {}|" */
    unsigned n_asked;
    struct state state;
    struct probe_link *link;
    struct err why; /* of the last report */
} w;

/* ---- the hub --------------------------------------------------------------------------------- */

static void put_status(void *ctx, const struct request *rq, struct response *rs)
{
    const struct member_proof_request about = {
        .method = rq->method, .path = rq->path, .body = rq->bytes, .body_len = rq->n_bytes};
    const struct answer *a = &w.answers[w.n_asked];
    struct member_proof *proof = &w.proofs[w.n_asked];
    size_t len = strlen(w.asked);

    assert_true(w.n_asked++ < ASKED_MAX);
    assert_true(member_proof_parse(proof, rq->authorization));
    assert_true(member_proof_verify(proof, &w.key, &about));
    (void)snprintf(w.asked + len, sizeof(w.asked) - len, "%s %s %.*s|", rq->method, rq->path,
        (int)rq->n_bytes, (const char *)rq->bytes);
    if (a->status == 204)
        response_empty(rs);
    else
        response_json(rs, a->status, json_loads(a->body, 0, NULL));
}

static const struct route routes[] = {
    {"PUT", "/v1/status", API_ACCESS_OVERLAY, put_status, "", ROLE_VIEWER},
    ROUTES_END,
};

/* The hub answers the next report so, and so a second time. */
static void answer_by(struct answer first, struct answer second)
{
    w.answers[0] = first;
    w.answers[1] = second;
    w.asked[0] = '\0';
    w.n_asked = 0;
}

/* ---- the probe ------------------------------------------------------------------------------- */

static void on_limit(uv_timer_t *timer)
{
    fail_msg("what was waited for did not come within 10 s");
}

/* The node n2 of two, whose hub has an address of loopback. */
static int enter(void **state)
{
    struct server_config config = {.loop = &w.loop, .routes = routes};
    struct endpoint api = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 4, 1}),
        .port = (uint16_t)(20000 + getpid() % 10000)};
    struct object hub = sample_node(1);
    struct server_listener *listener;
    struct x25519_public public;
    struct err e = ERR_NULL;

    w = (struct world){.state = {.secret = secret, .snapshot = sample_snapshot(2, 2)}};
    (void)snprintf(w.state.interface, sizeof(w.state.interface), "lo");
    assert_true(x25519_derive_public(&hub_secret, &hub.node.key));
    hub.node.address4 = api.addr;
    hub.node.hub->api_port = api.port;
    sample_put(&w.state.snapshot, hub);
    assert_true(x25519_derive_public(&secret, &public));
    assert_true(member_proof_key_make(&w.key, &hub_secret, &public, &public));
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.limit), 0);
    assert_int_equal(uv_timer_start(&w.limit, on_limit, 10000, 0), 0);
    if (server_new(&w.server, &config, &e) != 0 ||
        server_listen_overlay(w.server, &api, NULL, NULL, &listener, &e) != 0 ||
        probe_link_new(&w.link, &w.state, &e) != 0)
        fail_msg("%s", err_text(&e));
    return 0;
}

static int leave(void **state)
{
    assert_null(probe_link_free(w.link));
    server_stop(w.server);
    uv_close((uv_handle_t *)&w.limit, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    w.server = server_free(w.server);
    state_deinit(&w.state);
    return uv_loop_close(&w.loop);
}

/* Has the hub told that there are @n, and waits for what becomes of it. */
static enum edge_report_result report(int n)
{
    enum edge_report_result became;
    struct pollfd p = {.events = POLLIN};

    assert_int_equal(probe_link_send(w.link, json_pack("{s:i}", "n", n)), 0);
    /* As long as the loop stands still there is no answer. */
    assert_false(probe_link_take(w.link, &became, &w.why));
    p.fd = probe_link_fd(w.link);
    assert_true(p.fd >= 0);
    while (poll(&p, 1, 1) == 0)
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    assert_true(probe_link_take(w.link, &became, &w.why));
    assert_false(probe_link_take(w.link, &became, &w.why));
    return became;
}

/* ---- what becomes of a report ---------------------------------------------------------------- */

static void test_nothing_was_sent_yet(void **state)
{
    enum edge_report_result became;

    assert_int_equal(probe_link_fd(w.link), -1);
    assert_false(probe_link_take(w.link, &became, &w.why));
}

static void test_reports_that_are_taken(void **state)
{
    answer_by((struct answer){200, "{}"}, (struct answer){200, "{}"});
    assert_int_equal(report(7), EDGE_REPORT_TAKEN);
    assert_string_equal(w.asked, "PUT /v1/status {\"n\":7}|");
    assert_int_equal(report(8), EDGE_REPORT_TAKEN);
    assert_string_equal(w.asked, "PUT /v1/status {\"n\":7}|PUT /v1/status {\"n\":8}|");
    assert_int_equal(w.proofs[1].sequence, w.proofs[0].sequence + 1);
    assert_string_equal(w.why.text, "");
}

/* One of before reports had numbers says nothing of them. */
static void test_an_older_hub(void **state)
{
    answer_by((struct answer){.status = 204}, (struct answer){.status = 500});
    assert_int_equal(report(7), EDGE_REPORT_OLD);
}

/* Each report has its own words, and none when it is taken. */
static void test_reports_that_are_refused(void **state)
{
    answer_by((struct answer){409, "{\"error\":\"begin anew\"}"},
        (struct answer){500, "{\"error\":\"not now\"}"});
    assert_int_equal(report(7), EDGE_REPORT_AGAIN);
    assert_string_equal(w.why.text, "begin anew");
    assert_int_equal(report(8), EDGE_REPORT_LOST);
    assert_string_equal(w.why.text, "not now");
    answer_by((struct answer){200, "{}"}, (struct answer){.status = 500});
    assert_int_equal(report(9), EDGE_REPORT_TAKEN);
    assert_string_equal(w.why.text, "");
}

static void test_a_hub_that_is_away(void **state)
{
    answer_by((struct answer){409, "{\"error\":\"begin anew\"}"}, (struct answer){.status = 500});
    assert_int_equal(report(7), EDGE_REPORT_AGAIN);
    server_stop(w.server);
    assert_int_equal(report(8), EDGE_REPORT_LOST);
    assert_string_not_equal(w.why.text, "");
    assert_int_equal(w.n_asked, 1);
}

/* ---- its number ------------------------------------------------------------------------------ */

#define UNPROVEN {401, "{\"error\":\"no\",\"boot\":9,\"after\":40}"}

/* The hub says which number is free; the next ones are left to the agent. */
static void test_a_number_that_is_taken_already(void **state)
{
    answer_by((struct answer)UNPROVEN, (struct answer){200, "{}"});
    assert_int_equal(report(7), EDGE_REPORT_TAKEN);
    assert_string_equal(w.asked, "PUT /v1/status {\"n\":7}|PUT /v1/status {\"n\":7}|");
    assert_int_equal(w.proofs[0].boot, 0);
    assert_int_equal(w.proofs[1].boot, 9);
    assert_int_equal(w.proofs[1].sequence, 41 + 24);
    answer_by((struct answer){200, "{}"}, (struct answer){.status = 500});
    assert_int_equal(report(8), EDGE_REPORT_TAKEN);
    assert_int_equal(w.proofs[0].boot, 9);
    assert_int_equal(w.proofs[0].sequence, 42 + 24);
}

static void test_a_number_is_learned_once(void **state)
{
    answer_by((struct answer)UNPROVEN, (struct answer)UNPROVEN);
    assert_int_equal(report(7), EDGE_REPORT_LOST);
    assert_int_equal(w.n_asked, 2);
    assert_string_equal(w.why.text, "no");
}

/* ---- whom to tell ---------------------------------------------------------------------------- */

static void test_nobody_to_tell(void **state)
{
    struct object none = sample_node(3);
    struct object wrong = sample_node(1);
    struct probe_link *link = NULL;
    struct err e = ERR_NULL;

    wrong.node.key = (struct x25519_public){.b = {0}};
    sample_put(&w.state.snapshot, wrong);
    assert_int_equal(probe_link_new(&link, &w.state, &e), -EINVAL);
    assert_string_equal(e.text, "there is no hub that could be told");
    e = (struct err)ERR_NULL;
    (void)snprintf(none.node.meta.name, sizeof(none.node.meta.name), "hub");
    sample_put(&w.state.snapshot, none);
    assert_int_equal(probe_link_new(&link, &w.state, &e), -EINVAL);
    assert_string_equal(e.text, "there is no hub that could be told");
    assert_null(link);
    assert_null(probe_link_free(NULL));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_nothing_was_sent_yet),
        TEST(test_reports_that_are_taken),
        TEST(test_an_older_hub),
        TEST(test_reports_that_are_refused),
        TEST(test_a_hub_that_is_away),
        TEST(test_a_number_that_is_taken_already),
        TEST(test_a_number_is_learned_once),
        TEST(test_nobody_to_tell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
