/*
 * test-watch.c - what a node may see, and what its watch is told, in order and in bounds.
 *
 * A whole hub on the memory store; the test is the server, and takes what the streams hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "hub/watch/resume.h"
#include "hub/watch/view.h"
#include "hub/watch/watch.h"
#include "test/support/sample_hub.h"

/* ---- a hub with the nodes a, b and c -------------------------------------------------------- */

static struct sample_hub hub;

static struct model_network *network(void)
{
    return model_find_network(&hub.hub->model, "default");
}

static struct model_node *node(const char *name)
{
    struct model_node *n = model_find_node(network(), name);

    assert_non_null(n);
    return n;
}

static void add_node(const char *name)
{
    uint8_t key[32] = {[1] = (uint8_t)name[0], [2] = 1, [3] = (uint8_t)name[1]};
    char text[BASE64_ROOM(32)];
    char body[256];

    base64_encode(key, sizeof(key), text);
    (void)snprintf(body, sizeof(body), "{\"name\":\"%s\",\"publicKey\":\"%s\"}", name, text);
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "POST",
                         "/v1/networks/default/nodes", body, NULL),
        201);
}

static void set_edge(const char *path)
{
    char body[256];

    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\"},"
        "\"spec\":{\"nodes\":[\"a\",\"b\"],\"path\":\"%s\"}}",
        path);
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "PUT",
                         "/v1/networks/default/objects/MeshEdge/a--b", body, NULL),
        200);
}

static int enter(void **state)
{
    hub = (struct sample_hub){.now = NSEC_PER_SEC};
    sample_hub_make_dir(&hub, false);
    sample_hub_open(&hub);
    add_node("a");
    add_node("b");
    add_node("c");
    return 0;
}

static int leave(void **state)
{
    sample_hub_close(&hub);
    sample_hub_remove_dir(&hub);
    return 0;
}

/* ---- the server's part ---------------------------------------------------------------------- */

/* What is queued; then the stream has been drained. */
static const char *take(struct stream *s)
{
    static char text[1 << 16];
    size_t n = stream_take(s, text, sizeof(text) - 1, hub.now);

    text[n] = '\0';
    if (s->n == 0)
        s->on_drained(s);
    return text;
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;

    for (const char *p = strstr(text, part); p; p = strstr(p + 1, part))
        n++;
    return n;
}

static const struct watch_known nothing;

/* A watch that has got its snapshot. */
static struct stream *open_watch(const char *name)
{
    struct stream *s =
        watch_open(&hub.hub->watcher, node(name), WATCH_HEARTBEAT_SLOW, &nothing, hub.now);
    const char *text;

    assert_non_null(s);
    s->on_drained(s);
    text = take(s);
    if (count(text, "snapshot") != 1)
        fail_msg("no snapshot: %.200s", text);
    return s;
}

static void end(struct stream *s)
{
    s->on_closed(s);
}

/* ---- views ---------------------------------------------------------------------------------- */

static void test_who_sees_whom(void **state)
{
    char *text;

    assert_true(view_can_see(node("a"), node("a")));
    assert_true(view_can_see(node("a"), node("b")));
    set_edge("off");
    assert_true(view_can_see(node("a"), node("a")));
    assert_false(view_can_see(node("a"), node("b")));
    assert_false(view_can_see(node("b"), node("a")));
    assert_true(view_can_see(node("a"), node("c")));
    text = view_snapshot_text(node("a"));
    assert_non_null(text);
    /* By their keys: c's, and not b's. */
    assert_non_null(strstr(text, "\"AGMB"));
    assert_null(strstr(text, "\"AGIB"));
    free(text);
}

static void test_lent_snapshot(void **state)
{
    struct snapshot s = SNAPSHOT_NULL;

    set_edge("off");
    assert_true(view_lend_snapshot(node("a"), &s));
    assert_string_equal(s.self, "a");
    assert_non_null(snapshot_find_node(&s, "c"));
    assert_null(snapshot_find_node(&s, "b"));
    view_return_snapshot(&s);
    view_return_snapshot(&s);
}

/* More nodes than a block has. */
static void add_block(void)
{
    char name[8];

    for (unsigned i = 0; i < ROSTER_BLOCK_NODES; i++) {
        (void)snprintf(name, sizeof(name), "%c%c", (int)('d' + i % 20), (int)('a' + i / 20));
        add_node(name);
    }
}

/* How many parts of the two are the same text in memory. */
static unsigned count_shared(const struct view_parts *x, const struct view_parts *y)
{
    unsigned n = 0;

    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < y->n; k++)
            n += x->items[i] == y->items[k] && x->items[i]->len > 1;
    return n;
}

static void take_view(struct view_parts *v, const char *name)
{
    view_parts_deinit(v);
    assert_true(view_snapshot(node(name), v));
}

/* All nodes share the text of each block, but for one of which a node does not see all. */
static void test_shared_snapshot(void **state)
{
    struct view_parts a = {.n = 0};
    struct view_parts c = {.n = 0};
    json_t *all;
    char *text;

    add_block();
    take_view(&a, "a");
    take_view(&c, "c");
    assert_int_equal(count_shared(&a, &c), 2);
    text = view_snapshot_text(node("a"));
    all = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(all, "nodes")), 4 + ROSTER_BLOCK_NODES);
    json_decref(all);
    free(text);
    watch_tell_status(&hub.hub->watcher, node("b"), hub.now);
    take_view(&a, "a");
    assert_int_equal(count_shared(&a, &c), 1);
    take_view(&c, "c");
    assert_int_equal(count_shared(&a, &c), 2);
    set_edge("off");
    take_view(&a, "a");
    assert_int_equal(count_shared(&a, &c), 1);
    text = view_snapshot_text(node("a"));
    all = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(all, "nodes")), 3 + ROSTER_BLOCK_NODES);
    json_decref(all);
    free(text);
    view_parts_deinit(&a);
    view_parts_deinit(&c);
}

/* ---- watches -------------------------------------------------------------------------------- */

static void test_changes_come_in_order(void **state)
{
    struct stream *s = open_watch("a");
    const char *text;

    add_node("d");
    add_node("e");
    text = take(s);
    assert_int_equal(count(text, "\n"), 2);
    assert_non_null(strstr(text, "\"d\""));
    assert_true(strstr(text, "\"d\"") < strstr(text, "\"e\""));
    assert_string_equal(take(s), "");
    end(s);
}

/* Two nodes that may not talk any more are told that the other one is gone; a third hears nothing.
 */
static void test_edge_that_is_switched_off(void **state)
{
    struct stream *a = open_watch("a");
    struct stream *c = open_watch("c");

    set_edge("off");
    assert_int_equal(count(take(a), "delete"), 1);
    assert_string_equal(take(c), "");
    set_edge("auto");
    assert_int_equal(count(take(a), "publicKey"), 1);
    end(a);
    end(c);
}

static void test_heartbeat_when_nothing_else_is_said(void **state)
{
    struct stream *s = open_watch("a");

    hub.now += WATCH_HEARTBEAT;
    watch_tick(&hub.hub->watcher, hub.now);
    assert_int_equal(count(take(s), "heartbeat"), 1);
    hub.now += WATCH_HEARTBEAT - 1;
    watch_tick(&hub.hub->watcher, hub.now);
    assert_string_equal(take(s), "");
    /* What waits to be taken proves as much. */
    add_node("d");
    hub.now += WATCH_HEARTBEAT;
    watch_tick(&hub.hub->watcher, hub.now);
    assert_int_equal(count(take(s), "heartbeat"), 0);
    end(s);
}

/* Of a hub with many watches they come slower, to those that accept it. */
static void test_slow_heartbeats(void **state)
{
    struct watcher *w = &hub.hub->watcher;
    struct stream *old = watch_open(w, node("b"), 0, &nothing, hub.now);
    struct stream *s = open_watch("a");
    unsigned n_real = w->n;
    const char *text;

    (void)take(old);
    (void)take(old);
    w->n = WATCH_MANY + 1;
    hub.now += WATCH_HEARTBEAT;
    watch_tick(w, hub.now);
    text = take(s);
    assert_int_equal(count(text, "heartbeat"), 1);
    assert_int_equal(count(text, "\"next\":20"), 1);
    text = take(old);
    assert_int_equal(count(text, "heartbeat"), 1);
    assert_int_equal(count(text, "next"), 0);
    hub.now += WATCH_HEARTBEAT;
    watch_tick(w, hub.now);
    assert_string_equal(take(s), "");
    assert_int_equal(count(take(old), "heartbeat"), 1);
    /* With fewer watches the one that was announced is in time, and says that they come as usual.
     */
    w->n = n_real;
    hub.now += WATCH_HEARTBEAT;
    watch_tick(w, hub.now);
    text = take(s);
    assert_int_equal(count(text, "heartbeat"), 1);
    assert_int_equal(count(text, "next"), 0);
    hub.now += WATCH_HEARTBEAT;
    watch_tick(w, hub.now);
    assert_int_equal(count(take(s), "heartbeat"), 1);
    end(s);
    end(old);
}

/* A node that takes nothing costs a bounded queue, and begins again with a snapshot. */
static void test_slow_node_gets_a_snapshot(void **state)
{
    struct stream *s = open_watch("a");
    const char *text;

    for (unsigned i = 0; i <= STREAM_LINES_MAX; i++)
        watch_tell_node(&hub.hub->watcher, node("b"), hub.now);
    assert_int_equal(hub.hub->watcher.n_overrun, 1);
    assert_true(s->n <= STREAM_LINES_MAX);
    /* What comes meanwhile is in the snapshot. */
    add_node("d");
    text = take(s);
    if (count(text, "snapshot") == 0)
        text = take(s);
    assert_int_equal(count(text, "snapshot"), 1);
    assert_non_null(strstr(text, "\"d\""));
    assert_string_equal(take(s), "");
    end(s);
}

static void test_third_watch_ends_the_first(void **state)
{
    struct stream *s[3];

    for (unsigned i = 0; i < 3; i++)
        s[i] = open_watch("a");
    assert_true(s[0]->aborted);
    assert_false(s[1]->aborted || s[2]->aborted);
    assert_true(watch_is_open(node("a")));
    for (unsigned i = 0; i < 3; i++)
        end(s[i]);
    assert_false(watch_is_open(node("a")));
    assert_int_equal(hub.hub->watcher.n, 0);
}

static void test_removed_node_is_told_last(void **state)
{
    struct stream *a = open_watch("a");
    struct stream *b = open_watch("b");
    const char *text;

    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "DELETE",
                         "/v1/networks/default/nodes/a", NULL, NULL),
        204);
    text = take(a);
    assert_int_equal(count(text, "\n"), 1);
    assert_non_null(strstr(text, "removed"));
    assert_true(a->ended);
    assert_int_equal(count(take(b), "delete"), 1);
    assert_false(b->ended);
    end(a);
    end(b);
}

/* Five at once, then one each two seconds, which is the last one. */
static void test_status_that_changes_all_the_time(void **state)
{
    struct stream *s = open_watch("a");

    for (unsigned i = 0; i < 20; i++)
        watch_tell_status(&hub.hub->watcher, node("b"), hub.now);
    assert_int_equal(count(take(s), "\n"), WATCH_STATUS_BURST);
    watch_tick(&hub.hub->watcher, hub.now);
    assert_int_equal(count(take(s), "publicKey"), 0);
    hub.now += WATCH_STATUS_EACH;
    watch_tick(&hub.hub->watcher, hub.now);
    assert_int_equal(count(take(s), "publicKey"), 1);
    hub.now += WATCH_STATUS_EACH;
    watch_tick(&hub.hub->watcher, hub.now);
    assert_int_equal(count(take(s), "publicKey"), 0);
    end(s);
}

/* ---- watches that go on --------------------------------------------------------------------- */

static struct watch_known known_now(void)
{
    return (struct watch_known){
        .boot = hub.hub->model.boot, .revision = store_revision(hub.hub->store)};
}

/* What a watch of that node that knows so much is told first. */
static const char *resume(const char *name, const struct watch_known *known)
{
    struct stream *s =
        watch_open(&hub.hub->watcher, node(name), WATCH_HEARTBEAT_SLOW, known, hub.now);
    static char all[1 << 16];
    size_t n = 0;

    assert_non_null(s);
    s->on_drained(s);
    while (s->n > 0)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s", take(s));
    end(s);
    return all;
}

static void remove_node(const char *name)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/v1/networks/default/nodes/%s", name);
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "DELETE", path, NULL, NULL), 204);
}

/* It is told of what has changed as it is now, once, and that it was all. */
static void test_resume(void **state)
{
    struct watch_known known = known_now();
    const char *text;

    add_node("d");
    add_node("e");
    remove_node("e");
    watch_tell_status(&hub.hub->watcher, node("b"), hub.now);
    watch_tell_status(&hub.hub->watcher, node("b"), hub.now);
    text = resume("a", &known);
    assert_int_equal(count(text, "snapshot"), 0);
    /* d and b; c, which was the last at that revision, may come once more. */
    assert_int_equal(count(text, "\"AGQB"), 1);
    assert_int_equal(count(text, "\"AGIB"), 1);
    assert_int_equal(count(text, "\"AGEB"), 0);
    assert_int_equal(count(text, "\"delete\""), 1);
    assert_int_equal(count(text, "\"name\":\"e\""), 1);
    assert_int_equal(count(text, "heartbeat"), 1);
    assert_non_null(strstr(strstr(text, "\"delete\""), "heartbeat"));
    assert_int_equal(hub.hub->watcher.n_resumed, 1);
    /* It goes on as any other. */
    known = known_now();
    text = resume("a", &known);
    assert_int_equal(count(text, "snapshot"), 0);
    assert_int_equal(count(text, "heartbeat"), 1);
}

/* Who may see whom has changed meanwhile. */
static void test_resume_of_what_is_seen(void **state)
{
    struct watch_known known = known_now();
    const char *text;

    set_edge("off");
    text = resume("a", &known);
    assert_int_equal(count(text, "snapshot"), 0);
    assert_int_equal(count(text, "\"AGIB"), 0);
    assert_int_equal(count(text, "\"a--b\""), 1);
    assert_int_equal(count(text, "\"delete\""), 1);
    assert_non_null(strstr(text, "\"name\":\"b\""));
    text = resume("c", &known);
    assert_int_equal(count(text, "a--b"), 0);
    assert_int_equal(count(text, "\"delete\""), 0);
    known = known_now();
    set_edge("auto");
    text = resume("a", &known);
    assert_int_equal(count(text, "\"AGIB"), 1);
    assert_int_equal(count(text, "\"a--b\""), 1);
    assert_true(strstr(text, "\"AGIB") < strstr(text, "\"a--b\""));
}

/* Another run of the hub, too long ago, or too much: then there is a snapshot. */
static void test_resume_is_not_possible(void **state)
{
    struct watch_known other = known_now();
    struct watch_known known = known_now();
    struct history *h = &network()->history;

    other.boot ^= 1;
    assert_int_equal(count(resume("a", &other), "snapshot"), 1);
    /* Objects that there are no more. */
    for (unsigned i = 0; i < HISTORY_MAX + 1; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "n%u", i);
        history_add(h, &node_kind, name, known.revision + 1 + i / (RESUME_MAX + 1));
    }
    assert_int_equal(h->n, HISTORY_MAX);
    assert_int_equal(count(resume("a", &known), "snapshot"), 1);
    known.revision = h->forgotten;
    assert_int_equal(count(resume("a", &known), "snapshot"), 1);
    known.revision = h->forgotten + 1;
    assert_int_equal(count(resume("a", &known), "snapshot"), 1);
    assert_int_equal(hub.hub->watcher.n_resumed, 0);
}

/* More watches than are told of each change at once: those of as many new nodes. */
#define N_MANY (NEWS_PACE_FEW + 2)

static void open_many(struct stream *s[static N_MANY])
{
    char name[8];

    for (unsigned i = 0; i < N_MANY; i++) {
        (void)snprintf(name, sizeof(name), "%cx", (int)('d' + i));
        add_node(name);
    }
    for (unsigned i = 0; i < N_MANY; i++) {
        (void)snprintf(name, sizeof(name), "%cx", (int)('d' + i));
        s[i] = open_watch(name);
    }
    /* They have come by another clock than the test's. */
    hub.hub->watcher.pace.is_rush = false;
    hub.now += NSEC_PER_SEC;
}

static void end_many(struct stream *s[static N_MANY])
{
    for (unsigned i = 0; i < N_MANY; i++)
        end(s[i]);
}

/* Nodes that change soon after one another are told of together, each once. */
static void test_news_for_many(void **state)
{
    struct watcher *w = &hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace.told_at = hub.now - NSEC_PER_SEC;
    watch_tell_node(w, node("b"), hub.now);
    assert_int_equal(count(take(s[0]), "put"), 1);
    assert_int_equal(watch_news_due(w, hub.now), NSEC_NEVER);
    watch_tell_node(w, node("c"), hub.now);
    watch_tell_node(w, node("a"), hub.now);
    watch_tell_node(w, node("c"), hub.now);
    watch_tell_status(w, node("c"), hub.now);
    assert_string_equal(take(s[0]), "");
    assert_int_equal(watch_news_due(w, hub.now), hub.now + w->n * NEWS_PACE_WATCH);
    watch_tell_news(w, watch_news_due(w, hub.now));
    text = take(s[0]);
    assert_int_equal(count(text, "put"), 2);
    /* c's key, and then a's. */
    assert_true(strstr(text, "\"AGMB") < strstr(text, "\"AGEB"));
    assert_int_equal(watch_news_due(w, hub.now), NSEC_NEVER);
    end_many(s);
}

/* They are one text for all, but for a node that does not see all of them; and the more they were,
 * the longer the next ones wait. */
static void test_news_are_one_text(void **state)
{
    struct watcher *w = &hub.hub->watcher;
    struct stream *s[N_MANY];
    struct stream *a;
    const char *text;

    open_many(s);
    set_edge("off");
    a = open_watch("a");
    hub.now += NSEC_PER_SEC;
    watch_tell_node(w, node("c"), hub.now);
    (void)take(a);
    (void)take(s[0]);
    (void)take(s[1]);
    watch_tell_node(w, node("a"), hub.now);
    watch_tell_node(w, node("b"), hub.now);
    watch_tell_node(w, node("c"), hub.now);
    hub.now = watch_news_due(w, hub.now);
    watch_tell_news(w, hub.now);
    assert_int_equal(s[0]->n, 1);
    assert_ptr_equal(s[0]->queue[s[0]->first], s[1]->queue[s[1]->first]);
    assert_int_equal(count(take(s[0]), "put"), 3);
    text = take(a);
    assert_int_equal(count(text, "put"), 2);
    assert_null(strstr(text, "\"AGIB"));
    watch_tell_node(w, node("c"), hub.now);
    assert_int_equal(watch_news_due(w, hub.now), hub.now + 3 * w->n * NEWS_PACE_WATCH);
    end(a);
    end_many(s);
}

/* Any number of nodes is told of, in texts of a bounded length. */
static void test_many_news(void **state)
{
    struct watcher *w = &hub.hub->watcher;
    struct stream *s[N_MANY];
    unsigned n_nodes;
    unsigned n = 0;

    for (unsigned i = 0; i < WATCH_NEWS_MAX; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "%c%c", (int)('a' + i % 16), (int)('a' + i / 16));
        add_node(name);
    }
    open_many(s);
    /* The rest of a long snapshot. */
    while (s[0]->n > 0)
        (void)take(s[0]);
    n_nodes = (unsigned)network()->nodes.n;
    w->pace.told_at = hub.now;
    w->pace.n_told = 1;
    for (unsigned i = 0; i < n_nodes; i++)
        watch_tell_node(w, model_node_at(network(), i), hub.now);
    watch_tell_news(w, hub.now);
    assert_int_equal(s[0]->n, 2);
    while (s[0]->n > 0)
        n += count(take(s[0]), "\n");
    assert_int_equal(n, n_nodes);
    watch_tell_node(w, node("a"), hub.now);
    assert_int_equal(
        watch_news_due(w, hub.now), hub.now + NEWS_PACE_PATIENCE * w->n * NEWS_PACE_WATCH);
    end_many(s);
}

/* What is told of the network comes after the nodes that changed before it. */
static void test_order_of_news(void **state)
{
    struct watcher *w = &hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace.told_at = hub.now;
    watch_tell_node(w, node("a"), hub.now);
    assert_string_equal(take(s[0]), "");
    watch_tell_network(w, network(), hub.now);
    text = take(s[0]);
    assert_int_equal(count(text, "put"), 2);
    assert_true(strstr(text, "\"AGEB") < strstr(text, "\"Network\""));
    end_many(s);
}

/* A node that is removed while it waits is not told of any more. */
static void test_removed_news(void **state)
{
    struct watcher *w = &hub.hub->watcher;
    struct stream *s[N_MANY];
    const char *text;

    open_many(s);
    w->pace.told_at = hub.now;
    watch_tell_node(w, node("b"), hub.now);
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "DELETE",
                         "/v1/networks/default/nodes/b", NULL, NULL),
        204);
    watch_tell_news(w, hub.now);
    text = take(s[0]);
    assert_int_equal(count(text, "put"), 0);
    assert_int_equal(count(text, "delete"), 1);
    end_many(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_sees_whom, enter, leave),
        cmocka_unit_test_setup_teardown(test_lent_snapshot, enter, leave),
        cmocka_unit_test_setup_teardown(test_shared_snapshot, enter, leave),
        cmocka_unit_test_setup_teardown(test_changes_come_in_order, enter, leave),
        cmocka_unit_test_setup_teardown(test_edge_that_is_switched_off, enter, leave),
        cmocka_unit_test_setup_teardown(test_heartbeat_when_nothing_else_is_said, enter, leave),
        cmocka_unit_test_setup_teardown(test_slow_heartbeats, enter, leave),
        cmocka_unit_test_setup_teardown(test_slow_node_gets_a_snapshot, enter, leave),
        cmocka_unit_test_setup_teardown(test_third_watch_ends_the_first, enter, leave),
        cmocka_unit_test_setup_teardown(test_removed_node_is_told_last, enter, leave),
        cmocka_unit_test_setup_teardown(test_status_that_changes_all_the_time, enter, leave),
        cmocka_unit_test_setup_teardown(test_resume, enter, leave),
        cmocka_unit_test_setup_teardown(test_resume_of_what_is_seen, enter, leave),
        cmocka_unit_test_setup_teardown(test_resume_is_not_possible, enter, leave),
        cmocka_unit_test_setup_teardown(test_news_for_many, enter, leave),
        cmocka_unit_test_setup_teardown(test_news_are_one_text, enter, leave),
        cmocka_unit_test_setup_teardown(test_many_news, enter, leave),
        cmocka_unit_test_setup_teardown(test_order_of_news, enter, leave),
        cmocka_unit_test_setup_teardown(test_removed_news, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
