/* test-watch.c - what a watch is told, in order and in bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "hub/watch/watch.h"
#include "test/support/audience.h"

static void test_changes_come_in_order(void **state)
{
    struct stream *s = audience_open("a");
    const char *text;

    audience_add("d");
    audience_add("e");
    text = audience_take(s);
    assert_int_equal(audience_count(text, "\n"), 2);
    assert_non_null(strstr(text, "\"d\""));
    assert_true(strstr(text, "\"d\"") < strstr(text, "\"e\""));
    assert_string_equal(audience_take(s), "");
    audience_end(s);
}

/* Two nodes that may not talk any more are told that the other one is gone; a third hears nothing.
 */
static void test_edge_that_is_switched_off(void **state)
{
    struct stream *a = audience_open("a");
    struct stream *c = audience_open("c");

    audience_set_edge("off");
    assert_int_equal(audience_count(audience_take(a), "delete"), 1);
    assert_string_equal(audience_take(c), "");
    audience_set_edge("auto");
    assert_int_equal(audience_count(audience_take(a), "publicKey"), 1);
    audience_end(a);
    audience_end(c);
}

static void test_heartbeat_when_nothing_else_is_said(void **state)
{
    struct stream *s = audience_open("a");

    audience_hub.now += WATCH_HEARTBEAT;
    watch_tick(&audience_hub.hub->watcher, audience_hub.now);
    assert_int_equal(audience_count(audience_take(s), "heartbeat"), 1);
    audience_hub.now += WATCH_HEARTBEAT - 1;
    watch_tick(&audience_hub.hub->watcher, audience_hub.now);
    assert_string_equal(audience_take(s), "");
    /* What waits to be taken proves as much. */
    audience_add("d");
    audience_hub.now += WATCH_HEARTBEAT;
    watch_tick(&audience_hub.hub->watcher, audience_hub.now);
    assert_int_equal(audience_count(audience_take(s), "heartbeat"), 0);
    audience_end(s);
}

/* Those that are due together are sent one text. */
static void test_heartbeats_are_one_text(void **state)
{
    struct stream *a = audience_open("a");
    struct stream *b = audience_open("b");

    audience_hub.now += WATCH_HEARTBEAT - 1;
    watch_tick(&audience_hub.hub->watcher, audience_hub.now);
    assert_int_equal(a->n, 0);
    audience_hub.now++;
    watch_tick(&audience_hub.hub->watcher, audience_hub.now);
    assert_int_equal(a->n, 1);
    assert_ptr_equal(a->queue[a->first], b->queue[b->first]);
    audience_end(a);
    audience_end(b);
}

/* Whose connection does not take its snapshot for a minute has it ended. */
static void test_a_snapshot_that_is_not_taken(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s = watch_open(
        w, audience_node("a"), WATCH_HEARTBEAT_SLOW, &audience_nothing, audience_hub.now);

    watch_turn(w, audience_hub.now);
    s->on_drained(s, audience_hub.now);
    assert_int_equal(w->n_sending, 1);
    watch_tick(w, audience_hub.now + WATCH_SNAPSHOT_WITHIN);
    assert_false(s->aborted);
    watch_tick(w, audience_hub.now + WATCH_SNAPSHOT_WITHIN + 1);
    assert_true(s->aborted);
    audience_end(s);
    assert_int_equal(w->n_sending, 0);
}

/* What nobody has read from one second to the next is forgotten. */
static void test_texts_that_nobody_reads(void **state)
{
    struct watched_network *net = audience_network()->watched;
    struct stream *s = audience_open("a");
    unsigned n[3] = {0};

    audience_add("d");
    (void)audience_take(s);
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < WATCHED_TEXTS; k++)
            n[i] += net->texts[k].line != NULL;
        watch_tick(&audience_hub.hub->watcher, audience_hub.now);
    }
    assert_true(n[0] > 0);
    assert_int_equal(n[1], n[0]);
    assert_int_equal(n[2], 0);
    audience_end(s);
}

/* Of a hub with many watches they come slower, to those that accept it. */
static void test_slow_heartbeats(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *old = watch_open(w, audience_node("b"), 0, &audience_nothing, audience_hub.now);
    struct stream *s = audience_open("a");
    unsigned n_real = w->n;
    const char *text;

    (void)audience_take(old);
    (void)audience_take(old);
    w->n = WATCH_MANY;
    audience_hub.now += WATCH_HEARTBEAT;
    watch_tick(w, audience_hub.now);
    assert_int_equal(audience_count(audience_take(s), "next"), 0);
    (void)audience_take(old);
    w->n = WATCH_MANY + 1;
    audience_hub.now += WATCH_HEARTBEAT;
    watch_tick(w, audience_hub.now);
    text = audience_take(s);
    assert_int_equal(audience_count(text, "heartbeat"), 1);
    assert_int_equal(audience_count(text, "\"next\":20"), 1);
    text = audience_take(old);
    assert_int_equal(audience_count(text, "heartbeat"), 1);
    assert_int_equal(audience_count(text, "next"), 0);
    audience_hub.now += WATCH_HEARTBEAT;
    watch_tick(w, audience_hub.now);
    assert_string_equal(audience_take(s), "");
    assert_int_equal(audience_count(audience_take(old), "heartbeat"), 1);
    /* With fewer watches the one that was announced is in time, and says that they come as usual.
     */
    w->n = n_real;
    audience_hub.now += WATCH_HEARTBEAT;
    watch_tick(w, audience_hub.now);
    text = audience_take(s);
    assert_int_equal(audience_count(text, "heartbeat"), 1);
    assert_int_equal(audience_count(text, "next"), 0);
    audience_hub.now += WATCH_HEARTBEAT;
    watch_tick(w, audience_hub.now);
    assert_int_equal(audience_count(audience_take(s), "heartbeat"), 1);
    audience_end(s);
    audience_end(old);
}

static unsigned n_checks;

static void count_check(struct stream *s)
{
    n_checks++;
}

/* Those that there are are asked before whether their connections are still there. */
static void test_third_watch_ends_the_first(void **state)
{
    struct stream *s[3];

    n_checks = 0;
    for (unsigned i = 0; i < 3; i++) {
        s[i] = audience_open("a");
        s[i]->check = count_check;
        assert_int_equal(n_checks, i == 2 ? 3 : i);
    }
    audience_add("d");
    assert_string_equal(audience_take(s[0]), "");
    assert_int_equal(audience_count(audience_take(s[1]), "put"), 1);
    assert_true(s[0]->aborted);
    assert_false(s[1]->aborted || s[2]->aborted);
    assert_true(watch_is_open(audience_node("a")));
    for (unsigned i = 0; i < 3; i++)
        audience_end(s[i]);
    assert_false(watch_is_open(audience_node("a")));
    assert_int_equal(audience_hub.hub->watcher.n, 0);
}

static void test_removed_node_is_told_last(void **state)
{
    struct stream *a = audience_open("a");
    struct stream *b = audience_open("b");
    const char *text;

    audience_remove("a");
    text = audience_take(a);
    assert_int_equal(audience_count(text, "\n"), 1);
    assert_non_null(strstr(text, "removed"));
    assert_true(a->ended);
    assert_int_equal(audience_count(audience_take(b), "delete"), 1);
    assert_false(b->ended);
    audience_end(a);
    audience_end(b);
}

static void on_deleted(void *ctx, const struct store_answer *a)
{
    assert_int_equal(a->r, 0);
}

/* Its record goes, and it has a node yet that another hub has taken in meanwhile. */
static void test_network_that_goes_before_its_node(void **state)
{
    struct store *store = audience_hub.hub->store;
    struct stream *a = audience_open("a");
    struct store_op op = {
        .kind = STORE_OP_DELETE, .key = "network/default", .expect = STORE_EXPECT_ANY};
    const char *text;

    assert_int_equal(store_commit(store, &op, 1, audience_hub.now, on_deleted, NULL, NULL), 0);
    store_wait(store);
    text = audience_take(a);
    assert_int_equal(audience_count(text, "\n"), 1);
    assert_non_null(strstr(text, "its network was removed"));
    assert_true(a->ended);
    audience_end(a);
}

/* Five at once, then one each two seconds, which is the last one. */
static void test_status_that_changes_all_the_time(void **state)
{
    struct stream *s = audience_open("a");
    unsigned n = 0;

    for (unsigned i = 0; i < 20; i++) {
        watch_tell_status(&audience_hub.hub->watcher, audience_node("b"), audience_hub.now);
        n += audience_count(audience_take(s), "\n");
    }
    assert_int_equal(n, WATCH_STATUS_BURST);
    assert_int_equal(watch_due(&audience_hub.hub->watcher, audience_hub.now),
        audience_hub.now + WATCH_STATUS_EACH);
    watch_tick(&audience_hub.hub->watcher, audience_hub.now);
    assert_int_equal(audience_count(audience_take(s), "publicKey"), 0);
    audience_hub.now += WATCH_STATUS_EACH;
    watch_tick(&audience_hub.hub->watcher, audience_hub.now);
    assert_int_equal(audience_count(audience_take(s), "publicKey"), 1);
    audience_hub.now += WATCH_STATUS_EACH;
    watch_tick(&audience_hub.hub->watcher, audience_hub.now);
    assert_int_equal(audience_count(audience_take(s), "publicKey"), 0);
    audience_end(s);
}

static bool answers;

static bool is_answered(struct stream *s, nsec_t within)
{
    return answers;
}

/* @after the present time. */
static void tick(nsec_t after)
{
    audience_hub.now += after;
    watch_tick(&audience_hub.hub->watcher, audience_hub.now);
}

/* Each heartbeat is to be acknowledged; a machine that does not do that is lost until it is heard
 * again, by whatever it does. */
static void test_a_machine_that_is_lost(void **state)
{
    const struct model_node *a = audience_node("a");
    struct stream *s = audience_open("a");
    struct stream *other;
    nsec_t asked_at;

    s->is_answered = is_answered;
    answers = true;
    tick(WATCH_HEARTBEAT);
    asked_at = audience_hub.now;
    assert_int_equal(audience_count(audience_take(s), "heartbeat"), 1);
    tick(WATCH_ANSWER - 1);
    assert_int_equal(a->watched->answered_at, 0);
    tick(1);
    assert_int_equal(a->watched->answered_at, asked_at);
    assert_int_equal(watch_lost_for(a, audience_hub.now), 0);

    answers = false;
    tick(WATCH_HEARTBEAT - WATCH_ANSWER);
    assert_int_equal(audience_count(audience_take(s), "heartbeat"), 1);
    tick(WATCH_ANSWER - 1);
    assert_int_equal(a->watched->lost_at, 0);
    tick(1);
    assert_int_equal(watch_lost_for(a, audience_hub.now + NSEC_PER_SEC), NSEC_PER_SEC);
    a->reported->seen_at = audience_hub.now + 1;
    assert_int_equal(watch_lost_for(a, audience_hub.now + NSEC_PER_SEC), 0);
    a->reported->seen_at = audience_hub.now;
    tick(WATCH_HEARTBEAT);
    assert_int_equal(watch_lost_for(a, audience_hub.now), WATCH_HEARTBEAT);
    answers = true;
    tick(NSEC_PER_SEC);
    assert_int_equal(watch_lost_for(a, audience_hub.now), 0);

    /* A new watch says that it is there, and is the one that is asked then. */
    answers = false;
    (void)audience_take(s);
    tick(WATCH_HEARTBEAT);
    tick(WATCH_ANSWER);
    assert_true(a->watched->lost_at != 0);
    other = audience_open("a");
    assert_int_equal(a->watched->lost_at, 0);
    tick(NSEC_PER_SEC);
    assert_int_equal(a->watched->lost_at, 0);
    audience_end(s);
    audience_end(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_machine_that_is_lost, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_changes_come_in_order, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_edge_that_is_switched_off, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_heartbeat_when_nothing_else_is_said, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_slow_heartbeats, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_heartbeats_are_one_text, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_a_snapshot_that_is_not_taken, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_texts_that_nobody_reads, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_third_watch_ends_the_first, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_removed_node_is_told_last, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_network_that_goes_before_its_node, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_status_that_changes_all_the_time, audience_enter, audience_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
