/*
 * test-shown.c - what the hub shows as resources of Kubernetes, and what people wish there, with
 * the thread that writes, and an API server that is only as much of one as it takes.
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
#include "hub/resources/projection.h"
#include "hub/resources/resource.h"
#include "hub/resources/resource_api.h"
#include "hub/resources/resources.h"
#include "hub/resources/writer.h"
#include "os/clock.h"
#include "store/store_backend.h"
#include "test/support/fake_kube.h"
#include "test/support/sample_hub.h"
#include "test/support/store_now.h"

#define EDGE "meshedges/default.a--b"
#define RULE "rules/default.ssh"

static struct sample_hub hub;
static struct fake_kube *kube;
static struct resources *shown;
static uv_timer_t wake;

static void on_wake(uv_timer_t *timer)
{
}

static void start_showing(void)
{
    char where[128];
    struct err e = ERR_NULL;
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/kubeconfig", hub.dir);
    fake_kube_write_config(kube, path);
    (void)snprintf(where, sizeof(where), "?namespace=weft&kubeconfig=%s", path);
    if (resources_start(&shown, &hub.loop, &hub.hub->handlers, where, &e) != 0)
        fail_msg("%s", err_text(&e));
}

static int begin(void **state)
{
    sample_hub_begin(&hub);
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    kube = fake_kube_start();
    (void)uv_timer_init(&hub.loop, &wake);
    (void)uv_timer_start(&wake, on_wake, 5, 5);
    return 0;
}

static int end(void **state)
{
    resources_stop(shown);
    resources_stop(shown);
    uv_close((uv_handle_t *)&wake, NULL);
    sample_hub_close(&hub);
    sample_hub_remove_dir(&hub);
    fake_kube_stop(kube);
    return 0;
}

/* The resources go before the hub whose handlers judge. */
static void stop_showing(void)
{
    resources_stop(shown);
    (void)uv_run(&hub.loop, UV_RUN_NOWAIT);
    (void)uv_run(&hub.loop, UV_RUN_NOWAIT);
    shown = resources_free(shown);
}

static void turn(void)
{
    (void)uv_run(&hub.loop, UV_RUN_ONCE);
    store_wait(hub.hub->store);
}

#define run_until(condition)                                                                       \
    do {                                                                                           \
        nsec_t deadline = clock_now() + 30 * NSEC_PER_SEC;                                         \
        while (!(condition)) {                                                                     \
            if (clock_now() >= deadline)                                                           \
                fail_msg("never: %s", #condition);                                                 \
            turn();                                                                                \
        }                                                                                          \
    } while (0)

static bool is_there(const char *path)
{
    json_t *resource = fake_kube_get(kube, path);

    json_decref(resource);
    return resource != NULL;
}

/* Is that in the resource, as text? */
static bool has(const char *path, const char *words)
{
    json_t *resource = fake_kube_get(kube, path);
    char *text = json_dumps(resource, JSON_COMPACT | JSON_SORT_KEYS);
    bool is_it = text && strstr(text, words);

    free(text);
    json_decref(resource);
    return is_it;
}

static void ask(const char *method, const char *path, const char *body, int status)
{
    assert_int_equal(
        sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, method, path, body, NULL), status);
}

static void set_edge(const char *path)
{
    char body[256];

    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\"},\"spec\":{\"nodes\":[\"a\",\"b\"],"
        "\"path\":\"%s\"}}",
        path);
    ask("PUT", "/v1/networks/default/objects/MeshEdge/a--b", body, 200);
}

/* Does the hub have the edge with that path? */
static bool hub_has(enum edge_path path)
{
    const struct model_edge *edge = model_find_edge(sample_hub_network(&hub), "a", "b");

    return edge && edge->spec.path == path;
}

static bool hub_has_none(void)
{
    return model_find_edge(sample_hub_network(&hub), "a", "b") == NULL;
}

static const struct resource_counts *counts(void)
{
    return hub.hub->handlers.resources;
}

static bool is_told(const char *path, const char *words)
{
    json_t *json = NULL;
    bool is_it;
    char *text;

    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &json), 200);
    text = json_dumps(json, JSON_COMPACT);
    is_it = strstr(text, words) != NULL;
    free(text);
    json_decref(json);
    return is_it;
}

/* What the hub has is there, what it changes changes there, and what it removes goes. */
static void test_what_is_shown(void **state)
{
    start_showing();
    run_until(is_there("networks/default") && is_there("nodes/default.a") &&
              is_there("nodes/default.b") && is_there("nodes/default.hub"));
    assert_true(has("networks/default", "\"cidr4\":\"10.77.0.0/16\""));
    assert_true(has("nodes/default.a", "\"publicKey\":"));
    assert_true(has("nodes/default.a", RESOURCE_FINALIZER));
    assert_true(has("nodes/default.a", RESOURCE_SPEC));
    assert_false(is_there(EDGE));
    run_until(has("nodes/default.b", "\"conditions\":"));
    assert_true(atomic_load(&counts()->is_leading));
    assert_true(atomic_load(&counts()->n_applied) >= 4);
    assert_true(atomic_load(&counts()->n_status) >= 1);
    assert_int_equal(atomic_load(&counts()->n_failed), 0);
    assert_int_equal(atomic_load(&counts()->n_requests), 0);
    set_edge("relay");
    run_until(has(EDGE, "\"path\":\"relay\""));
    run_until(has(EDGE, "\"state\":"));
    set_edge("off");
    run_until(has(EDGE, "\"path\":\"off\""));
    ask("DELETE", "/v1/networks/default/objects/MeshEdge/a--b", NULL, 204);
    run_until(!is_there(EDGE));
    ask("DELETE", "/v1/networks/default/nodes/b", NULL, 204);
    run_until(!is_there("nodes/default.b"));
    assert_true(is_there("nodes/default.a"));
    assert_int_equal(atomic_load(&counts()->n_requests), 0);
    assert_int_equal(atomic_load(&counts()->n_failed), 0);
    /* It gives the Lease back. */
    assert_string_not_equal(fake_kube_holder(kube), "");
    stop_showing();
    assert_null(counts());
    assert_string_equal(fake_kube_holder(kube), "");
}

/* A person makes an edge, changes it and deletes it: the hub does so. */
static void test_wishes(void **state)
{
    start_showing();
    run_until(is_there("nodes/default.a") && is_there("nodes/default.b"));
    fake_kube_put(
        kube, EDGE, "kubectl", json_pack("{s:[s, s], s:s}", "nodes", "a", "b", "path", "off"));
    run_until(hub_has(EDGE_PATH_OFF));
    run_until(has(EDGE, RESOURCE_FINALIZER));
    assert_true(is_told("/v1/audit?limit=100", "\"actor\":\"kubernetes:claimed:kubectl\""));
    run_until(has(EDGE, "\"status\":\"True\",\"type\":\"Accepted\""));
    fake_kube_put(kube, EDGE, "kubectl", json_pack("{s:s}", "path", "relay"));
    run_until(hub_has(EDGE_PATH_RELAY));
    fake_kube_delete(kube, EDGE);
    run_until(hub_has_none());
    run_until(!is_there(EDGE));
    assert_true(is_told("/v1/audit?limit=100", "\"actor\":\"kubernetes\""));
    assert_int_equal(atomic_load(&counts()->n_requests), 3);
    assert_int_equal(atomic_load(&counts()->n_refused), 0);
    assert_int_equal(atomic_load(&counts()->n_failed), 0);
    stop_showing();
}

static void put_record(const char *key, const char *value)
{
    struct store_op op = {.kind = value ? STORE_OP_PUT : STORE_OP_DELETE,
        .key = key,
        .value = value,
        .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    assert_int_equal(store_now_commit(hub.hub->store, &op, 1, 1, NULL, NULL, &e), 0);
    store_wait(hub.hub->store);
}

/* A kind of which the model knows no more than what stands in it. */
static void test_rules(void **state)
{
    start_showing();
    ask("PUT", "/v1/networks/default/objects/Rule/ssh",
        "{\"kind\":\"Rule\",\"metadata\":{\"name\":\"ssh\"},\"spec\":{\"from\":[\"members\"],"
        "\"to\":[\"hub\"],\"allow\":[\"tcp/22\"]}}",
        200);
    run_until(has(RULE, "\"allow\":[\"tcp/22\"]"));
    assert_true(has(RULE, RESOURCE_FINALIZER));
    fake_kube_put(kube, RULE, "kubectl", json_pack("{s:[s]}", "allow", "udp/53"));
    run_until(is_told("/v1/networks/default/objects/Rule", "\"udp/53\""));
    run_until(has(RULE, "\"status\":\"True\",\"type\":\"Accepted\""));
    /* What is no rule stays there, and is refused in words. */
    fake_kube_put(kube, RULE, "kubectl", json_pack("{s:[s]}", "allow", "ssh"));
    run_until(has(RULE, "none of any, icmp, tcp, udp"));
    assert_true(is_told("/v1/networks/default/objects/Rule", "\"udp/53\""));
    fake_kube_put(kube, RULE, "kubectl", json_pack("{s:[s]}", "allow", "udp/53"));
    run_until(has(RULE, "\"status\":\"True\",\"type\":\"Accepted\""));
    /* While its record cannot be understood it is not gone. */
    put_record("rule/default/zz", "{\"x\":");
    ask("DELETE", "/v1/networks/default/objects/Rule/ssh", NULL, 204);
    sample_hub_add_node(&hub, "d");
    run_until(has("nodes/default.d", "\"conditions\":"));
    assert_true(is_there(RULE));
    put_record("rule/default/zz", NULL);
    run_until(!is_there(RULE));
    stop_showing();
}

static const struct store_ops *usual;
static struct store_job *held;

/* The first commit waits. */
static void hold(struct store *s, struct store_job *job)
{
    if (job->kind == STORE_JOB_COMMIT && !held)
        held = job;
    else
        usual->submit(s, job);
}

/* The end does not wait for what the hub's store has not answered yet: the hub does it all the
 * same. */
static void test_a_wish_at_the_end(void **state)
{
    struct store *store = hub.hub->store;
    struct store_ops ops = *store->ops;

    start_showing();
    run_until(is_there("nodes/default.a") && is_there("nodes/default.b"));
    usual = store->ops;
    ops.submit = hold;
    store->ops = &ops;
    fake_kube_put(
        kube, EDGE, "kubectl", json_pack("{s:[s, s], s:s}", "nodes", "a", "b", "path", "off"));
    for (nsec_t deadline = clock_now() + 30 * NSEC_PER_SEC; !held && clock_now() < deadline;)
        (void)uv_run(&hub.loop, UV_RUN_ONCE);
    assert_non_null(held);
    stop_showing();
    assert_true(hub_has_none());
    store->ops = usual;
    usual->submit(store, held);
    store_wait(store);
    assert_true(hub_has(EDGE_PATH_OFF));
}

/* What the hub refuses it says so of, once, and does not do. */
static void test_wishes_that_are_refused(void **state)
{
    static const char to_hub[] = "meshedges/default.a--hub";

    start_showing();
    run_until(is_there("nodes/default.a") && is_there("nodes/default.hub"));
    fake_kube_put(
        kube, to_hub, "kubectl", json_pack("{s:[s, s], s:s}", "nodes", "a", "hub", "path", "off"));
    run_until(fake_kube_has_event(kube, "Refused", "an edge to the hub cannot be off"));
    run_until(has(to_hub, "an edge to the hub cannot be off"));
    run_until(has(to_hub, "\"status\":\"False\",\"type\":\"Accepted\""));
    assert_int_equal(atomic_load(&counts()->n_refused), 1);
    assert_null(model_find_edge(sample_hub_network(&hub), "a", "hub"));
    fake_kube_delete(kube, "nodes/default.hub");
    run_until(fake_kube_has_event(kube, "Refused", "is the hub itself"));
    assert_int_equal(atomic_load(&counts()->n_refused), 2);
    assert_non_null(model_find_node(sample_hub_network(&hub), "hub"));
    stop_showing();
}

/* A person owns a field; the hub says so, and leaves it. */
static void test_a_conflict(void **state)
{
    start_showing();
    set_edge("relay");
    run_until(has(EDGE, "\"path\":\"relay\""));
    fake_kube_put(kube, EDGE, "kubectl", json_pack("{s:s}", "path", "relay"));
    set_edge("off");
    run_until(fake_kube_has_event(kube, "Conflict", "kubectl"));
    assert_true(has(EDGE, "\"path\":\"relay\""));
    assert_true(hub_has(EDGE_PATH_OFF));
    assert_int_equal(atomic_load(&counts()->n_conflicts), 1);
    run_until(has(EDGE, "\"reason\":\"Conflict\""));
    stop_showing();
}

/* What somebody takes away without asking the hub is there again, with what is known of it. */
static void test_what_is_taken_away_comes_back(void **state)
{
    start_showing();
    run_until(has("nodes/default.b", "\"conditions\":"));
    fake_kube_drop(kube, "nodes/default.b");
    run_until(has("nodes/default.b", "\"conditions\":"));
    assert_non_null(model_find_node(sample_hub_network(&hub), "b"));
    assert_int_equal(atomic_load(&counts()->n_requests), 0);
    /* Who deletes a node asks for its removal. */
    fake_kube_delete(kube, "nodes/default.b");
    run_until(!is_there("nodes/default.b"));
    assert_null(model_find_node(sample_hub_network(&hub), "b"));
    stop_showing();
}

/* While a record cannot be understood, what the hub does not tell of may be there: nothing goes. */
static void test_nothing_goes_while_a_record_is_damaged(void **state)
{
    start_showing();
    set_edge("relay");
    run_until(has(EDGE, "\"path\":\"relay\""));
    put_record("node/default/zz", "{\"x\":");
    assert_int_equal(hub.hub->model.damaged.n, 1);
    ask("DELETE", "/v1/networks/default/objects/MeshEdge/a--b", NULL, 204);
    /* What comes later is shown. */
    sample_hub_add_node(&hub, "d");
    run_until(has("nodes/default.d", "\"conditions\":"));
    assert_true(is_there(EDGE));
    put_record("node/default/zz", NULL);
    run_until(!is_there(EDGE));
    stop_showing();
}

/* While another hub of the store shows them, this one does not. */
static void test_another_hub_leads(void **state)
{
    fake_kube_hold(kube, "other");
    start_showing();
    for (unsigned i = 0; i < 100; i++)
        turn();
    assert_false(atomic_load(&counts()->is_leading));
    assert_false(is_there("networks/default"));
    stop_showing();
    assert_string_equal(fake_kube_holder(kube), "other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_shown, begin, end),
        cmocka_unit_test_setup_teardown(test_wishes, begin, end),
        cmocka_unit_test_setup_teardown(test_rules, begin, end),
        cmocka_unit_test_setup_teardown(test_a_wish_at_the_end, begin, end),
        cmocka_unit_test_setup_teardown(test_wishes_that_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_a_conflict, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_taken_away_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_goes_while_a_record_is_damaged, begin, end),
        cmocka_unit_test_setup_teardown(test_another_hub_leads, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
