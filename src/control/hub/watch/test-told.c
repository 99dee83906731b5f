/*
 * test-told.c - what nodes report, as others are told it: the hub's administrators, by events and
 * lists, and the other nodes, by their watches. A whole hub in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "health/node.h"
#include "hub/overlay/overlay.h"
#include "hub/watch/edge_events.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "hub/watch/view.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/audience.h"

#define NET "/v1/networks/default"

static int enter(void **state)
{
    int r = audience_enter(state);

    /* Nodes that are added by their keys are stock WireGuards, which have no agent. */
    audience_node("a")->spec.stock = false;
    audience_node("b")->spec.stock = false;
    audience_node("c")->spec.stock = false;
    return r;
}

static void report_as(const char *name, int status, const char *body)
{
    json_t *json = NULL;
    int is;

    audience_hub.now += NSEC_PER_SEC;
    is = sample_hub_ask(
        &audience_hub, API_ACCESS_OVERLAY, audience_node(name), "PUT", "/v1/status", body, &json);
    if (is != status)
        fail_msg("%s: %d %s", body, is,
            json_string_value(json_object_get(json, "error")) ? "" : "without a sentence");
    json_decref(json);
}

static void report(const char *name, const char *body)
{
    report_as(name, 204, body);
}

/* Is that in the answer? */
static bool is_told(const char *path, const char *words)
{
    json_t *json = NULL;
    bool is_it;
    char *text;

    assert_int_equal(
        sample_hub_ask(&audience_hub, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &json), 200);
    text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    is_it = strstr(text, words) != NULL;
    free(text);
    json_decref(json);
    return is_it;
}

/* ---- events -----------------------------------------------------------------------------------
 */

/* The newest event is of that type, about that, and says so; and @n are there. */
static void expect_event(size_t n, const char *type, const char *object, const char *text)
{
    json_t *json = NULL;
    const json_t *last;
    size_t found;

    assert_int_equal(
        sample_hub_ask(&audience_hub, API_ACCESS_ADMIN, NULL, "GET", NET "/events", NULL, &json),
        200);
    found = json_array_size(json_object_get(json, "events"));
    assert_int_equal(found, n);
    last = json_array_get(json_object_get(json, "events"), found - 1);
    assert_string_equal(json_string_value(json_object_get(last, "type")), type);
    assert_string_equal(json_string_value(json_object_get(last, "object")), object);
    assert_string_equal(json_string_value(json_object_get(last, "text")), text);
    json_decref(json);
}

static void test_what_becomes_of_a_path(void **state)
{
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\"}}}");
    report("a", "{\"edges\":{\"b\":{\"path\":\"direct\"}}}");
    assert_false(is_told(NET "/events", "\"type\""));
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\"}}}");
    expect_event(1, "FellBack", "a--b", "a went from direct to relay on its way to b");
    assert_true(is_told(NET "/edges", "\"fellAt\""));
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\"}}}");
    expect_event(1, "FellBack", "a--b", "a went from direct to relay on its way to b");
    report("a", "{\"edges\":{\"b\":{\"path\":\"lan\"}}}");
    expect_event(2, "DirectAgain", "a--b", "a reaches b directly again");
    assert_false(is_told(NET "/edges", "\"fellAt\""));
    report("a", "{\"edges\":{\"b\":{\"path\":\"direct\"}}}");
    report("b", "{\"edges\":{\"a\":{\"path\":\"relay\"}}}");
    report("b", "{\"edges\":{\"a\":{\"path\":\"none\"}}}");
    expect_event(3, "NoPath", "a--b", "b has no path to a any more");
    report("b", "{\"edges\":{\"a\":{\"path\":\"none\"}}}");
    /* What another version calls a path is as if nothing was said of it. */
    report("b", "{\"edges\":{\"a\":{\"path\":\"pigeon\"}}}");
    expect_event(3, "NoPath", "a--b", "b has no path to a any more");
}

/* What is asked for is no loss: neither an event tells of it, nor the edge. */
static void test_a_relay_that_is_asked_for(void **state)
{
    static const char body[] = "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\"},"
                               "\"spec\":{\"nodes\":[\"a\",\"b\"],\"path\":\"relay\"}}";

    report("a", "{\"edges\":{\"b\":{\"path\":\"direct\"}}}");
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\"}}}");
    expect_event(1, "FellBack", "a--b", "a went from direct to relay on its way to b");
    assert_true(is_told(NET "/edges", "\"fellAt\""));
    assert_int_equal(sample_hub_ask(&audience_hub, API_ACCESS_ADMIN, NULL, "PUT",
                         NET "/objects/MeshEdge/a--b", body, NULL),
        200);
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\"}}}");
    assert_false(is_told(NET "/edges", "\"fellAt\""));
    report("a", "{\"edges\":{\"b\":{\"path\":\"direct\"}}}");
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\"}}}");
    expect_event(1, "FellBack", "a--b", "a went from direct to relay on its way to b");
}

static void test_what_cannot_be_applied(void **state)
{
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\",\"error\":\"no room\"}}}");
    expect_event(1, "Failing", "a--b", "a cannot apply it: no room");
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\",\"error\":\"no room\"}}}");
    expect_event(1, "Failing", "a--b", "a cannot apply it: no room");
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\",\"error\":\"no door\"}}}");
    expect_event(2, "Failing", "a--b", "a cannot apply it: no door");
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\"}}}");
    expect_event(3, "Applied", "a--b", "a has applied it");
    report("a", "{\"applied\":{\"revision\":7}}");
    expect_event(3, "Applied", "a--b", "a has applied it");
    report("a", "{\"applied\":{\"revision\":8,\"error\":\"no tun\"}}");
    expect_event(4, "Failing", "a", "its agent cannot apply revision 8: no tun");
    assert_true(is_told(NET "/edges", "\"error\":\"no tun\",\"revision\":8"));
    report("a", "{\"applied\":{\"revision\":9,\"error\":\"no tun\"}}");
    expect_event(4, "Failing", "a", "its agent cannot apply revision 8: no tun");
    report("a", "{\"applied\":{\"revision\":9}}");
    expect_event(5, "Applied", "a", "its agent applies what it is told again");
}

static void test_what_a_probe_finds(void **state)
{
    report("a", "{\"owner\":\"probe/a\",\"edges\":{\"b\":{\"tunnel\":\"reached\"}}}");
    assert_false(is_told(NET "/events", "\"type\""));
    report("a", "{\"owner\":\"probe/a\",\"edges\":{\"b\":{\"tunnel\":\"silent\"}}}");
    expect_event(1, "Unreached", "a--b", "b does not answer a through the tunnel");
    assert_int_equal(audience_node("a")->reported->counts.unreached, 1);
    report("a", "{\"owner\":\"probe/a\",\"edges\":{\"b\":{\"tunnel\":\"silent\"}}}");
    report("a", "{\"owner\":\"probe/a\",\"edges\":{\"b\":{\"tunnel\":\"reached\"}}}");
    expect_event(2, "ReachedAgain", "a--b", "b answers a again");
    report("a", "{\"owner\":\"probe/a\",\"edges\":{\"b\":{\"tunnel\":\"unknown\"}}}");
    report("a", "{\"owner\":\"probe/a\",\"edges\":{\"b\":{\"tunnel\":\"reached\"}}}");
    expect_event(2, "ReachedAgain", "a--b", "b answers a again");
    assert_true(is_told(NET "/objects/MeshEdge/a--b", "\"probe/a\":{\"observedAt\":\"20"));
    assert_true(is_told(NET "/objects/MeshEdge/a--b", "\"tunnel\":\"reached\""));
    /* A probe says nothing of the node, and nobody speaks for another one. */
    report_as("a", 400, "{\"owner\":\"probe/a\",\"node\":{}}");
    report_as("a", 403, "{\"owner\":\"probe/b\",\"edges\":{}}");
    report_as("a", 403, "{\"owner\":\"agent/b\",\"edges\":{}}");
    report("a", "{\"owner\":\"agent/a\",\"edges\":{}}");
}

/* ---- which edges there are --------------------------------------------------------------------
 */

/* A report that is whole replaces the one before; others add to it, and end it. */
static void test_parts_of_reports(void **state)
{
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\"},\"c\":{\"path\":\"relay\"}}}");
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 2);
    report("a", "{\"edges\":{\"c\":{\"path\":\"relay\"}}}");
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 1);
    report_as("a", 200,
        "{\"run\":5,\"number\":1,\"begins\":true,\"edges\":{\"b\":{\"path\":\"relay\"}}}");
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 2);
    report_as("a", 200, "{\"run\":5,\"number\":2,\"ends\":true,\"edges\":{}}");
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 1);
    report_as("a", 200, "{\"run\":5,\"number\":3,\"edges\":{\"c\":{\"path\":\"relay\"}}}");
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 2);
    report_as("a", 200, "{\"run\":5,\"number\":4,\"edges\":{\"c\":null}}");
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 1);
    report_as("a", 200, "{\"run\":5,\"number\":5,\"edges\":{\"c\":null}}");
    assert_int_equal(audience_hub.hub->reports.n_parts, 1);
    /* Of itself, and of who is no node of the network, it says nothing. */
    report_as("a", 200,
        "{\"run\":5,\"number\":6,\"edges\":{\"a\":{\"path\":\"relay\"},\"z\":{\"path\":\"relay\"}}"
        "}");
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 1);
    assert_int_equal(audience_hub.hub->reports.n_parts_left_out, 0);
    report_as("a", 409, "{\"run\":5,\"number\":9,\"edges\":{\"c\":{\"path\":\"relay\"}}}");
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 1);
}

/* A hub keeps so many, and counts the others. */
static void test_too_many_parts(void **state)
{
    audience_hub.hub->reports.n_parts = REPORTS_PARTS_MAX - 1;
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\"},\"c\":{\"path\":\"relay\"}}}");
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 1);
    assert_int_equal(audience_hub.hub->reports.n_parts_left_out, 1);
    /* One that is kept already may change. */
    report("a", "{\"edges\":{\"b\":{\"path\":\"direct\"}}}");
    assert_int_equal(audience_hub.hub->reports.n_parts_left_out, 1);
    assert_int_equal(audience_hub.hub->reports.n_parts, REPORTS_PARTS_MAX);
}

/* What troubles comes first; and how many there are of each state. */
static void test_the_list(void **state)
{
    json_t *json = NULL;
    const json_t *rows;

    report("a", "{\"edges\":{\"b\":{\"path\":\"direct\",\"handshakeAgeSeconds\":3},"
                "\"c\":{\"path\":\"none\"}},\"applied\":{\"revision\":3}}");
    report("b", "{\"edges\":{\"a\":{\"path\":\"direct\",\"handshakeAgeSeconds\":3}},"
                "\"applied\":{\"revision\":3}}");
    report("c", "{\"edges\":{\"a\":{\"path\":\"none\"}},\"applied\":{\"revision\":3}}");
    assert_int_equal(
        sample_hub_ask(&audience_hub, API_ACCESS_ADMIN, NULL, "GET", NET "/edges", NULL, &json),
        200);
    rows = json_object_get(json, "edges");
    assert_int_equal(json_array_size(rows), 2);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(rows, 0), "name")), "a--c");
    assert_true(json_is_true(json_object_get(json_array_get(rows, 0), "trouble")));
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(rows, 1), "name")), "a--b");
    assert_true(json_is_false(json_object_get(json_array_get(rows, 1), "trouble")));
    assert_int_equal(json_object_size(json_object_get(json, "counts")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "leftOut")), 0);
    json_decref(json);
    /* Each edge shows what holds for all edges of its ends. */
    assert_true(is_told(NET "/objects/MeshEdge/a--c", "\"agent/c\":{\"applied\":{"));
    assert_true(is_told(NET "/objects/MeshEdge/a--b", "\"path\":\"direct\""));
    assert_true(is_told(NET "/objects/MeshEdge", "\"name\":\"a--c\""));
}

/* Where an agent has never been heard, its edges are in the list all the same. */
static void test_edges_of_silent_agents(void **state)
{
    json_t *json = NULL;

    report("a", "{\"applied\":{\"revision\":3}}");
    report("b", "{\"applied\":{\"revision\":3}}");
    assert_int_equal(
        sample_hub_ask(&audience_hub, API_ACCESS_ADMIN, NULL, "GET", NET "/edges", NULL, &json),
        200);
    assert_int_equal(json_array_size(json_object_get(json, "edges")), 2);
    json_decref(json);
    assert_true(is_told(NET "/edges", "\"name\":\"a--c\""));
    assert_true(is_told(NET "/edges", "\"name\":\"b--c\""));
    assert_true(is_told(NET "/objects/MeshEdge", "\"items\":[]"));
    /* Nor when it has applied nothing, or cannot. */
    report("c", "{\"applied\":{\"revision\":0}}");
    assert_true(is_told(NET "/edges", "\"name\":\"a--c\""));
    report("c", "{\"applied\":{\"revision\":3,\"error\":\"no tun\"}}");
    assert_true(is_told(NET "/edges", "\"name\":\"a--c\""));
    report("c", "{\"applied\":{\"revision\":3}}");
    assert_false(is_told(NET "/edges", "\"name\":\"a--c\""));
}

/* How long an agent has been silent is counted from its last report. */
static void test_how_long_an_agent_is_silent(void **state)
{
    struct edge_pair pair = {.nodes = {audience_node("a"), audience_node("b")}};
    json_t *json;

    report("a", "{\"edges\":{\"b\":{\"path\":\"direct\"}},\"applied\":{\"revision\":3}}");
    report("b", "{\"edges\":{\"a\":{\"path\":\"direct\"}},\"applied\":{\"revision\":3}}");
    json = edge_view_status(&pair, audience_node("a")->reported->reported_at + 1);
    assert_string_not_equal(
        json_string_value(json_object_get(json_object_get(json, "hub"), "state")), "agent-silent");
    json_decref(json);
    json =
        edge_view_status(&pair, audience_node("a")->reported->reported_at + EDGE_SILENT_AFTER + 5);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json, "hub"), "state")), "agent-silent");
    json_decref(json);
}

/* ---- what other nodes are told ----------------------------------------------------------------
 */

/* Each of these is worth telling, also alone. */
static void test_what_others_are_told_of_a_node(void **state)
{
    static const char *const facts[][2] = {
        {"\"hostname\":\"box\"", "\"hostname\":\"box\""},
        {"\"candidates\":[{\"type\":\"host\",\"endpoint\":\"192.0.2.7:1\"}]", "192.0.2.7:1"},
        {"\"aead\":{\"aes256gcm\":700}", "\"aead\":{\"aes256gcm\":700}"},
        {"\"fabric\":{\"kind\":\"efa\"}", "\"kind\":\"efa\""},
    };

    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
        struct stream *s = audience_open("b");
        char body[256];
        char *text;

        (void)snprintf(body, sizeof(body), "{\"node\":{%s}}", facts[i][0]);
        report("a", body);
        assert_non_null(strstr(audience_take(s), facts[i][1]));
        /* It is no news the second time. */
        report("a", body);
        assert_string_equal(audience_take(s), "");
        audience_end(s);
        assert_true(is_told(NET "/nodes", facts[i][1]));
        text = view_snapshot_text(audience_node("b"));
        assert_non_null(strstr(text, facts[i][1]));
        free(text);
        audience_hub.now += 10 * NSEC_PER_SEC;
    }
    /* What is not said any more is not so any more. */
    assert_false(is_told(NET "/nodes", "\"hostname\":\"box\""));
    report(
        "a", "{\"node\":{\"routes\":[\"10.1.0.0/16\"],\"engine\":\"kernel\",\"version\":\"9\"}}");
    assert_true(is_told(NET "/nodes", "\"routes\":[\"10.1.0.0/16\"]"));
    assert_true(is_told(NET "/nodes", "\"engine\":\"kernel\""));
    assert_true(is_told(NET "/nodes", "\"version\":\"9\""));
    assert_false(is_told(NET "/nodes", "\"kind\":\"efa\""));
}

static void test_a_snapshot_says_of_when_it_is(void **state)
{
    struct snapshot s = SNAPSHOT_NULL;

    assert_true(view_lend_snapshot(audience_node("a"), &s));
    assert_int_equal(s.revision, store_revision(audience_hub.hub->store));
    view_return_snapshot(&s);
}

/* An edge is told to its two nodes, and to nobody else. */
static void test_edges_of_others(void **state)
{
    char *text;

    audience_set_edge("relay");
    text = view_snapshot_text(audience_node("a"));
    assert_non_null(strstr(text, "\"a--b\""));
    free(text);
    text = view_snapshot_text(audience_node("c"));
    assert_null(strstr(text, "\"a--b\""));
    free(text);
}

/* ---- records ----------------------------------------------------------------------------------
 */

static int count_one(void *ctx, const struct store_item *item)
{
    *(unsigned *)ctx += 1;
    return 0;
}

static unsigned count_reports(void)
{
    unsigned n = 0;

    assert_int_equal(
        store_now_list(audience_hub.hub->store, "report/default/", count_one, &n, NULL, NULL), 0);
    return n;
}

/* What is new is written soon, all at once, and not again. */
static void test_reports_are_written(void **state)
{
    struct reports *r = &audience_hub.hub->reports;
    struct err e = ERR_NULL;

    assert_int_equal(reports_flush(r, audience_hub.now, &e), 0);
    assert_int_equal(reports_tick(r, audience_hub.now, &e), 0);
    report("a", "{\"node\":{\"engine\":\"kernel\"}}");
    report("b", "{\"node\":{\"engine\":\"kernel\"}}");
    assert_true(audience_node("a")->reported->is_unsaved);
    audience_hub.now += REPORTS_FLUSH;
    assert_int_equal(reports_tick(r, audience_hub.now, &e), 0);
    assert_false(audience_node("a")->reported->is_unsaved);
    assert_int_equal(r->n_flushes, 1);
    store_wait(audience_hub.hub->store);
    assert_int_equal(r->n_flushes, 0);
    assert_true(count_reports() >= 2);
    report("a", "{\"node\":{\"engine\":\"kernel\"}}");
    assert_false(audience_node("a")->reported->is_unsaved);
    report("a", "{\"node\":{\"engine\":\"wt\"}}");
    assert_true(audience_node("a")->reported->is_unsaved);
    assert_int_equal(reports_tick(r, r->flushed_at + REPORTS_FLUSH - 1, &e), 0);
    assert_true(audience_node("a")->reported->is_unsaved);
    assert_int_equal(reports_flush(r, audience_hub.now, &e), 0);
    assert_false(audience_node("a")->reported->is_unsaved);
    /* What changes of an edge is worth a record. */
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\",\"handshakeAgeSeconds\":9}}}");
    assert_int_equal(reports_flush(r, audience_hub.now, &e), 0);
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\",\"handshakeAgeSeconds\":1}}}");
    assert_false(audience_node("a")->reported->is_unsaved);
    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\",\"alarm\":true}}}");
    assert_true(audience_node("a")->reported->is_unsaved);
    assert_int_equal(audience_node("a")->reported->counts.alarms, 1);
}

/* That an edge is gone is worth a record, and that nothing of it was known is not. */
static void test_edges_that_go_are_written(void **state)
{
    struct reports *r = &audience_hub.hub->reports;
    struct err e = ERR_NULL;

    report("a", "{\"edges\":{\"b\":{\"path\":\"relay\"},\"c\":{\"path\":\"relay\"}}}");
    report_as("a", 200, "{\"run\":5,\"number\":1,\"begins\":true,\"edges\":{}}");
    assert_int_equal(reports_flush(r, audience_hub.now, &e), 0);
    report_as("a", 200, "{\"run\":5,\"number\":2,\"edges\":{\"b\":null}}");
    assert_true(audience_node("a")->reported->is_unsaved);
    assert_int_equal(reports_flush(r, audience_hub.now, &e), 0);
    report_as("a", 200, "{\"run\":5,\"number\":3,\"edges\":{\"b\":null}}");
    assert_false(audience_node("a")->reported->is_unsaved);
    /* Nor is what stays away at the end of a report. */
    report_as("a", 200, "{\"run\":5,\"number\":4,\"ends\":true,\"edges\":{}}");
    assert_true(audience_node("a")->reported->is_unsaved);
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 0);
}

/* A store that has refused is tried with the hub's own record, where nothing else is to be written.
 */
static void test_a_store_is_tried(void **state)
{
    struct reports *r = &audience_hub.hub->reports;
    struct model_node *own = audience_node(audience_hub.hub->model.self);
    struct err e = ERR_NULL;

    assert_int_equal(reports_flush(r, audience_hub.now, &e), 0);
    report("a", "{\"node\":{\"engine\":\"kernel\"}}");
    assert_false(own->reported->is_unsaved);
    reports_try_store(r);
    assert_false(own->reported->is_unsaved);
    assert_int_equal(reports_flush(r, audience_hub.now, &e), 0);
    reports_try_store(r);
    assert_true(own->reported->is_unsaved);
    assert_int_equal(reports_flush(r, audience_hub.now, &e), 0);
    assert_false(own->reported->is_unsaved);
}

/* ---- who is there -----------------------------------------------------------------------------
 */

/* Each ten seconds; who has a watch open is there, and who was heard a moment ago. */
static void test_presence(void **state)
{
    struct reports *p = &audience_hub.hub->reports;
    struct model_node *a = audience_node("a");
    int64_t wall_s = 2000000000;
    struct stream *s;

    audience_hub.now += 60 * NSEC_PER_SEC;
    presence_tick(p, audience_hub.now, wall_s);
    a->reported->seen_at = 0;
    a->reported->heard.last_seen_at = 0;
    s = audience_open("a");
    a->reported->seen_at = 0;
    a->reported->heard.last_seen_at = 0;
    presence_tick(p, audience_hub.now + 10 * NSEC_PER_SEC - 1, wall_s + 10);
    assert_int_equal(a->reported->heard.last_seen_at, 0);
    audience_hub.now += 10 * NSEC_PER_SEC;
    presence_tick(p, audience_hub.now, wall_s + 10);
    assert_int_equal(a->reported->seen_at, audience_hub.now);
    assert_int_equal(a->reported->heard.last_seen_at, wall_s + 10);
    audience_end(s);
    /* It is not heard any more: that stays. */
    audience_hub.now += 30 * NSEC_PER_SEC;
    presence_tick(p, audience_hub.now, wall_s + 40);
    assert_int_equal(a->reported->heard.last_seen_at, wall_s + 10);
}

static void test_a_session_is_fresh_for_three_minutes(void **state)
{
    struct overlay_facts facts = {.handshake_at = 100 * NSEC_PER_SEC};

    assert_true(presence_has_session(&facts, 100 * NSEC_PER_SEC));
    assert_true(presence_has_session(&facts, 280 * NSEC_PER_SEC - 1));
    assert_false(presence_has_session(&facts, 280 * NSEC_PER_SEC));
    facts.handshake_at = 0;
    assert_false(presence_has_session(&facts, 1));
}

/* An agent that says nothing, and one that never did. */
static void test_agents_that_are_not_heard(void **state)
{
    struct reports *r = &audience_hub.hub->reports;
    struct model_node *a = audience_node("a");
    int64_t wall_s;

    report("a", "{\"applied\":{\"revision\":3}}");
    audience_node("b")->spec.stock = true;
    audience_node("c")->spec.stock = true;
    wall_s = a->reported->reported_at;
    r->started_at = wall_s - 10;
    audience_hub.now += 10 * NSEC_PER_SEC;
    reports_look(r, audience_hub.now, wall_s + 10);
    assert_false(is_told(NET "/events", "\"type\""));
    audience_hub.now += EDGE_SILENT_AFTER * NSEC_PER_SEC;
    reports_look(r, audience_hub.now, wall_s + 10 + EDGE_SILENT_AFTER);
    expect_event(1, "AgentSilent", "a", "its agent has not been heard for 90 s");
    audience_hub.now += 10 * NSEC_PER_SEC;
    reports_look(r, audience_hub.now, wall_s + 20 + EDGE_SILENT_AFTER);
    expect_event(1, "AgentSilent", "a", "its agent has not been heard for 90 s");
    a->reported->reported_at = a->reported->heard_here_at = wall_s + 29 + EDGE_SILENT_AFTER;
    audience_hub.now += 10 * NSEC_PER_SEC;
    reports_look(r, audience_hub.now, wall_s + 30 + EDGE_SILENT_AFTER);
    expect_event(2, "AgentHeard", "a", "its agent is heard again");
    audience_node("c")->spec.stock = false;
    audience_node("c")->reported->heard.last_seen_at = wall_s + 35;
    audience_hub.now += 4 * NSEC_PER_SEC;
    reports_look(r, audience_hub.now, wall_s + 34 + EDGE_SILENT_AFTER);
    expect_event(2, "AgentHeard", "a", "its agent is heard again");
    audience_hub.now += 10 * NSEC_PER_SEC;
    reports_look(r, audience_hub.now, wall_s + 44 + EDGE_SILENT_AFTER);
    expect_event(3, "NeverApplied", "c", "its agent has never been heard");
    audience_hub.now += 10 * NSEC_PER_SEC;
    reports_look(r, audience_hub.now, wall_s + 54 + EDGE_SILENT_AFTER);
    expect_event(3, "NeverApplied", "c", "its agent has never been heard");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_becomes_of_a_path, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_a_relay_that_is_asked_for, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_applied, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_what_a_probe_finds, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_parts_of_reports, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_too_many_parts, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_the_list, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_edges_of_silent_agents, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_how_long_an_agent_is_silent, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_what_others_are_told_of_a_node, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_a_snapshot_says_of_when_it_is, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_edges_of_others, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_reports_are_written, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_edges_that_go_are_written, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_a_store_is_tried, enter, audience_leave),
        cmocka_unit_test_setup_teardown(test_presence, enter, audience_leave),
        cmocka_unit_test(test_a_session_is_fresh_for_three_minutes),
        cmocka_unit_test_setup_teardown(test_agents_that_are_not_heard, enter, audience_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
