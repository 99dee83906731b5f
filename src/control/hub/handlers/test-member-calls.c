/*
 * test-member-calls.c - machines that come and go, and what members ask and say. A whole hub in
 * this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/content/token.h"
#include "api/server/server.h"
#include "base/err.h"
#include "base/text.h"
#include "hub/handlers/handlers.h"
#include "hub/model/proof.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/sample_hub.h"
#include "wire/stream.h"

#define NET "/v1/networks/default"

static struct sample_hub hub;
static char secret[BASE64_SIZE(32)]; /* of the last token */

static int begin(void **state)
{
    sample_hub_begin(&hub);
    return 0;
}

static int end(void **state)
{
    sample_hub_end(&hub);
    return 0;
}

/* @member: NULL: @access is not that of members. @words: of the answer; NULL: any. */
static void ask(enum api_access access, const char *member, const char *method, const char *path,
    const char *body, int status, const char *words)
{
    json_t *json = NULL;
    int is = sample_hub_ask(
        &hub, access, member ? sample_hub_node(&hub, member) : NULL, method, path, body, &json);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    if (is != status || (words && (!text || !strstr(text, words))))
        fail_msg("%s %s: %d %s", method, path, is, text ? text : "");
    free(text);
    json_decref(json);
}

static void ask_admin(
    const char *method, const char *path, const char *body, int status, const char *words)
{
    ask(API_ACCESS_ADMIN, NULL, method, path, body, status, words);
}

static void make_token(const char *body)
{
    json_t *json = NULL;
    struct token t;

    assert_int_equal(
        sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "POST", NET "/tokens", body, &json), 201);
    assert_int_equal(token_decode(&t, json_string_value(json_object_get(json, "token")), NULL), 0);
    base64url_encode(t.secret.b, sizeof(t.secret.b), secret);
    json_decref(json);
}

/* A machine of that name comes with the last token; @more: what else it says. */
static void enrol(const char *name, const char *more, int status, const char *words)
{
    uint8_t key[32] = {[1] = (uint8_t)name[0], [2] = 2};
    char text[BASE64_SIZE(32)];
    char body[512];

    base64_encode(key, sizeof(key), text);
    (void)snprintf(body, sizeof(body), "{\"secret\":\"%s\",\"publicKey\":\"%s\",\"name\":\"%s\"%s}",
        secret, text, name, more);
    ask(API_ACCESS_PUBLIC, NULL, "POST", "/v1/enrol", body, status, words);
}

/* ---- who comes --------------------------------------------------------------------------------
 */

static void test_a_machine_comes(void **state)
{
    make_token("{\"uses\":3}");
    enrol("n", "", 200, "\"self\":\"n\"");
    assert_non_null(model_find_node(sample_hub_network(&hub), "n"));
    assert_int_equal(hub.hub->enrol.n_enrolled, 1);
    enrol("m", ",\"dryRun\":true", 200, "\"dryRun\":true");
    enrol("m", ",\"dryRun\":true", 200, "\"network\":\"default\"");
    assert_null(model_find_node(sample_hub_network(&hub), "m"));
    enrol("m", ",\"peers\":false", 200, "\"self\":\"m\"");
    enrol("m", "", 409, "does not prove to come from it");
    enrol("o", "", 200, NULL);
    enrol("p", "", 401, "used up");
    enrol("p", ",\"dryRun\":true", 401, "used up");
    ask(API_ACCESS_PUBLIC, NULL, "POST", "/v1/enrol", "{}", 400, "secret");
    /* In the log it is the token that lets them in. */
    ask_admin("GET", "/v1/audit?limit=3", NULL, 200, "\"actor\":\"join:");
}

/* Of a machine that is to get its peers later only what it has to know at once is told. */
static void test_a_machine_is_introduced(void **state)
{
    sample_hub_add_node(&hub, "zz");
    make_token("{}");
    enrol("n", "", 200, "\"name\":\"zz\"");
    make_token("{}");
    enrol("m", ",\"peers\":false", 200, "\"name\":\"hub\"");
    assert_int_equal(hub.hub->enrol.n_enrolled, 2);
}

/* ---- who leaves -------------------------------------------------------------------------------
 */

/* The node leaves by the public API; @is_proven: it proves to be that node. The status. */
static int leave(const char *network, const char *name, bool is_proven)
{
    struct model_node *node = sample_hub_node(&hub, name);
    struct request rq = {
        .access = API_ACCESS_PUBLIC, .method = "POST", .path = "/v1/leave", .now = hub.now};
    struct member_proof_request what = {.method = rq.method, .path = rq.path};
    struct member_proof proof = {.boot = hub.hub->model.boot};
    const struct member_proof_key *key = proof_key(node, hub.now);
    char text[MEMBER_PROOF_TEXT_MAX];
    struct response rs = {0};
    struct deferred *d;
    int status;

    (void)snprintf(rq.params[0], sizeof(rq.params[0]), "%s", network);
    hex_encode(node->spec.key.b, sizeof(node->spec.key.b), rq.params[1]);
    assert_non_null(key);
    proof.sequence = node->proof->window.highest + 1;
    assert_true(member_proof_make(&proof, key, &what));
    if (is_proven)
        rq.authorization = member_proof_format(&proof, text);
    handlers_leave_public(&hub.hub->handlers, &rq, &rs);
    if (!rs.deferred) {
        status = rs.status;
        assert_string_equal(json_string_value(json_object_get(rs.body, "error")),
            "the request does not prove that it comes from a node with that key");
        response_deinit(&rs);
        return status;
    }
    d = rs.deferred;
    while (!d->is_ready)
        (void)uv_run(&hub.loop, UV_RUN_ONCE);
    status = d->rs.status;
    response_deinit(&d->rs);
    d->on_closed(d);
    return status;
}

static void test_a_member_leaves(void **state)
{
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    ask(API_ACCESS_OVERLAY, "a", "POST", "/v1/leave", NULL, 204, NULL);
    assert_null(model_find_node(sample_hub_network(&hub), "a"));
    assert_int_equal(leave("default", "b", false), 401);
    assert_int_equal(leave("none", "b", true), 401);
    assert_int_equal(leave("default", hub.hub->model.self, true), 401);
    assert_non_null(model_find_node(sample_hub_network(&hub), "b"));
    assert_int_equal(leave("default", "b", true), 204);
    assert_null(model_find_node(sample_hub_network(&hub), "b"));
    ask_admin("GET", "/v1/audit?limit=1", NULL, 200, "\"actor\":\"node:default/b\"");
}

/* Who listens is told that it was removed, and what was said of its edges goes with it. */
static void test_what_goes_with_a_node(void **state)
{
    static const char edge[] = "/v1/networks/default/objects/MeshEdge/a--b";

    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    ask_admin("PUT", edge,
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\"},\"spec\":{\"nodes\":[\"a\",\"b\"],"
        "\"path\":\"relay\"}}",
        200, NULL);
    sample_hub_listen(&hub, sample_hub_node(&hub, "a"));
    sample_hub_hear(&hub);
    ask_admin("DELETE", NET "/nodes/a", NULL, 204, NULL);
    sample_hub_hear(&hub);
    assert_null(hub.ears[0].stream);
    sample_hub_add_node(&hub, "a");
    ask_admin("GET", edge, NULL, 404, "has no MeshEdge");
}

static void expect_uses(unsigned n)
{
    char words[32];

    (void)snprintf(words, sizeof(words), "\"usesLeft\":%u}", n);
    ask_admin("GET", NET "/tokens", NULL, 200, words);
}

/* A machine whose join fails after it was taken in has made no use of its token. */
static void test_a_use_is_given_back(void **state)
{
    make_token("{\"uses\":2}");
    expect_uses(2);
    enrol("n", "", 200, NULL);
    expect_uses(1);
    assert_int_equal(leave("default", "n", true), 204);
    expect_uses(2);
    hub.now += NSEC_PER_SEC;
    enrol("n", "", 200, NULL);
    hub.now += 300 * NSEC_PER_SEC;
    assert_int_equal(leave("default", "n", true), 204);
    expect_uses(2);
    /* So late it is a member that leaves. */
    enrol("n", "", 200, NULL);
    hub.now += 300 * NSEC_PER_SEC + 1;
    assert_int_equal(leave("default", "n", true), 204);
    expect_uses(1);
}

static void test_what_gives_no_use_back(void **state)
{
    make_token("{\"uses\":9}");
    /* It was removed. */
    enrol("n", "", 200, NULL);
    ask_admin("DELETE", NET "/nodes/n", NULL, 204, NULL);
    expect_uses(8);
    /* It has spoken. */
    enrol("m", "", 200, NULL);
    ask(API_ACCESS_OVERLAY, "m", "PUT", "/v1/status", "{\"node\":{\"engine\":\"kernel\"}}", 204,
        NULL);
    assert_int_equal(leave("default", "m", true), 204);
    expect_uses(7);
    /* It needs no agent. */
    enrol("o", ",\"engine\":\"stock\"", 200, NULL);
    sample_hub_node(&hub, "o")->spec.stock = true;
    assert_int_equal(leave("default", "o", true), 204);
    expect_uses(6);
}

/* One use is not as many memberships as anybody likes. */
static void test_uses_are_given_back_so_often(void **state)
{
    make_token("{\"uses\":2}");
    for (unsigned i = 0; i < 16; i++) {
        hub.now += 60 * NSEC_PER_SEC;
        enrol("n", "", 200, NULL);
        assert_int_equal(leave("default", "n", true), 204);
        expect_uses(2);
    }
    enrol("n", "", 200, NULL);
    assert_int_equal(leave("default", "n", true), 204);
    expect_uses(1);
}

/* ---- what members ask and say -----------------------------------------------------------------
 */

static void test_a_watch_goes_on(void **state)
{
    sample_hub_add_node(&hub, "a");
    ask(API_ACCESS_OVERLAY, "a", "GET", "/v1/watch?since=3", NULL, 400, "\\\"boot\\\" is missing");
    ask(API_ACCESS_OVERLAY, "a", "GET", "/v1/watch?boot=3", NULL, 400, "\\\"since\\\" is missing");
    ask(API_ACCESS_OVERLAY, "a", "GET", "/v1/watch?since=x&boot=3", NULL, 400, "since");
    ask(API_ACCESS_OVERLAY, "a", "GET", "/v1/watch?since=3&boot=0", NULL, 400, "boot");
    ask(API_ACCESS_OVERLAY, "a", "GET", "/v1/watch?heartbeat=3601", NULL, 400, "heartbeat");
    ask(API_ACCESS_OVERLAY, "a", "GET", "/v1/watch?heartbeat=1", NULL, 400, "heartbeat");
}

static void test_reports(void **state)
{
    sample_hub_add_node(&hub, "a");
    ask(API_ACCESS_OVERLAY, "a", "PUT", "/v1/status", "{\"node\":1}", 400, "node");
    ask(API_ACCESS_OVERLAY, "a", "PUT", "/v1/status", "{\"node\":{\"engine\":\"kernel\"}}", 204,
        NULL);
    hub.now += NSEC_PER_SEC;
    ask(API_ACCESS_OVERLAY, "a", "PUT", "/v1/status",
        "{\"run\":5,\"number\":1,\"begins\":true,\"ends\":true,\"node\":{\"engine\":\"kernel\"}}",
        200, "\"number\":1");
    ask(API_ACCESS_OVERLAY, "a", "PUT", "/v1/status",
        "{\"run\":5,\"number\":4,\"node\":{\"engine\":\"kernel\"}}", 409,
        "report 4 does not follow the last one that came");
}

static void report_port(const char *node, const char *value, int status, const char *words)
{
    char body[128];

    hub.now += NSEC_PER_SEC;
    (void)snprintf(body, sizeof(body), "{\"node\":{\"engine\":\"kernel\"%s%s}}",
        value ? ",\"metricsPort\":" : "", value ? value : "");
    ask(API_ACCESS_OVERLAY, node, "PUT", "/v1/status", body, status, words);
}

/* Prometheus is told of the nodes that have figures for it, as long as they say so. */
static void test_targets(void **state)
{
    char expected[256];
    char at[IP_ADDR_TEXT_MAX];

    sample_hub_add_node(&hub, "aa");
    sample_hub_add_node(&hub, "bb");
    ask_admin("GET", NET "/targets", NULL, 200, "[]");
    ask_admin("GET", "/v1/networks/none/targets", NULL, 404, "no network");
    report_port("aa", "0", 400, "metricsPort");
    report_port("aa", "65536", 400, "metricsPort");
    report_port("aa", "\"9586\"", 400, "metricsPort");
    report_port("aa", "9586", 204, NULL);
    report_port("bb", NULL, 204, NULL);
    (void)snprintf(expected, sizeof(expected),
        "[{\"labels\":{\"network\":\"default\",\"node\":\"aa\"},\"targets\":[\"%s:9586\"]}]",
        ip_addr_format(&sample_hub_node(&hub, "aa")->spec.address4, at));
    ask_admin("GET", NET "/targets", NULL, 200, expected);
    (void)snprintf(sample_hub_node(&hub, "aa")->spec.island, NAME_MAX_LEN + 1, "north");
    ask_admin("GET", NET "/targets", NULL, 200, "\"island\":\"north\"");
    report_port("aa", NULL, 204, NULL);
    ask_admin("GET", NET "/targets", NULL, 200, "[]");
}

/* What it has moved is kept. */
static void test_a_report_of_what_was_moved(void **state)
{
    char body[256];
    char day[TRAFFIC_DAY_TEXT_MAX];

    sample_hub_add_node(&hub, "a");
    (void)snprintf(body, sizeof(body),
        "{\"traffic\":{\"day\":\"%s\",\"meter\":7,\"flows\":[{\"peer\":\"hub\",\"path\":\"lan\","
        "\"sent\":1,\"received\":2}]}}",
        traffic_day_format(traffic_day(clock_wall_s()), day));
    ask(API_ACCESS_OVERLAY, "a", "PUT", "/v1/status", body, 204, NULL);
    assert_int_equal(hub.hub->traffic.entries.n, 1);
    assert_int_equal(hub.hub->traffic.n_left_out, 0);
    ask(API_ACCESS_OVERLAY, "a", "PUT", "/v1/status", "{}", 204, NULL);
    assert_int_equal(hub.hub->traffic.entries.n, 1);
}

/* The log tells once that a node runs twice, and each of the two is told. */
static void test_a_node_that_was_copied(void **state)
{
    static const char *const runs[] = {
        "{\"run\":5,\"number\":1,\"begins\":true}", "{\"run\":6,\"number\":1,\"begins\":true}"};

    sample_hub_add_node(&hub, "a");
    for (unsigned i = 0; i < 3; i++) {
        hub.now += NSEC_PER_SEC;
        ask(API_ACCESS_OVERLAY, "a", "PUT", "/v1/status", runs[i % 2], 200, "{\"number\":1}");
    }
    store_wait(hub.hub->store);
    ask_admin("GET", "/v1/audit?limit=1", NULL, 200, "\"operation\":\"create\"");
    for (unsigned i = 0; i < 2; i++) {
        hub.now += NSEC_PER_SEC;
        ask(API_ACCESS_OVERLAY, "a", "PUT", "/v1/status", runs[(i + 1) % 2], 200, "\"copy\":");
    }
    store_wait(hub.hub->store);
    ask_admin("GET", "/v1/audit?limit=1", NULL, 200, "\"object\":\"node/default/a\"");
    ask_admin("GET", "/v1/audit?limit=1", NULL, 200, "\"operation\":\"copy\"");
    ask_admin("GET", "/v1/audit?limit=2", NULL, 200, "\"operation\":\"create\"");
}

/* Who is no member, and who proves nothing. */
static void test_who_is_no_member(void **state)
{
    struct request rq = {.access = API_ACCESS_OVERLAY, .method = "GET", .path = "/v1/wg"};
    struct response rs = {0};

    sample_hub_add_node(&hub, "a");
    rq.listener_ctx = sample_hub_network(&hub);
    rq.now = hub.now;
    (void)endpoint_parse(&rq.from, "10.250.0.9:4000", NULL);
    handlers_wg(&hub.hub->handlers, &rq, &rs);
    assert_int_equal(rs.status, 403);
    assert_string_equal(json_string_value(json_object_get(rs.body, "error")),
        "10.250.0.9 is the address of no node of network \"default\"");
    response_deinit(&rs);
    /* The hub itself is none that asks. */
    rs = (struct response){0};
    rq.from.addr = sample_hub_network(&hub)->address4;
    handlers_wg(&hub.hub->handlers, &rq, &rs);
    assert_int_equal(rs.status, 403);
    response_deinit(&rs);
    /* A stock WireGuard needs no proof, and an agent does. */
    rs = (struct response){0};
    rq.from.addr = sample_hub_node(&hub, "a")->spec.address4;
    handlers_wg(&hub.hub->handlers, &rq, &rs);
    assert_int_equal(rs.status, 200);
    assert_true(sample_hub_node(&hub, "a")->reported->seen_at == hub.now);
    response_deinit(&rs);
    rs = (struct response){0};
    sample_hub_node(&hub, "a")->spec.stock = false;
    handlers_wg(&hub.hub->handlers, &rq, &rs);
    assert_int_equal(rs.status, 401);
    response_deinit(&rs);
    rs = (struct response){0};
    handlers_report(&hub.hub->handlers, &rq, &rs);
    assert_int_equal(rs.status, 401);
    response_deinit(&rs);
}

static void test_no_stream_without_a_proof(void **state)
{
    struct request rq = {.access = API_ACCESS_PUBLIC, .now = hub.now};
    struct stream_claim claim = {.proof = {{1}}};
    char text[STREAM_PROOF_TEXT_MAX];
    struct response rs = {0};

    sample_hub_add_node(&hub, "a");
    claim.node = sample_hub_node(&hub, "a")->spec.key;
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(rq.params[0], sizeof(rq.params[0]), "%s", i == 0 ? "none" : "default");
        rq.authorization = i == 2 ? stream_claim_format(&claim, text) : NULL;
        handlers_stream(&hub.hub->handlers, &rq, &rs);
        assert_int_equal(rs.status, 401);
        assert_null(rs.upgrade);
        response_deinit(&rs);
        rs = (struct response){0};
    }
    assert_true(stream_proof_make(
        &claim.proof, &sample_hub_network(&hub)->secret, &claim.node, &claim.node));
    rq.authorization = stream_claim_format(&claim, text);
    sample_hub_node(&hub, "a")->reported->only_enrolled_at = 1;
    handlers_stream(&hub.hub->handlers, &rq, &rs);
    assert_int_not_equal(rs.status, 401);
    assert_int_equal(sample_hub_node(&hub, "a")->reported->only_enrolled_at, 0);
    if (rs.upgrade)
        rs.upgrade->on_closed(rs.upgrade);
    response_deinit(&rs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_machine_comes, begin, end),
        cmocka_unit_test_setup_teardown(test_a_machine_is_introduced, begin, end),
        cmocka_unit_test_setup_teardown(test_a_member_leaves, begin, end),
        cmocka_unit_test_setup_teardown(test_what_goes_with_a_node, begin, end),
        cmocka_unit_test_setup_teardown(test_a_use_is_given_back, begin, end),
        cmocka_unit_test_setup_teardown(test_what_gives_no_use_back, begin, end),
        cmocka_unit_test_setup_teardown(test_uses_are_given_back_so_often, begin, end),
        cmocka_unit_test_setup_teardown(test_a_watch_goes_on, begin, end),
        cmocka_unit_test_setup_teardown(test_reports, begin, end),
        cmocka_unit_test_setup_teardown(test_targets, begin, end),
        cmocka_unit_test_setup_teardown(test_a_report_of_what_was_moved, begin, end),
        cmocka_unit_test_setup_teardown(test_a_node_that_was_copied, begin, end),
        cmocka_unit_test_setup_teardown(test_who_is_no_member, begin, end),
        cmocka_unit_test_setup_teardown(test_no_stream_without_a_proof, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
