/*
 * test-own-parts.c - which parts of an edge its writers write themselves, which of them the hub
 * believes, and what "Stale" says.
 */
#include "hub/resources/own_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hub/resources/resource.h"
#include "os/clock.h"

#define AT   1800000000
#define EDGE "default.a--b"

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    if (!json)
        fail_msg("no JSON: %s", text);
    return json;
}

/* {@name: a part that was observed at @at}, with the gist @says. */
static json_t *status_of(const char *name, const char *says, int64_t at)
{
    bool is_agent = strncmp(name, "agent/", 6) == 0;
    json_t *part = json_pack("{s:s}", is_agent ? "path" : "tunnel", says);

    kube_part_stamp(part, at, 300);
    return json_pack("{s:o}", name, part);
}

/* Who owns the part called @name. */
static json_t *managed_by(const char *manager, const char *name)
{
    char field[100];

    (void)snprintf(field, sizeof(field), "f:%s", name);
    return json_pack("[{s:s, s:{s:{s:{s:{}}}}}]", "manager", manager, "fieldsV1", "f:status", field,
        "f:observedAt");
}

/* As the API server has it: @name, written by @manager. */
static void set(
    struct own_parts *o, const char *name, const char *says, const char *manager, int64_t at)
{
    json_t *status = status_of(name, says, at);
    json_t *managed = managed_by(manager, name);

    assert_int_equal(own_parts_set(o, EDGE, status, managed), 0);
    json_decref(managed);
    json_decref(status);
}

static void expect_set_aside(const struct own_parts *o, const char *why)
{
    char text[OWN_PART_WHY_MAX];

    assert_int_equal(o->n, 1);
    assert_int_equal(o->items[0].is_aside, why != NULL);
    if (why)
        assert_string_equal(own_part_explain(&o->items[0], text), why);
}

static void test_whose_they_are(void **state)
{
    struct own_parts o = {.n = 0};
    json_t *status = parse("{\"agent/a\":{\"path\":\"lan\",\"observedAt\":\"2027-01-15T08:00:00Z\","
                           "\"everySeconds\":300},\"agent/b\":{\"path\":\"lan\","
                           "\"observedAt\":\"2027-01-15T08:00:00Z\"},\"hub\":{\"state\":\"lan\"},"
                           "\"conditions\":[],\"other/a\":{\"everySeconds\":300},\"agent/\":{}}");

    assert_int_equal(own_parts_set(&o, EDGE, status, NULL), 0);
    assert_int_equal(o.n, 1);
    assert_string_equal(o.items[0].name, "agent/a");
    assert_string_equal(o.items[0].says, "lan");
    assert_int_equal(o.items[0].at, AT);
    assert_int_equal(o.items[0].every_s, 300);
    assert_true(own_parts_find(&o, "agent/a") == &o.items[0]);
    assert_null(own_parts_find(&o, "agent/b"));
    assert_true(own_parts_has(&o, "agent/a", AT + 750));
    assert_false(own_parts_has(&o, "agent/a", AT + 751));
    assert_false(own_parts_has(&o, "agent/b", AT));
    own_parts_deinit(&o);
    own_parts_deinit(&o);
    json_decref(status);
}

/* More than an edge can have are passed over. */
static void test_too_many(void **state)
{
    struct own_parts o = {.n = 0};
    json_t *status = json_object();

    for (unsigned i = 0; i < 9; i++) {
        char name[16];
        json_t *one;

        (void)snprintf(name, sizeof(name), "agent/n%u", i);
        one = status_of(name, "lan", AT);
        (void)json_object_update(status, one);
        json_decref(one);
    }
    assert_int_equal(own_parts_set(&o, EDGE, status, NULL), 0);
    assert_int_equal(o.n, OWN_PARTS_MAX);
    own_parts_deinit(&o);
    json_decref(status);
}

static void test_who_has_written_it(void **state)
{
    struct own_parts o = {.n = 0};

    set(&o, "agent/a", "lan", "agent/a", AT);
    assert_int_equal(own_parts_assess(&o, NULL, AT), 0);
    expect_set_aside(&o, NULL);
    set(&o, "agent/a", "lan", "agent/b", AT);
    assert_int_equal(own_parts_assess(&o, NULL, AT), 1);
    expect_set_aside(&o, "the part \"agent/a\" is set aside: \"agent/b\" has written it, which is "
                         "not its writer");
    assert_false(own_parts_has(&o, "agent/a", AT));
    /* Nor does it count of a node that the edge does not have. */
    set(&o, "probe/c", "reached", "probe/c", AT);
    assert_int_equal(own_parts_assess(&o, NULL, AT), 1);
    expect_set_aside(&o, "the part \"probe/c\" is set aside: its node is no end of the edge");
    own_parts_deinit(&o);
}

static void hear(json_t *heard, const char *status)
{
    json_t *json = parse(status);

    own_parts_hear(heard, json);
    json_decref(json);
}

/* What a node says to the hub by a channel that proves it counts for more, but it may be known
 * there earlier. */
static void test_what_its_node_says(void **state)
{
    static const char *const direct =
        "{\"agent/a\":{\"path\":\"direct\"},\"hub\":{\"state\":\"x\"}}";
    struct own_parts o = {.n = 0};
    json_t *heard = json_object();

    hear(heard, direct);
    set(&o, "agent/a", "relay", "agent/a", AT);
    assert_int_equal(own_parts_assess(&o, heard, AT), 0);
    assert_int_equal(own_parts_assess(&o, heard, AT + OWN_PARTS_DIFFER_S), 0);
    /* It is late, not wrong: it was not written since. */
    expect_set_aside(&o, NULL);
    set(&o, "agent/a", "relay", "agent/a", AT + OWN_PARTS_DIFFER_S / 2);
    assert_int_equal(own_parts_assess(&o, heard, AT + OWN_PARTS_DIFFER_S - 1), 0);
    assert_int_equal(own_parts_assess(&o, heard, AT + OWN_PARTS_DIFFER_S), 1);
    expect_set_aside(&o, "the part \"agent/a\" is set aside: it says \"relay\", and its node says "
                         "\"direct\" to the hub");
    /* The same is heard again: that does not begin anew. */
    hear(heard, direct);
    assert_int_equal(own_parts_assess(&o, heard, AT + OWN_PARTS_DIFFER_S), 1);
    /* The two agree, and from then on it begins anew. */
    set(&o, "agent/a", "direct", "agent/a", AT + 200);
    assert_int_equal(own_parts_assess(&o, heard, AT + 200), 0);
    set(&o, "agent/a", "relay", "agent/a", AT + 290);
    assert_int_equal(own_parts_assess(&o, heard, AT + 300), 0);
    /* Of a node that is not heard nothing is compared. */
    hear(heard, "{\"agent/a\":{\"path\":\"direct\",\"stale\":true}}");
    set(&o, "agent/a", "relay", "agent/a", AT + 900);
    assert_int_equal(own_parts_assess(&o, heard, AT + 900), 0);
    hear(heard, "{}");
    assert_int_equal(json_object_size(heard), 0);
    own_parts_deinit(&o);
    json_decref(heard);
}

/* ---- the condition --------------------------------------------------------------------------- */

static void expect_stale(
    const struct own_parts *o, const char *silent, int64_t now, const char *message)
{
    json_t *given = parse(silent);
    json_t *stale = own_parts_stale(o, given, now);

    assert_string_equal(json_string_value(json_object_get(stale, "type")), "Stale");
    assert_string_equal(
        json_string_value(json_object_get(stale, "status")), message[0] ? "True" : "False");
    assert_string_equal(
        json_string_value(json_object_get(stale, "reason")), message[0] ? "Old" : "Current");
    assert_string_equal(json_string_value(json_object_get(stale, "message")), message);
    json_decref(stale);
    json_decref(given);
}

static void test_stale(void **state)
{
    struct own_parts o = {.n = 0};

    expect_stale(&o, "{}", AT, "");
    expect_stale(&o, "{\"agent/a\":1799999000,\"probe/b\":0}", AT,
        "agent/a: its writer is not heard; probe/b: its writer is not heard");
    set(&o, "agent/a", "lan", "agent/a", AT);
    expect_stale(&o, "{}", AT + 750, "");
    expect_stale(&o, "{}", AT + 751, "agent/a: observed at 2027-01-15T08:00:00Z");
    /* The hub hears it no more: it was well until then, and nothing was written since. */
    expect_stale(&o, "{\"agent/a\":1799999950}", AT, "agent/a: its writer is not heard");
    /* It writes, so it runs; only the hub does not hear it. */
    expect_stale(&o, "{\"agent/a\":1799999900}", AT, "");
    expect_stale(&o, "{\"agent/a\":1799999900}", AT + 751, "agent/a: its writer is not heard");
    own_parts_deinit(&o);
}

/* ---- what the hub writes then ---------------------------------------------------------------- */

/* "MANAGER: its part; " of the parts that are the hub's to write. */
static const char *parts_of(const struct own_parts *o, const char *status, const char *seen)
{
    static char text[1024];
    struct resource_verdict v = {.now = "2027-01-15T08:00:00Z", .own_parts = o};
    struct resource_part parts[RESOURCE_PARTS_MAX];
    json_t *has = parse(status);
    json_t *was = parse(seen);
    size_t n = resource_parts(parts, &mesh_edge_kind, EDGE, has, was, &v);
    size_t len = 0;

    text[0] = '\0';
    /* The last one is the hub's own. */
    for (size_t i = 0; i < n; i++) {
        char *part = json_dumps(parts[i].status, JSON_COMPACT);

        if (i + 1 < n)
            len += (size_t)snprintf(
                text + len, sizeof(text) - len, "%s: %s; ", parts[i].manager, part);
        free(part);
        resource_part_deinit(&parts[i]);
    }
    json_decref(was);
    json_decref(has);
    return text;
}

static void test_what_is_left_alone(void **state)
{
    static const char *const status =
        "{\"agent/a\":{\"path\":\"direct\"},\"agent/b\":{\"path\":\"relay\"}}";
    static const char *const seen = "{\"agent/a\":\"h\",\"probe/a\":\"h\"}";
    struct own_parts o = {.n = 0};

    assert_string_equal(parts_of(&o, status, seen),
        "agent/a: {\"agent/a\":{\"path\":\"direct\"}}; "
        "agent/b: {\"agent/b\":{\"path\":\"relay\"}}; probe/a: {}; ");
    set(&o, "agent/a", "lan", "agent/a", AT);
    assert_string_equal(
        parts_of(&o, status, seen), "agent/b: {\"agent/b\":{\"path\":\"relay\"}}; probe/a: {}; ");
    set(&o, "probe/a", "reached", "probe/a", AT);
    assert_string_equal(parts_of(&o, status, seen),
        "agent/a: {\"agent/a\":{\"path\":\"direct\"}}; "
        "agent/b: {\"agent/b\":{\"path\":\"relay\"}}; ");
    /* One that is old is the hub's again. */
    set(&o, "agent/a", "lan", "agent/a", AT - 751);
    assert_string_equal(parts_of(&o, status, "{}"),
        "agent/a: {\"agent/a\":{\"path\":\"direct\"}}; "
        "agent/b: {\"agent/b\":{\"path\":\"relay\"}}; ");
    /* What is set aside is replaced, and must not look like its writer's. */
    set(&o, "agent/a", "lan", "kubectl", AT);
    assert_int_equal(own_parts_assess(&o, NULL, AT), 1);
    assert_string_equal(parts_of(&o, status, "{}"),
        "agent/a: {\"agent/a\":{\"path\":\"direct\",\"everySeconds\":0}}; "
        "agent/b: {\"agent/b\":{\"path\":\"relay\"}}; ");
    /* What somebody else owns cannot be taken away by leaving it out. */
    assert_string_equal(parts_of(&o, "{}", "{\"agent/a\":\"h\"}"), "");
    own_parts_deinit(&o);
}

/* As the API server sends it. */
static void test_as_it_is_seen(void **state)
{
    json_t *resource = parse(
        "{\"metadata\":{\"name\":\"default.a--b\",\"resourceVersion\":\"3\",\"managedFields\":"
        "[{\"manager\":\"kubectl\",\"fieldsV1\":{\"f:status\":{\"f:agent/"
        "a\":{\"f:observedAt\":{}}}}}"
        "]},\"spec\":{\"nodes\":[\"a\",\"b\"]},\"status\":{\"agent/a\":{\"path\":\"lan\","
        "\"observedAt\":\"2027-01-15T08:00:00Z\",\"everySeconds\":300}}}");
    struct resource_seen s = {.is_there = false};

    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, resource), 0);
    assert_int_equal(s.own_parts.n, 1);
    assert_string_equal(s.own_parts.items[0].by, "kubectl");
    (void)json_object_del(resource, "status");
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, resource), 0);
    assert_int_equal(s.own_parts.n, 0);
    resource_seen_deinit(&s);
    json_decref(resource);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose_they_are),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_who_has_written_it),
        cmocka_unit_test(test_what_its_node_says),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_what_is_left_alone),
        cmocka_unit_test(test_as_it_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
