/*
 * test-object-calls.c - what becomes of objects that an administrator writes: what goes with a
 * node, which edges there are, and what the store refuses. A whole hub in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "store/store.h"
#include "test/support/failing_store.h"
#include "test/support/sample_hub.h"
#include "test/support/store_now.h"

#define NET     "/v1/networks/default"
#define OBJECTS NET "/objects/"

static struct sample_hub hub;

static int begin(void **state)
{
    sample_hub_begin(&hub);
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    return 0;
}

static int end(void **state)
{
    sample_hub_end(&hub);
    return 0;
}

/* The answer, a new reference. */
static json_t *ask(const char *method, const char *path, const char *body, int status)
{
    return sample_hub_insist(&hub, method, path, body, status);
}

static void refuse(
    const char *method, const char *path, const char *body, int status, const char *sentence)
{
    json_t *json = ask(method, path, body, status);

    assert_string_equal(json_string_value(json_object_get(json, "error")), sentence);
    json_decref(json);
}

/* PUT of the object as it is, with @field of its spec as @value; NULL: it is left out. */
static void change(const char *path, const char *field, json_t *value)
{
    json_t *object = ask("GET", path, NULL, 200);
    json_t *spec = json_object_get(object, "spec");
    char *text;

    if (value)
        (void)json_object_set_new(spec, field, value);
    else
        (void)json_object_del(spec, field);
    text = json_dumps(object, 0);
    json_decref(object);
    json_decref(ask("PUT", path, text, 200));
    free(text);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* An ephemeral node has a lease from then on; a hub never has one. */
static void test_leases(void **state)
{
    struct store *store = hub.hub->store;

    assert_int_equal(store_due(store), NSEC_NEVER);
    change(OBJECTS "Node/a", "ephemeral", json_true());
    assert_int_equal(store_due(store), hub.now + ENROL_EPHEMERAL_SECONDS * NSEC_PER_SEC);
    change(OBJECTS "Node/a", "ephemeral", json_false());
    assert_int_equal(store_due(store), NSEC_NEVER);
    assert_false(sample_hub_node(&hub, "a")->spec.ephemeral);
}

/* What an object cannot say stays as it is. */
static void test_what_stays_as_it_is(void **state)
{
    char path[128];

    change(OBJECTS "Node/a", "stock", NULL);
    assert_true(sample_hub_node(&hub, "a")->spec.stock);
    (void)snprintf(path, sizeof(path), OBJECTS "Node/%s", hub.hub->model.self);
    change(path, "labels", json_pack("{s:s}", "k", "v"));
    assert_int_equal(sample_hub_network(&hub)->own->spec.hub->n_endpoints, 1);
    assert_int_equal(store_due(hub.hub->store), NSEC_NEVER);
}

/* Routes are written though the record of the address cursor is damaged, which stays so. */
static void test_routes_beside_a_damaged_cursor(void **state)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = "ipam/default", .value = "{", .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(hub.hub->store, &op, 1, hub.now, NULL, NULL, NULL), 0);
    assert_true(sample_hub_network(&hub)->ipam.forgot);
    change(OBJECTS "Node/a", "routes", json_pack("[s]", "10.1.0.0/16"));
    assert_true(sample_hub_network(&hub)->ipam.forgot);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void report(const char *name, const char *body)
{
    int status;

    hub.now += NSEC_PER_SEC;
    status = sample_hub_ask(
        &hub, API_ACCESS_OVERLAY, sample_hub_node(&hub, name), "PUT", "/v1/status", body, NULL);
    assert_int_equal(status, 204);
}

/* The edge is there when one of its two nodes says something of it, by agent or by probe. */
static void test_edges_that_are_observed(void **state)
{
    static const struct {
        const char *node;
        const char *says;
        const char *nothing;
    } cases[] = {
        {"a", "{\"edges\":{\"b\":{\"path\":\"lan\"}}}", "{\"edges\":{}}"},
        {"b", "{\"edges\":{\"a\":{\"path\":\"lan\"}}}", "{\"edges\":{}}"},
        {"a", "{\"owner\":\"probe/a\",\"edges\":{\"b\":{\"tunnel\":\"silent\"}}}",
            "{\"owner\":\"probe/a\",\"edges\":{}}"},
        {"b", "{\"owner\":\"probe/b\",\"edges\":{\"a\":{\"tunnel\":\"silent\"}}}",
            "{\"owner\":\"probe/b\",\"edges\":{}}"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        refuse("GET", OBJECTS "MeshEdge/a--b", NULL, 404,
            "network \"default\" has no MeshEdge \"a--b\"");
        report(cases[i].node, cases[i].says);
        json_decref(ask("GET", OBJECTS "MeshEdge/a--b", NULL, 200));
        refuse("GET", OBJECTS "MeshEdge/b--a", NULL, 404,
            "network \"default\" has no MeshEdge \"b--a\"");
        report(cases[i].node, cases[i].nothing);
    }
    refuse(
        "GET", OBJECTS "MeshEdge/a--a", NULL, 404, "network \"default\" has no MeshEdge \"a--a\"");
}

#define KEY "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="

/* Where the hub is, it says itself. */
static void test_an_edge_to_the_hub_pins_nothing(void **state)
{
    static const char *const pins[] = {"\"endpoints\":{\"hub\":\"192.0.2.1:1\"}",
        "\"publicKeys\":{\"hub\":\"" KEY "\"}", "\"endpoints\":{\"a\":\"192.0.2.1:1\"}"};

    for (size_t i = 0; i < sizeof(pins) / sizeof(*pins); i++) {
        char body[512];

        (void)snprintf(body, sizeof(body),
            "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--hub\"},\"spec\":{\"nodes\":[\"a\","
            "\"hub\"],\"path\":\"auto\",%s}}",
            pins[i]);
        refuse("PUT", OBJECTS "MeshEdge/a--hub", body, 400,
            "an edge to the hub pins nothing: where \"hub\" is, \"weft hub move\" says, and its "
            "key is in each join token");
    }
}

/* ---- the store ------------------------------------------------------------------------------- */

/* What the store does not take is not there, and is no reason to remove anything. */
static void test_a_store_that_is_full(void **state)
{
    static const struct {
        const char *method;
        const char *path;
        const char *body;
    } calls[] = {
        {"PUT", OBJECTS "MeshEdge/a--b",
            "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\"},\"spec\":{\"nodes\":[\"a\","
            "\"b\"],\"path\":\"off\"}}"},
        {"DELETE", NET "/nodes/a", NULL},
        {"DELETE", NET, NULL},
        {"POST", "/v1/networks", "{\"name\":\"lab\",\"cidr4\":\"10.99.0.0/16\"}"},
        {"PUT", "/v1/networks/lab/objects/Network/lab",
            "{\"kind\":\"Network\",\"metadata\":{\"name\":\"lab\"},\"spec\":{\"cidr4\":"
            "\"10.90.0.0/24\",\"cidr6\":\"fd00:9::/64\"}}"},
        {"POST", NET "/tokens", "{}"},
        {"POST", "/v1/admin-tokens", "{\"name\":\"ci\",\"role\":\"viewer\"}"},
        {"POST", NET "/nodes", "{\"name\":\"c\",\"publicKey\":\"" KEY "\"}"},
    };
    struct model *m = &hub.hub->model;

    hub.may_fail = true;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        failing_store_begin(hub.hub->store, STORE_JOB_COMMIT);
        refuse(calls[i].method, calls[i].path, calls[i].body, 507, FAILING_STORE_WORDS);
        failing_store_end(hub.hub->store);
        failing_store_set_full(hub.hub->store, true);
        json_decref(ask(calls[i].method, calls[i].path, calls[i].body, 503));
        failing_store_set_full(hub.hub->store, false);
    }
    assert_int_equal(m->networks.n, 1);
    assert_null(sample_hub_network(&hub)->leaving);
    assert_null(sample_hub_node(&hub, "a")->served->leaving);
    assert_int_equal(sample_hub_network(&hub)->nodes.n, 3);
    assert_int_equal(sample_hub_network(&hub)->edges.n, 0);
    assert_int_equal(hub.hub->admins.n, 0);
    assert_int_equal(hub.hub->admins.n_coming, 0);
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        if (strcmp(calls[i].method, "POST") == 0)
            json_decref(ask(calls[i].method, calls[i].path, calls[i].body, 201));
}

/* What is asked, by whom, and what the answer says. */
static void expect_health(
    enum api_access access, const char *path, int status, bool is_ok, const char *error)
{
    json_t *json = NULL;

    assert_int_equal(sample_hub_ask(&hub, access, NULL, "GET", path, NULL, &json), status);
    assert_true(json_boolean_value(json_object_get(json, "ok")) == is_ok);
    assert_non_null(json_object_get(json, "version"));
    if (error)
        assert_string_equal(json_string_value(json_object_get(json, "error")), error);
    else
        assert_null(json_object_get(json, "error"));
    json_decref(json);
}

/* That it refuses changes is said to all, and why to administrators; it lives all the same. */
static void test_the_health_of_a_hub_that_refuses(void **state)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = "test", .value = "{}", .expect = STORE_EXPECT_ANY};

    expect_health(API_ACCESS_PUBLIC, "/v1/health", 200, true, NULL);
    hub.may_fail = true;
    failing_store_begin(hub.hub->store, STORE_JOB_COMMIT);
    assert_int_not_equal(store_now_commit(hub.hub->store, &op, 1, hub.now, NULL, NULL, NULL), 0);
    expect_health(API_ACCESS_PUBLIC, "/v1/health", 503, false,
        "the hub refuses changes, for its store does not take them");
    expect_health(API_ACCESS_ADMIN, "/v1/health", 503, false,
        "the hub refuses changes, for its store does not take them: no space left");
    expect_health(API_ACCESS_PUBLIC, "/v1/health?live=1", 200, false, NULL);
    failing_store_end(hub.hub->store);
}

/* ---- what the audit log is told -------------------------------------------------------------- */

/* A refusal is of the network of the path, if there is one. */
static void test_what_is_noted_of_a_refusal(void **state)
{
    struct audit *audit = &hub.hub->audit;
    struct request rq = {.access = API_ACCESS_ADMIN, .now = hub.now};
    struct response rs = {0};

    response_refuse(&rs, 403, "it is not for you");
    (void)snprintf(rq.params[0], sizeof(rq.params[0]), "default");
    access_refused(&hub.hub->handlers, &rq, "GET /v1/networks/{network}/nodes", &rs);
    assert_int_equal(audit->n_pending, 1);
    assert_string_equal(audit->pending[0].operation, "GET /v1/networks/{network}/nodes");
    assert_string_equal(audit->pending[0].network, "default");
    assert_int_equal(audit->pending[0].status, 403);
    assert_string_equal(audit->pending[0].why, "it is not for you");
    access_refused(&hub.hub->handlers, &rq, "GET /v1/admin-tokens", &rs);
    assert_string_equal(audit->pending[1].network, "");
    (void)snprintf(rq.params[0], sizeof(rq.params[0]), "none");
    access_refused(&hub.hub->handlers, &rq, "GET /v1/networks/{network}/tokens", &rs);
    assert_string_equal(audit->pending[2].network, "");
    response_deinit(&rs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_leases, begin, end),
        cmocka_unit_test_setup_teardown(test_what_stays_as_it_is, begin, end),
        cmocka_unit_test_setup_teardown(test_routes_beside_a_damaged_cursor, begin, end),
        cmocka_unit_test_setup_teardown(test_edges_that_are_observed, begin, end),
        cmocka_unit_test_setup_teardown(test_an_edge_to_the_hub_pins_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_a_store_that_is_full, begin, end),
        cmocka_unit_test_setup_teardown(test_the_health_of_a_hub_that_refuses, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_noted_of_a_refusal, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
