/*
 * test-resources.c - what is a projection and what is a wish, what is applied of a spec of which
 * others own fields, and whose part of a status is whose.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>

#include "hub/resources/resource.h"
#include "test/support/edge_resource.h"

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

/* @taken is that. */
static void assert_json(json_t *taken, const char *expected)
{
    json_t *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
    char *text = json_dumps(taken, JSON_COMPACT | JSON_ENCODE_ANY);

    assert_non_null(wanted);
    if (!json_equal(taken, wanted))
        fail_msg("%s, not %s", text ? text : "nothing", expected);
    free(text);
    json_decref(wanted);
    json_decref(taken);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void test_names(void **state)
{
    static const struct {
        const struct object_kind *kind;
        const char *text;
        const char *network; /* NULL: it is none */
        const char *name;
    } cases[] = {
        {&network_kind, "default", "default", "default"},
        {&network_kind, "", NULL, NULL},
        {&network_kind, "a.b", NULL, NULL},
        {&node_kind, "default.a", "default", "a"},
        {&node_kind, "default.a.b", "default", "a.b"},
        {&node_kind, "", NULL, NULL},
        {&node_kind, ".a", NULL, NULL},
        {&node_kind, "default", NULL, NULL},
        {&node_kind, "default.", NULL, NULL},
        {&node_kind, "de fault.a", NULL, NULL},
        {&mesh_edge_kind, "default.a--b", "default", "a--b"},
    };
    char longest[RESOURCE_NAME_MAX + 2];
    char text[RESOURCE_NAME_MAX + 1];
    char network[NAME_MAX_LEN + 1];
    char name[OBJECT_NAME_MAX + 1];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        memset(network, '?', sizeof(network));
        memset(name, '?', sizeof(name));
        if (resource_name_parse(cases[i].kind, cases[i].text, network, name) !=
            (cases[i].network != NULL))
            fail_msg("\"%s\"", cases[i].text);
        if (!cases[i].network) {
            assert_int_equal(network[0], '?');
            assert_int_equal(name[0], '?');
            continue;
        }
        assert_string_equal(network, cases[i].network);
        assert_string_equal(name, cases[i].name);
        assert_string_equal(
            resource_name(text, cases[i].kind, cases[i].network, cases[i].name), cases[i].text);
    }
    /* The longest there is, and with a byte more in either part. */
    memset(longest, 'n', sizeof(longest));
    longest[NAME_MAX_LEN] = '.';
    longest[RESOURCE_NAME_MAX] = '\0';
    assert_true(resource_name_parse(&mesh_edge_kind, longest, network, name));
    assert_int_equal(strlen(network), NAME_MAX_LEN);
    assert_int_equal(strlen(name), OBJECT_NAME_MAX);
    longest[RESOURCE_NAME_MAX] = 'n';
    longest[RESOURCE_NAME_MAX + 1] = '\0';
    assert_false(resource_name_parse(&mesh_edge_kind, longest, network, name));
    longest[NAME_MAX_LEN] = 'n';
    longest[NAME_MAX_LEN + 1] = '.';
    assert_false(resource_name_parse(&mesh_edge_kind, longest, network, name));
}

/* ---- what the API server has ------------------------------------------------------------------
 */

static void test_what_the_hub_has(void **state)
{
    struct resource_want w = {.spec = NULL};
    char hash[RESOURCE_HASH_MAX];
    json_t *o = edge_object("off", 5);

    edge_hash("off", hash);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(resource_want_set(&w, &mesh_edge_kind, o), 0);
        assert_int_equal(w.revision, 5);
        assert_string_equal(w.hash, hash);
        assert_true(json_equal(w.spec, json_object_get(o, "spec")));
    }
    assert_int_equal(resource_want_set(&w, &mesh_edge_kind, NULL), 0);
    assert_null(w.spec);
    assert_int_equal(w.revision, 0);
    assert_string_equal(w.hash, "");
    /* What has no name, or no spec, cannot be applied. */
    (void)json_object_del(json_object_get(o, "metadata"), "name");
    assert_int_not_equal(resource_want_set(&w, &mesh_edge_kind, o), 0);
    (void)json_object_set_new(json_object_get(o, "metadata"), "name", json_string("a--b"));
    (void)json_object_del(o, "spec");
    assert_int_not_equal(resource_want_set(&w, &mesh_edge_kind, o), 0);
    resource_want_deinit(&w);
    json_decref(o);
}

/* Everything of a resource as it came that somebody decides by. */
static void test_what_is_seen(void **state)
{
    json_t *r = edge_resource("off", "9", "0123456789abcdef", "42");
    json_t *meta = json_object_get(r, "metadata");
    struct resource_seen s = {.is_there = false};
    char hash[RESOURCE_HASH_MAX];
    char digest[RESOURCE_HASH_MAX];
    json_t *one;

    (void)json_object_set_new(meta, "generation", json_integer(7));
    (void)json_object_set_new(meta, "finalizers", parse("[7, \"x\", \"weft.dev/hub\", \"y\"]"));
    (void)json_object_set_new(
        r, "status", parse("{\"hub\":{\"state\":\"up\"},\"conditions\":[{\"type\":\"T\"}]}"));
    edge_hash("off", hash);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, r), 0);
    assert_true(s.is_there && s.has_finalizer);
    assert_false(s.is_deleting);
    assert_int_equal(s.generation, 7);
    assert_string_equal(s.version, "9");
    assert_string_equal(s.uid, "u");
    assert_string_equal(s.hash, hash);
    assert_string_equal(s.done, "0123456789abcdef");
    assert_string_equal(s.revision, "42");
    assert_string_equal(s.accepted, "0123456789abcdef");
    assert_string_equal(s.by, "");
    assert_true(json_equal(s.spec, json_object_get(r, "spec")));
    assert_null(s.others);
    assert_null(s.finalizers);
    one = json_pack("{s:s}", "state", "up");
    kube_part_hash(digest, one);
    json_decref(one);
    /* Of its status the conditions are kept, and of the rest what tells whether it is another. */
    one = json_pack("{s:s, s:[{s:s}]}", "hub", digest, "conditions", "type", "T");
    assert_true(json_equal(s.status, one));
    json_decref(one);
    /* What else holds a resource that is being deleted is left as it is. */
    (void)json_object_set_new(meta, "deletionTimestamp", json_string("now"));
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, r), 0);
    assert_true(s.is_deleting && s.has_finalizer);
    assert_json(json_incref(s.finalizers), "[7, \"x\", \"y\"]");
    (void)json_object_set_new(meta, "finalizers", parse("[\"x\"]"));
    (void)json_object_set_new(r, "status", json_integer(7));
    (void)json_object_del(meta, "uid");
    (void)json_object_del(meta, "annotations");
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, r), 0);
    assert_false(s.has_finalizer);
    assert_null(s.status);
    assert_string_equal(s.uid, "");
    assert_string_equal(s.done, "");
    assert_string_equal(s.revision, "");
    assert_string_equal(s.accepted, "");
    resource_seen_deinit(&s);
    json_decref(r);
}

static void set_owner(json_t *resource, const char *manager, const char *fields)
{
    json_t *entry = json_pack("{s:s, s:s, s:{s:o}}", "manager", manager, "time",
        "2026-01-01T00:00:00Z", "fieldsV1", "f:spec", parse(fields));

    (void)json_object_set_new(
        json_object_get(resource, "metadata"), "managedFields", json_pack("[o]", entry));
}

/* A resource without a version, a name or a spec is none, and nothing of the last one is left. */
static void test_what_is_no_resource(void **state)
{
    static const char *const needed[] = {"resourceVersion", "name", "spec"};

    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
        json_t *r = edge_resource("off", "9", NULL, NULL);
        struct resource_seen s = {.is_there = false};
        const struct resource_seen empty = {.is_there = false};

        assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, r), 0);
        (void)json_object_del(json_object_get(r, "metadata"), needed[i]);
        (void)json_object_del(r, needed[i]);
        assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, r), -EINVAL);
        assert_memory_equal(&s, &empty, sizeof(s));
        json_decref(r);
    }
}

/* The spec is kept where it is a wish, where others own fields of it, and where the hub has none.
 */
static void test_when_the_spec_is_kept(void **state)
{
    static const struct {
        const char *done;
        const char *revision;
        const char *owned;
        bool is_kept;
    } cases[] = {
        {"auto", "5", NULL, false},
        {"auto", "none", NULL, true},
        {"off", "5", NULL, true},
        {NULL, NULL, NULL, true},
        {"auto", "5", "{\"f:path\":{}}", true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct resource_seen s = {.is_there = false};
        char done[RESOURCE_HASH_MAX];
        json_t *r;

        if (cases[i].done)
            edge_hash(cases[i].done, done);
        r = edge_resource("auto", "9", cases[i].done ? done : NULL, cases[i].revision);
        if (cases[i].owned)
            set_owner(r, "kubectl", cases[i].owned);
        assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, r), 0);
        if ((s.spec != NULL) != cases[i].is_kept)
            fail_msg("row %zu", i);
        resource_seen_deinit(&s);
        json_decref(r);
    }
}

/* The fields of all other managers together, and who of them wrote last. */
static void test_owners(void **state)
{
    static const struct {
        const char *managed; /* JSON */
        const char *others;  /* likewise; NULL: none */
        const char *by;
    } cases[] = {
        {"[{\"manager\":\"weft-hub\",\"time\":\"1\",\"fieldsV1\":{\"f:spec\":{\"f:path\":{}}}}]",
            NULL, ""},
        {"[{\"manager\":\"kubectl\",\"time\":\"1\",\"fieldsV1\":{\"f:status\":{}}},"
         "{\"time\":\"1\",\"fieldsV1\":{\"f:spec\":{\"f:path\":{}}}}]",
            NULL, ""},
        {"[{\"manager\":\"a\",\"time\":\"2\",\"fieldsV1\":{\"f:spec\":{\"f:l\":{\"f:x\":{}}}}},"
         "{\"manager\":\"b\",\"time\":\"1\",\"fieldsV1\":{\"f:spec\":{\"f:l\":{\"f:y\":{}},"
         "\"f:path\":{}}}},"
         "{\"manager\":\"c\",\"fieldsV1\":{\"f:spec\":{\"f:nodes\":{}}}}]",
            "{\"f:l\":{\"f:x\":{},\"f:y\":{}},\"f:path\":{},\"f:nodes\":{}}", "a"},
        {"[{\"manager\":\"a\",\"time\":\"2\",\"fieldsV1\":{\"f:spec\":{\"f:path\":{}}}},"
         "{\"manager\":\"b\",\"time\":\"2\",\"fieldsV1\":{\"f:spec\":{\"f:path\":{}}}}]",
            "{\"f:path\":{}}", "b"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *r = edge_resource("auto", "9", NULL, NULL);
        struct resource_seen s = {.is_there = false};

        (void)json_object_set_new(
            json_object_get(r, "metadata"), "managedFields", parse(cases[i].managed));
        assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, r), 0);
        if (cases[i].others)
            assert_json(json_incref(s.others), cases[i].others);
        else
            assert_null(s.others);
        assert_string_equal(s.by, cases[i].by);
        resource_seen_deinit(&s);
        json_decref(r);
    }
}

/* ---- deciding -------------------------------------------------------------------------------- */

struct decision {
    const char *have;     /* path of the hub's object, at revision 5; NULL: it has none */
    const char *there;    /* path of the resource; NULL: there is none */
    const char *done;     /* the path whose hash it says was dealt with; NULL: none */
    const char *revision; /* and at which revision; NULL: none */
    bool is_deleting;
    enum resource_step step;
    bool is_free; /* it has no finalizer of the hub's */
    bool is_kept; /* the hub has refused to remove the object */
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
    {"auto", "auto", "auto", "5", true, RESOURCE_RELEASE, .is_kept = true},
    /* What holds it is not the hub's any more; or not yet. */
    {"auto", "auto", "auto", "5", true, RESOURCE_NOTHING, .is_free = true},
    {"auto", "auto", "auto", "5", false, RESOURCE_APPLY, .is_free = true},
};

static void test_decide(void **state)
{
    for (size_t i = 0; i < sizeof(decisions) / sizeof(*decisions); i++) {
        const struct decision *d = &decisions[i];
        struct resource_want w = {.spec = NULL};
        struct resource_seen s = {.is_there = false};
        json_t *have = d->have ? edge_object(d->have, 5) : NULL;
        char done[RESOURCE_HASH_MAX] = "";
        json_t *there;

        assert_int_equal(resource_want_set(&w, &mesh_edge_kind, have), 0);
        if (d->done)
            edge_hash(d->done, done);
        if (d->there) {
            there = edge_resource(d->there, "9", d->done ? done : NULL, d->revision);
            if (d->is_deleting)
                (void)json_object_set_new(
                    json_object_get(there, "metadata"), "deletionTimestamp", json_string("now"));
            if (d->is_free)
                (void)json_object_del(json_object_get(there, "metadata"), "finalizers");
            assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
            json_decref(there);
        }
        if (resource_decide(&w, &s, d->is_kept) != d->step)
            fail_msg(
                "row %zu: %d, not %d", i, (int)resource_decide(&w, &s, d->is_kept), (int)d->step);
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
    json_t *have = edge_object("auto", 5);
    json_t *there;
    json_t *body;
    bool clash;

    edge_hash("auto", hash);
    assert_int_equal(resource_want_set(&w, &mesh_edge_kind, have), 0);
    there = edge_resource("auto", "9", hash, "5");
    (void)json_object_del(
        json_object_get(json_object_get(there, "metadata"), "annotations"), KUBE_SPEC_ACCEPTED);
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
    assert_int_equal(resource_decide(&w, &s, false), RESOURCE_APPLY);
    json_decref(there);

    there = edge_resource("off", "9", NULL, "5");
    set_owner(there, "kubectl", "{\"f:path\":{}}");
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
    body = resource_apply(&mesh_edge_kind, EDGE_RESOURCE, &w, &s, RESOURCE_YIELD_ALL, &clash);
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
    json_t *there = edge_resource("auto", "9", NULL, NULL);
    struct resource_seen s = {.is_there = false};
    char hash[RESOURCE_HASH_MAX];

    (void)json_object_del(json_object_get(there, "spec"), "path");
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
    edge_hash("auto", hash);
    assert_string_equal(s.hash, hash);
    resource_seen_deinit(&s);
    json_decref(there);
}

static void test_a_wish_names_its_revision(void **state)
{
    static const struct {
        const char *text;
        const char *number; /* as JSON; NULL: none */
    } revisions[] = {{"42", "42"}, {"none", NULL}, {"0", NULL}, {"1", "1"},
        {"9223372036854775806", "9223372036854775806"}, {"9223372036854775807", NULL}};
    struct resource_seen s = {.is_there = false};
    char expected[256];

    for (size_t i = 0; i < sizeof(revisions) / sizeof(*revisions); i++) {
        const char *number = revisions[i].number;
        json_t *there = edge_resource("off", "9", "0123456789abcdef", revisions[i].text);

        assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
        json_decref(there);
        (void)snprintf(expected, sizeof(expected),
            "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\",\"network\":\"default\"%s%s},"
            "\"spec\":{\"nodes\":[\"a\",\"b\"],\"path\":\"off\"}}",
            number ? ",\"resourceVersion\":" : "", number ? number : "");
        assert_json(resource_request(&mesh_edge_kind, "default", "a--b", &s), expected);
    }
    /* A network is in none. */
    assert_json(resource_request(&network_kind, "default", "default", &s),
        "{\"kind\":\"Network\",\"metadata\":{\"name\":\"default\"},"
        "\"spec\":{\"nodes\":[\"a\",\"b\"],\"path\":\"off\"}}");
    resource_seen_deinit(&s);
}

/* ---- applying -------------------------------------------------------------------------------- */

/* The "path" of what is applied, or "-"; @ret_clash: as of resource_apply(). */
static const char *applied_path(const char *have, const char *there, const char *owned,
    enum resource_yield yield, bool *ret_clash)
{
    static char text[16];
    struct resource_want w = {.spec = NULL};
    struct resource_seen s = {.is_there = false};
    json_t *o = edge_object(have, 6);
    json_t *r = edge_resource(there, "9", NULL, NULL);
    const char *path;
    json_t *body;

    set_owner(r, owned ? "kubectl" : RESOURCE_MANAGER, owned ? owned : "{\"f:path\":{}}");
    assert_int_equal(resource_want_set(&w, &mesh_edge_kind, o), 0);
    assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, r), 0);
    body = resource_apply(&mesh_edge_kind, EDGE_RESOURCE, &w, &s, yield, ret_clash);
    path = json_string_value(json_object_get(json_object_get(body, "spec"), "path"));
    (void)snprintf(text, sizeof(text), "%s", path ? path : "-");
    json_decref(body);
    json_decref(o);
    json_decref(r);
    resource_want_deinit(&w);
    resource_seen_deinit(&s);
    return text;
}

/* The whole request: of what is there, of a new one, and of a wish that the hub has refused. */
static void test_the_whole_body(void **state)
{
    json_t *there = edge_resource("auto", "9", NULL, NULL);
    struct resource_want w = {.spec = NULL};
    struct resource_seen s = {.is_there = false};
    json_t *o = edge_object("off", 6);
    char hash[2][RESOURCE_HASH_MAX];
    char expected[640];
    bool clash;

    edge_hash("off", hash[0]);
    edge_hash("auto", hash[1]);
    assert_int_equal(resource_want_set(&w, &mesh_edge_kind, o), 0);
    for (unsigned i = 0; i < 2; i++) {
        clash = true;
        (void)snprintf(expected, sizeof(expected),
            "{\"apiVersion\":\"weft.dev/v1alpha1\",\"kind\":\"MeshEdge\",\"metadata\":{"
            "\"name\":\"default.a--b\",%s\"annotations\":{\"weft.dev/spec\":\"%s\","
            "\"weft.dev/revision\":\"6\",\"weft.dev/accepted\":\"%s\"},"
            "\"finalizers\":[\"weft.dev/hub\"]},"
            "\"spec\":{\"nodes\":[\"a\",\"b\"],\"path\":\"off\"}}",
            i == 0 ? "" : "\"resourceVersion\":\"9\",", hash[0], hash[0]);
        assert_json(
            resource_apply(&mesh_edge_kind, EDGE_RESOURCE, &w, &s, RESOURCE_YIELD_SAME, &clash),
            expected);
        assert_false(clash);
        assert_int_equal(resource_seen_set(&s, &mesh_edge_kind, there), 0);
    }
    resource_want_deinit(&w);
    clash = true;
    (void)snprintf(expected, sizeof(expected),
        "{\"apiVersion\":\"weft.dev/v1alpha1\",\"kind\":\"MeshEdge\",\"metadata\":{"
        "\"name\":\"default.a--b\",\"resourceVersion\":\"9\","
        "\"annotations\":{\"weft.dev/spec\":\"%s\",\"weft.dev/revision\":\"none\"}}}",
        hash[1]);
    assert_json(resource_apply(&mesh_edge_kind, EDGE_RESOURCE, &w, &s, RESOURCE_YIELD_ALL, &clash),
        expected);
    assert_false(clash);
    resource_seen_deinit(&s);
    json_decref(there);
    json_decref(o);
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

#define NODE_SPEC                                                                                  \
    "\"publicKey\":\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\",\"address4\":\"10.77.0.2\","   \
    "\"address6\":\"fd5a::2\""

static const struct {
    const char *what;
    const char *have;    /* of the hub's spec, beside NODE_SPEC */
    const char *there;   /* of the resource's */
    const char *owned;   /* by a person */
    const char *applied; /* in addition to NODE_SPEC */
    enum resource_yield yield;
    bool clash;
} labels[] = {
    {"a label that a person owns, and the hub has not, is not taken for done",
        ",\"labels\":{\"rack\":\"7\"}", ",\"labels\":{\"gpu\":\"h100\"}",
        "{\"f:labels\":{\".\":{},\"f:gpu\":{}}}", ",\"labels\":{\"rack\":\"7\"}",
        RESOURCE_YIELD_SAME, true},
    {"the hub has no labels at all", "", ",\"labels\":{\"gpu\":\"h100\"}",
        "{\"f:labels\":{\".\":{},\"f:gpu\":{}}}", "", RESOURCE_YIELD_SAME, true},
    {"all labels are a person's, who says the same", ",\"labels\":{\"rack\":\"7\"}",
        ",\"labels\":{\"rack\":\"7\"}", "{\"f:labels\":{\"f:rack\":{}}}", "", RESOURCE_YIELD_SAME,
        false},
    {"one of two is", ",\"labels\":{\"rack\":\"7\",\"gpu\":\"h100\"}",
        ",\"labels\":{\"rack\":\"7\",\"gpu\":\"h100\"}", "{\"f:labels\":{\"f:rack\":{}}}",
        ",\"labels\":{\"gpu\":\"h100\"}", RESOURCE_YIELD_SAME, false},
    {"a person owns the labels as a whole", ",\"labels\":{\"rack\":\"7\"}",
        ",\"labels\":{\"rack\":\"8\"}", "{\"f:labels\":{\".\":{}}}", "", RESOURCE_YIELD_ALL, true},
    {"which the API server refuses", ",\"labels\":{\"rack\":\"7\"}", ",\"labels\":{\"rack\":\"8\"}",
        "{\"f:labels\":{\".\":{}}}", ",\"labels\":{\"rack\":\"7\"}", RESOURCE_YIELD_SAME, false},
    {"a person owns a field that is not there any more", ",\"island\":\"x\"", "",
        "{\"f:island\":{}}", ",\"island\":\"x\"", RESOURCE_YIELD_ALL, false},
    {"of labels that are no object a person owns what is below", ",\"labels\":{\"rack\":\"7\"}",
        ",\"labels\":\"7\"", "{\"f:labels\":{\"f:rack\":{}}}", ",\"labels\":{\"rack\":\"7\"}",
        RESOURCE_YIELD_SAME, false},
    {"what is empty is as good as none", ",\"island\":\"\",\"ephemeral\":false", "", "{}",
        ",\"ephemeral\":false", RESOURCE_YIELD_SAME, false},
    {"marks of managed fields name no field", ",\"island\":\"x\"", ",\"island\":\"x\"",
        "{\".\":{},\"v:island\":{}}", ",\"island\":\"x\"", RESOURCE_YIELD_ALL, false},
};

static void test_labels_of_others(void **state)
{
    for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++) {
        struct resource_want w = {.spec = NULL};
        struct resource_seen s = {.is_there = false};
        char text[1024];
        bool clash = !labels[i].clash;
        json_t *json;
        json_t *body;

        (void)snprintf(text, sizeof(text),
            "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"network\":\"default\"},"
            "\"spec\":{" NODE_SPEC "%s}}",
            labels[i].have);
        json = parse(text);
        assert_int_equal(resource_want_set(&w, &node_kind, json), 0);
        json_decref(json);
        (void)snprintf(text, sizeof(text),
            "{\"metadata\":{\"name\":\"default.a\",\"resourceVersion\":\"3\"},"
            "\"spec\":{" NODE_SPEC "%s}}",
            labels[i].there);
        json = parse(text);
        set_owner(json, "kubectl", labels[i].owned);
        assert_int_equal(resource_seen_set(&s, &node_kind, json), 0);
        json_decref(json);
        body = resource_apply(&node_kind, "default.a", &w, &s, labels[i].yield, &clash);
        (void)snprintf(text, sizeof(text), "{" NODE_SPEC "%s}", labels[i].applied);
        assert_json(json_incref(json_object_get(body, "spec")), text);
        if (clash != labels[i].clash)
            fail_msg("%s", labels[i].what);
        json_decref(body);
        resource_want_deinit(&w);
        resource_seen_deinit(&s);
    }
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
    size_t n = resource_parts(parts, &mesh_edge_kind, EDGE_RESOURCE, status, NULL, &v);

    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(parts[i].manager, managers[i]);
        assert_false(resource_part_is_shown(&parts[i], NULL));
    }
    assert_non_null(json_object_get(parts[2].status, "conditions"));
    /* An older handshake is not worth a write, another path is. */
    (void)json_object_set_new(
        json_object_get(status, "agent/a"), "handshakeAgeSeconds", json_integer(90));
    (void)resource_parts(reply, &mesh_edge_kind, EDGE_RESOURCE, status, NULL, &v);
    assert_string_equal(reply[0].hash, parts[0].hash);
    for (size_t i = 0; i < n; i++)
        resource_part_deinit(&reply[i]);
    (void)json_object_set_new(json_object_get(status, "agent/a"), "path", json_string("relay"));
    (void)resource_parts(reply, &mesh_edge_kind, EDGE_RESOURCE, status, NULL, &v);
    assert_string_not_equal(reply[0].hash, parts[0].hash);
    for (size_t i = 0; i < n; i++) {
        resource_part_deinit(&reply[i]);
        resource_part_deinit(&parts[i]);
    }
    json_decref(status);
}

static const struct {
    const struct object_kind *kind;
    const char *name;
    const char *status;
    const char *seen;
    const char *expected; /* {"MANAGER": its part}, but for the conditions */
} statuses[] = {
    {&network_kind, "default", "{\"nodes\":3,\"why\":\"\"}", "{}",
        "{\"weft-hub-status\":{\"nodes\":3}}"},
    {&node_kind, "default.a", "{\"nat\":\"none\",\"at\":[{\"x\":\"\",\"y\":1}]}", "{\"a/b\":\"\"}",
        "{\"agent/a\":{\"nat\":\"none\",\"at\":[{\"y\":1}]},\"weft-hub-status\":{}}"},
    {&node_kind, "default.a", "{}", "{}", "{\"weft-hub-status\":{}}"},
    {&node_kind, "a", "{\"nat\":\"none\"}", "{}",
        "{\"agent/a\":{\"nat\":\"none\"},\"weft-hub-status\":{}}"},
    /* What somebody has said before and does not say any more is taken away. */
    {&mesh_edge_kind, EDGE_RESOURCE, "{\"agent/a\":{\"x\":1},\"hub\":{\"state\":\"up\"}}",
        "{\"agent/a\":\"h\",\"agent/b\":\"h\",\"hub\":\"h\",\"other\":\"h\"}",
        "{\"agent/a\":{\"agent/a\":{\"x\":1}},\"agent/b\":{},"
        "\"weft-hub-status\":{\"hub\":{\"state\":\"up\"}}}"},
    /* No more than there is room for. */
    {&mesh_edge_kind, EDGE_RESOURCE, "{\"a/1\":1,\"a/2\":2,\"a/3\":3,\"a/4\":4,\"a/5\":5}",
        "{\"b/1\":\"h\"}",
        "{\"a/1\":{\"a/1\":1},\"a/2\":{\"a/2\":2},\"a/3\":{\"a/3\":3},\"a/4\":{\"a/4\":4},"
        "\"weft-hub-status\":{}}"},
    {&mesh_edge_kind, EDGE_RESOURCE, "{\"a/1\":1,\"a/2\":2,\"a/3\":3}",
        "{\"b/1\":\"h\",\"b/2\":\"h\"}",
        "{\"a/1\":{\"a/1\":1},\"a/2\":{\"a/2\":2},\"a/3\":{\"a/3\":3},\"b/1\":{},"
        "\"weft-hub-status\":{}}"},
};

/* Each writer's fields are a part of their own; texts that are empty are left out. */
static void test_whose_part_is_whose(void **state)
{
    struct resource_verdict v = {.now = "2026-01-01T00:00:00Z"};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
        json_t *status = parse(statuses[i].status);
        json_t *seen = parse(statuses[i].seen);
        struct resource_part parts[RESOURCE_PARTS_MAX];
        json_t *all = json_object();
        size_t n = resource_parts(parts, statuses[i].kind, statuses[i].name, status, seen, &v);

        for (size_t k = 0; k < n; k++) {
            char hash[RESOURCE_HASH_MAX];

            kube_part_hash(hash, parts[k].status);
            assert_string_equal(parts[k].hash, hash);
            (void)json_object_del(parts[k].status, "conditions");
            (void)json_object_set(all, parts[k].manager, parts[k].status);
            resource_part_deinit(&parts[k]);
            assert_null(parts[k].status);
        }
        assert_json(all, statuses[i].expected);
        json_decref(status);
        json_decref(seen);
    }
}

/* A condition has the time at which its status has changed, and the generation that it is about. */
static void test_conditions(void **state)
{
    static const struct {
        const char *ready;  /* its status, as it was seen; NULL: it has none */
        const char *kept;   /* its time then */
        const char *stands; /* and now */
    } cases[] = {{"True", "before", "before"}, {"False", "before", "now"}, {NULL, NULL, "now"},
        {"True", NULL, "now"}};
    json_t *status = parse("{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}");

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bool is_refused = i == 0;
        struct resource_verdict v = {.refused = is_refused ? "no" : NULL,
            .reason = is_refused ? "Conflict" : NULL,
            .generation = 7,
            .now = "now"};
        struct resource_part parts[RESOURCE_PARTS_MAX];
        json_t *seen = json_pack("{s:[{}, {s:s, s:s*, s:s*}]}", "conditions", "type", "Ready",
            "status", cases[i].ready, "lastTransitionTime", cases[i].kept);
        char expected[512];

        assert_int_equal(
            resource_parts(parts, &mesh_edge_kind, EDGE_RESOURCE, status, seen, &v), 1);
        (void)snprintf(expected, sizeof(expected),
            "{\"conditions\":[{\"type\":\"Accepted\",\"status\":\"%s\",\"reason\":\"%s\","
            "%s\"lastTransitionTime\":\"now\",\"observedGeneration\":7},"
            "{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"%s\","
            "\"observedGeneration\":7}]}",
            is_refused ? "False" : "True", is_refused ? "Conflict" : "Accepted",
            is_refused ? "\"message\":\"no\"," : "", cases[i].stands);
        assert_json(json_incref(parts[0].status), expected);
        resource_part_deinit(&parts[0]);
        json_decref(seen);
    }
    json_decref(status);
}

/* What the API server shows already, which it has as a hash or, of conditions, whole. */
static void test_what_is_shown(void **state)
{
    char hash[RESOURCE_HASH_MAX];
    struct resource_part p = {.status = parse("{\"hub\":{\"state\":\"up\",\"lastSeen\":3},"
                                              "\"revision\":5,\"conditions\":[{\"a\":1}]}")};
    json_t *seen = json_object();

    assert_false(resource_part_is_shown(&p, seen));
    kube_part_hash(hash, json_object_get(p.status, "hub"));
    (void)json_object_set_new(seen, "hub", json_string(hash));
    assert_false(resource_part_is_shown(&p, seen));
    (void)json_object_set_new(
        seen, "conditions", parse("[{\"a\":1,\"lastTransitionTime\":\"then\"}]"));
    assert_true(resource_part_is_shown(&p, seen));
    (void)json_object_set_new(json_object_get(p.status, "hub"), "lastSeen", json_integer(4));
    assert_true(resource_part_is_shown(&p, seen));
    (void)json_object_set_new(seen, "conditions", parse("[{\"a\":2}]"));
    assert_false(resource_part_is_shown(&p, seen));
    (void)json_object_del(p.status, "conditions");
    assert_true(resource_part_is_shown(&p, seen));
    (void)json_object_set_new(seen, "hub", json_string("0123456789abcdef"));
    assert_false(resource_part_is_shown(&p, seen));
    /* A part that takes something away never is. */
    (void)json_object_clear(p.status);
    assert_false(resource_part_is_shown(&p, seen));
    json_decref(seen);
    resource_part_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_what_the_hub_has),
        cmocka_unit_test(test_what_is_seen),
        cmocka_unit_test(test_what_is_no_resource),
        cmocka_unit_test(test_when_the_spec_is_kept),
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_decide),
        cmocka_unit_test(test_the_hubs_own_is_named),
        cmocka_unit_test(test_defaults_are_no_wish),
        cmocka_unit_test(test_a_wish_names_its_revision),
        cmocka_unit_test(test_the_whole_body),
        cmocka_unit_test(test_fields_of_others),
        cmocka_unit_test(test_labels_of_others),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_whose_part_is_whose),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_what_is_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
