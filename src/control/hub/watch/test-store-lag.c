/*
 * test-store-lag.c - a store that says nothing any more, and says it again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/watch/hub_access.h"
#include "hub/watch/reports.h"
#include "hub/watch/view.h"
#include "store/store_backend.h"
#include "test/support/sample_hub.h"

static struct sample_hub hub;

static int enter(void **state)
{
    hub = (struct sample_hub){.now = NSEC_PER_SEC};
    sample_hub_make_dir(&hub, false);
    sample_hub_open(&hub);
    return 0;
}

static int leave(void **state)
{
    sample_hub_close(&hub);
    sample_hub_remove_dir(&hub);
    return 0;
}

static uint64_t count(enum edge_event_kind kind)
{
    return hub.hub->reports.events.counts[kind];
}

/* The network's last event is of that type, about the hub, and says so. */
static void expect_last(const char *type, const char *text)
{
    json_t *list = edge_events_encode(&hub.hub->reports.events, "default");
    const json_t *last = json_array_get(list, json_array_size(list) - 1);

    assert_string_equal(json_string_value(json_object_get(last, "type")), type);
    assert_string_equal(json_string_value(json_object_get(last, "object")), hub.hub->model.self);
    assert_int_equal(json_integer_value(json_object_get(last, "time")), 1000);
    assert_string_equal(json_string_value(json_object_get(last, "text")), text);
    json_decref(list);
}

/* What is found of the hub; "": nothing. */
static void expect_found(const char *code)
{
    const struct findings *found = health_of(&hub.hub->reports.health, "default");

    assert_string_equal(found->n > 0 ? finding_kinds[found->items[0]->code].code : "", code);
    if (found->n > 0)
        assert_string_equal(found->items[0]->subject, "hub");
}

static void tick(nsec_t now)
{
    store_lag_tick(&hub.hub->reports, now, 1000);
}

static void test_told_once(void **state)
{
    struct store *s = hub.hub->store;
    nsec_t now = 100 * NSEC_PER_SEC;

    store__set_current(s, now);
    tick(now + STORE_LAG_MAX);
    assert_int_equal(count(EDGE_EVENT_STORE_BEHIND), 0);
    assert_int_equal(store_lag(s, now + STORE_LAG_MAX).behind_for, STORE_LAG_MAX);
    tick(now + STORE_LAG_MAX + NSEC_PER_SEC);
    tick(now + STORE_LAG_MAX + 2 * NSEC_PER_SEC);
    assert_int_equal(count(EDGE_EVENT_STORE_BEHIND), 1);
    expect_last("StoreBehind", "the store has not said for 11 s what has changed; nodes are told "
                               "what was true before");
    assert_int_equal(count(EDGE_EVENT_STORE_AGAIN), 0);
    expect_found("WEFT-HUB-002");
    store__count_relist(s);
    store__set_current(s, now + 2 * STORE_LAG_MAX);
    tick(now + 2 * STORE_LAG_MAX);
    assert_int_equal(count(EDGE_EVENT_STORE_AGAIN), 1);
    expect_last("StoreAgain", "it is known again what has changed in the store");
    expect_found("");
    assert_int_equal(store_lag(s, now).n_relists, 1);
}

static void assert_heartbeat(nsec_t now, const char *expected)
{
    struct heartbeat heartbeat = {
        .revision = 1, .behind_for = store_lag(hub.hub->store, now).behind_for};
    struct line *l = view_heartbeat(&heartbeat);

    assert_int_equal(l->len, strlen(expected));
    assert_memory_equal(l->text, expected, l->len);
    (void)line_unref(l);
}

/* What nodes hear of it. */
static void test_heartbeats(void **state)
{
    nsec_t now = 100 * NSEC_PER_SEC;

    store__set_current(hub.hub->store, now);
    assert_heartbeat(now + STORE_LAG_MAX, "{\"type\":\"heartbeat\",\"revision\":1}\n");
    assert_heartbeat(
        now + 34 * NSEC_PER_SEC, "{\"type\":\"heartbeat\",\"revision\":1,\"storeBehind\":34}\n");
    assert_heartbeat(0, "{\"type\":\"heartbeat\",\"revision\":1}\n");
    store__set_current(hub.hub->store, now + 34 * NSEC_PER_SEC);
    assert_heartbeat(now + 35 * NSEC_PER_SEC, "{\"type\":\"heartbeat\",\"revision\":1}\n");
}

/* One that is kept here is never behind. */
static void test_own_store(void **state)
{
    assert_heartbeat(1000 * NSEC_PER_SEC, "{\"type\":\"heartbeat\",\"revision\":1}\n");
    tick(1000 * NSEC_PER_SEC);
    assert_int_equal(store_lag(hub.hub->store, 1000 * NSEC_PER_SEC).behind_for, 0);
    assert_int_equal(count(EDGE_EVENT_STORE_BEHIND), 0);
}

static bool is_full;
static const struct store_ops *usual;

static void submit(struct store *s, struct store_job *job)
{
    if (!is_full) {
        usual->submit(s, job);
        return;
    }
    job->r = err_set(&job->e, -ENOSPC, "no space left");
    store__finish(s, job);
}

/* A commit at @now, and what the store is said to do then. */
static bool is_refused_at(nsec_t now)
{
    struct store *s = hub.hub->store;
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = "test", .value = "{}", .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_commit(s, &op, 1, now, NULL, NULL, NULL), 0);
    store_wait(s);
    return store_refusal(s).since != 0;
}

/* A store that is full: it is said, something is written again and again, and it is over by itself,
 * though not by one small commit that finds room between others. */
static void test_a_full_store(void **state)
{
    struct store *s = hub.hub->store;
    struct store_ops ops = *s->ops;
    nsec_t now = 100 * NSEC_PER_SEC;

    ops.submit = submit;
    usual = s->ops;
    s->ops = &ops;
    assert_false(is_refused_at(now));
    is_full = true;
    assert_true(is_refused_at(now));
    assert_string_equal(err_text(store_refusal(s).why), "no space left");
    tick(now);
    assert_false(list_is_empty(&hub.hub->reports.unsaved));
    assert_true(hub.hub->reports.is_refusing);
    expect_found("WEFT-HUB-001");
    assert_int_equal(count(EDGE_EVENT_FOUND), 1);
    is_full = false;
    assert_true(is_refused_at(now + STORE_REFUSAL_HOLD - 1));
    assert_false(is_refused_at(now + STORE_REFUSAL_HOLD));
    assert_int_equal(store_refusal(s).n, 1);
    tick(now + STORE_REFUSAL_HOLD);
    assert_false(hub.hub->reports.is_refusing);
    expect_found("");
    assert_int_equal(count(EDGE_EVENT_GONE), 1);
    s->ops = usual;
}

/* One that is not heard takes no writes either, and that is said once. Afterwards only what is
 * refused anew counts. */
static void test_a_store_that_is_cut_off(void **state)
{
    struct store *s = hub.hub->store;
    struct store_ops ops = *s->ops;
    nsec_t now = 100 * NSEC_PER_SEC;

    ops.submit = submit;
    usual = s->ops;
    s->ops = &ops;
    is_full = true;
    store__set_current(s, now);
    assert_true(is_refused_at(now + STORE_LAG_MAX / 2));
    tick(now + STORE_LAG_MAX / 2 + 1);
    expect_found("");
    tick(now + STORE_LAG_MAX + 1);
    assert_int_equal(health_of(&hub.hub->reports.health, "default")->n, 1);
    expect_found("WEFT-HUB-002");
    now += 2 * STORE_LAG_MAX;
    store__set_current(s, now);
    tick(now);
    expect_found("");
    assert_true(is_refused_at(now));
    tick(now + 1);
    expect_found("WEFT-HUB-001");
    is_full = false;
    s->ops = usual;
}

/* A hub whose kernel does not take a network's rules is found, for as long as that is so. */
static void test_rules_that_are_not_enforced(void **state)
{
    const struct model_network *net = model_network_at(&hub.hub->model, 0);
    nsec_t now = 100 * NSEC_PER_SEC;

    if (!net->served->access)
        net->served->access = calloc(1, sizeof(*net->served->access));
    assert_non_null(net->served->access);
    tick(now);
    expect_found("");
    (void)err_set(&net->served->access->rules.fault, -EAFNOSUPPORT, "this kernel has none");
    tick(now + NSEC_PER_SEC);
    expect_found("WEFT-RULE-002");
    net->served->access->rules.fault = (struct err)ERR_NULL;
    tick(now + 2 * NSEC_PER_SEC);
    expect_found("");
    hub_access_end(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_told_once, enter, leave),
        cmocka_unit_test_setup_teardown(test_heartbeats, enter, leave),
        cmocka_unit_test_setup_teardown(test_own_store, enter, leave),
        cmocka_unit_test_setup_teardown(test_rules_that_are_not_enforced, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_full_store, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_store_that_is_cut_off, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
