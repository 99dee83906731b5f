/*
 * test-kinds.c - one kind of object more: what a snapshot and a watch make of it without knowing
 * it.
 *
 * The kind is the example of docs/HACKING.md, "A new object kind": test/support/notice.c.
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
#include "mesh/snapshot/watch_event.h"
#include "test/support/golden_object.h"
#include "test/support/notice.h"
#include "test/support/sample_mesh.h"

static void test_golden(void **state)
{
    golden_object_check(&notice_kind, "test/support/notice.json");
}

static void test_is_among_the_kinds(void **state)
{
    char all[OBJECT_KINDS_TEXT_MAX];

    assert_string_equal(object_kinds_text(all), "Network, Node, MeshEdge, Notice");
    assert_ptr_equal(object_kind_find("Notice"), &notice_kind);
    assert_int_equal(object_kind_index(&notice_kind), 3);
}

/* A notice of that name about two nodes, as JSON; a new reference. */
static json_t *notice_json(const char *name, const char *a, const char *b)
{
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:{s:[s, s], s:s}}", "kind", "Notice", "metadata",
        "name", name, "network", "default", "spec", "nodes", a, b, "text", "be careful");

    assert_non_null(json);
    return json;
}

static void test_refusals(void **state)
{
    static const struct {
        const char *spec;
        const char *says;
    } cases[] = {
        {"{}", "Notice \"x\": \"nodes\" is missing"},
        {"{\"nodes\": [], \"text\": \"t\"}",
            "Notice \"x\": \"nodes\" is not an array of 1 to 8 items"},
        {"{\"nodes\": [1], \"text\": \"t\"}", "Notice \"x\": a node's name is not a string"},
        {"{\"nodes\": [\"a\"], \"text\": \"\"}",
            "Notice \"x\": \"text\" has 0 bytes, and 1 to 200 are allowed"},
        {"{\"nodes\": [\"a\"], \"text\": \"t\", \"loud\": true}",
            "Notice \"x\": \"loud\" is not a field of it"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = notice_json("x", "a", "b");
        struct object o = OBJECT_NULL;
        struct err e = ERR_NULL;

        json_object_set_new(json, "spec", json_loads(cases[i].spec, 0, NULL));
        assert_true(object_decode(&o, json, OBJECT_STRICT, &e) < 0);
        assert_string_equal(e.text, cases[i].says);
        assert_null(o.kind);
        json_decref(json);
    }
}

static void test_who_sees_it(void **state)
{
    json_t *json = notice_json("x", "n2", "n3");
    struct object o = OBJECT_NULL;
    struct object n2 = sample_node(2);
    struct object n4 = sample_node(4);
    struct err e = ERR_NULL;

    assert_int_equal(object_decode(&o, json, OBJECT_STRICT, &e), 0);
    assert_true(o.kind->can_see(&o, &n2.node));
    assert_false(o.kind->can_see(&o, &n4.node));
    assert_string_equal(o.kind->node(&o, 1), "n3");
    assert_null(o.kind->node(&o, 2));
    object_deinit(&o);
    object_deinit(&n2);
    object_deinit(&n4);
    json_decref(json);
}

/* One line of a hub, taken in. */
static void hear(struct snapshot *s, json_t *json)
{
    char *line = json_dumps(json, JSON_COMPACT);
    struct watch_event ev = WATCH_EVENT_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(watch_event_decode(&ev, line, strlen(line), &e), 0);
    assert_int_equal(ev.skips.n, 0);
    assert_int_equal(watch_event_apply(s, &ev, &e), 0);
    free(line);
    json_decref(json);
}

static json_t *put_event(uint64_t revision, json_t *object)
{
    return json_pack(
        "{s:s, s:I, s:o}", "type", "put", "revision", (json_int_t)revision, "object", object);
}

static void test_in_a_snapshot(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    const struct snapshot_list *notices = snapshot_list(&s, &notice_kind);
    struct snapshot again = SNAPSHOT_NULL;
    struct snapshot_skips skips = SNAPSHOT_SKIPS_NULL;
    struct err e = ERR_NULL;
    json_t *json = snapshot_encode(&s);
    json_t *back;

    /* Who has none of them sends what a hub without the kind sends. */
    assert_null(json_object_get(json, "notices"));
    json_decref(json);
    hear(&s, put_event(41, notice_json("y", "n2", "n3")));
    hear(&s, put_event(42, notice_json("x", "n2", "n3")));
    hear(&s, put_event(43, notice_json("x", "n2", "hub")));
    assert_int_equal(notices->n, 2);
    assert_string_equal(notices->items[0]->meta.name, "x");
    assert_string_equal(notice_of(notices->items[0])->nodes[1], "hub");
    json = snapshot_encode(&s);
    assert_int_equal(json_array_size(json_object_get(json, "notices")), 2);
    assert_int_equal(snapshot_decode(&again, json, &skips, &e), 0);
    assert_int_equal(skips.n, 0);
    back = snapshot_encode(&again);
    assert_true(json_equal(json, back));
    hear(&s, json_pack("{s:s, s:I, s:s, s:s}", "type", "delete", "revision", (json_int_t)44, "kind",
                 "Notice", "name", "x"));
    assert_int_equal(notices->n, 1);
    json_decref(json);
    json_decref(back);
    snapshot_deinit(&again);
    snapshot_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_is_among_the_kinds),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_who_sees_it),
        cmocka_unit_test(test_in_a_snapshot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
