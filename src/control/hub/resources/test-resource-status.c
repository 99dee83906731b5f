/*
 * test-resource-status.c - what "kubectl get" shows of networks, nodes and edges: above all, when a
 * node is Ready.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "hub/resources/resource.h"
#include "test/support/sample_hub.h"

static struct sample_hub hub;

static int enter(void **state)
{
    hub = (struct sample_hub){.now = NSEC_PER_SEC};
    sample_hub_make_dir(&hub, false);
    sample_hub_open(&hub);
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    return 0;
}

static int leave(void **state)
{
    sample_hub_close(&hub);
    sample_hub_remove_dir(&hub);
    return 0;
}

static json_t *status(const struct object_kind *kind, const char *of)
{
    return resource_status(&hub.hub->model, kind, of);
}

/* "STATUS REASON: MESSAGE" of the condition. */
static void assert_ready(const char *of, const char *expected)
{
    json_t *json = status(&node_kind, of);
    const json_t *ready = json_array_get(json_object_get(json, "conditions"), 0);
    char said[200];

    assert_string_equal(json_string_value(json_object_get(ready, "type")), "Ready");
    (void)snprintf(said, sizeof(said), "%s %s: %s",
        json_string_value(json_object_get(ready, "status")),
        json_string_value(json_object_get(ready, "reason")),
        json_string_value(json_object_get(ready, "message")));
    assert_string_equal(said, expected);
    json_decref(json);
}

static void test_ready(void **state)
{
    struct model_node *a = sample_hub_node(&hub, "a");
    char *error = a->reported->heard.report.error;

    /* One that was added by its key has no agent. */
    assert_ready("default.a", "Unknown Stock: a WireGuard without an agent reports nothing");
    a->spec.stock = false;
    assert_ready("default.a", "Unknown NotReported: its agent has not reported yet");
    a->reported->reported_at = hub.now;
    assert_ready("default.a", "True Reported: ");
    a->reported->was_unapplied = true;
    assert_ready("default.a", "False NeverApplied: its agent has applied nothing yet");
    a->reported->heard.report.error = (char[]){"cannot open /dev/net/tun"};
    assert_ready("default.a", "False Failing: cannot open /dev/net/tun");
    /* Who is silent may be well or not; the last error is no news. */
    a->reported->was_silent = true;
    assert_ready("default.a", "False Silent: its agent has stopped to report");
    a->reported->heard.report.error = error;
    assert_ready("default.hub", "True Hub: ");
}

static void test_others(void **state)
{
    json_t *json = status(&network_kind, "default");

    /* The hub is one of them. */
    assert_int_equal(json_integer_value(json_object_get(json, "nodes")), 3);
    json_decref(json);
    json = status(&mesh_edge_kind, "default.a--b");
    assert_non_null(json);
    json_decref(json);
}

/* Of an edge, whose writers the hub does not hear any more, and since when. */
static void test_silent_writers(void **state)
{
    struct model_node *a = sample_hub_node(&hub, "a");
    json_t *json = status(&mesh_edge_kind, "default.a--b");
    const json_t *stale = json_array_get(json_object_get(json, "conditions"), 0);

    assert_string_equal(json_string_value(json_object_get(stale, "type")), "Stale");
    assert_int_equal(json_object_size(json_object_get(stale, "silent")), 0);
    json_decref(json);
    a->spec.stock = false;
    a->reported->heard.report.has_applied = true;
    a->reported->reported_at = 1800000000;
    a->reported->is_down = true;
    json = status(&mesh_edge_kind, "default.a--b");
    stale = json_array_get(json_object_get(json, "conditions"), 0);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(stale, "silent"), "agent/a")),
        1800000000);
    json_decref(json);
}

/* What is gone, and names that no resource of ours has. */
static void test_nothing(void **state)
{
    assert_null(status(&network_kind, "other"));
    assert_null(status(&node_kind, "default.c"));
    assert_null(status(&node_kind, "other.a"));
    assert_null(status(&node_kind, "a"));
    assert_null(status(&mesh_edge_kind, "default.a--c"));
    assert_null(status(&mesh_edge_kind, "default.a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ready, enter, leave),
        cmocka_unit_test_setup_teardown(test_others, enter, leave),
        cmocka_unit_test_setup_teardown(test_silent_writers, enter, leave),
        cmocka_unit_test_setup_teardown(test_nothing, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
