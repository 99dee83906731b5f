/* test-resume.c - watches that go on where others broke off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "hub/record/record.h"
#include "hub/watch/resume.h"
#include "hub/watch/watch.h"
#include "store/store.h"
#include "test/support/audience.h"

static struct watch_known known_now(void)
{
    return (struct watch_known){
        .boot = audience_hub.hub->model.boot, .revision = store_revision(audience_hub.hub->store)};
}

/* What a watch of that node that knows so much is told first. */
static const char *resume(const char *name, const struct watch_known *known)
{
    struct stream *s = watch_open(&audience_hub.hub->watcher, audience_node(name),
        WATCH_HEARTBEAT_SLOW, known, audience_hub.now);
    static char all[1 << 16];
    size_t n = 0;

    assert_non_null(s);
    s->on_drained(s);
    while (s->n > 0)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s", audience_take(s));
    audience_end(s);
    return all;
}

/* It is told of what has changed as it is now, once, and that it was all. */
static void test_resume(void **state)
{
    struct watch_known known = known_now();
    const char *text;

    audience_add("d");
    audience_add("e");
    audience_remove("e");
    watch_tell_status(&audience_hub.hub->watcher, audience_node("b"), audience_hub.now);
    watch_tell_status(&audience_hub.hub->watcher, audience_node("b"), audience_hub.now);
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    /* d and b; c, which was the last at that revision, may come once more. */
    assert_int_equal(audience_count(text, "\"AGQB"), 1);
    assert_int_equal(audience_count(text, "\"AGIB"), 1);
    assert_int_equal(audience_count(text, "\"AGEB"), 0);
    assert_int_equal(audience_count(text, "\"delete\""), 1);
    assert_int_equal(audience_count(text, "\"name\":\"e\""), 1);
    assert_int_equal(audience_count(text, "heartbeat"), 1);
    assert_non_null(strstr(strstr(text, "\"delete\""), "heartbeat"));
    assert_int_equal(audience_hub.hub->watcher.n_resumed, 1);
    /* It goes on as any other. */
    known = known_now();
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    assert_int_equal(audience_count(text, "heartbeat"), 1);
}

/* Who may see whom has changed meanwhile. */
static void test_resume_of_what_is_seen(void **state)
{
    struct watch_known known = known_now();
    const char *text;

    audience_set_edge("off");
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    assert_int_equal(audience_count(text, "\"AGIB"), 0);
    assert_int_equal(audience_count(text, "\"a--b\""), 1);
    assert_int_equal(audience_count(text, "\"delete\""), 1);
    assert_non_null(strstr(text, "\"name\":\"b\""));
    text = resume("c", &known);
    assert_int_equal(audience_count(text, "a--b"), 0);
    assert_int_equal(audience_count(text, "\"delete\""), 0);
    known = known_now();
    audience_set_edge("auto");
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "\"AGIB"), 1);
    assert_int_equal(audience_count(text, "\"a--b\""), 1);
    assert_true(strstr(text, "\"AGIB") < strstr(text, "\"a--b\""));
}

/* Another run of the hub, too long ago, or too much: then there is a snapshot. */
static void test_resume_is_not_possible(void **state)
{
    struct watch_known other = known_now();
    struct watch_known known = known_now();
    struct history *h = &audience_network()->history;

    other.boot ^= 1;
    assert_int_equal(audience_count(resume("a", &other), "snapshot"), 1);
    /* Objects that there are no more. */
    for (unsigned i = 0; i < HISTORY_MAX + 1; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "n%u", i);
        history_add(h, &node_kind, name, known.revision + 1 + i / (RESUME_MAX + 1));
    }
    assert_int_equal(h->n, HISTORY_MAX);
    assert_int_equal(audience_count(resume("a", &known), "snapshot"), 1);
    known.revision = h->forgotten;
    assert_int_equal(audience_count(resume("a", &known), "snapshot"), 1);
    known.revision = h->forgotten + 1;
    assert_int_equal(audience_count(resume("a", &known), "snapshot"), 1);
    assert_int_equal(audience_hub.hub->watcher.n_resumed, 0);
}

/* What is the same for all is one text in memory, until something else is told. */
static void test_resumes_share_their_texts(void **state)
{
    struct watch_known known = known_now();
    struct watcher *w = &audience_hub.hub->watcher;
    struct stream *s[3];
    struct line *first;

    audience_add("d");
    audience_add("e");
    audience_remove("e");
    for (unsigned i = 0; i < 2; i++) {
        s[i] = watch_open(w, audience_node(i ? "c" : "a"), 0, &known, audience_hub.now);
        s[i]->on_drained(s[i]);
    }
    assert_true(s[0]->n > 0);
    assert_int_equal(s[0]->n, s[1]->n);
    for (size_t i = 0; i < s[0]->n; i++)
        assert_ptr_equal(s[0]->queue[s[0]->first + i], s[1]->queue[s[1]->first + i]);
    first = line_ref(s[0]->queue[s[0]->first]);
    audience_add("f");
    s[2] = watch_open(w, audience_node("b"), 0, &known, audience_hub.now);
    s[2]->on_drained(s[2]);
    assert_ptr_not_equal(first, s[2]->queue[s[2]->first]);
    assert_non_null(strstr(audience_take(s[2]), "\"AGYB"));
    (void)line_unref(first);
    for (unsigned i = 0; i < 3; i++)
        audience_end(s[i]);
}

/* Two nodes go in one commit, and their edge with them. One is added again while its agent is away,
 * which goes on with its watch. */
static void test_an_edge_without_nodes(void **state)
{
    static const struct {
        enum record_kind kind;
        const char *name;
    } gone[] = {{RECORD_NODE, "a"}, {RECORD_NODE, "b"}, {RECORD_EDGE, "a--b"}};
    char keys[3][RECORD_KEY_MAX];
    struct store_op ops[3];
    struct watch_known known;
    struct err e = ERR_NULL;
    const char *text;

    audience_set_edge("relay");
    audience_add("d");
    known = known_now();
    for (unsigned i = 0; i < 3; i++)
        ops[i] = (struct store_op){.kind = STORE_OP_DELETE,
            .key = record_key(keys[i], gone[i].kind, "default", gone[i].name),
            .expect = STORE_EXPECT_ANY};
    assert_int_equal(
        store_now_commit(audience_hub.hub->store, ops, 3, audience_hub.now, NULL, NULL, &e), 0);
    assert_null(model_find_node(audience_network(), "a"));
    audience_add("a");
    text = resume("a", &known);
    assert_int_equal(audience_count(text, "snapshot"), 0);
    assert_int_equal(audience_count(text, "\"MeshEdge\",\"name\":\"a--b\""), 1);
}

/* Changes that are much to send wait for a place, as snapshots do; what is little does not. */
static void test_long_resumes_wait(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct watch_known before;
    struct watch_known after;
    struct stream *s;
    char name[8];

    for (unsigned i = 0; i < 128; i++) {
        if (i == 64)
            before = known_now();
        (void)snprintf(name, sizeof(name), "%c%c", (int)('a' + i % 16), (int)('a' + i / 16));
        audience_add(name);
    }
    after = known_now();
    w->n_sending = WATCH_SNAPSHOTS_MAX;
    assert_int_equal(audience_count(resume("a", &after), "heartbeat"), 1);
    s = watch_open(w, audience_node("b"), 0, &before, audience_hub.now);
    s->on_drained(s);
    assert_int_equal(s->n, 0);
    assert_int_equal(w->n_resumed, 1);
    w->n_sending = 0;
    /* One that was sent has left its place. */
    audience_end(audience_open("c"));
    assert_true(s->n > 0);
    assert_int_equal(audience_count(audience_take(s), "snapshot"), 0);
    assert_int_equal(w->n_resumed, 2);
    while (s->n > 0)
        (void)audience_take(s);
    assert_int_equal(w->n_sending, 0);
    audience_end(s);
}

/* What is little by the time that a place is free leaves that place to the next one. */
static void test_a_place_that_is_not_needed(void **state)
{
    struct watcher *w = &audience_hub.hub->watcher;
    struct watch_known before;
    struct stream *s[2];
    char name[8];

    for (unsigned i = 0; i < 256; i++) {
        if (i == 192)
            before = known_now();
        (void)snprintf(name, sizeof(name), "%c%c", (int)('a' + i % 16), (int)('a' + i / 16));
        audience_add(name);
    }
    w->n_sending = WATCH_SNAPSHOTS_MAX;
    for (unsigned i = 0; i < 2; i++) {
        s[i] = watch_open(w, audience_node(i == 0 ? "a" : "b"), 0, &before, audience_hub.now);
        s[i]->on_drained(s[i]);
        assert_int_equal(s[i]->n, 0);
    }
    for (unsigned i = 192; i < 256; i++) {
        (void)snprintf(name, sizeof(name), "%c%c", (int)('a' + i % 16), (int)('a' + i / 16));
        audience_remove(name);
    }
    w->n_sending = 0;
    audience_end(audience_open("c"));
    assert_int_equal(w->n_sending, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(audience_count(audience_take(s[i]), "heartbeat"), 1);
        audience_end(s[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_resume, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_resume_of_what_is_seen, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_resume_is_not_possible, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_resumes_share_their_texts, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_an_edge_without_nodes, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_long_resumes_wait, audience_enter, audience_leave),
        cmocka_unit_test_setup_teardown(
            test_a_place_that_is_not_needed, audience_enter, audience_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
