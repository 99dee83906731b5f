/*
 * test-resources.c - what is a projection and what is a wish, what is applied of a spec of which
 * others own fields, whose part of a status is whose, who leads, and that two sides which agree are
 * left alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hub/resources/projection.h"
#include "hub/resources/resource.h"
#include "hub/resources/resource_api.h"

#define EDGE "default.a--b"

/* ---- objects and resources of an edge -------------------------------------------------------- */

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

static json_t *object(const char *path, int revision)
{
    return json_pack("{s:s, s:{s:s, s:s, s:i}, s:{s:[s, s], s:s}}", "kind", "MeshEdge", "metadata",
        "name", "a--b", "network", "default", "resourceVersion", revision, "spec", "nodes", "a",
        "b", "path", path);
}

/* A resource as the API server would send it. Annotations: NULL: none; what was dealt with is the
 * hub's own. */
static json_t *resource(
    const char *path, const char *version, const char *done, const char *revision)
{
    json_t *json =
        json_pack("{s:{s:s, s:s, s:s, s:i, s:{s:s*, s:s*, s:s*}, s:[s]}, s:{s:[s, s], s:s}}",
            "metadata", "name", EDGE, "resourceVersion", version, "uid", "u", "generation", 1,
            "annotations", RESOURCE_SPEC, done, KUBE_SPEC_ACCEPTED, done, KUBE_SPEC_REVISION,
            revision, "finalizers", RESOURCE_FINALIZER, "spec", "nodes", "a", "b", "path", path);

    assert_non_null(json);
    return json;
}

static void set_owner(json_t *resource, const char *manager, const char *fields)
{
    json_t *entry = json_pack("{s:s, s:s, s:{s:o}}", "manager", manager, "time",
        "2026-01-01T00:00:00Z", "fieldsV1", "f:spec", parse(fields));

    (void)json_object_set_new(
        json_object_get(resource, "metadata"), "managedFields", json_pack("[o]", entry));
}

static void hash_of(const char *path, char ret[static RESOURCE_HASH_MAX])
{
    struct resource_want w = {.spec = NULL};
    json_t *o = object(path, 1);

    assert_int_equal(resource_want_set(&w, &mesh_edge_kind, o), 0);
    memcpy(ret, w.hash, RESOURCE_HASH_MAX);
    resource_want_deinit(&w);
    json_decref(o);
}

/* ---- deciding -------------------------------------------------------------------------------- */

struct decision {
    const char *have;     /* path of the hub's object, at revision 5; NULL: it has none */
    const char *there;    /* path of the resource; NULL: there is none */
    const char *done;     /* the path whose hash it says was dealt with; NULL: none */
    const char *revision; /* and at which revision; NULL: none */
    bool is_deleting;
    enum resource_step step;
};

static const struct decision decisions[] = {
    {NULL, NULL, NULL, NULL, false, RESOURCE_NOTHING},
    {"auto", NULL, NULL, NULL, false, RESOURCE_APPLY},
    /* In step, or marked as dealt with at another revision. */
    {"auto", "auto", "auto", "5", false, RESOURCE_NOTHING},
    {"auto", "auto", "auto", "4", false, RESOURCE_APPLY},
    {"auto", "auto", NULL, NULL, false, RESOURCE_APPLY},
    /* A person has written; that was refused; the hub's object has changed since. */
    {"auto", "off", "auto", "5", false, RESOURCE_ASK_PUT},
    {"auto", "off", "off", "5", false, RESOURCE_NOTHING},
    {"auto", "off", "off", "4", false, RESOURCE_APPLY},
    /* The hub has changed what is shown: never the other way round. */
    {"direct", "auto", "auto", "4", false, RESOURCE_APPLY},
    /* The hub has none: made by a person, refused, projected before, changed by a person. */
    {NULL, "auto", NULL, NULL, false, RESOURCE_ASK_PUT},
    {NULL, "auto", "auto", "none", false, RESOURCE_NOTHING},
    {NULL, "auto", "auto", "4", false, RESOURCE_DELETE},
    {NULL, "off", "auto", "4", false, RESOURCE_ASK_PUT},
    /* Somebody deletes it; the hub has done so. */
    {"auto", "auto", "auto", "5", true, RESOURCE_ASK_REMOVE},
    {NULL, "auto", "auto", "5", true, RESOURCE_RELEASE},
};

static void test_decide(void **state)
{
    for (size_t i = 0; i < sizeof(decisions) / sizeof(*decisions); i++) {
        const struct decision *d = &decisions[i];
        struct resource_want w = {.spec = NULL};
        struct resource_seen s = {.is_there = false};
        json_t *have = d->have ? object(d->have, 5) : NULL;
        char done[RESOURCE_HASH_MAX] = "";
        json_t *there;

        assert_int_equal(resource_want_set(&w, &mesh_edge_kind, have), 0);
        if (d->done)
            hash_of(d->done, done);
        if (d->there) {
            there = resource(d->there, "9", d->done ? done : NULL, d->revision);
            if (d->is_deleting)
                (void)json_object_set_new(
                    json_object_get(there, "metadata"), "deletionTimestamp", json_string("now"));
            assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
            json_decref(there);
        }
        if (resource_decide(&w, &s, false) != d->step)
            fail_msg("row %zu: %d, not %d", i, (int)resource_decide(&w, &s, false), (int)d->step);
        resource_want_deinit(&w);
        resource_seen_deinit(&s);
        json_decref(have);
    }
}

/* What agents go by is written where it is missing or old, and is the hub's spec, whatever the
 * resource says. */
static void test_the_hubs_own_is_named(void **state)
{
    struct resource_want w = {.spec = NULL};
    struct resource_seen s = {.is_there = false};
    char hash[RESOURCE_HASH_MAX];
    json_t *have = object("auto", 5);
    json_t *there;
    json_t *body;
    bool clash;

    hash_of("auto", hash);
    assert_int_equal(resource_want_set(&w, &mesh_edge_kind, have), 0);
    there = resource("auto", "9", hash, "5");
    (void)json_object_del(
        json_object_get(json_object_get(there, "metadata"), "annotations"), KUBE_SPEC_ACCEPTED);
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
    assert_int_equal(resource_decide(&w, &s, false), RESOURCE_APPLY);
    json_decref(there);

    there = resource("off", "9", NULL, "5");
    set_owner(there, "kubectl", "{\"f:path\":{}}");
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
    body = resource_apply(&mesh_edge_kind, EDGE, &w, &s, RESOURCE_YIELD_ALL, &clash);
    assert_true(clash);
    assert_string_equal(
        json_string_value(json_object_get(
            json_object_get(json_object_get(body, "metadata"), "annotations"), KUBE_SPEC_ACCEPTED)),
        hash);
    json_decref(body);
    json_decref(there);
    json_decref(have);
    resource_want_deinit(&w);
    resource_seen_deinit(&s);
}

/* A field that has its default is as good as none. */
static void test_defaults_are_no_wish(void **state)
{
    json_t *there = resource("auto", "9", NULL, NULL);
    struct resource_seen s = {.is_there = false};
    char hash[RESOURCE_HASH_MAX];

    (void)json_object_del(json_object_get(there, "spec"), "path");
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
    hash_of("auto", hash);
    assert_string_equal(s.hash, hash);
    resource_seen_deinit(&s);
    json_decref(there);
}

static void test_a_wish_names_its_revision(void **state)
{
    json_t *there = resource("off", "9", "0123456789abcdef", "42");
    struct resource_seen s = {.is_there = false};
    json_t *wanted;

    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
    wanted = resource_request(&mesh_edge_kind, "default", "a--b", &s);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(wanted, "metadata"), "resourceVersion")),
        42);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(wanted, "spec"), "path")), "off");
    json_decref(wanted);
    resource_seen_deinit(&s);
    json_decref(there);
}

/* ---- applying -------------------------------------------------------------------------------- */

/* The "path" of what is applied, or "-"; @ret_clash: as of resource_apply(). */
static const char *applied_path(const char *have, const char *there, const char *owned,
    enum resource_yield yield, bool *ret_clash)
{
    static char text[16];
    struct resource_want w = {.spec = NULL};
    struct resource_seen s = {.is_there = false};
    json_t *o = object(have, 6);
    json_t *r = resource(there, "9", NULL, NULL);
    const char *path;
    json_t *body;

    set_owner(r, owned ? "kubectl" : RESOURCE_MANAGER, owned ? owned : "{\"f:path\":{}}");
    assert_int_equal(resource_want_set(&w, &mesh_edge_kind, o), 0);
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, r), 0);
    body = resource_apply(&mesh_edge_kind, EDGE, &w, &s, yield, ret_clash);
    path = json_string_value(json_object_get(json_object_get(body, "spec"), "path"));
    (void)snprintf(text, sizeof(text), "%s", path ? path : "-");
    json_decref(body);
    json_decref(o);
    json_decref(r);
    resource_want_deinit(&w);
    resource_seen_deinit(&s);
    return text;
}

static void test_fields_of_others(void **state)
{
    const char *owned = "{\"f:path\":{}}";
    bool clash;

    assert_string_equal(applied_path("off", "auto", NULL, RESOURCE_YIELD_SAME, &clash), "off");
    assert_false(clash);
    assert_string_equal(applied_path("off", "off", owned, RESOURCE_YIELD_SAME, &clash), "-");
    assert_false(clash);
    /* The API server is to say what is in conflict; then it is left alone. */
    assert_string_equal(applied_path("off", "auto", owned, RESOURCE_YIELD_SAME, &clash), "off");
    assert_string_equal(applied_path("off", "auto", owned, RESOURCE_YIELD_ALL, &clash), "-");
    assert_true(clash);
}

/* A label that a person owns and the hub has not is not taken for done. */
static void test_labels_of_others(void **state)
{
    const char *spec = "\"publicKey\":\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\","
                       "\"address4\":\"10.77.0.2\",\"address6\":\"fd5a::2\"";
    struct resource_want w = {.spec = NULL};
    struct resource_seen s = {.is_there = false};
    char text[1024];
    json_t *json;
    json_t *body;
    bool clash;

    (void)snprintf(text, sizeof(text),
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"network\":\"default\"},"
        "\"spec\":{%s,\"labels\":{\"rack\":\"7\"},\"island\":\"\",\"ephemeral\":false}}",
        spec);
    json = parse(text);
    assert_int_equal(resource_want_set(&w, &node_kind, json), 0);
    json_decref(json);
    (void)snprintf(text, sizeof(text),
        "{\"metadata\":{\"name\":\"default.a\",\"resourceVersion\":\"3\"},"
        "\"spec\":{%s,\"labels\":{\"gpu\":\"h100\"}}}",
        spec);
    json = parse(text);
    set_owner(json, "kubectl", "{\"f:labels\":{\"f:gpu\":{}}}");
    assert_int_equal(resource_seen_set(&s, &node_kind, json), 0);
    json_decref(json);
    body = resource_apply(&node_kind, "default.a", &w, &s, RESOURCE_YIELD_SAME, &clash);
    json = json_object_get(json_object_get(body, "spec"), "labels");
    assert_string_equal(json_string_value(json_object_get(json, "rack")), "7");
    assert_null(json_object_get(json, "gpu"));
    assert_true(clash);
    json_decref(body);
    resource_want_deinit(&w);
    resource_seen_deinit(&s);
}

/* ---- status ---------------------------------------------------------------------------------- */

static void test_parts(void **state)
{
    static const char *const managers[] = {"agent/a", "probe/b", RESOURCE_MANAGER_STATUS};
    struct resource_verdict v = {.now = "2026-01-01T00:00:00Z"};
    struct resource_part parts[RESOURCE_PARTS_MAX];
    struct resource_part reply[RESOURCE_PARTS_MAX];
    json_t *status = parse("{\"agent/a\":{\"path\":\"direct\",\"handshakeAgeSeconds\":3},"
                           "\"probe/b\":{\"tunnel\":\"yes\"},\"hub\":{\"state\":\"idle\"}}");
    size_t n = resource_parts(parts, &mesh_edge_kind, EDGE, status, NULL, &v);

    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(parts[i].manager, managers[i]);
        assert_false(resource_part_is_shown(&parts[i], NULL));
    }
    assert_non_null(json_object_get(parts[2].status, "conditions"));
    /* An older handshake is not worth a write, another path is. */
    (void)json_object_set_new(
        json_object_get(status, "agent/a"), "handshakeAgeSeconds", json_integer(90));
    (void)resource_parts(reply, &mesh_edge_kind, EDGE, status, NULL, &v);
    assert_string_equal(reply[0].hash, parts[0].hash);
    for (size_t i = 0; i < n; i++)
        resource_part_deinit(&reply[i]);
    (void)json_object_set_new(json_object_get(status, "agent/a"), "path", json_string("relay"));
    (void)resource_parts(reply, &mesh_edge_kind, EDGE, status, NULL, &v);
    assert_string_not_equal(reply[0].hash, parts[0].hash);
    for (size_t i = 0; i < n; i++) {
        resource_part_deinit(&reply[i]);
        resource_part_deinit(&parts[i]);
    }
    json_decref(status);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void begin(struct projection *p)
{
    projection_init(p);
    p->is_complete = true;
    for (unsigned i = 0; object_kinds[i]; i++) {
        projection_list_begin(p, object_kinds[i]);
        projection_list_end(p, object_kinds[i]);
    }
}

static void tell(struct projection *p, const char *path, int revision)
{
    json_t *o = path ? object(path, revision) : NULL;

    assert_int_equal(projection_want(p, &mesh_edge_kind, EDGE, o), 0);
    json_decref(o);
}

/* The API server shows what was applied last, with @path in place of its path if that is given. */
static void show(struct projection *p, const char *path, const char *version, const char *done,
    const char *revision)
{
    json_t *r = resource(path, version, done, revision);

    assert_int_equal(projection_saw(p, &mesh_edge_kind, r), 0);
    json_decref(r);
}

static enum resource_step next(struct projection *p, nsec_t now)
{
    struct projection_step step;

    return projection_next(p, now, &step) ? step.what : RESOURCE_NOTHING;
}

static void test_nothing_before_both_sides_are_known(void **state)
{
    struct projection p;

    projection_init(&p);
    show(&p, "auto", "1", NULL, NULL);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    p.is_complete = true;
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    for (unsigned i = 0; object_kinds[i]; i++)
        p.has_list[i] = true;
    assert_int_equal(next(&p, 0), RESOURCE_ASK_PUT);
    projection_reset(&p);
}

static void test_a_wish_is_asked_once(void **state)
{
    char hash[2][RESOURCE_HASH_MAX];
    struct projection_item *item;
    struct projection p;
    json_t *after = object("off", 6);

    hash_of("auto", hash[0]);
    hash_of("off", hash[1]);
    begin(&p);
    tell(&p, "auto", 5);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    item = projection_find(&p, &mesh_edge_kind, EDGE);
    projection_wrote(&p, item, "2", 0);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    show(&p, "auto", "2", hash[0], "5");
    (void)next(&p, 0);
    /* A person writes; until the hub has answered, nothing else is asked. */
    show(&p, "off", "3", hash[0], "5");
    assert_int_equal(next(&p, 0), RESOURCE_ASK_PUT);
    projection_asked(&p, item);
    show(&p, "off", "3", hash[0], "5");
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    assert_false(projection_judged(&p, item, false, 200, NULL, after, 0));
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    projection_wrote(&p, item, "4", 0);
    show(&p, "off", "4", hash[1], "6");
    (void)next(&p, 0);
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    projection_reset(&p);
    json_decref(after);
}

static void test_a_refusal_is_marked_and_stays(void **state)
{
    char hash[2][RESOURCE_HASH_MAX];
    struct projection_step step;
    struct projection_item *item;
    struct projection p;

    hash_of("auto", hash[0]);
    hash_of("off", hash[1]);
    begin(&p);
    tell(&p, "auto", 5);
    show(&p, "off", "3", hash[0], "5");
    assert_int_equal(next(&p, 0), RESOURCE_ASK_PUT);
    item = projection_find(&p, &mesh_edge_kind, EDGE);
    projection_asked(&p, item);
    assert_true(projection_judged(&p, item, false, 400, "no", NULL, 0));
    assert_true(projection_next(&p, 0, &step));
    assert_int_equal(step.what, RESOURCE_APPLY);
    assert_int_equal(step.yield, RESOURCE_YIELD_ALL);
    projection_wrote(&p, item, "4", 0);
    show(&p, "off", "4", hash[1], "5");
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    assert_string_equal(projection_verdict(item, "").refused, "no");
    /* Later the hub's object changes, and the person's field is where it was. */
    tell(&p, "direct", 7);
    assert_int_equal(next(&p, 0), RESOURCE_APPLY);
    projection_reset(&p);
}

static void test_a_busy_hub_is_asked_again(void **state)
{
    struct projection_item *item;
    struct projection p;

    begin(&p);
    show(&p, "off", "3", NULL, NULL);
    assert_int_equal(next(&p, 0), RESOURCE_ASK_PUT);
    item = projection_find(&p, &mesh_edge_kind, EDGE);
    projection_asked(&p, item);
    assert_false(projection_judged(&p, item, false, 503, "busy", NULL, 0));
    assert_int_equal(next(&p, NSEC_PER_SEC / 2), RESOURCE_NOTHING);
    assert_int_equal(next(&p, 2 * NSEC_PER_SEC), RESOURCE_ASK_PUT);
    projection_reset(&p);
}

static void test_damage_deletes_nothing(void **state)
{
    char hash[RESOURCE_HASH_MAX];
    struct projection p;

    hash_of("auto", hash);
    begin(&p);
    projection_keep_all(&p, true);
    show(&p, "auto", "3", hash, "5");
    assert_int_equal(next(&p, 0), RESOURCE_NOTHING);
    projection_keep_all(&p, false);
    assert_int_equal(next(&p, 0), RESOURCE_DELETE);
    projection_reset(&p);
}

/* A thousand nodes report at once: twenty writes now, and then twenty a second. */
static void test_status_is_written_slowly(void **state)
{
    json_t *status = parse("{\"hub\":{\"state\":\"up\",\"why\":\"\"}}");
    char hash[RESOURCE_HASH_MAX];
    struct projection_step step;
    unsigned n = 0;
    struct projection p;

    begin(&p);
    for (unsigned i = 0; i < 1000; i++) {
        char name[32];
        json_t *o = object("auto", 5);
        json_t *r = resource("auto", "3", NULL, NULL);
        json_t *nodes = json_pack("[s, o]", "a", json_sprintf("b%u", i));

        (void)snprintf(name, sizeof(name), "default.a--b%u", i);
        (void)json_object_set_new(
            json_object_get(o, "metadata"), "name", json_sprintf("a--b%u", i));
        (void)json_object_set(json_object_get(o, "spec"), "nodes", nodes);
        assert_int_equal(projection_want(&p, &mesh_edge_kind, name, o), 0);
        (void)json_object_set_new(json_object_get(r, "metadata"), "name", json_string(name));
        (void)json_object_set(json_object_get(r, "spec"), "nodes", nodes);
        memcpy(hash, projection_find(&p, &mesh_edge_kind, name)->want.hash, sizeof(hash));
        (void)json_object_set_new(json_object_get(r, "metadata"), "annotations",
            json_pack("{s:s, s:s, s:s}", RESOURCE_SPEC, hash, KUBE_SPEC_ACCEPTED, hash,
                KUBE_SPEC_REVISION, "5"));
        assert_int_equal(projection_saw(&p, &mesh_edge_kind, r), 0);
        assert_int_equal(projection_status(&p, &mesh_edge_kind, name, status), 0);
        json_decref(nodes);
        json_decref(o);
        json_decref(r);
    }
    while (projection_next(&p, NSEC_PER_SEC, &step))
        n++;
    assert_int_equal(n, PROJECTION_STATUS_BURST);
    while (projection_next(&p, 2 * NSEC_PER_SEC, &step))
        n++;
    assert_int_equal(n, PROJECTION_STATUS_BURST + 20);
    projection_reset(&p);
    json_decref(status);
}

/* ---- who leads ------------------------------------------------------------------------------- */

static json_t *lease(const char *holder, const char *version)
{
    return json_pack("{s:{s:s}, s:{s:s, s:i}}", "metadata", "resourceVersion", version, "spec",
        "holderIdentity", holder, "leaseTransitions", 3);
}

static void look(struct leader *l, const char *holder, const char *version, nsec_t now)
{
    json_t *json = holder ? lease(holder, version) : NULL;

    leader_saw(l, json, now);
    json_decref(json);
}

static void test_leader(void **state)
{
    struct leader l;
    json_t *json;

    leader_init(&l, "me");
    look(&l, NULL, NULL, 1);
    assert_true(leader_may_write(&l, 1));
    look(&l, "other", "1", 2);
    assert_false(leader_may_write(&l, 2));
    /* It goes on renewing it; then it does not. */
    look(&l, "other", "2", 14 * NSEC_PER_SEC);
    assert_false(leader_may_write(&l, 20 * NSEC_PER_SEC));
    look(&l, "other", "2", 28 * NSEC_PER_SEC);
    assert_false(leader_may_write(&l, 28 * NSEC_PER_SEC));
    assert_true(leader_may_write(&l, 29 * NSEC_PER_SEC));
    json = leader_lease(&l, "now", false);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json, "spec"), "leaseTransitions")), 4);
    json_decref(json);
    json = lease("me", "3");
    leader_wrote(&l, json, 29 * NSEC_PER_SEC);
    json_decref(json);
    assert_true(leader_is_leading(&l, 38 * NSEC_PER_SEC));
    /* It could not be renewed: this hub stops before another one may begin. */
    assert_false(leader_is_leading(&l, 39 * NSEC_PER_SEC));
    look(&l, "other", "4", 40 * NSEC_PER_SEC);
    assert_false(leader_is_leading(&l, 40 * NSEC_PER_SEC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decide),
        cmocka_unit_test(test_the_hubs_own_is_named),
        cmocka_unit_test(test_defaults_are_no_wish),
        cmocka_unit_test(test_a_wish_names_its_revision),
        cmocka_unit_test(test_fields_of_others),
        cmocka_unit_test(test_labels_of_others),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_nothing_before_both_sides_are_known),
        cmocka_unit_test(test_a_wish_is_asked_once),
        cmocka_unit_test(test_a_refusal_is_marked_and_stays),
        cmocka_unit_test(test_a_busy_hub_is_asked_again),
        cmocka_unit_test(test_damage_deletes_nothing),
        cmocka_unit_test(test_status_is_written_slowly),
        cmocka_unit_test(test_leader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
