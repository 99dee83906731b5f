/* test-news.c - nodes that change soon after one another, told of together to many watches. */
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
#define N_MANY (NEWS_PACE_FEW + 2)

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
static void test_news_for_many(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace.told_at = audience_hub.now - NSEC_PER_SEC;
    watch_tell_node(w, audience_node("b"), audience_hub.now);
    assert_int_equal(audience_count(audience_take(s[0]), "put"), 1);
    assert_int_equal(watch_news_due(w, audience_hub.now), NSEC_NEVER);
    watch_tell_node(w, audience_node("c"), audience_hub.now);
    watch_tell_node(w, audience_node("a"), audience_hub.now);
    watch_tell_node(w, audience_node("c"), audience_hub.now);
    watch_tell_status(w, audience_node("c"), audience_hub.now);
    assert_string_equal(audience_take(s[0]), "");
    assert_int_equal(
        watch_news_due(w, audience_hub.now), audience_hub.now + w->n * NEWS_PACE_WATCH);
    watch_tell_news(w, watch_news_due(w, audience_hub.now));
    text = audience_take(s[0]);
    assert_int_equal(audience_count(text, "put"), 2);
    /* c's key, and then a's. */
    assert_true(strstr(text, "\"AGMB") < strstr(text, "\"AGEB"));
    assert_int_equal(watch_news_due(w, audience_hub.now), NSEC_NEVER);
    end_many(s);
}

/* They are one text for all, but for a node that does not see all of them; and the more they were,
 * the longer the next ones wait. */
static void test_news_are_one_text(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    struct stream *a;
    const char *text;

    open_many(s);
    audience_set_edge("off");
    a = audience_open("a");
    audience_hub.now += NSEC_PER_SEC;
    watch_tell_node(w, audience_node("c"), audience_hub.now);
    (void)audience_take(a);
    (void)audience_take(s[0]);
    (void)audience_take(s[1]);
    watch_tell_node(w, audience_node("a"), audience_hub.now);
    watch_tell_node(w, audience_node("b"), audience_hub.now);
    watch_tell_node(w, audience_node("c"), audience_hub.now);
    audience_hub.now = watch_news_due(w, audience_hub.now);
    watch_tell_news(w, audience_hub.now);
    assert_int_equal(s[0]->n, 1);
    assert_ptr_equal(s[0]->queue[s[0]->first], s[1]->queue[s[1]->first]);
    assert_int_equal(audience_count(audience_take(s[0]), "put"), 3);
    text = audience_take(a);
    assert_int_equal(audience_count(text, "put"), 2);
    assert_null(strstr(text, "\"AGIB"));
    watch_tell_node(w, audience_node("c"), audience_hub.now);
    assert_int_equal(
        watch_news_due(w, audience_hub.now), audience_hub.now + 3 * w->n * NEWS_PACE_WATCH);
    audience_end(a);
    end_many(s);
}

/* Gives b another key, as another hub of the same store does. */
static void rekey(void)
{
    const struct token_hash nobody = {0};
    struct node spec = audience_node("b")->pub.spec;
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

/* A changed key is told of at once, alone, while others wait, also in a rush of machines. */
static void test_a_key_does_not_wait(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace = (struct news_pace){
        .told_at = INT64_MAX / 2, .n_told = 100, .newcomer_at = audience_hub.now, .is_rush = true};
    watch_tell_node(w, audience_node("a"), audience_hub.now);
    watch_tell_node(w, audience_node("b"), audience_hub.now);
    assert_string_equal(audience_take(s[0]), "");
    rekey();
    text = audience_take(s[0]);
    assert_int_equal(audience_count(text, "put"), 1);
    assert_non_null(strstr(text, "\"AGIBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=\""));
    /* The other one waits still, and b is told of once. */
    watch_tell_news(w, audience_hub.now);
    text = audience_take(s[0]);
    assert_int_equal(audience_count(text, "put"), 1);
    assert_non_null(strstr(text, "\"AGEB"));
    end_many(s);
}

/* Any number of nodes is told of, in texts of a bounded length. */
static void test_many_news(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    unsigned n_nodes;
    unsigned n = 0;

    for (unsigned i = 0; i < WATCH_NEWS_MAX; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "%c%c", (int)('a' + i % 16), (int)('a' + i / 16));
        audience_add(name);
    }
    open_many(s);
    /* The rest of a long snapshot. */
    while (s[0]->n > 0)
        (void)audience_take(s[0]);
    n_nodes = (unsigned)audience_network()->nodes.n;
    w->pace.told_at = audience_hub.now;
    w->pace.n_told = 1;
    for (unsigned i = 0; i < n_nodes; i++)
        watch_tell_node(w, model_node_at(audience_network(), i), audience_hub.now);
    watch_tell_news(w, audience_hub.now);
    assert_int_equal(s[0]->n, 2);
    while (s[0]->n > 0)
        n += audience_count(audience_take(s[0]), "\n");
    assert_int_equal(n, n_nodes);
    watch_tell_node(w, audience_node("a"), audience_hub.now);
    assert_int_equal(watch_news_due(w, audience_hub.now),
        audience_hub.now + NEWS_PACE_PATIENCE * w->n * NEWS_PACE_WATCH);
    end_many(s);
}

/* What is told of the network comes after the nodes that changed before it. */
static void test_order_of_news(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace.told_at = audience_hub.now;
    watch_tell_node(w, audience_node("a"), audience_hub.now);
    assert_string_equal(audience_take(s[0]), "");
    watch_tell_network(w, audience_network(), audience_hub.now);
    text = audience_take(s[0]);
    assert_int_equal(audience_count(text, "put"), 2);
    assert_true(strstr(text, "\"AGEB") < strstr(text, "\"Network\""));
    end_many(s);
}

/* A node that is removed while it waits is not told of any more. */
static void test_removed_news(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace.told_at = audience_hub.now;
    watch_tell_node(w, audience_node("b"), audience_hub.now);
    audience_remove("b");
    watch_tell_news(w, audience_hub.now);
    text = audience_take(s[0]);
    assert_int_equal(audience_count(text, "put"), 0);
    assert_int_equal(audience_count(text, "delete"), 1);
    end_many(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_news_for_many, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_news_are_one_text, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_a_key_does_not_wait, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_many_news, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_order_of_news, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_removed_news, audience_enter, audience_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
