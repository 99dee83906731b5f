/* test-probe-report.c - what a probe reports, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "monitor/probe_report.h"

#define SEC NSEC_PER_SEC

/* The random number with which a wait is neither shortened nor lengthened. */
#define MIDDLE (UINT32_MAX / 2 + 1)

static struct probe_edge edge(const char *peer, enum edge_reach tunnel, uint32_t rtt_us)
{
    struct probe_edge e = {.probed = {.tunnel = (uint8_t)tunnel, .rtt_us = rtt_us}};

    (void)snprintf(e.head.peer, sizeof(e.head.peer), "%s", peer);
    return e;
}

/* Insists that a report is due whose JSON is @expected. */
static void assert_report(struct probe_report *pr, const struct probe_edge *edges, size_t n,
    nsec_t now, const char *expected)
{
    json_t *body = probe_report_make(pr, "a", edges, n, now);
    json_t *wanted = json_loads(expected, 0, NULL);

    assert_non_null(body);
    assert_non_null(wanted);
    if (!json_equal(body, wanted))
        fail_msg("%s", json_dumps(body, JSON_SORT_KEYS));
    json_decref(body);
    json_decref(wanted);
}

static void assert_none(
    struct probe_report *pr, const struct probe_edge *edges, size_t n, nsec_t now)
{
    assert_null(probe_report_make(pr, "a", edges, n, now));
}

/* The first report, without edges, and its answer. */
static void greet(struct probe_report *pr, const struct probe_edge *edges, size_t n, nsec_t now)
{
    assert_report(pr, edges, n, now,
        "{\"run\": 7, \"number\": 1, \"begins\": true, \"owner\": \"probe/a\", "
        "\"everySeconds\": 10}");
    probe_report_on_result(pr, EDGE_REPORT_TAKEN, MIDDLE, now);
}

/* An older hub would take a probe's edges for the agent's, so it gets none. */
static void test_an_older_hub(void **state)
{
    struct probe_edge edges[] = {edge("b", EDGE_REACH_REACHED, 1000)};
    struct probe_report pr;
    nsec_t now = 100 * SEC;

    probe_report_init(&pr, 7);
    for (unsigned i = 0; i < 2; i++) {
        json_t *body = probe_report_make(&pr, "a", edges, 1, now);

        assert_non_null(body);
        assert_null(json_object_get(body, "edges"));
        json_decref(body);
        probe_report_on_result(&pr, EDGE_REPORT_OLD, MIDDLE, now);
        assert_none(&pr, edges, 1, now + 3599 * SEC);
        now += 3600 * SEC;
    }
    probe_report_deinit(&pr);
}

static void test_only_what_differs(void **state)
{
    struct probe_edge edges[] = {
        edge("b", EDGE_REACH_REACHED, 1000), edge("c", EDGE_REACH_SILENT, 0)};
    struct probe_report pr;
    nsec_t now = 100 * SEC;

    probe_report_init(&pr, 7);
    greet(&pr, edges, 2, now);
    assert_report(&pr, edges, 2, now,
        "{\"run\": 7, \"number\": 2, \"begins\": true, \"ends\": true, \"owner\": \"probe/a\", "
        "\"everySeconds\": 10, \"edges\": {\"b\": {\"tunnel\": \"reached\", \"tunnelRttMs\": 1.0, "
        "\"underlay\": "
        "\"unknown\"}, \"c\": {\"tunnel\": \"silent\", \"underlay\": \"unknown\"}}}");
    /* One at a time. */
    assert_none(&pr, edges, 2, now);
    probe_report_on_result(&pr, EDGE_REPORT_TAKEN, MIDDLE, now);
    /* Nothing differs, and a round trip that wavers is the same. */
    edges[0].probed.rtt_us = 4000;
    assert_none(&pr, edges, 2, now + 5 * SEC);
    edges[1].probed.underlay = EDGE_REACH_REACHED;
    edges[1].probed.is_heard = true;
    assert_none(&pr, edges, 2, now + 5 * SEC - 1);
    assert_report(&pr, edges, 2, now + 5 * SEC,
        "{\"run\": 7, \"number\": 3, \"owner\": \"probe/a\", \"everySeconds\": 10, "
        "\"edges\": {\"c\": {\"tunnel\": "
        "\"silent\", \"underlay\": \"reached\", \"underlayHeard\": true}}}");
    probe_report_on_result(&pr, EDGE_REPORT_TAKEN, MIDDLE, now);
    /* The member is gone. */
    assert_report(&pr, &edges[1], 1, now + 6 * SEC,
        "{\"run\": 7, \"number\": 4, \"owner\": \"probe/a\", \"everySeconds\": 10, "
        "\"edges\": {\"b\": null}}");
    probe_report_on_result(&pr, EDGE_REPORT_TAKEN, MIDDLE, now);
    assert_none(&pr, &edges[1], 1, now + 9 * SEC);
    probe_report_deinit(&pr);
}

/* Where nothing differs the hub is told all the same that the probe runs: each ten seconds, and of
 * many members once in the time in which each of them is asked. */
static void test_a_sign_of_life(void **state)
{
    static struct probe_edge many[2000];
    struct probe_edge edges[] = {edge("b", EDGE_REACH_REACHED, 1000)};
    struct probe_report pr;
    nsec_t now = 100 * SEC;
    json_t *body;

    probe_report_init(&pr, 7);
    greet(&pr, edges, 1, now);
    json_decref(probe_report_make(&pr, "a", edges, 1, now));
    probe_report_on_result(&pr, EDGE_REPORT_TAKEN, MIDDLE, now);
    assert_none(&pr, edges, 1, now + 10 * SEC - 1);
    assert_report(&pr, edges, 1, now + 10 * SEC,
        "{\"run\": 7, \"number\": 3, \"owner\": \"probe/a\", \"everySeconds\": 10, "
        "\"edges\": {}}");
    /* One that is lost is made again soon. */
    probe_report_on_result(&pr, EDGE_REPORT_LOST, MIDDLE, now + 10 * SEC);
    assert_none(&pr, edges, 1, now + 15 * SEC - 1);
    body = probe_report_make(&pr, "a", edges, 1, now + 15 * SEC);
    assert_int_equal(json_integer_value(json_object_get(body, "number")), 3);
    json_decref(body);
    probe_report_on_result(&pr, EDGE_REPORT_TAKEN, MIDDLE, now + 15 * SEC);
    assert_none(&pr, edges, 1, now + 25 * SEC - 1);
    probe_report_deinit(&pr);

    probe_report_init(&pr, 7);
    for (unsigned i = 0; i < 2000; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "n%04u", i);
        many[i] = edge(name, EDGE_REACH_REACHED, 1000);
    }
    body = probe_report_make(&pr, "a", many, 2000, now);
    assert_int_equal(json_integer_value(json_object_get(body, "everySeconds")), 20);
    json_decref(body);
    probe_report_deinit(&pr);
}

/* What was lost is said again, later and later; the hub may ask for everything. */
static void test_reports_that_are_not_taken(void **state)
{
    static const int waits_s[] = {5, 10, 20, 40, 60, 60};
    struct probe_edge edges[] = {edge("b", EDGE_REACH_REACHED, 1000)};
    struct probe_report pr;
    nsec_t now = 100 * SEC;

    probe_report_init(&pr, 7);
    greet(&pr, edges, 1, now);
    for (unsigned i = 0; i < sizeof(waits_s) / sizeof(*waits_s); i++) {
        json_t *body = probe_report_make(&pr, "a", edges, 1, now);

        assert_non_null(json_object_get(json_object_get(body, "edges"), "b"));
        assert_int_equal(json_integer_value(json_object_get(body, "number")), 2);
        json_decref(body);
        probe_report_on_result(&pr, EDGE_REPORT_LOST, MIDDLE, now);
        assert_int_equal(pr.due_at - now, waits_s[i] * SEC);
        now = pr.due_at;
    }
    json_decref(probe_report_make(&pr, "a", edges, 1, now));
    probe_report_on_result(&pr, EDGE_REPORT_TAKEN, MIDDLE, now);
    edges[0].probed.tunnel = EDGE_REACH_SILENT;
    json_decref(probe_report_make(&pr, "a", edges, 1, pr.due_at));
    probe_report_on_result(&pr, EDGE_REPORT_AGAIN, MIDDLE, now);
    assert_report(&pr, edges, 1, pr.due_at,
        "{\"run\": 7, \"number\": 3, \"begins\": true, \"ends\": true, \"owner\": \"probe/a\", "
        "\"everySeconds\": 10, \"edges\": {\"b\": {\"tunnel\": \"silent\", \"tunnelRttMs\": 1.0, "
        "\"underlay\": "
        "\"unknown\"}}}");
    probe_report_deinit(&pr);
}

/* Thousands of edges take several reports, of which the last one says that it is. */
static void test_many_edges(void **state)
{
    static struct probe_edge edges[400];
    struct probe_report pr;
    nsec_t now = 100 * SEC;
    size_t n = 0;

    for (unsigned i = 0; i < 400; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "n%03u", i);
        edges[i] = edge(name, EDGE_REACH_REACHED, 1000);
    }
    probe_report_init(&pr, 7);
    greet(&pr, edges, 400, now);
    for (unsigned i = 0; i < 3; i++) {
        json_t *body = probe_report_make(&pr, "a", edges, 400, now);

        assert_int_equal(json_is_true(json_object_get(body, "begins")), i == 0);
        assert_int_equal(json_is_true(json_object_get(body, "ends")), i == 2);
        n += json_object_size(json_object_get(body, "edges"));
        json_decref(body);
        probe_report_on_result(&pr, EDGE_REPORT_TAKEN, MIDDLE, now);
        now = pr.due_at;
    }
    assert_int_equal(n, 400);
    assert_none(&pr, edges, 400, now);
    probe_report_deinit(&pr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_older_hub),
        cmocka_unit_test(test_only_what_differs),
        cmocka_unit_test(test_a_sign_of_life),
        cmocka_unit_test(test_reports_that_are_not_taken),
        cmocka_unit_test(test_many_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
