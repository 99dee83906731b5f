/* test-snapshot.c - a view of a network, and the events that keep it current. */
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
#include "mesh/snapshot/watch_event.h"
#include "test/support/sample_mesh.h"

/* As the hub writes it. */
static json_t *encode_event(const struct watch_event *ev)
{
    static const char *const types[] = {"", "snapshot", "put", "delete", "heartbeat", "removed"};
    const char *type = types[ev->kind];
    json_int_t revision = (json_int_t)ev->revision;

    switch (ev->kind) {
    case WATCH_EVENT_SNAPSHOT:
        return snapshot_encode(&ev->snapshot);
    case WATCH_EVENT_PUT:
        return json_pack("{s:s, s:I, s:o}", "type", type, "revision", revision, "object",
            object_encode(&ev->object));
    case WATCH_EVENT_DELETE:
        return json_pack("{s:s, s:I, s:s, s:s}", "type", type, "revision", revision, "kind",
            ev->deleted.kind->name, "name", ev->deleted.name);
    case WATCH_EVENT_HEARTBEAT:
        return json_pack("{s:s, s:I, s:o*, s:o*, s:o*}", "type", type, "revision", revision, "boot",
            ev->boot ? json_integer((json_int_t)ev->boot) : NULL, "next",
            ev->next_s ? json_integer((json_int_t)ev->next_s) : NULL, "storeBehind",
            ev->store_behind_s ? json_integer((json_int_t)ev->store_behind_s) : NULL);
    case WATCH_EVENT_REMOVED:
        return json_pack("{s:s, s:s}", "type", type, "reason", ev->reason);
    case WATCH_EVENT_NONE:
    case WATCH_EVENT_N:
        break;
    }
    return NULL;
}

/* Encode, decode, apply: what a delta goes through between the hub and the agent. */
static int send_event(struct snapshot *s, struct watch_event *ev, struct err *e)
{
    struct watch_event received = WATCH_EVENT_NULL;
    json_t *json = encode_event(ev);
    char *line = json_dumps(json, JSON_COMPACT);
    int r = watch_event_decode(&received, line, strlen(line), e);

    assert_null(strchr(line, '\n'));
    json_decref(json);
    free(line);
    watch_event_deinit(ev);
    return r < 0 ? r : watch_event_apply(s, &received, e);
}

static int send_text(struct snapshot *s, const char *line, struct err *e)
{
    struct watch_event ev = WATCH_EVENT_NULL;
    int r = watch_event_decode(&ev, line, strlen(line), e);

    return r < 0 ? r : watch_event_apply(s, &ev, e);
}

static void test_round_trip(void **state)
{
    struct snapshot a = sample_snapshot(5, 2);
    struct snapshot b = SNAPSHOT_NULL;
    struct err e = ERR_NULL;
    json_t *json;
    json_t *again;

    sample_put(&a, sample_edge(2, 3, EDGE_PATH_OFF));
    json = snapshot_encode(&a);
    assert_int_equal(snapshot_decode(&b, json, NULL, &e), 0);
    again = snapshot_encode(&b);
    assert_true(json_equal(json, again));
    assert_int_equal(b.revision, 40);
    assert_string_equal(snapshot_self(&b)->meta.name, "n2");
    assert_int_equal(snapshot_find_edge(&b, "n3", "n2")->path, EDGE_PATH_OFF);
    assert_null(snapshot_find_edge(&b, "n3", "n4"));
    assert_null(snapshot_find_node(&b, "n9"));
    json_decref(json);
    json_decref(again);
    snapshot_deinit(&a);
    snapshot_deinit(&b);
}

static void test_deltas(void **state)
{
    struct snapshot hub_side = sample_snapshot(3, 2);
    struct snapshot s = SNAPSHOT_NULL;
    struct watch_event ev = {.kind = WATCH_EVENT_SNAPSHOT, .revision = 40, .snapshot = hub_side};
    struct err e = ERR_NULL;

    assert_int_equal(send_event(&s, &ev, &e), 0);
    ev = (struct watch_event){.kind = WATCH_EVENT_PUT, .revision = 41, .object = sample_node(10)};
    assert_int_equal(send_event(&s, &ev, &e), 0);
    assert_int_equal(s.nodes.n, 4);
    assert_int_equal(s.revision, 41);

    /* Put again: replaced, not added. One revision may change several objects of a view. */
    ev = (struct watch_event){.kind = WATCH_EVENT_PUT, .revision = 41, .object = sample_node(10)};
    ev.object.node.ephemeral = true;
    assert_int_equal(send_event(&s, &ev, &e), 0);
    assert_int_equal(s.nodes.n, 4);
    assert_true(snapshot_find_node(&s, "n10")->ephemeral);

    ev = (struct watch_event){
        .kind = WATCH_EVENT_DELETE, .revision = 42, .deleted = {.kind = &node_kind, .name = "n3"}};
    assert_int_equal(send_event(&s, &ev, &e), 0);
    assert_null(snapshot_find_node(&s, "n3"));
    assert_int_equal(s.nodes.n, 3);
    /* Gone already: a repeated delete costs nothing. */
    assert_int_equal(
        send_text(
            &s, "{\"type\":\"delete\",\"revision\":43,\"kind\":\"Node\",\"name\":\"n3\"}", &e),
        0);
    assert_int_equal(send_text(&s, "{\"type\":\"heartbeat\",\"revision\":50,\"boot\":7}", &e), 0);
    assert_int_equal(s.boot, 7);
    assert_int_equal(send_text(&s, "{\"type\":\"heartbeat\",\"revision\":50,\"next\":20}", &e), 0);
    assert_int_equal(s.boot, 7);
    assert_int_equal(s.revision, 50);
    ev = (struct watch_event){
        .kind = WATCH_EVENT_HEARTBEAT, .revision = 50, .next_s = 20, .store_behind_s = 34};
    assert_int_equal(send_event(&s, &ev, &e), 0);
    assert_int_equal(send_text(&s, "{\"type\":\"weather\",\"sky\":\"blue\"}", &e), 0);
    for (size_t i = 1; i < s.nodes.n; i++)
        assert_true(
            strcmp(s.nodes.items[i - 1]->node.meta.name, s.nodes.items[i]->node.meta.name) < 0);
    snapshot_deinit(&s);
}

static void test_event_refusals(void **state)
{
    static const struct {
        const char *line;
        const char *says;
    } cases[] = {
        {"", "the event is not JSON: '[' or '{' expected near end of file at byte 0"},
        {"{\"type\": 1}", "the event: \"type\" is not a string"},
        {"{\"type\": \"heartbeat\"}", "the event: \"revision\" is missing"},
        {"{\"type\": \"heartbeat\", \"revision\": 40, \"next\": 3601}",
            "the event: \"next\" is not a whole number from 1 to 3600"},
        {"{\"type\": \"heartbeat\", \"revision\": 40, \"boot\": 0}",
            "the event: \"boot\" is not a whole number from 1 to 9223372036854775807"},
        {"{\"type\": \"heartbeat\", \"revision\": 40, \"storeBehind\": -1}",
            "the event: \"storeBehind\" is not a whole number from 1 to 4294967295"},
        {"{\"type\": \"heartbeat\", \"revision\": 39}",
            "the hub sent revision 39 after revision 40"},
        {"{\"type\": \"delete\", \"revision\": 41, \"kind\": \"Pod\", \"name\": \"a\"}",
            "the event: \"kind\" is \"Pod\", and @kinds are allowed"},
        {"{\"type\": \"delete\", \"revision\": 41, \"kind\": \"Node\", \"name\": \"n2\"}",
            "Node \"n2\" cannot be deleted from the view of \"n2\""},
        {"{\"type\": \"delete\", \"revision\": 41, \"kind\": \"Network\", \"name\": \"default\"}",
            "Network \"default\" cannot be deleted from the view of \"n2\""},
        {"{\"type\": \"snapshot\", \"revision\": 1, \"self\": \"a\", \"network\": {}, \"nodes\": "
         "[], "
         "\"edges\": []}",
            "the snapshot: \"nodes\" is not an array of 1 to 65536 items"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct snapshot s = sample_snapshot(3, 2);
        struct err e = ERR_NULL;
        char says[SAMPLE_SENTENCE_MAX];

        assert_true(send_text(&s, cases[i].line, &e) < 0);
        assert_string_equal(e.text, sample_sentence(cases[i].says, says));
        assert_int_equal(s.revision, 40);
        assert_int_equal(s.nodes.n, 3);
        snapshot_deinit(&s);
    }
}

/* What is no use is passed over and named; the revision goes on, and what is held stays. */
static void test_passed_over(void **state)
{
    static const struct {
        const char *object;
        const char *says;
    } cases[] = {
        {"null", "the object: is not a JSON object"},
        {"{\"kind\": \"MeshEdge\", \"metadata\": {\"name\": \"a--b\", \"network\": \"other\"}, "
         "\"spec\": {\"nodes\": [\"a\", \"b\"]}}",
            "MeshEdge \"a--b\" belongs to the network \"other\", not to \"default\""},
        {"{\"kind\": \"Node\", \"metadata\": {\"name\": \"n3\", \"network\": \"default\"}, "
         "\"spec\": {}, \"status\": {\"candidates\": [1]}}",
            "Node \"n3\": \"publicKey\" is missing"},
        {"{\"kind\": \"Sheep\"}", "the object's kind is \"Sheep\", and @kinds are allowed"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct snapshot s = sample_snapshot(3, 2);
        struct watch_event ev = WATCH_EVENT_NULL;
        struct err e = ERR_NULL;
        char says[SAMPLE_SENTENCE_MAX];
        char line[512];

        (void)snprintf(line, sizeof(line), "{\"type\": \"put\", \"revision\": 41, \"object\": %s}",
            cases[i].object);
        assert_int_equal(watch_event_decode(&ev, line, strlen(line), &e), 0);
        assert_int_equal(watch_event_apply(&s, &ev, &e), 0);
        assert_int_equal(ev.skips.n, 1);
        assert_string_equal(ev.skips.first.text, sample_sentence(cases[i].says, says));
        assert_int_equal(s.revision, 41);
        assert_int_equal(s.nodes.n, 3);
        assert_non_null(snapshot_find_node(&s, "n3"));
        snapshot_deinit(&s);
    }
}

/* A node is taken without a status that is no use: its peers need the rest. */
static void test_bad_status(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct snapshot decoded = SNAPSHOT_NULL;
    struct snapshot_skips skips = SNAPSHOT_SKIPS_NULL;
    struct err e = ERR_NULL;
    json_t *json = snapshot_encode(&s);
    json_t *nodes = json_object_get(json, "nodes");

    for (size_t i = 1; i < json_array_size(nodes); i++)
        assert_int_equal(json_object_set_new(json_array_get(nodes, i), "status",
                             json_pack("{s:[i]}", "candidates", (int)i)),
            0);
    assert_int_equal(snapshot_decode(&decoded, json, &skips, &e), 0);
    assert_int_equal(skips.n, 2);
    assert_string_equal(skips.first.text, "Node \"n2\": is not a JSON object");
    assert_int_equal(decoded.nodes.n, 3);
    assert_null(snapshot_self(&decoded)->status);
    assert_null(snapshot_find_node(&decoded, "n3")->side);
    snapshot_deinit(&decoded);
    json_decref(json);
    snapshot_deinit(&s);
}

static void test_delta_before_snapshot(void **state)
{
    struct snapshot s = SNAPSHOT_NULL;
    struct err e = ERR_NULL;

    assert_true(send_text(&s, "{\"type\":\"heartbeat\",\"revision\":50}", &e) < 0);
    assert_string_equal(e.text, "the hub sent a change before its first snapshot");
}

static void test_removed(void **state)
{
    struct watch_event ev = WATCH_EVENT_NULL;
    struct err e = ERR_NULL;
    const char *line = "{\"type\": \"removed\", \"reason\": \"removed by the administrator\"}";

    assert_int_equal(watch_event_decode(&ev, line, strlen(line), &e), 0);
    assert_int_equal(ev.kind, WATCH_EVENT_REMOVED);
    assert_string_equal(ev.reason, "removed by the administrator");
    watch_event_deinit(&ev);
}

/* Changes that the decoder of a snapshot must refuse, or pass over. */
static void test_snapshot_refusals(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct snapshot decoded = SNAPSHOT_NULL;
    struct snapshot_skips skips = SNAPSHOT_SKIPS_NULL;
    struct err e = ERR_NULL;
    json_t *json = snapshot_encode(&s);
    json_t *nodes = json_object_get(json, "nodes");

    assert_int_equal(json_array_append(nodes, json_array_get(nodes, 0)), 0);
    assert_int_equal(json_array_append(nodes, json_object_get(json, "network")), 0);
    assert_int_equal(snapshot_decode(&decoded, json, &skips, &e), 0);
    assert_int_equal(decoded.nodes.n, 3);
    assert_int_equal(skips.n, 2);
    assert_string_equal(
        skips.first.text, "the snapshot has Network \"default\" where a Node is expected");
    snapshot_deinit(&decoded);

    assert_int_equal(json_object_set_new(json, "self", json_string("n7")), 0);
    assert_true(snapshot_decode(&decoded, json, NULL, &e) < 0);
    assert_string_equal(e.text, "the snapshot of \"n7\" does not hold that node");
    json_decref(json);
    snapshot_deinit(&s);
}

/* What a hub sends of another network is passed over; the rest is taken. */
static void test_objects_of_another_network(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct snapshot decoded = SNAPSHOT_NULL;
    struct snapshot_skips skips = SNAPSHOT_SKIPS_NULL;
    struct err e = ERR_NULL;
    json_t *json = snapshot_encode(&s);
    json_t *node = json_array_get(json_object_get(json, "nodes"), 2);

    assert_int_equal(
        json_object_set_new(json_object_get(node, "metadata"), "network", json_string("other")), 0);
    assert_int_equal(snapshot_decode(&decoded, json, &skips, &e), 0);
    assert_int_equal(skips.n, 1);
    assert_string_equal(
        skips.first.text, "Node \"n3\" belongs to the network \"other\", not to \"default\"");
    assert_int_equal(decoded.nodes.n, 2);
    assert_null(snapshot_find_node(&decoded, "n3"));
    snapshot_deinit(&decoded);
    json_decref(json);
    snapshot_deinit(&s);
}

/* A deletion names what it is of: both the kind and the name. */
static void test_deletions_are_whole(void **state)
{
    static const struct {
        const char *line;
        const char *says;
    } cases[] = {
        {"{\"type\": \"delete\", \"revision\": 7, \"kind\": \"Node\", \"name\": \"n3\"}", NULL},
        {"{\"type\": \"delete\", \"revision\": 7, \"kind\": \"Node\"}",
            "the event: \"name\" is missing"},
        {"{\"type\": \"delete\", \"revision\": 7, \"name\": \"n3\"}",
            "the event: \"kind\" is missing"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct watch_event ev = WATCH_EVENT_NULL;
        struct err e = ERR_NULL;
        int r = watch_event_decode(&ev, cases[i].line, strlen(cases[i].line), &e);

        if (cases[i].says) {
            assert_int_equal(r, -EINVAL);
            assert_string_equal(e.text, cases[i].says);
            assert_int_equal(ev.kind, WATCH_EVENT_NONE);
            continue;
        }
        assert_int_equal(r, 0);
        assert_int_equal(ev.kind, WATCH_EVENT_DELETE);
        assert_string_equal(ev.deleted.name, "n3");
        assert_string_equal(ev.deleted.kind->name, "Node");
        assert_int_equal(ev.revision, 7);
        watch_event_deinit(&ev);
        assert_int_equal(ev.kind, WATCH_EVENT_NONE);
        watch_event_deinit(&ev);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_deltas),
        cmocka_unit_test(test_event_refusals),
        cmocka_unit_test(test_passed_over),
        cmocka_unit_test(test_bad_status),
        cmocka_unit_test(test_delta_before_snapshot),
        cmocka_unit_test(test_removed),
        cmocka_unit_test(test_snapshot_refusals),
        cmocka_unit_test(test_objects_of_another_network),
        cmocka_unit_test(test_deletions_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
