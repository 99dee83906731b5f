/* test-view-told.c - what each node is told, line by line, with objects of a kind that only some of
 * them see; and what a hub knows of that when it starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "hub/watch/view.h"
#include "hub/watch/watch.h"
#include "store/store_backend.h"
#include "test/support/audience.h"
#include "test/support/notice.h"

/* The revision from which those of lines are counted. */
static uint64_t base;

static int enter(void **state)
{
    int r = audience_enter(state);

    base = store_revision(audience_hub.hub->store);
    return r;
}

static int leave(void **state)
{
    return audience_leave(state);
}

static void ask(const char *method, const char *path, const char *body)
{
    int status = sample_hub_ask(&audience_hub, API_ACCESS_ADMIN, NULL, method, path, body, NULL);

    if (status / 100 != 2)
        fail_msg("%s %s: %d", method, path, status);
}

static void put_notice(const char *name, const char *nodes)
{
    char path[128];
    char body[256];

    (void)snprintf(path, sizeof(path), "/v1/networks/default/objects/Notice/%s", name);
    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"Notice\",\"metadata\":{\"name\":\"%s\"},"
        "\"spec\":{\"nodes\":[%s],\"text\":\"hello\"}}",
        name, nodes);
    ask("PUT", path, body);
}

/* ---- lines, as short texts ------------------------------------------------------------------- */

static void add_names(struct str *s, const char *what, const json_t *list)
{
    const json_t *o;
    size_t i;

    if (!list)
        return;
    str_addf(s, " %s", what);
    json_array_foreach(list, i, o)
        str_addf(s, "%c%s", i > 0 ? ',' : '=',
            json_string_value(json_object_get(json_object_get(o, "metadata"), "name")));
}

/* "put Node b +1", "delete MeshEdge a--b +1", "snapshot a +0 nodes=... edges=...". */
static void add_short(struct str *s, const json_t *line)
{
    const char *type = json_string_value(json_object_get(line, "type"));
    const json_t *o = json_object_get(line, "object");
    const char *kind = json_string_value(json_object_get(o ? o : line, "kind"));
    const char *name = json_string_value(o ? json_object_get(json_object_get(o, "metadata"), "name")
                                           : json_object_get(line, "name"));

    str_add(s, type);
    if (kind)
        str_addf(s, " %s %s", kind, name);
    if (json_object_get(line, "self"))
        str_addf(s, " %s", json_string_value(json_object_get(line, "self")));
    if (json_object_get(line, "revision"))
        str_addf(s, " %+" PRId64,
            (int64_t)json_integer_value(json_object_get(line, "revision")) - (int64_t)base);
    add_names(s, "nodes", json_object_get(line, "nodes"));
    add_names(s, "edges", json_object_get(line, "edges"));
    add_names(s, "notices", json_object_get(line, "notices"));
    str_add(s, "\n");
}

static void expect_lines(const char *text, const char *expected)
{
    struct str s = STR_NULL;
    char *all = strdup(text);
    char *rest = all;
    char *line;
    char *is;

    str_add(&s, "");
    while ((line = strsep(&rest, "\n"))) {
        json_t *json = line[0] != '\0' ? json_loads(line, 0, NULL) : NULL;

        if (json)
            add_short(&s, json);
        else if (line[0] != '\0')
            fail_msg("no JSON: %s", line);
        json_decref(json);
    }
    is = str_take(&s, NULL);
    assert_string_equal(is ? is : "", expected);
    free(is);
    free(all);
}

static void expect_told(struct stream *s, const char *expected)
{
    expect_lines(audience_take(s), expected);
}

static void expect_snapshot(const char *name, const char *expected)
{
    char *text = view_snapshot_text(audience_node(name));

    assert_non_null(text);
    expect_lines(text, expected);
    free(text);
}

static void expect_introduction(const char *name, const char *expected)
{
    char *text = view_introduction_text(audience_node(name));

    assert_non_null(text);
    expect_lines(text, expected);
    free(text);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_snapshots(void **state)
{
    expect_snapshot("a", "snapshot a +0 nodes=hub,a,b,c edges\n");
    expect_introduction("a", "snapshot a +0 nodes=a,hub edges\n");
    expect_introduction("hub", "snapshot hub +0 nodes=hub edges\n");
    audience_set_edge("off");
    put_notice("x", "\"a\",\"c\"");
    put_notice("y", "\"b\"");
    put_notice("z", "\"a\"");
    expect_snapshot("a", "snapshot a +4 nodes=hub,a,c edges=a--b notices=x,z\n");
    expect_introduction("a", "snapshot a +4 nodes=hub,a,c edges=a--b notices=x,z\n");
    expect_snapshot("b", "snapshot b +4 nodes=hub,b,c edges=a--b notices=y\n");
    expect_snapshot("c", "snapshot c +4 nodes=hub,a,b,c edges notices=x\n");
    expect_introduction("c", "snapshot c +4 nodes=c,hub edges notices=x\n");
    expect_snapshot("hub", "snapshot hub +4 nodes=hub,a,b,c edges notices=x,y,z\n");
    assert_true(view_can_see(audience_node("hub"), audience_node("a")));
    assert_true(view_can_see(audience_node("a"), audience_node("hub")));
    assert_false(view_can_see(audience_node("a"), audience_node("b")));
    /* The next edge comes behind a comma. */
    ask("PUT", "/v1/networks/default/objects/MeshEdge/a--c",
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--c\"},"
        "\"spec\":{\"nodes\":[\"a\",\"c\"],\"path\":\"off\"}}");
    expect_snapshot("a", "snapshot a +5 nodes=hub,a edges=a--b,a--c notices=x,z\n");
}

static void test_a_lent_snapshot(void **state)
{
    struct snapshot s = SNAPSHOT_NULL;

    ask("PUT", "/v1/networks/default/objects/MeshEdge/b--c",
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"b--c\"},"
        "\"spec\":{\"nodes\":[\"b\",\"c\"],\"path\":\"off\"}}");
    audience_set_edge("relay");
    assert_true(view_lend_snapshot(audience_node("b"), &s));
    assert_string_equal(s.self, "b");
    assert_int_equal(s.revision, base + 2);
    assert_int_equal(s.boot, audience_network()->model->boot);
    assert_string_equal(s.network.meta.name, "default");
    assert_int_equal(s.nodes.n, 3);
    assert_string_equal(s.nodes.items[0]->node.meta.name, "a");
    assert_string_equal(s.nodes.items[1]->node.meta.name, "b");
    assert_string_equal(s.nodes.items[2]->node.meta.name, "hub");
    assert_int_equal(s.edges.n, 2);
    assert_string_equal(s.edges.items[0]->edge.meta.name, "a--b");
    assert_string_equal(s.edges.items[1]->edge.meta.name, "b--c");
    view_return_snapshot(&s);
    assert_int_equal(s.nodes.n, 0);
    assert_null(s.nodes.items);
}

/* An edge that goes off takes the other end out of view, behind its own line; and back before it.
 * An object is told to those who see it, and its deletion to those who do not any more. */
static void test_lines(void **state)
{
    struct stream *a = audience_open("a");
    struct stream *b = audience_open("b");
    struct stream *c = audience_open("c");

    audience_set_edge("off");
    expect_told(a, "put MeshEdge a--b +1\ndelete Node b +1\n");
    expect_told(b, "put MeshEdge a--b +1\ndelete Node a +1\n");
    expect_told(c, "");
    put_notice("x", "\"a\"");
    expect_told(a, "put Notice x +2\n");
    expect_told(b, "delete Notice x +2\n");
    expect_told(c, "delete Notice x +2\n");
    put_notice("x", "\"c\"");
    expect_told(a, "delete Notice x +3\n");
    expect_told(c, "put Notice x +3\n");
    audience_set_edge("relay");
    expect_told(a, "put Node b +4\nput MeshEdge a--b +4\n");
    expect_told(c, "");
    ask("DELETE", "/v1/networks/default/objects/MeshEdge/a--b", NULL);
    ask("DELETE", "/v1/networks/default/objects/Notice/x", NULL);
    expect_told(a, "put Node b +5\ndelete MeshEdge a--b +5\ndelete Notice x +6\n");
    expect_told(c, "delete Notice x +6\n");
    watch_tell_status(&audience_hub.hub->watcher, audience_node("b"), audience_hub.now);
    expect_told(c, "put Node b +6\n");
    audience_end(a);
    audience_end(b);
    audience_end(c);
}

static void test_nodes_that_go(void **state)
{
    struct stream *a = audience_open("a");
    struct stream *c = audience_open("c");

    audience_set_edge("off");
    expect_told(a, "put MeshEdge a--b +1\ndelete Node b +1\n");
    audience_remove("b");
    expect_told(a, "delete MeshEdge a--b +2\ndelete Node b +2\n");
    expect_told(c, "delete Node b +2\n");
    audience_add("b");
    expect_told(a, "put Node b +3\n");
    audience_end(a);
    audience_end(c);
}

#define LONGEST "n23456789012345678901234567890123456789012345678901234567890123"

static void test_who_is_told_otherwise(void **state)
{
    static const char *const names[] = {"a--b", "b--a", "a--", "a-b", "c--a", "aa--b"};
    static const bool are_own[] = {true, false, false, false, false, false};
    struct watched_change change = {.kind = &mesh_edge_kind};
    const struct watched_change *items[] = {&change};
    struct view_changes changes = {.net = audience_network(), .items = items, .n = 1};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        change.name = names[i];
        if (view_are_special(&changes, audience_node("a")) != are_own[i])
            fail_msg("%s", names[i]);
    }
    change.name = "a--c";
    assert_true(view_are_special(&changes, audience_node("c")));
    change.name = "a--b";
    assert_false(view_are_special(&changes, audience_node("c")));
    /* Of the longest names there are, too. */
    audience_add(LONGEST);
    change.name = "b--" LONGEST;
    assert_true(view_are_special(&changes, audience_node(LONGEST)));
    change.name = LONGEST "--" LONGEST;
    assert_false(view_are_special(&changes, audience_node("a")));
    change.name = "a--" LONGEST;
    assert_true(view_are_special(&changes, audience_node("a")));
    change.kind = &node_kind;
    assert_false(view_are_special(&changes, audience_node("a")));
    change.kind = &notice_kind;
    assert_true(view_are_special(&changes, audience_node("c")));
    changes.n = 0;
    assert_false(view_are_special(&changes, audience_node("a")));
}

static void expect_line(struct line *l, const char *expected)
{
    assert_non_null(l);
    assert_int_equal(l->len, strlen(expected));
    assert_memory_equal(l->text, expected, l->len);
    (void)line_unref(l);
}

static void test_other_lines(void **state)
{
    struct heartbeat all = {
        .revision = 7, .next_s = 20, .boot = 9, .behind_for = STORE_LAG_MAX + NSEC_PER_SEC};
    struct heartbeat least = {.revision = 7, .behind_for = STORE_LAG_MAX};

    expect_line(view_heartbeat(&all), "{\"type\":\"heartbeat\",\"revision\":7,\"boot\":9,"
                                      "\"next\":20,\"storeBehind\":11}\n");
    expect_line(view_heartbeat(&least), "{\"type\":\"heartbeat\",\"revision\":7}\n");
    expect_line(view_removed("it left"), "{\"type\":\"removed\",\"reason\":\"it left\"}\n");
}

/* ---- a hub that starts ----------------------------------------------------------------------- */

/* What the network's list of changes has, in its order. */
static void expect_changes(const char *expected)
{
    const struct watched_change *c;
    struct str s = STR_NULL;
    char *text;

    list_foreach(c, &audience_network()->watched->changes, link)
        str_addf(&s, "%s%s %s %+" PRId64 "\n", c->is_gone ? "gone " : "", c->kind->name, c->name,
            (int64_t)c->revision - (int64_t)base);
    text = str_take(&s, NULL);
    assert_string_equal(text, expected);
    free(text);
}

/* All that there is, and what is gone, by the revision of its last change. */
static void test_what_a_hub_knows_when_it_starts(void **state)
{
    struct watched_network *net;
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = "unheard-of/default/z",
        .value = "{}",
        .expect = STORE_EXPECT_ANY};

    audience_set_edge("relay");
    put_notice("x", "\"a\"");
    put_notice("y", "\"a\"");
    ask("DELETE", "/v1/networks/default/objects/Notice/y", NULL);
    audience_remove("c");
    /* What is gone of another network or kind is no change here. */
    for (unsigned i = 0; i < 3; i++) {
        static const char *const keys[] = {
            "unheard-of/default/z", "node/other/z", "report/default/z"};

        op.key = keys[i];
        op.kind = STORE_OP_PUT;
        assert_int_equal(
            store_commit(audience_hub.hub->store, &op, 1, audience_hub.now, NULL, NULL, NULL), 0);
        op.kind = STORE_OP_DELETE;
        assert_int_equal(
            store_commit(audience_hub.hub->store, &op, 1, audience_hub.now, NULL, NULL, NULL), 0);
    }
    store_wait(audience_hub.hub->store);
    audience_node("b")->reported->stored_revision = base + 3;
    net = audience_network()->watched;
    net->ready = 0;
    watch_fill(&audience_hub.hub->watcher);
    /* This one has known of the two that are gone before. */
    expect_changes("Network default -3\nNode hub -3\nNode a -2\nMeshEdge a--b +1\nNotice x +2\n"
                   "Node b +3\ngone Notice y +4\ngone Notice y +4\ngone Node c +5\n"
                   "gone Node c +5\n");
    assert_int_equal(net->ready, net->serial);
    assert_int_equal(net->forgotten, 0);
}

/* Of a store that does not say what is gone, all that has changed up to now is forgotten. */
static const struct store_ops *usual;

static void submit(struct store *s, struct store_job *job)
{
    if (job->kind != STORE_JOB_DELETED) {
        usual->submit(s, job);
        return;
    }
    job->r = err_set(&job->e, -5, "it is not known");
    store__finish(s, job);
}

static void test_a_store_that_does_not_know_what_is_gone(void **state)
{
    struct store *s = audience_hub.hub->store;
    struct store_ops ops = *s->ops;
    struct watched_network *net = audience_network()->watched;

    ops.submit = submit;
    usual = s->ops;
    s->ops = &ops;
    net->forgotten = 0;
    watch_fill(&audience_hub.hub->watcher);
    assert_int_equal(net->forgotten, base);
    s->ops = usual;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_snapshots, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_lent_snapshot, enter, leave),
        cmocka_unit_test_setup_teardown(test_lines, enter, leave),
        cmocka_unit_test_setup_teardown(test_nodes_that_go, enter, leave),
        cmocka_unit_test_setup_teardown(test_who_is_told_otherwise, enter, leave),
        cmocka_unit_test_setup_teardown(test_other_lines, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_a_hub_knows_when_it_starts, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_store_that_does_not_know_what_is_gone, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
