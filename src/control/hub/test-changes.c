/*
 * test-changes.c - what follows from a change of the model: who is told, what is deleted, and when
 * that which was removed is forgotten.
 *
 * A hub on the memory store, without sockets and without a data half.
 */
#include "hub/changes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>

#include "base/err.h"
#include "os/clock.h"
#include "os/log.h"
#include "store/store.h"
#include "test/support/captured_log.h"
#include "test/support/failing_store.h"
#include "test/support/sample_hub.h"
#include "test/support/store_now.h"

static struct sample_hub s;

static int enter(void **state)
{
    memset(&s, 0, sizeof(s));
    sample_hub_begin(&s);
    return 0;
}

static int leave(void **state)
{
    sample_hub_end(&s);
    return 0;
}

static struct model_network *network(void)
{
    return sample_hub_network(&s);
}

static int ask(const char *method, const char *path, const char *body)
{
    return sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, method, path, body, NULL);
}

static int count_one(void *ctx, const struct store_item *item)
{
    ++*(unsigned *)ctx;
    return 0;
}

static unsigned count_records(const char *prefix)
{
    unsigned n = 0;

    assert_int_equal(store_now_list(s.hub->store, prefix, count_one, &n, NULL, NULL), 0);
    return n;
}

/* Until the list is empty, or for so long. Return: how long it took. */
static nsec_t wait_until_empty(const struct list *list, nsec_t limit)
{
    nsec_t since = clock_now();

    while (!list_is_empty(list) && clock_now() - since < limit)
        (void)uv_run(&s.loop, UV_RUN_ONCE);
    return clock_now() - since;
}

static bool is_removed(const char *name)
{
    return model_find_node(network(), name) == NULL;
}

/* ---- nodes that are removed ------------------------------------------------------------------ */

/* For 700 ms they keep their session, so that they can be told why. */
static void test_a_removed_node_is_kept_for_a_while(void **state)
{
    nsec_t since = clock_now();

    sample_hub_add_node(&s, "aa");
    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/aa", NULL), 204);
    assert_true(is_removed("aa"));
    assert_false(list_is_empty(&network()->removed));
    (void)wait_until_empty(&network()->removed, 5 * NSEC_PER_SEC);
    assert_true(list_is_empty(&network()->removed));
    assert_true(clock_now() - since >= 700 * NSEC_PER_MSEC);
}

/* Each for as long, whichever goes first. */
static void test_two_that_are_removed_one_after_the_other(void **state)
{
    const struct model_node *bb;
    nsec_t since = clock_now();

    sample_hub_add_node(&s, "aa");
    sample_hub_add_node(&s, "bb");
    bb = sample_hub_node(&s, "bb");
    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/aa", NULL), 204);
    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/bb", NULL), 204);
    assert_in_range(
        bb->served->reap_at, since + 700 * NSEC_PER_MSEC, clock_now() + 700 * NSEC_PER_MSEC);
    bb->served->reap_at += 300 * NSEC_PER_MSEC;
    (void)wait_until_empty(&network()->removed, 10 * NSEC_PER_SEC);
    assert_true(list_is_empty(&network()->removed));
    assert_true(clock_now() - since >= 1000 * NSEC_PER_MSEC);
}

/* What an administrator has asked for is said once, by who was asked. */
static void test_what_is_said_of_a_removed_node(void **state)
{
    struct captured_log log;

    sample_hub_add_node(&s, "aa");
    sample_hub_write(&s, "report/default/aa", NULL);
    log_init("hub", LOG_LEVEL_INFO);
    log = captured_log_begin();
    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/aa", NULL), 204);
    captured_log_end(&log,
        "info: hub: node \"aa\" of network \"default\" is removed: an administrator has removed "
        "it\n");
}

/* The data half knows a key or an address but once. */
static void test_a_node_with_the_key_of_a_former_one(void **state)
{
    sample_hub_add_node(&s, "aa");
    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/aa", NULL), 204);
    assert_false(list_is_empty(&network()->removed));
    sample_hub_add_node(&s, "aa");
    assert_true(list_is_empty(&network()->removed));
    assert_false(is_removed("aa"));
}

static void test_a_node_with_another_key(void **state)
{
    sample_hub_add_node(&s, "aa");
    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/aa", NULL), 204);
    sample_hub_add_node(&s, "bb");
    assert_false(list_is_empty(&network()->removed));
}

static void test_a_removed_node_is_told(void **state)
{
    sample_hub_add_node(&s, "aa");
    sample_hub_add_node(&s, "bb");
    sample_hub_listen(&s, sample_hub_node(&s, "aa"));
    sample_hub_hear(&s);
    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/bb", NULL), 204);
    sample_hub_hear(&s);
    assert_null(snapshot_find_node(&s.ears[0].held, "bb"));
    assert_false(s.ears[0].is_removed);
    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/aa", NULL), 204);
    sample_hub_hear(&s);
    assert_true(s.ears[0].is_removed || s.ears[0].stream == NULL);
}

/* What the store still has of a node would be the next one's of its name. */
static void test_what_is_left_of_a_node_is_deleted(void **state)
{
    struct captured_log log;

    sample_hub_add_node(&s, "aa");
    sample_hub_add_node(&s, "bb");
    sample_hub_add_node(&s, "cc");
    sample_hub_turn_edge_off(&s, "aa", "bb");
    sample_hub_turn_edge_off(&s, "bb", "cc");
    sample_hub_write(&s, "report/default/aa", "{}");
    assert_int_equal(count_records("edge/default/"), 2);
    /* Another hub has deleted the node alone. */
    log_init("hub", LOG_LEVEL_INFO);
    log = captured_log_begin();
    sample_hub_write(&s, "node/default/aa", NULL);
    store_wait(s.hub->store);
    captured_log_end(&log,
        "info: hub: node \"aa\" of network \"default\" is removed: it was away for too long\n");
    assert_true(is_removed("aa"));
    assert_int_equal(count_records("report/default/aa"), 0);
    assert_int_equal(count_records("edge/default/aa--bb"), 0);
    assert_int_equal(count_records("edge/default/bb--cc"), 1);
}

/* Where it cannot be deleted that is said. */
static void test_what_is_left_of_a_node_stays(void **state)
{
    struct store_op op = {
        .kind = STORE_OP_DELETE, .key = "node/default/bb", .expect = STORE_EXPECT_ANY};
    struct captured_log log;

    sample_hub_add_node(&s, "aa");
    sample_hub_add_node(&s, "bb");
    log_init("hub", LOG_LEVEL_WARNING);
    log = captured_log_begin();
    failing_store_begin(s.hub->store, STORE_JOB_COMMIT);
    failing_store_spare(1);
    sample_hub_write(&s, "node/default/aa", NULL);
    failing_store_end(s.hub->store);
    captured_log_end(&log,
        "warning: hub: what was known about a removed node stays in the store: no space left\n");
    log = captured_log_begin();
    assert_int_equal(store_commit(s.hub->store, &op, 1, s.now, NULL, NULL, NULL), 0);
    failing_store_set_full(s.hub->store, true);
    store_dispatch(s.hub->store);
    failing_store_set_full(s.hub->store, false);
    captured_log_end(&log, "warning: hub: \"report/default/bb\" stays in the store: the store is "
                           "behind: 4096 requests "
                           "wait for it, as many as may; try again\n");
}

/* An administrator has removed this hub from the network, at another hub. */
static void test_the_hubs_own_node_is_removed(void **state)
{
    sample_hub_add_node(&s, "aa");
    assert_true(network()->served->is_up);
    sample_hub_write(&s, "node/default/hub", NULL);
    assert_false(network()->served->is_up);
}

static void test_another_node_is_removed(void **state)
{
    sample_hub_add_node(&s, "aa");
    sample_hub_write(&s, "node/default/aa", NULL);
    assert_true(network()->served->is_up);
}

/* ---- nodes that change ----------------------------------------------------------------------- */

static void test_a_node_that_comes_is_told_to_others(void **state)
{
    sample_hub_add_node(&s, "aa");
    sample_hub_listen(&s, sample_hub_node(&s, "aa"));
    sample_hub_hear(&s);
    sample_hub_add_node(&s, "bb");
    sample_hub_wait(&s, 3);
    sample_hub_hear(&s);
    assert_non_null(snapshot_find_node(&s.ears[0].held, "bb"));
    sample_hub_compare(&s);
}

/* What a node says of itself its peers hear at once. */
static void test_a_report_is_told_to_others(void **state)
{
    size_t before;

    sample_hub_add_node(&s, "aa");
    sample_hub_add_node(&s, "bb");
    sample_hub_listen(&s, sample_hub_node(&s, "aa"));
    sample_hub_hear(&s);
    before = s.ears[0].n_events;
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_OVERLAY, sample_hub_node(&s, "bb"), "PUT",
                         "/v1/status", "{\"node\":{\"paths\":{\"generation\":5}}}", NULL),
        204);
    sample_hub_hear(&s);
    assert_int_equal(s.ears[0].n_events, before + 1);
    sample_hub_compare(&s);
}

/* And so they do of what it has said to another hub of the store. */
static void test_a_report_to_another_hub_is_told(void **state)
{
    struct report_record record = {.last_seen_at = 5, .by = s.hub->model.boot + 1};
    size_t before;
    char *text;

    sample_hub_add_node(&s, "aa");
    sample_hub_add_node(&s, "bb");
    sample_hub_listen(&s, sample_hub_node(&s, "aa"));
    sample_hub_hear(&s);
    before = s.ears[0].n_events;
    (void)snprintf(record.report.hostname, sizeof(record.report.hostname), "box");
    text = record_report_encode(&record);
    sample_hub_write(&s, "report/default/bb", text);
    free(text);
    sample_hub_hear(&s);
    assert_int_equal(s.ears[0].n_events, before + 1);
    sample_hub_compare(&s);
}

/* Both ends of an edge hear that it is off, and that it is on again; others hear it later. */
static void test_an_edge_is_told_to_its_ends(void **state)
{
    size_t before[2];

    sample_hub_add_node(&s, "aa");
    sample_hub_add_node(&s, "bb");
    sample_hub_listen(&s, sample_hub_node(&s, "aa"));
    sample_hub_listen(&s, sample_hub_node(&s, "bb"));
    sample_hub_hear(&s);
    for (unsigned i = 0; i < 2; i++)
        before[i] = s.ears[i].n_events;
    sample_hub_turn_edge_off(&s, "aa", "bb");
    sample_hub_hear(&s);
    for (unsigned i = 0; i < 2; i++)
        assert_true(s.ears[i].n_events > before[i]);
    sample_hub_compare(&s);
    assert_int_equal(ask("DELETE", "/v1/networks/default/objects/MeshEdge/aa--bb", NULL), 204);
    sample_hub_hear(&s);
    for (unsigned i = 0; i < 2; i++)
        assert_true(s.ears[i].n_events > before[i] + 1);
    sample_hub_compare(&s);
}

/* A change of the network all its members hear. */
static void test_a_network_that_changes(void **state)
{
    json_t *net = NULL;
    size_t before;
    char *text;

    sample_hub_add_node(&s, "aa");
    sample_hub_listen(&s, sample_hub_node(&s, "aa"));
    sample_hub_hear(&s);
    before = s.ears[0].n_events;
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "GET",
                         "/v1/networks/default/objects/Network/default", NULL, &net),
        200);
    json_object_set_new(json_object_get(net, "spec"), "mtu", json_integer(1300));
    text = json_dumps(net, 0);
    assert_int_equal(ask("PUT", "/v1/networks/default/objects/Network/default", text), 200);
    free(text);
    json_decref(net);
    sample_hub_wait(&s, 3);
    sample_hub_hear(&s);
    assert_true(s.ears[0].n_events > before);
    sample_hub_compare(&s);
}

/* A record that is set aside is named; what else stops the hub is said as it is. */
static void test_what_is_set_aside_is_said(void **state)
{
    const struct model_listener *told = &s.hub->model.listener;
    struct captured_log log = captured_log_begin();
    struct err e = ERR_NULL;

    (void)err_set(&e, -EIO, "the store is gone");
    told->broken(told->ctx, "node/default/aa", &e);
    told->broken(told->ctx, "", &e);
    captured_log_end(&log,
        "error: hub: the record \"node/default/aa\" is set aside and left as it is (see "
        "weft-hub(8)): the store is gone\nerror: hub: the store is gone\n");
}

/* Why this hub has no key of a network is kept, for who starts it. */
static void test_a_key_that_is_another_hubs(void **state)
{
    const struct model_listener *told = &s.hub->model.listener;
    const struct x25519_public other = {{9}};
    struct x25519_secret secret;
    struct err e = ERR_NULL;

    assert_int_equal(told->network_key(told->ctx, "default", &network()->public, &secret, &e), 0);
    assert_int_equal(s.hub->networks.key_failure.code, 0);
    assert_int_not_equal(told->network_key(told->ctx, "default", &other, &secret, &e), 0);
    assert_int_equal(s.hub->networks.key_failure.code, e.code);
    assert_string_equal(err_text(&s.hub->networks.key_failure), err_text(&e));
}

/* ---- networks -------------------------------------------------------------------------------- */

static void make_network(const char *name)
{
    char body[96];

    (void)snprintf(body, sizeof(body), "{\"name\":\"%s\",\"cidr4\":\"10.99.0.0/16\"}", name);
    assert_int_equal(ask("POST", "/v1/networks", body), 201);
}

static void test_a_removed_network_is_kept_for_a_while(void **state)
{
    nsec_t since = clock_now();

    make_network("second");
    assert_true(model_find_network(&s.hub->model, "second")->served->is_up);
    assert_string_equal(
        model_find_network(&s.hub->model, "second")->served->interface, "wt-second");
    assert_int_equal(ask("DELETE", "/v1/networks/second", NULL), 204);
    assert_null(model_find_network(&s.hub->model, "second"));
    assert_false(list_is_empty(&s.hub->model.removed));
    (void)wait_until_empty(&s.hub->model.removed, 5 * NSEC_PER_SEC);
    assert_true(list_is_empty(&s.hub->model.removed));
    assert_true(clock_now() - since >= 700 * NSEC_PER_MSEC);
    /* The others stay. */
    assert_non_null(network());
}

/* Its interface is another one's at once. */
static void test_a_network_of_the_same_name(void **state)
{
    make_network("second");
    assert_int_equal(ask("DELETE", "/v1/networks/second", NULL), 204);
    make_network("second");
    assert_true(list_is_empty(&s.hub->model.removed));
    assert_true(model_find_network(&s.hub->model, "second")->served->is_up);
}

static void test_a_network_of_another_name(void **state)
{
    make_network("second");
    assert_int_equal(ask("DELETE", "/v1/networks/second", NULL), 204);
    make_network("third");
    assert_false(list_is_empty(&s.hub->model.removed));
}

static size_t count_events(const char *network)
{
    json_t *list = edge_events_encode(&s.hub->reports.events, network);
    size_t n = json_array_size(list);

    json_decref(list);
    return n;
}

/* What has happened in a network is forgotten with it. */
static void test_events_go_with_their_network(void **state)
{
    static const char *const names[] = {"default", "second"};

    make_network("second");
    s.hub->changes.events = &s.hub->reports.events;
    for (unsigned i = 0; i < 2; i++)
        edge_events_add(s.hub->changes.events,
            &(struct edge_event){.network = names[i], .object = "aa", .text = "it failed"});
    assert_int_equal(ask("DELETE", "/v1/networks/second", NULL), 204);
    assert_int_equal(count_events("second"), 0);
    assert_int_equal(count_events("default"), 1);
}

static void test_nodes_are_told_that_their_network_goes(void **state)
{
    sample_hub_add_node(&s, "aa");
    sample_hub_listen(&s, sample_hub_node(&s, "aa"));
    sample_hub_hear(&s);
    assert_int_equal(ask("DELETE", "/v1/networks/default", NULL), 204);
    sample_hub_hear(&s);
    assert_true(s.ears[0].is_removed || s.ears[0].stream == NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_removed_node_is_kept_for_a_while),
        TEST(test_two_that_are_removed_one_after_the_other),
        TEST(test_what_is_said_of_a_removed_node),
        TEST(test_a_node_with_the_key_of_a_former_one),
        TEST(test_a_node_with_another_key),
        TEST(test_a_removed_node_is_told),
        TEST(test_what_is_left_of_a_node_is_deleted),
        TEST(test_what_is_left_of_a_node_stays),
        TEST(test_the_hubs_own_node_is_removed),
        TEST(test_another_node_is_removed),
        TEST(test_a_node_that_comes_is_told_to_others),
        TEST(test_a_report_is_told_to_others),
        TEST(test_a_report_to_another_hub_is_told),
        TEST(test_an_edge_is_told_to_its_ends),
        TEST(test_a_network_that_changes),
        TEST(test_what_is_set_aside_is_said),
        TEST(test_a_key_that_is_another_hubs),
        TEST(test_a_removed_network_is_kept_for_a_while),
        TEST(test_a_network_of_the_same_name),
        TEST(test_a_network_of_another_name),
        TEST(test_events_go_with_their_network),
        TEST(test_nodes_are_told_that_their_network_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
