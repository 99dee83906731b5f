/*
 * test-node-facts.c - nodes as administrators see them in a list: where each is, and how it is
 * heard. A whole hub in this process, with a data half that has no interface.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "health/node.h"
#include "hub/handlers/handlers.h"
#include "hub/model/copies.h"
#include "hub/watch/reports.h"
#include "os/clock.h"
#include "test/support/sample_hub.h"
#include "test/support/sample_overlay.h"

static struct sample_hub hub;
static struct sample_overlay so;

static int begin(void **state)
{
    sample_hub_begin(&hub);
    sample_overlay_begin(&so, &hub);
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    return 0;
}

static int end(void **state)
{
    sample_hub_end(&hub);
    sample_overlay_end(&so);
    return 0;
}

/* What is told of the node beside its object. */
static void expect(const char *name, const char *expected)
{
    json_t *list = handlers_nodes(&hub.hub->handlers, sample_hub_network(&hub), hub.now);
    json_t *wanted = json_loads(expected, 0, NULL);
    json_t *node;
    size_t i;

    assert_non_null(wanted);
    json_array_foreach(json_object_get(list, "nodes"), i, node) {
        json_t *is = json_object();
        const char *key;
        json_t *value;
        char *text;

        if (strcmp(json_string_value(json_object_get(json_object_get(node, "metadata"), "name")),
                name) != 0) {
            json_decref(is);
            continue;
        }
        json_object_foreach(node, key, value)
            if (strcmp(key, "kind") != 0 && strcmp(key, "metadata") != 0 &&
                strcmp(key, "spec") != 0 && strcmp(key, "status") != 0)
                (void)json_object_set(is, key, value);
        text = json_dumps(is, JSON_COMPACT);
        if (!json_equal(is, wanted))
            fail_msg("%s is %s", name, text);
        free(text);
        json_decref(is);
    }
    json_decref(wanted);
    json_decref(list);
}

/* A packet of @name comes from @at; @handshake_at: monotonic; 0: it ends no handshake. */
static void hear(const char *name, const char *at, nsec_t handshake_at)
{
    struct udp_path path = {.ifindex = 0};

    assert_int_equal(endpoint_parse(&path.remote, at, NULL), 0);
    overlay__note_path(sample_hub_network(&hub)->served->overlay,
        &sample_hub_node(&hub, name)->spec.key, &path, handshake_at);
}

/* One is reachable while its session is fresh, or its watch is open. */
static void test_sessions(void **state)
{
    struct wg_peer peer = {
        .key = sample_hub_node(&hub, "a")->spec.key, .facts = {.rx_bytes = 10, .tx_bytes = 20}};

    so.engine.peer = &peer;
    expect("a", "{\"alarms\":0,\"reachable\":false,\"rxBytes\":10,\"txBytes\":20}");
    expect("hub", "{\"alarms\":0,\"reachable\":true}");
    hear("a", "192.0.2.7:4000", hub.now - 179 * NSEC_PER_SEC);
    expect("a", "{\"alarms\":0,\"reachable\":true,\"handshakeAgeSeconds\":179,"
                "\"endpoint\":\"192.0.2.7:4000\",\"inTls\":false,\"rxBytes\":10,\"txBytes\":20}");
    hear("a", "192.0.2.7:4000", hub.now - 180 * NSEC_PER_SEC);
    sample_hub_node(&hub, "a")->reported->counts.alarms = 3;
    expect("a", "{\"alarms\":3,\"reachable\":false,\"handshakeAgeSeconds\":180,"
                "\"endpoint\":\"192.0.2.7:4000\",\"inTls\":false,\"rxBytes\":10,\"txBytes\":20}");
    sample_hub_listen(&hub, sample_hub_node(&hub, "a"));
    expect("a", "{\"alarms\":3,\"reachable\":true,\"handshakeAgeSeconds\":180,"
                "\"endpoint\":\"192.0.2.7:4000\",\"inTls\":false,\"rxBytes\":10,\"txBytes\":20}");
    sample_hub_node(&hub, "a")->reported->counts.alarms = 0;
    /* The hub's end of a stream that has ended says nothing of where the node is. */
    hear("b", "127.87.0.1:4000", hub.now);
    expect("b", "{\"alarms\":0,\"reachable\":true,\"handshakeAgeSeconds\":0,\"rxBytes\":0,"
                "\"txBytes\":0}");
    so.engine.peer = NULL;
}

/* What its agent said of the machine's cores, as long as it is heard. */
static void test_cores(void **state)
{
    const struct model_node *b = sample_hub_node(&hub, "b");
    struct report rp = REPORT_NULL;

    rp.has_cpu = true;
    rp.cpu_percent = 42;
    (void)reports_take(&hub.hub->reports, b, &rp, clock_wall_s());
    expect("b", "{\"alarms\":0,\"reachable\":false,\"cpuPercent\":42,\"rxBytes\":0,\"txBytes\":0}");
    b->reported->is_down = true;
    expect("b", "{\"alarms\":0,\"reachable\":false,\"rxBytes\":0,\"txBytes\":0}");
    b->reported->is_down = false;
    b->reported->reported_at -= EDGE_SILENT_AFTER;
    expect("b", "{\"alarms\":0,\"reachable\":false,\"rxBytes\":0,\"txBytes\":0}");
}

/* Two machines that run as one node. */
static void test_copies(void **state)
{
    const struct model_node *a = sample_hub_node(&hub, "a");
    json_t *list;
    const json_t *node;

    for (unsigned i = 0; i < 4; i++) {
        struct report rp = REPORT_NULL;

        rp.run = 5 + i % 2;
        rp.number = 1;
        rp.begins = true;
        (void)reports_take(&hub.hub->reports, a, &rp, 1800000000);
    }
    assert_true(copies_are_there(&a->reported->copies));
    list = handlers_nodes(&hub.hub->handlers, sample_hub_network(&hub), hub.now);
    node = json_array_get(json_object_get(list, "nodes"), 0);
    assert_non_null(json_object_get(node, "copies"));
    assert_null(json_object_get(json_array_get(json_object_get(list, "nodes"), 1), "copies"));
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sessions, begin, end),
        cmocka_unit_test_setup_teardown(test_cores, begin, end),
        cmocka_unit_test_setup_teardown(test_copies, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
