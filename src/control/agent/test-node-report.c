/* test-node-report.c - what a node reports of itself, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/node_report.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "mesh/object/subnets.h"
#include "path/paths.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC

static void test_when_it_is_due(void **state)
{
    static const struct {
        nsec_t after;
        bool edges_changed;
        bool self_changed;
        bool is_due;
    } cases[] = {
        {60 * SEC - 1, false, false, false},
        {60 * SEC, false, false, true},
        {5 * SEC - 1, true, false, false},
        {5 * SEC, true, false, true},
        {200 * MS - 1, false, true, false},
        {200 * MS, false, true, true},
        {200 * MS, true, false, false},
    };
    struct node_report never = {.sent_at = 0};

    assert_true(node_report_is_due(&never, 1));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct node_report nr = {.sent_at = 0};

        node_report_on_sent(&nr, 100 * SEC);
        if (cases[i].edges_changed)
            node_report_on_edges(&nr);
        if (cases[i].self_changed)
            node_report_on_self(&nr);
        assert_int_equal(
            node_report_has_news(&nr), cases[i].edges_changed || cases[i].self_changed);
        assert_true(node_report_within(&nr) == (cases[i].self_changed ? 200 * MS : NSEC_NEVER));
        if (node_report_is_due(&nr, 100 * SEC + cases[i].after) != cases[i].is_due)
            fail_msg("case %zu", i);
    }
}

static void test_sent_settles_what_changed(void **state)
{
    struct node_report nr = {.edges_changed = true, .self_changed = true};

    node_report_on_sent(&nr, 100 * SEC);
    assert_false(node_report_has_news(&nr));
    assert_false(node_report_is_due(&nr, 101 * SEC));
    /* The hub was away, and may have forgotten. */
    node_report_on_hub(&nr);
    assert_true(node_report_is_due(&nr, 101 * SEC));
}

static void test_hostname(void **state)
{
    char upper[] = "GPU-Box7";
    char own[] = "n2";
    char domain[] = "box.example.org";
    char empty[] = "";

    assert_true(node_report_hostname(upper, "n2"));
    assert_string_equal(upper, "gpu-box7");
    assert_false(node_report_hostname(own, "n2"));
    assert_false(node_report_hostname(domain, "n2"));
    assert_false(node_report_hostname(empty, "n2"));
}

/* n2 of four: a session with n3, none with n4. */
struct world {
    struct snapshot snapshot;
    struct observation seen[1];
    struct reach_peer reached[2];
    struct observe observe;
    struct reach reach;
    struct path_side self;
    struct subnets routes;
    struct node_speeds speeds;
    struct node_report_facts facts;
};

static struct world *make_world(void)
{
    static struct world w;

    w = (struct world){.snapshot = sample_snapshot(4, 2)};
    w.seen[0] = (struct observation){.key = sample_key(3), .handshake_at = 90 * SEC};
    w.observe = (struct observe){.items = w.seen, .n = 1};
    w.reached[0] = (struct reach_peer){.node = "n3", .kind = PATH_KIND_DIRECT};
    w.reached[1] = (struct reach_peer){.node = "n4", .kind = PATH_KIND_RELAY};
    w.reach = (struct reach){.items = w.reached, .n = 2};
    w.speeds.mb_per_s[0] = 1000;
    w.facts = (struct node_report_facts){.snapshot = &w.snapshot,
        .seen = &w.observe,
        .reach = &w.reach,
        .self = &w.self,
        .routes = &w.routes,
        .speeds = &w.speeds,
        .engine = ENGINE_KIND_USERSPACE,
        .now = 100 * SEC};
    return &w;
}

static json_t *get(const json_t *json, const char *first, const char *second)
{
    return json_object_get(json_object_get(json, first), second);
}

static void test_edges(void **state)
{
    struct world *w = make_world();
    json_t *json = node_report_encode(&w->facts);
    const json_t *edge = get(json, "edges", "n3");

    assert_string_equal(json_string_value(json_object_get(edge, "path")), "direct");
    assert_int_equal(json_integer_value(json_object_get(edge, "handshakeAgeSeconds")), 10);
    assert_null(json_object_get(edge, "alarm"));
    /* Nobody ever spoke there. */
    assert_null(get(json, "edges", "n4"));
    json_decref(json);
    /* But somebody should look at it. */
    w->reached[1].is_alarm = true;
    json = node_report_encode(&w->facts);
    edge = get(json, "edges", "n4");
    assert_true(json_is_true(json_object_get(edge, "alarm")));
    assert_true(json_is_null(json_object_get(edge, "handshakeAgeSeconds")));
    json_decref(json);
    snapshot_deinit(&w->snapshot);
}

static void test_node(void **state)
{
    struct world *w = make_world();
    json_t *json = node_report_encode(&w->facts);

    assert_string_equal(json_string_value(get(json, "node", "engine")), "userspace");
    assert_non_null(get(json, "node", "aead"));
    assert_null(get(json, "node", "hostname"));
    assert_null(get(json, "node", "routes"));
    json_decref(json);

    w->facts.engine = ENGINE_KIND_KERNEL;
    w->facts.hostname = "box7";
    assert_int_equal(subnets_parse(&w->routes, "10.9.0.0/24", NULL), 0);
    json = node_report_encode(&w->facts);
    assert_string_equal(json_string_value(get(json, "node", "engine")), "kernel");
    assert_null(get(json, "node", "aead"));
    assert_string_equal(json_string_value(get(json, "node", "hostname")), "box7");
    assert_int_equal(json_array_size(get(json, "node", "routes")), 1);
    json_decref(json);

    w->facts.engine = ENGINE_KIND_AUTO;
    json = node_report_encode(&w->facts);
    assert_string_equal(json_string_value(get(json, "node", "engine")), "");
    json_decref(json);
    snapshot_deinit(&w->snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_it_is_due),
        cmocka_unit_test(test_sent_settles_what_changed),
        cmocka_unit_test(test_hostname),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
