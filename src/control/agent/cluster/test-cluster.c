/* test-cluster.c - resources of a cluster as objects, lines of a watch, and two sources as one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/cluster_resource.h"
#include "backends/kubernetes/kube_client.h"
#include "base/err.h"
#include "test/support/sample_mesh.h"

/* Who sees the samples. */
static const struct cluster_self self = {.network = "default", .node = "n2"};

/* ---- resources ------------------------------------------------------------------------------- */

/* What the hub says of a spec. */
enum said {
    SAID_NOTHING, /* nothing yet */
    SAID_THIS,    /* the annotation: it is its own */
    SAID_OTHER,   /* the annotation: its own is another one */
    SAID_STATUS,  /* the condition: it is its own */
    SAID_BEFORE,  /* the condition, of the generation before */
    SAID_REFUSED, /* the condition: it is not */
};

static json_t *resource(const struct object_kind *kind, const char *name, const char *revision,
    enum said said, json_t *spec)
{
    const char *object = strchr(name, '.') ? strchr(name, '.') + 1 : name;
    char hash[KUBE_SPEC_HASH_MAX] = "0123456789abcdef";
    json_t *json;

    if (said != SAID_OTHER)
        kube_spec_hash(hash, kind, self.network, object, spec);
    json = json_pack("{s:{s:s, s:s, s:i, s:{s:s*, s:s*}}, s:o}", "metadata", "name", name,
        "resourceVersion", "5", "generation", 3, "annotations", KUBE_SPEC_REVISION, revision,
        KUBE_SPEC_ACCEPTED, said == SAID_THIS || said == SAID_OTHER ? hash : NULL, "spec", spec);
    if (said >= SAID_STATUS)
        (void)json_object_set_new(json, "status",
            json_pack("{s:[{s:s, s:s, s:i}]}", "conditions", "type", "Accepted", "status",
                said == SAID_REFUSED ? "False" : "True", "observedGeneration",
                said == SAID_BEFORE ? 2 : 3));
    assert_non_null(json);
    return json;
}

static void test_what_counts(void **state)
{
    const struct {
        const struct object_kind *kind;
        const char *name;
        const char *revision;
        enum said said;
        enum cluster_verdict want;
    } rows[] = {
        {&node_kind, "default.n1", "7", SAID_THIS, CLUSTER_TAKEN},
        {&node_kind, "default.n1", "7", SAID_STATUS, CLUSTER_TAKEN},
        {&node_kind, "default.n1", "7", SAID_NOTHING, CLUSTER_KEPT},
        {&node_kind, "default.n1", "7", SAID_OTHER, CLUSTER_KEPT},
        {&node_kind, "default.n1", "7", SAID_BEFORE, CLUSTER_KEPT},
        {&node_kind, "default.n1", "7", SAID_REFUSED, CLUSTER_KEPT},
        {&node_kind, "default.n1", "none", SAID_THIS, CLUSTER_GONE},
        {&node_kind, "default.n1", NULL, SAID_THIS, CLUSTER_KEPT},
        {&node_kind, "default.n1", "0", SAID_THIS, CLUSTER_KEPT},
        {&node_kind, "default.n1", "1", SAID_THIS, CLUSTER_TAKEN},
        {&node_kind, "default.n1", "9223372036854775807", SAID_THIS, CLUSTER_TAKEN},
        {&node_kind, "default.n1", "9223372036854775808", SAID_THIS, CLUSTER_KEPT},
        {&node_kind, "default.n1", "7x", SAID_THIS, CLUSTER_KEPT},
        {&node_kind, "default-n1", "7", SAID_THIS, CLUSTER_OTHER},
        {&node_kind, "other.n1", "7", SAID_THIS, CLUSTER_OTHER},
        {&node_kind, "default2.n1", "7", SAID_THIS, CLUSTER_OTHER},
        {&node_kind, "default.", "7", SAID_THIS, CLUSTER_OTHER},
        {&node_kind, "default", "7", SAID_THIS, CLUSTER_OTHER},
        {&network_kind, "default", "7", SAID_THIS, CLUSTER_TAKEN},
        {&network_kind, "default.n1", "7", SAID_THIS, CLUSTER_OTHER},
        {&network_kind, "default", "none", SAID_THIS, CLUSTER_OTHER},
        {&mesh_edge_kind, "default.n1--n2", "7", SAID_THIS, CLUSTER_TAKEN},
        {&mesh_edge_kind, "default.n1--n2", "7", SAID_REFUSED, CLUSTER_KEPT},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char name[OBJECT_NAME_MAX + 1] = "";
        json_t *object = NULL;
        json_t *given = resource(rows[i].kind, rows[i].name, rows[i].revision, rows[i].said,
            json_pack("{s:[s, s]}", "nodes", "n1", "n2"));
        enum cluster_verdict is = cluster_object(rows[i].kind, &self, given, &object, name);

        if (is != rows[i].want)
            fail_msg("row %zu: %d, not %d", i, (int)is, (int)rows[i].want);
        assert_int_equal(object != NULL, rows[i].want == CLUSTER_TAKEN);
        if (is != CLUSTER_OTHER)
            assert_string_equal(name, rows[i].kind->is_network ? "default" : rows[i].name + 8);
        json_decref(object);
        json_decref(given);
    }
}

/* As the hub's API has them; what a node has reported is the only status that counts. */
static void test_what_is_taken(void **state)
{
    static const struct {
        const struct object_kind *kind;
        const char *name;
        const char *object;
    } cases[] = {
        {&node_kind, "default.n1",
            "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"network\":\"default\","
            "\"resourceVersion\":7},\"spec\":{\"nodes\":[\"n2\",\"n1\"]},\"status\":{\"a\":1}}"},
        {&network_kind, "default",
            "{\"kind\":\"Network\",\"metadata\":{\"name\":\"default\",\"resourceVersion\":7},"
            "\"spec\":{\"nodes\":[\"n2\",\"n1\"]}}"},
        {&mesh_edge_kind, "default.n2--n1",
            "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"n2--n1\",\"network\":\"default\","
            "\"resourceVersion\":7},\"spec\":{\"nodes\":[\"n2\",\"n1\"]}}"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char name[OBJECT_NAME_MAX + 1];
        json_t *object = NULL;
        json_t *given = resource(cases[i].kind, cases[i].name, "7", SAID_THIS,
            json_pack("{s:[s, s]}", "nodes", "n2", "n1"));
        char *text;

        (void)json_object_set_new(given, "status", json_pack("{s:i}", "a", 1));
        assert_int_equal(cluster_object(cases[i].kind, &self, given, &object, name), CLUSTER_TAKEN);
        text = json_dumps(object, JSON_COMPACT);
        assert_string_equal(text, cases[i].object);
        free(text);
        json_decref(object);
        json_decref(given);
    }
}

static void test_the_longest_name(void **state)
{
    for (unsigned more = 0; more < 2; more++) {
        char full[OBJECT_NAME_MAX + 16] = "default.";
        char name[OBJECT_NAME_MAX + 1];
        json_t *object = NULL;
        json_t *given;

        memset(full + strlen(full), 'n', OBJECT_NAME_MAX + more);
        given = resource(&node_kind, full, "7", SAID_NOTHING, json_object());
        assert_int_equal(cluster_object(&node_kind, &self, given, &object, name),
            more ? CLUSTER_OTHER : CLUSTER_KEPT);
        json_decref(given);
    }
}

/* Of the conditions it is "Accepted" that says so, of a generation that is known. */
static void test_which_condition_counts(void **state)
{
    static const struct {
        const char *conditions;
        enum cluster_verdict want;
    } cases[] = {
        {"[{\"type\":\"Ready\",\"status\":\"False\"},{\"type\":\"Accepted\",\"status\":\"True\","
         "\"observedGeneration\":3}]",
            CLUSTER_TAKEN},
        {"[{\"type\":\"Accepted\"},{\"type\":\"Accepted\",\"status\":\"True\","
         "\"observedGeneration\":3}]",
            CLUSTER_TAKEN},
        {"[{\"status\":\"True\",\"observedGeneration\":3}]", CLUSTER_KEPT},
        {"[{\"type\":\"Ready\",\"status\":\"True\",\"observedGeneration\":3}]", CLUSTER_KEPT},
        {"[{\"type\":\"Accepted\",\"status\":\"True\",\"observedGeneration\":4}]", CLUSTER_KEPT},
        {"[{\"type\":\"Accepted\",\"status\":\"True\"}]", CLUSTER_KEPT},
        {"[]", CLUSTER_KEPT},
    };
    char name[OBJECT_NAME_MAX + 1];
    json_t *object = NULL;
    json_t *given = resource(&node_kind, "default.n1", "7", SAID_STATUS, json_object());

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        (void)json_object_set_new(json_object_get(given, "status"), "conditions",
            json_loads(cases[i].conditions, 0, NULL));
        if (cluster_object(&node_kind, &self, given, &object, name) != cases[i].want)
            fail_msg("case %zu", i);
        json_decref(object);
        object = NULL;
    }
    /* Without generations there is nothing that the condition could be about. */
    (void)json_object_del(json_object_get(given, "metadata"), "generation");
    (void)json_object_set_new(json_object_get(given, "status"), "conditions",
        json_pack("[{s:s, s:s}]", "type", "Accepted", "status", "True"));
    assert_int_equal(cluster_object(&node_kind, &self, given, &object, name), CLUSTER_KEPT);
    json_decref(given);
}

/* Somebody edits what the hub has accepted: until the hub has judged it, it does not count. */
static void test_an_edit_waits_until_the_hub_has_accepted_it(void **state)
{
    char name[OBJECT_NAME_MAX + 1];
    json_t *object = NULL;
    json_t *given = resource(&mesh_edge_kind, "default.n1--n2", "7", SAID_THIS,
        json_pack("{s:[s, s]}", "nodes", "n1", "n2"));
    json_t *spec = json_object_get(given, "spec");

    /* A default that is written out changes nothing. */
    (void)json_object_set_new(spec, "path", json_string("auto"));
    assert_int_equal(cluster_object(&mesh_edge_kind, &self, given, &object, name), CLUSTER_TAKEN);
    json_decref(object);
    (void)json_object_set_new(spec, "path", json_string("off"));
    assert_int_equal(cluster_object(&mesh_edge_kind, &self, given, &object, name), CLUSTER_KEPT);
    json_decref(given);
}

static void test_an_edge_of_others(void **state)
{
    char name[OBJECT_NAME_MAX + 1];
    json_t *object = NULL;
    json_t *given = resource(&mesh_edge_kind, "default.n1--n3", "7", SAID_THIS,
        json_pack("{s:[s, s]}", "nodes", "n1", "n3"));

    static const char *const others[] = {"[]", "[7]", "[\"n1\", \"n3\"]", "\"n2\""};

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        (void)json_object_set_new(
            json_object_get(given, "spec"), "nodes", json_loads(others[i], JSON_DECODE_ANY, NULL));
        assert_int_equal(
            cluster_object(&mesh_edge_kind, &self, given, &object, name), CLUSTER_OTHER);
    }
    /* It is this node's when it is named, wherever. */
    (void)json_object_set_new(
        json_object_get(given, "spec"), "nodes", json_pack("[i, s]", 7, "n2"));
    assert_int_equal(cluster_object(&mesh_edge_kind, &self, given, &object, name), CLUSTER_KEPT);
    assert_null(object);
    json_decref(given);
}

static void test_versions(void **state)
{
    static const char too_bad[] =
        "the API server's answer has no resourceVersion of 1 to 40 letters and digits";
    static const struct {
        const char *text;
        bool is_good;
    } cases[] = {{"1", true}, {"aZ-_.9", true}, {"", false}, {"1/2", false}, {NULL, false},
        {"1234567890123456789012345678901234567890", true},
        {"12345678901234567890123456789012345678901", false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *page = json_pack("{s:{s:s*}}", "metadata", "resourceVersion", cases[i].text);
        char version[CLUSTER_VERSION_MAX + 1] = "before";
        struct err e = ERR_NULL;

        assert_int_equal(cluster_version(version, page, &e), cases[i].is_good ? 0 : -EINVAL);
        assert_string_equal(version, cases[i].is_good ? cases[i].text : "before");
        assert_string_equal(e.text, cases[i].is_good ? "" : too_bad);
        json_decref(page);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int decode(struct cluster_line *ret, const char *line, struct err *e)
{
    return cluster_line_decode(ret, &node_kind, &self, line, strlen(line), e);
}

static char *node_line(const char *type, unsigned i)
{
    struct object o = sample_node(i);
    json_t *object = object_encode(&o);
    json_t *spec = json_object_get(object, "spec");
    char hash[KUBE_SPEC_HASH_MAX];
    json_t *line;
    char *text;

    kube_spec_hash(hash, &node_kind, self.network, o.meta.name, spec);
    line = json_pack("{s:s, s:{s:{s:s+, s:s, s:{s:s, s:s}}, s:O}}", "type", type, "object",
        "metadata", "name", "default.", o.meta.name, "resourceVersion", "31", "annotations",
        KUBE_SPEC_REVISION, "50", KUBE_SPEC_ACCEPTED, hash, "spec", spec);
    text = json_dumps(line, JSON_COMPACT);

    json_decref(line);
    json_decref(object);
    object_deinit(&o);
    return text;
}

static void test_lines(void **state)
{
    struct cluster_line l = CLUSTER_LINE_NULL;
    struct err e = ERR_NULL;
    char *text = node_line("MODIFIED", 3);

    assert_int_equal(decode(&l, text, &e), 0);
    assert_int_equal(l.kind, CLUSTER_LINE_EVENT);
    assert_int_equal(l.event.kind, WATCH_EVENT_PUT);
    assert_int_equal(l.event.revision, 50);
    assert_string_equal(l.event.object.meta.name, "n3");
    assert_string_equal(l.version, "31");
    cluster_line_deinit(&l);
    free(text);

    text = node_line("DELETED", 3);
    assert_int_equal(decode(&l, text, &e), 0);
    assert_int_equal(l.event.kind, WATCH_EVENT_DELETE);
    assert_string_equal(l.event.deleted.name, "n3");
    assert_ptr_equal(l.event.deleted.kind, &node_kind);
    assert_int_equal(l.event.revision, 0);
    cluster_line_deinit(&l);
    assert_int_equal(l.kind, CLUSTER_LINE_NOTHING);
    free(text);

    text = node_line("ADDED", 3);
    assert_int_equal(decode(&l, text, &e), 0);
    assert_int_equal(l.event.kind, WATCH_EVENT_PUT);
    cluster_line_deinit(&l);
    free(text);

    /* One of a later version of the API. */
    text = node_line("MOVED", 3);
    assert_int_equal(decode(&l, text, &e), 0);
    assert_int_equal(l.kind, CLUSTER_LINE_NOTHING);
    assert_string_equal(l.version, "31");
    free(text);

    assert_int_equal(decode(&l,
                         "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":"
                         "{\"resourceVersion\":\"77\"}}}",
                         &e),
        0);
    assert_int_equal(l.kind, CLUSTER_LINE_NOTHING);
    assert_string_equal(l.version, "77");
    assert_int_equal(
        decode(&l, "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}", &e),
        0);
    assert_int_equal(l.kind, CLUSTER_LINE_OLD);
    assert_int_equal(
        decode(&l, "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"no\"}}", &e), 0);
    assert_int_equal(l.kind, CLUSTER_LINE_FAILED);
    assert_string_equal(err_text(&e), "the API server ends a watch with 500: no");
    e = (struct err)ERR_NULL;
    assert_int_equal(decode(&l, "{\"type\":\"ERROR\",\"object\":{\"code\":409}}", &e), 0);
    assert_int_equal(l.kind, CLUSTER_LINE_FAILED);
    assert_string_equal(err_text(&e), "the API server ends a watch with 409: ");
}

/* What the hub has not accepted, or has no more; a resource that somebody has deleted is gone,
 * whatever the hub has said of it. */
static void test_lines_about_what_does_not_count(void **state)
{
    static const struct {
        const char *type;
        const char *name;
        const char *revision;
        enum cluster_line_kind kind;
        enum watch_event_kind event;
    } cases[] = {
        {"MODIFIED", "default.n3", "7", CLUSTER_LINE_NOTHING, WATCH_EVENT_NONE},
        {"DELETED", "default.n3", "7", CLUSTER_LINE_EVENT, WATCH_EVENT_DELETE},
        {"MODIFIED", "default.n3", "none", CLUSTER_LINE_EVENT, WATCH_EVENT_DELETE},
        {"MODIFIED", "other.n3", "7", CLUSTER_LINE_NOTHING, WATCH_EVENT_NONE},
        {"DELETED", "other.n3", "7", CLUSTER_LINE_NOTHING, WATCH_EVENT_NONE},
        {"DELETED", "other.n3", "none", CLUSTER_LINE_NOTHING, WATCH_EVENT_NONE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct cluster_line l = CLUSTER_LINE_NULL;
        json_t *line = json_pack("{s:s, s:o}", "type", cases[i].type, "object",
            resource(&node_kind, cases[i].name, cases[i].revision, SAID_NOTHING, json_object()));
        char *text = json_dumps(line, JSON_COMPACT);

        assert_int_equal(decode(&l, text, NULL), 0);
        assert_int_equal(l.kind, cases[i].kind);
        assert_int_equal(l.event.kind, cases[i].event);
        assert_string_equal(l.version, "5");
        if (l.kind == CLUSTER_LINE_EVENT)
            assert_string_equal(l.event.deleted.name, "n3");
        cluster_line_deinit(&l);
        free(text);
        json_decref(line);
    }
}

static void test_bad_lines(void **state)
{
    static const char *const bad[] = {"", "[]", "{\"type\":\"ADDED\"}",
        "{\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}",
        "{\"type\":\"ADDED\",\"object\":{}}",
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1&x=2\"}}}"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct cluster_line l = {.version = "before"};
        struct err e = ERR_NULL;

        assert_int_equal(decode(&l, bad[i], &e), -EINVAL);
        assert_string_equal(l.version, "before");
        assert_int_equal(l.kind, CLUSTER_LINE_NOTHING);
        assert_int_equal(e.code, -EINVAL);
        assert_int_equal(strncmp(e.text,
                             i == 0  ? "a line of the API server's watch is not JSON"
                             : i < 4 ? "a line of the API server's watch has no type or no "
                                       "object"
                                     : "the API server's answer has no resourceVersion",
                             44),
            0);
    }
}

/* ---- two sources ----------------------------------------------------------------------------- */

static void set_report(struct node *n, uint32_t speed)
{
    for (unsigned c = 0; c < AEAD_CIPHER_N; c++)
        n->speeds.mb_per_s[c] = speed;
    json_decref(n->status);
    n->status = json_pack("{s:o}", "aead", node_speeds_encode(&n->speeds));
}

static void set_report_in(struct snapshot *s, const char *node, uint32_t speed)
{
    set_report((struct node *)snapshot_find_node(s, node), speed);
}

static uint32_t report_of(const struct snapshot *s, const char *node)
{
    return snapshot_find_node(s, node)->speeds.mb_per_s[0];
}

/* The hub knows of a node that the cluster does not have: it is no peer. */
static void test_the_hub_adds_nobody(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct snapshot hub = SNAPSHOT_NULL;
    struct watch_event ev = {.kind = WATCH_EVENT_SNAPSHOT, .snapshot = sample_snapshot(5, 2)};
    struct err e = ERR_NULL;
    bool has_changed;

    ev.snapshot.revision = 90;
    set_report_in(&ev.snapshot, "n3", 11);
    set_report_in(&ev.snapshot, "n4", 12);
    assert_int_equal(cluster_merge_hub(&s, &hub, &ev, &has_changed, &e), 0);
    assert_true(has_changed);
    assert_int_equal(s.nodes.n, 3);
    assert_null(snapshot_find_node(&s, "n4"));
    assert_int_equal(report_of(&s, "n3"), 11);
    assert_int_equal(s.revision, 90);

    ev = (struct watch_event){.kind = WATCH_EVENT_DELETE, .revision = 92};
    ev.deleted.kind = &node_kind;
    (void)snprintf(ev.deleted.name, sizeof(ev.deleted.name), "n3");
    assert_int_equal(cluster_merge_hub(&s, &hub, &ev, &has_changed, &e), 0);
    assert_false(has_changed);
    assert_non_null(snapshot_find_node(&s, "n3"));
    assert_int_equal(s.revision, 92);

    /* When the cluster has it, what the hub said before is not lost. */
    ev = (struct watch_event){.kind = WATCH_EVENT_PUT, .revision = 1, .object = sample_node(4)};
    cluster_merge_cluster(&s, &hub, &ev, NULL, true);
    assert_int_equal(watch_event_apply(&s, &ev, &e), 0);
    assert_int_equal(report_of(&s, "n4"), 12);
    /* Of one node it says nothing about another. */
    set_report_in(&s, "n2", 14);
    set_report_in(&hub, "n2", 15);
    for (unsigned again = 0; again < 2; again++) {
        ev =
            (struct watch_event){.kind = WATCH_EVENT_PUT, .revision = 93, .object = sample_node(4)};
        set_report(&ev.object.node, 13);
        assert_int_equal(cluster_merge_hub(&s, &hub, &ev, &has_changed, &e), 0);
        /* The same report again changes nothing. */
        assert_int_equal(has_changed, !again);
        assert_int_equal(report_of(&s, "n4"), 13);
        assert_int_equal(report_of(&s, "n2"), 14);
    }
    /* An edge is the cluster's to tell. */
    ev = (struct watch_event){
        .kind = WATCH_EVENT_PUT, .revision = 94, .object = sample_edge(2, 3, EDGE_PATH_OFF)};
    assert_int_equal(cluster_merge_hub(&s, &hub, &ev, &has_changed, &e), 0);
    assert_false(has_changed);
    assert_int_equal(s.edges.n, 0);
    assert_int_equal(report_of(&s, "n2"), 14);
    assert_int_equal(s.revision, 94);
    snapshot_deinit(&s);
    snapshot_deinit(&hub);
}

/* An event that does not fit changes nothing; nor does the hub's revision go back. */
static void test_what_the_hub_says_too_early(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct snapshot hub = SNAPSHOT_NULL;
    struct watch_event ev = {.kind = WATCH_EVENT_PUT, .revision = 90, .object = sample_node(3)};
    bool has_changed = true;

    s.boot = 5;
    assert_true(cluster_merge_hub(&s, &hub, &ev, &has_changed, NULL) < 0);
    assert_true(has_changed);
    assert_int_equal(s.boot, 5);
    assert_int_equal(s.revision, 40);
    ev = (struct watch_event){.kind = WATCH_EVENT_SNAPSHOT, .snapshot = sample_snapshot(3, 2)};
    ev.snapshot.revision = 39;
    ev.snapshot.boot = 6;
    assert_int_equal(cluster_merge_hub(&s, &hub, &ev, &has_changed, NULL), 0);
    assert_false(has_changed);
    assert_int_equal(s.boot, 6);
    assert_int_equal(s.revision, 40);
    assert_int_equal(hub.revision, 39);
    snapshot_deinit(&s);
    snapshot_deinit(&hub);
}

/* A node whose report comes with it keeps that; one without gets what was known of it. */
static void test_whose_report_counts(void **state)
{
    static const struct {
        uint32_t own;  /* the cluster's; 0: none */
        uint32_t hubs; /* 0: the hub has none */
        bool is_heard;
        uint32_t expected;
    } cases[] = {
        {0, 0, true, 7},
        {0, 0, false, 7},
        {9, 0, true, 9},
        {9, 0, false, 9},
        {9, 8, true, 8},
        {9, 8, false, 9},
        {0, 8, true, 8},
        {0, 8, false, 7},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct snapshot s = sample_snapshot(3, 2);
        struct snapshot hub = sample_snapshot(3, 2);
        struct watch_event ev = {.kind = WATCH_EVENT_PUT, .revision = 60, .object = sample_node(3)};

        set_report_in(&s, "n3", 7);
        if (cases[i].hubs)
            set_report_in(&hub, "n3", cases[i].hubs);
        if (cases[i].own)
            set_report(&ev.object.node, cases[i].own);
        cluster_merge_cluster(&s, &hub, &ev, NULL, cases[i].is_heard);
        assert_int_equal(ev.revision, 60);
        assert_int_equal(ev.object.node.speeds.mb_per_s[0], cases[i].expected);
        watch_event_deinit(&ev);
        snapshot_deinit(&s);
        snapshot_deinit(&hub);
    }
}

/* All kinds, and only those that there were. */
static void test_what_is_kept_of_before(void **state)
{
    struct snapshot s = sample_snapshot(5, 2);
    struct snapshot none = SNAPSHOT_NULL;
    struct watch_event ev = {.kind = WATCH_EVENT_SNAPSHOT, .snapshot = sample_snapshot(3, 2)};
    json_t *kept =
        json_pack("{s:[i, s, s, s], s:[s]}", "nodes", 7, "n9", "n4", "n5", "meshedges", "n2--n5");

    sample_put(&s, sample_edge(2, 4, EDGE_PATH_OFF));
    sample_put(&s, sample_edge(2, 5, EDGE_PATH_OFF));
    ev.snapshot.revision = 30;
    ev.revision = 30;
    cluster_merge_cluster(&s, &none, &ev, kept, false);
    assert_int_equal(ev.revision, 40);
    assert_int_equal(ev.snapshot.revision, 40);
    assert_int_equal(ev.snapshot.nodes.n, 5);
    assert_non_null(snapshot_find_node(&ev.snapshot, "n4"));
    assert_non_null(snapshot_find_node(&ev.snapshot, "n5"));
    assert_int_equal(ev.snapshot.edges.n, 1);
    assert_non_null(snapshot_find_edge(&ev.snapshot, "n2", "n5"));
    assert_int_equal(watch_event_apply(&s, &ev, NULL), 0);
    json_decref(kept);
    /* A list that is newer says so. */
    ev = (struct watch_event){.kind = WATCH_EVENT_SNAPSHOT, .snapshot = sample_snapshot(3, 2)};
    ev.snapshot.revision = 70;
    cluster_merge_cluster(&s, &none, &ev, NULL, false);
    assert_int_equal(ev.snapshot.revision, 70);
    assert_int_equal(ev.snapshot.nodes.n, 3);
    watch_event_deinit(&ev);
    snapshot_deinit(&s);
}

/* A list of the cluster: the hub's reports go before its own while the hub answers; objects of
 * which the hub has refused a change stay. */
static void test_a_list(void **state)
{
    for (int is_heard = 0; is_heard < 2; is_heard++) {
        struct snapshot s = sample_snapshot(4, 2);
        struct snapshot hub = sample_snapshot(4, 2);
        struct watch_event ev = {.kind = WATCH_EVENT_SNAPSHOT, .snapshot = sample_snapshot(3, 2)};
        json_t *kept = json_pack("{s:[s]}", "nodes", "n4");
        struct err e = ERR_NULL;

        s.boot = 5;
        set_report_in(&s, "n2", 1);
        set_report_in(&hub, "n3", 3);
        set_report_in(&ev.snapshot, "n3", 33);
        cluster_merge_cluster(&s, &hub, &ev, kept, is_heard);
        assert_int_equal(watch_event_apply(&s, &ev, &e), 0);
        assert_int_equal(s.boot, 5);
        assert_int_equal(s.nodes.n, 4);
        assert_non_null(snapshot_find_node(&s, "n4"));
        assert_int_equal(report_of(&s, "n2"), 1);
        assert_int_equal(report_of(&s, "n3"), is_heard ? 3 : 33);
        json_decref(kept);
        snapshot_deinit(&s);
        snapshot_deinit(&hub);
    }
}

/* A node of the same name with another key is another machine, whose reports nobody has. */
static void test_another_key(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct watch_event ev = {.kind = WATCH_EVENT_PUT, .revision = 1, .object = sample_node(3)};
    struct err e = ERR_NULL;

    set_report_in(&s, "n3", 3);
    ev.object.node.key.b[0] ^= 1;
    cluster_merge_cluster(&s, &s, &ev, NULL, true);
    assert_int_equal(ev.revision, s.revision);
    assert_int_equal(watch_event_apply(&s, &ev, &e), 0);
    assert_int_equal(report_of(&s, "n3"), 0);
    snapshot_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_counts),
        cmocka_unit_test(test_what_is_taken),
        cmocka_unit_test(test_the_longest_name),
        cmocka_unit_test(test_which_condition_counts),
        cmocka_unit_test(test_an_edit_waits_until_the_hub_has_accepted_it),
        cmocka_unit_test(test_an_edge_of_others),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_lines_about_what_does_not_count),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_the_hub_adds_nobody),
        cmocka_unit_test(test_what_the_hub_says_too_early),
        cmocka_unit_test(test_whose_report_counts),
        cmocka_unit_test(test_what_is_kept_of_before),
        cmocka_unit_test(test_a_list),
        cmocka_unit_test(test_another_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
