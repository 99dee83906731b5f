/*
 * test-node-routes.c - which subnets a node may have behind it, and what the model does around a
 * commit: the audit log is told, and what has ended goes. A whole hub in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "hub/model/node_routes.h"
#include "mesh/object/subnets.h"
#include "store/store.h"
#include "test/support/sample_hub.h"

static struct sample_hub hub;

static int enter(void **state)
{
    sample_hub_begin(&hub);
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    return 0;
}

static int leave(void **state)
{
    sample_hub_end(&hub);
    return 0;
}

/* May @name have these routes? @words: of the refusal. */
static void expect(const char *name, const char *text, int r, const char *words)
{
    struct subnets s = {.n = 0};
    struct err e = ERR_NULL;

    assert_int_equal(subnets_parse(&s, text, &e), 0);
    assert_int_equal(node_routes_check(sample_hub_network(&hub), name, &s, &e), r);
    if (words && !strstr(err_text(&e), words))
        fail_msg("%s", err_text(&e));
}

static void give_route(const char *name, const char *route)
{
    json_t *node = NULL;
    char path[96];
    char *text;

    (void)snprintf(path, sizeof(path), "/v1/networks/default/objects/Node/%s", name);
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &node), 200);
    json_object_set_new(json_object_get(node, "spec"), "routes", json_pack("[s]", route));
    text = json_dumps(node, 0);
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "PUT", path, text, NULL), 200);
    free(text);
    json_decref(node);
}

static void test_routes(void **state)
{
    struct err e = ERR_NULL;

    assert_int_equal(node_routes_check(sample_hub_network(&hub), "a", NULL, &e), 0);
    expect("a", "10.1.0.0/16", 0, NULL);
    give_route("b", "10.1.0.0/16");
    expect("a", "10.1.7.0/24", NODE_ROUTES_E_TAKEN,
        "route 10.1.7.0/24 overlaps 10.1.0.0/16, which is reached through node \"b\"");
    expect("a", "10.2.0.0/16,10.0.0.0/15", NODE_ROUTES_E_TAKEN, "10.0.0.0/15 overlaps");
    /* What it has itself it may have. */
    expect("b", "10.1.0.0/16,10.2.0.0/16", 0, NULL);
    expect("a", "10.77.4.0/24", -EINVAL, "10.77.4.0/24");
    /* The hub is at 192.0.2.1. */
    expect("a", "192.0.2.0/24", -EINVAL,
        "route 192.0.2.0/24 holds 192.0.2.1:51820, where nodes reach the hub");
    expect("a", "192.0.3.0/24", 0, NULL);
}

/* ---- commits ----------------------------------------------------------------------------------
 */

static void count_answer(void *ctx, const struct store_answer *a)
{
    *(unsigned *)ctx += a->r == 0;
}

/* Who has it done hears of it, once; and nobody has to. */
static void test_who_hears_of_a_commit(void **state)
{
    const struct store_op op = {
        .kind = STORE_OP_PUT, .key = "mine/x", .value = "1", .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;
    unsigned n = 0;

    assert_non_null(hub.hub->model.audit);
    assert_int_equal(model_commit(&hub.hub->model, &op, 1, hub.now, count_answer, &n, &e), 0);
    store_wait(hub.hub->store);
    assert_int_equal(n, 1);
    assert_int_equal(model_commit(&hub.hub->model, &op, 1, hub.now, NULL, NULL, &e), 0);
    store_wait(hub.hub->store);
    assert_int_equal(n, 1);
}

/* A node that is away for too long goes by itself; one that is there does not. */
static void test_what_ends_by_itself(void **state)
{
    static const char path[] = "/v1/networks/default/objects/Node/a";
    json_t *node = NULL;
    struct err e = ERR_NULL;
    char *text;

    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &node), 200);
    json_object_set_new(json_object_get(node, "spec"), "ephemeral", json_true());
    text = json_dumps(node, 0);
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "PUT", path, text, NULL), 200);
    free(text);
    json_decref(node);
    assert_int_equal(model_expire(&hub.hub->model, hub.now, &e), 0);
    assert_false(hub.hub->model.is_expiring);
    assert_false(sample_hub_node(&hub, "a")->is_expired);
    hub.now += INT64_C(100000) * NSEC_PER_SEC;
    assert_int_equal(model_expire(&hub.hub->model, hub.now, &e), 0);
    assert_true(hub.hub->model.is_expiring);
    assert_true(sample_hub_node(&hub, "a")->is_expired);
    assert_false(sample_hub_node(&hub, "b")->is_expired);
    assert_int_equal(model_expire(&hub.hub->model, hub.now, &e), 0);
    store_wait(hub.hub->store);
    assert_false(hub.hub->model.is_expiring);
    assert_null(model_find_node(sample_hub_network(&hub), "a"));
    assert_non_null(model_find_node(sample_hub_network(&hub), "b"));
}

/* The hub's own node has the hub's key, and its addresses are the hub's. */
static void test_the_hubs_own_node(void **state)
{
    const struct model_network *net = sample_hub_network(&hub);
    const struct model_node *own = sample_hub_node(&hub, hub.hub->model.self);

    assert_ptr_equal(net->own, own);
    assert_true(net->has_key);
    assert_true(model_is_self(own));
    assert_false(model_is_self(sample_hub_node(&hub, "a")));
    assert_true(x25519_public_equal(&net->public, &own->spec.key));
    assert_true(ip_addr_equal(&net->address4, &own->spec.address4));
    assert_true(ip_addr_equal(&net->address6, &own->spec.address6));
    assert_ptr_equal(model_find_address(net, &own->spec.address6), own);
    assert_ptr_equal(model_find_key(net, &own->spec.key), own);
    assert_true(list_is_empty(&net->reap));
    assert_true(list_is_empty(&own->served->streams));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_routes, enter, leave),
        cmocka_unit_test_setup_teardown(test_who_hears_of_a_commit, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_ends_by_itself, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_hubs_own_node, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
