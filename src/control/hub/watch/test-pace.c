/* test-pace.c - nodes that change soon after one another, told of together to many watches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/record/record.h"
#include "hub/watch/watch.h"
#include "store/store.h"
#include "test/support/audience.h"

/* More watches than are told of each change at once: those of as many new nodes. */
#define N_MANY (WATCH_FEW + 2)

static void open_many(struct stream *s[static N_MANY])
{
    char name[8];

    for (unsigned i = 0; i < N_MANY; i++) {
        (void)snprintf(name, sizeof(name), "%cx", (int)('d' + i));
        audience_add(name);
    }
    for (unsigned i = 0; i < N_MANY; i++) {
        (void)snprintf(name, sizeof(name), "%cx", (int)('d' + i));
        s[i] = audience_open(name);
    }
    /* They have come by another clock than the test's. */
    audience_hub.hub->watcher.pace.is_rush = false;
    audience_hub.now += NSEC_PER_SEC;
}

static void end_many(struct stream *s[static N_MANY])
{
    for (unsigned i = 0; i < N_MANY; i++)
        audience_end(s[i]);
}

/* Nodes that change soon after one another are told of together, each once. */
static void test_pending_for_many(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace.sent_at = audience_hub.now - NSEC_PER_SEC;
    watch_tell_node(w, audience_node("b"));
    assert_int_equal(audience_count(audience_take(s[0]), "put"), 1);
    assert_int_equal(watch_due(w, audience_hub.now), NSEC_NEVER);
    watch_tell_node(w, audience_node("c"));
    watch_tell_node(w, audience_node("a"));
    watch_tell_node(w, audience_node("c"));
    watch_tell_status(w, audience_node("c"), audience_hub.now);
    assert_string_equal(audience_take(s[0]), "");
    assert_int_equal(watch_due(w, audience_hub.now), audience_hub.now + w->n * WATCH_COST);
    audience_hub.now = watch_due(w, audience_hub.now);
    text = audience_take(s[0]);
    assert_int_equal(audience_count(text, "put"), 2);
    /* a's key, and then c's, which has changed again. */
    assert_true(strstr(text, "\"AGEB") < strstr(text, "\"AGMB"));
    assert_int_equal(watch_due(w, audience_hub.now), NSEC_NEVER);
    end_many(s);
}

/* They are one text for all, but for a node that does not see all of them; and the more they were,
 * the longer the next ones wait. */
static void test_pending_are_one_text(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    struct stream *a;
    const char *text;

    open_many(s);
    audience_set_edge("off");
    a = audience_open("a");
    audience_hub.now += NSEC_PER_SEC;
    watch_tell_node(w, audience_node("c"));
    (void)audience_take(a);
    (void)audience_take(s[0]);
    (void)audience_take(s[1]);
    watch_tell_node(w, audience_node("a"));
    watch_tell_node(w, audience_node("b"));
    watch_tell_node(w, audience_node("c"));
    audience_hub.now = watch_due(w, audience_hub.now);
    watch_turn(w, audience_hub.now);
    assert_int_equal(s[0]->n, 1);
    assert_ptr_equal(s[0]->queue[s[0]->first], s[1]->queue[s[1]->first]);
    assert_int_equal(audience_count(audience_take(s[0]), "put"), 3);
    text = audience_take(a);
    assert_int_equal(audience_count(text, "put"), 2);
    assert_null(strstr(text, "\"AGIB"));
    watch_tell_node(w, audience_node("c"));
    assert_int_equal(watch_due(w, audience_hub.now), audience_hub.now + 3 * w->n * WATCH_COST);
    audience_end(a);
    end_many(s);
}

/* Gives b another key, as another hub of the same store does. */
static void rekey(void)
{
    const struct token_hash nobody = {0};
    struct node spec = audience_node("b")->spec;
    char key[RECORD_KEY_MAX];
    struct store_op op = {
        .key = record_key(key, RECORD_NODE, "default", "b"), .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;
    char *value;

    spec.key.b[31] = 1;
    value = record_node_encode(&spec, &nobody);
    op.value = value;
    assert_int_equal(
        store_commit(audience_hub.hub->store, &op, 1, audience_hub.now, NULL, NULL, &e), 0);
    store_wait(audience_hub.hub->store);
    free(value);
}

/* A changed key is told of at once, and with it those that wait, also in a rush of machines. */
static void test_a_key_does_not_wait(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace = (struct watch_pace){
        .sent_at = INT64_MAX / 2, .n_sent = 100, .newcomer_at = audience_hub.now, .is_rush = true};
    watch_tell_node(w, audience_node("a"));
    watch_tell_node(w, audience_node("b"));
    assert_string_equal(audience_take(s[0]), "");
    rekey();
    text = audience_take(s[0]);
    assert_int_equal(audience_count(text, "put"), 2);
    assert_non_null(strstr(text, "\"AGIBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=\""));
    assert_non_null(strstr(text, "\"AGEB"));
    end_many(s);
}

/* Any number of nodes is told of, in texts of a bounded length. */
static void test_many_pending(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    unsigned n_nodes;
    unsigned n = 0;

    for (unsigned i = 0; i < WATCHED_READ_MAX; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "%c%c", (int)('a' + i % 16), (int)('a' + i / 16));
        audience_add(name);
    }
    open_many(s);
    /* The rest of a long snapshot. */
    while (s[0]->n > 0)
        (void)audience_take(s[0]);
    n_nodes = (unsigned)audience_network()->nodes.n;
    w->pace.sent_at = audience_hub.now;
    w->pace.n_sent = 1;
    for (unsigned i = 0; i < n_nodes; i++)
        watch_tell_node(w, model_node_at(audience_network(), i));
    audience_hub.now = watch_due(w, audience_hub.now);
    watch_turn(w, audience_hub.now);
    assert_true(s[0]->bytes < 2 * WATCH_AHEAD);
    while (s[0]->n > 0)
        n += audience_count(audience_take(s[0]), "\n");
    assert_int_equal(n, n_nodes);
    watch_tell_node(w, audience_node("a"));
    assert_int_equal(
        watch_due(w, audience_hub.now), audience_hub.now + WATCH_PATIENCE * w->n * WATCH_COST);
    end_many(s);
}

/* With what is told of the network come the nodes that are pending. */
static void test_pending_with_others(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace.sent_at = audience_hub.now;
    watch_tell_node(w, audience_node("a"));
    assert_string_equal(audience_take(s[0]), "");
    watch_tell_object(w, audience_network(), &audience_network()->watched->change, &network_kind,
        "default", audience_hub.now);
    text = audience_take(s[0]);
    assert_int_equal(audience_count(text, "put"), 2);
    assert_non_null(strstr(text, "\"AGEB"));
    assert_non_null(strstr(text, "\"Network\""));
    end_many(s);
}

/* A node that is removed while it waits is not told of any more. */
static void test_removed_while_pending(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace.sent_at = INT64_MAX / 2;
    watch_tell_node(w, audience_node("b"));
    audience_remove("b");
    w->pace.sent_at = 0;
    text = audience_take(s[0]);
    assert_int_equal(audience_count(text, "put"), 0);
    assert_int_equal(audience_count(text, "delete"), 1);
    end_many(s);
}

/* When nodes are due by the hub's figures, as if it had so many watches. */
static void test_due(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    nsec_t now = 1000 * NSEC_PER_SEC;
    nsec_t alone = now + 10000 * WATCH_COST;

    watch_turn(w, audience_hub.now);
    assert_int_equal(watch_due(w, now), NSEC_NEVER);
    watch_tell_node(w, audience_node("a"));
    w->n = WATCH_FEW;
    w->pace = (struct watch_pace){.sent_at = now, .n_sent = 1000};
    assert_int_equal(watch_due(w, now), 0);
    w->n = 10000;
    assert_int_equal(watch_due(w, now), now + WATCH_PATIENCE * 10000 * WATCH_COST);
    w->pace.n_sent = 3;
    assert_int_equal(watch_due(w, now), now + 30000 * WATCH_COST);
    w->pace.n_sent = 1;
    assert_int_equal(watch_due(w, now), alone);
    /* One machine alone is no rush; the next one soon after it is, until they stop. */
    watch_tell_newcomer(w, audience_node("b"), now);
    assert_int_equal(watch_due(w, now), alone);
    watch_tell_newcomer(w, audience_node("c"), now + WATCH_RUSH_GAP / 2);
    assert_int_equal(
        watch_due(w, now + WATCH_RUSH_GAP / 2), now + WATCH_PATIENCE * 10000 * WATCH_COST);
    w->pace.n_sent = 200;
    assert_int_equal(watch_due(w, now + WATCH_RUSH_GAP / 2),
        now + WATCH_RUSH_SHARE * 10000 * (WATCH_COST + 200 * WATCH_COST_NODE));
    w->pace.n_sent = 10000;
    assert_int_equal(watch_due(w, now + WATCH_RUSH_GAP / 2), now + WATCH_RUSH_MAX);
    w->pace.n_sent = 1;
    assert_int_equal(watch_due(w, now + 2 * WATCH_RUSH_GAP), alone);
    /* Just that long between two is one yet. */
    watch_tell_newcomer(w, audience_node("b"), now);
    watch_tell_newcomer(w, audience_node("c"), now + WATCH_RUSH_GAP);
    assert_true(w->pace.is_rush);
    assert_int_equal(w->pace.newcomer_at, now + WATCH_RUSH_GAP);
    assert_int_equal(
        watch_due(w, now + 2 * WATCH_RUSH_GAP), now + WATCH_PATIENCE * 10000 * WATCH_COST);
    assert_int_equal(watch_due(w, now + 2 * WATCH_RUSH_GAP + 1), alone);
    watch_tell_newcomer(w, audience_node("b"), now + 2 * WATCH_RUSH_GAP + 1);
    assert_false(w->pace.is_rush);
    /* When nodes were told of last is noted, and how many; not when others were. */
    watch_tell_rekeyed(w, audience_node("b"), now + 7);
    assert_int_equal(w->pace.sent_at, now + 7);
    assert_int_equal(w->pace.n_sent, 3);
    assert_int_equal(w->n_pending, 0);
    watch_tell_object(w, audience_network(), &audience_network()->watched->change, &network_kind,
        "default", now + 8);
    assert_int_equal(w->pace.sent_at, now + 7);
    w->n = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_due, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_pending_for_many, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_pending_are_one_text, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_a_key_does_not_wait, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_many_pending, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_pending_with_others, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_removed_while_pending, audience_enter, audience_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
