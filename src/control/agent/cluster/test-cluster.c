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
        {&node_kind, "default2.n1", "7", SAID_THIS, CLUSTER_OTHER},
        {&node_kind, "default.", "7", SAID_THIS, CLUSTER_OTHER},
        {&node_kind, "default", "7", SAID_THIS, CLUSTER_OTHER},
        {&network_kind, "default", "7", SAID_THIS, CLUSTER_TAKEN},
        {&network_kind, "default.n1", "7", SAID_THIS, CLUSTER_OTHER},
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
        json_decref(object);
        json_decref(given);
    }
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

    assert_int_equal(cluster_object(&mesh_edge_kind, &self, given, &object, name), CLUSTER_OTHER);
    json_decref(given);
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
    cluster_line_deinit(&l);
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
    assert_non_null(strstr(err_text(&e), "500: no"));
}

static void test_bad_lines(void **state)
{
    static const char *const bad[] = {"", "[]", "{\"type\":\"ADDED\"}",
        "{\"type\":\"ADDED\",\"object\":{}}",
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1&x=2\"}}}"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct cluster_line l = CLUSTER_LINE_NULL;
        struct err e = ERR_NULL;

        assert_int_equal(decode(&l, bad[i], &e), -EINVAL);
        assert_int_not_equal(e.code, 0);
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
    ev = (struct watch_event){.kind = WATCH_EVENT_PUT, .revision = 93, .object = sample_node(4)};
    set_report(&ev.object.node, 13);
    assert_int_equal(cluster_merge_hub(&s, &hub, &ev, &has_changed, &e), 0);
    assert_true(has_changed);
    assert_int_equal(report_of(&s, "n4"), 13);
    snapshot_deinit(&s);
    snapshot_deinit(&hub);
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
        cmocka_unit_test(test_an_edit_waits_until_the_hub_has_accepted_it),
        cmocka_unit_test(test_an_edge_of_others),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_the_hub_adds_nobody),
        cmocka_unit_test(test_a_list),
        cmocka_unit_test(test_another_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
