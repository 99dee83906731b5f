/* test-access-view.c - sums of what rules let in and refused, and events of what was refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "base/text.h"
#include "hub/overlay/overlay.h"
#include "hub/watch/access_view.h"
#include "hub/watch/view.h"
#include "mesh/snapshot/snapshot.h"
#include "rules/access_rules.h"
#include "rules/access_table.h"
#include "test/support/audience.h"

#define WALL 1800000000

static struct access_view view;
static struct edge_events events;

static void ask(const char *method, const char *name, const char *body)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "/v1/networks/default/objects/Rule/%s", name);
    if (sample_hub_ask(&audience_hub, API_ACCESS_ADMIN, NULL, method, path, body, NULL) >= 300)
        fail_msg("%s %s was refused", method, path);
}

static int enter(void **state)
{
    int r = audience_enter(state);

    view = (struct access_view){.networks = KEYS_NULL};
    events = (struct edge_events){.n = 0};
    ask("PUT", "ssh",
        "{\"kind\":\"Rule\",\"metadata\":{\"name\":\"ssh\",\"network\":\"default\"},\"spec\":"
        "{\"from\":[\"members\"],\"to\":[\"node:a\"],\"allow\":[\"tcp/22\"]}}");
    return r;
}

static int leave(void **state)
{
    access_view_deinit(&view);
    edge_events_deinit(&events);
    return audience_leave(state);
}

static void say(const char *node, const char *rule, uint64_t passed, uint64_t refused)
{
    struct access_report r = {.n_rules = 1, .rules = {{.passed = passed, .refused = refused}}};

    (void)snprintf(r.rules[0].rule, sizeof(r.rules[0].rule), "%s", rule);
    access_view_take(&view, &events, audience_node(node), &r, WALL);
}

static void expect(const char *expected)
{
    json_t *json = access_view_encode(&view, audience_network());
    char *text = json_dumps(json, JSON_COMPACT);

    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static void test_sums(void **state)
{
    expect("{\"rules\":[{\"name\":\"ssh\",\"passed\":0,\"refused\":0}],\"refused\":0}");
    say("a", "ssh", 5, 1);
    say("b", "ssh", 2, 0);
    say("a", "ssh", 7, 1);
    say("a", "", 0, 3);
    expect("{\"rules\":[{\"name\":\"ssh\",\"passed\":9,\"refused\":1}],\"refused\":3}");
    /* What is said again changes nothing, and a's agent is started anew. */
    say("b", "ssh", 2, 0);
    say("a", "ssh", 4, 0);
    expect("{\"rules\":[{\"name\":\"ssh\",\"passed\":13,\"refused\":1}],\"refused\":3}");
    /* There is no such rule. */
    say("a", "other", 4, 0);
    expect("{\"rules\":[{\"name\":\"ssh\",\"passed\":13,\"refused\":1}],\"refused\":3}");
}

static void test_a_rule_that_is_removed(void **state)
{
    say("a", "ssh", 5, 1);
    ask("DELETE", "ssh", NULL);
    expect("{\"rules\":[],\"refused\":0}");
    access_view_look(&view, &events, audience_network()->model, WALL);
    ask("PUT", "ssh",
        "{\"kind\":\"Rule\",\"metadata\":{\"name\":\"ssh\",\"network\":\"default\"},\"spec\":"
        "{\"from\":[\"members\"],\"to\":[\"hub\"],\"allow\":[\"any\"]}}");
    expect("{\"rules\":[{\"name\":\"ssh\",\"passed\":0,\"refused\":0}],\"refused\":0}");
}

static void refuse(const char *from, const char *to, uint64_t packets, int64_t wall_s)
{
    struct access_report r = {.n_refused = 1, .refused = {{.packets = packets}}};

    (void)snprintf(r.refused[0].from, sizeof(r.refused[0].from), "%s", from);
    (void)snprintf(r.refused[0].to, sizeof(r.refused[0].to), "%s", to);
    (void)snprintf(r.refused[0].service, sizeof(r.refused[0].service), "tcp/2300");
    access_view_take(&view, &events, audience_node("b"), &r, wall_s);
}

static const char *said(const json_t *list, size_t i, const char *field)
{
    return json_string_value(json_object_get(json_array_get(list, i), field));
}

static void test_events(void **state)
{
    json_t *list;

    refuse("a", "b", 5, WALL);
    refuse("b", "10.9.0.7", 1, WALL);
    list = edge_events_encode(&events, "default");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(said(list, 0, "type"), "Refused");
    assert_string_equal(said(list, 0, "object"), "a--b");
    assert_string_equal(
        said(list, 0, "text"), "b refused 5 packets from a to b, tcp/2300: no rule allows them");
    assert_string_equal(said(list, 1, "object"), "b");
    assert_string_equal(said(list, 1, "text"),
        "b refused 1 packet from b to 10.9.0.7, tcp/2300: no rule allows it");
    json_decref(list);
}

static void test_events_are_few(void **state)
{
    json_t *list;

    for (unsigned i = 0; i < 10 * ACCESS_EVENTS_MAX; i++)
        refuse("a", "b", 5, WALL);
    assert_int_equal(events.n, ACCESS_EVENTS_MAX);
    access_view_look(&view, &events, audience_network()->model, WALL);
    assert_int_equal(events.n, ACCESS_EVENTS_MAX);
    access_view_look(&view, &events, audience_network()->model, WALL + 60);
    assert_int_equal(events.n, ACCESS_EVENTS_MAX + 1);
    list = edge_events_encode(&events, "default");
    assert_string_equal(said(list, ACCESS_EVENTS_MAX, "object"), "default");
    assert_non_null(strstr(said(list, ACCESS_EVENTS_MAX, "text"), "of 270 more pairs and ports"));
    json_decref(list);
    refuse("a", "b", 5, WALL + 61);
    assert_int_equal(events.n, ACCESS_EVENTS_MAX + 2);
}

/* The rule is about what comes to a. No node here has an agent, so the relay goes by pairs. */
static void test_pairs_without_agents(void **state)
{
    const struct model_node *a = audience_node("a");
    const struct model_node *b = audience_node("b");
    const struct model_node *c = audience_node("c");

    assert_true(overlay_may_relay(a, b));
    assert_true(overlay_may_relay(b, a));
    assert_false(overlay_may_relay(b, c));
    audience_node("c")->spec.stock = false;
    assert_true(overlay_may_relay(b, c));
    audience_node("c")->spec.stock = true;
    ask("DELETE", "ssh", NULL);
    assert_true(overlay_may_relay(b, c));
    audience_network()->spec.isolation = ISOLATION_STRICT;
    assert_false(overlay_may_relay(b, c));
}

/* What the hub lets in itself: its API, pings, and what rules say. */
static void test_the_hubs_own_end(void **state)
{
    const struct model_node *own = audience_network()->own;
    struct snapshot s = SNAPSHOT_NULL;
    struct str out = STR_NULL;
    char text[64];

    ask("PUT", "store",
        "{\"kind\":\"Rule\",\"metadata\":{\"name\":\"store\",\"network\":\"default\"},\"spec\":"
        "{\"from\":[\"node:b\"],\"to\":[\"hub\"],\"allow\":[\"tcp/2379\"]}}");
    assert_non_null(own);
    assert_true(view_lend_snapshot(own, &s));
    access_table_format(&out, "weft-default", &s, &(struct job_ports){.n = 0}, 1);
    view_return_snapshot(&s);
    (void)snprintf(text, sizeof(text), "tcp dport %u accept\n", own->spec.hub->api_port);
    assert_non_null(strstr(str_text(&out), text));
    assert_non_null(strstr(str_text(&out), "meta l4proto { icmp, ipv6-icmp } accept\n"));
    assert_non_null(strstr(str_text(&out), "tcp dport 2379-2379 counter name \"pass_store\""));
    assert_null(strstr(str_text(&out), "pass_ssh"));
    str_deinit(&out);
}

static void test_figures(void **state)
{
    struct metrics m = METRICS_NULL;
    char *text;

    say("a", "ssh", 5, 1);
    say("a", "", 0, 3);
    access_view_add_metrics(&view, audience_network(), &m);
    text = metrics_take(&m);
    assert_non_null(strstr(text, "weft_rule_passed_total{network=\"default\",rule=\"ssh\"} 5\n"));
    assert_non_null(strstr(text, "weft_rule_refused_total{network=\"default\",rule=\"ssh\"} 1\n"));
    assert_non_null(strstr(text, "weft_rule_refused_total{network=\"default\",rule=\"\"} 3\n"));
    free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        TEST(test_sums),
        TEST(test_a_rule_that_is_removed),
        TEST(test_events),
        TEST(test_events_are_few),
        TEST(test_pairs_without_agents),
        TEST(test_the_hubs_own_end),
        TEST(test_figures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
