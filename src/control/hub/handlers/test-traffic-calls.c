/*
 * test-traffic-calls.c - what administrators are told of what the edges have moved, the page for a
 * browser, and the metrics. A whole hub in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/server/server.h"
#include "base/err.h"
#include "hub/handlers/handlers.h"
#include "hub/jobs/jobs.h"
#include "hub/traffic/spending.h"
#include "hub/traffic/traffic_book.h"
#include "hub/traffic/traffic_read.h"
#include "page/page.h"
#include "store/store.h"
#include "test/support/failing_store.h"
#include "test/support/store_now.h"
#include "test/support/tellers.h"

#define NET "/v1/networks/default"
#define DAY "since=2026-11-23&until=2026-11-23"

/* The answer, a new reference. */
static json_t *get(const char *path, int status)
{
    json_t *json = NULL;
    int is;

    store_wait(tellers_hub.hub->store);
    is = sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &json);
    if (is != status) {
        char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

        fail_msg("%s: %d %s", path, is, text ? text : "");
    }
    return json;
}

static void expect_refusal(const char *path, int status, const char *sentence)
{
    json_t *json = get(path, status);

    assert_string_equal(json_string_value(json_object_get(json, "error")), sentence);
    json_decref(json);
}

static const char *text_at(const json_t *json, const char *key)
{
    return json_string_value(json_object_get(json, key));
}

static json_int_t number_at(const json_t *json, const char *key)
{
    return json_integer_value(json_object_get(json, key));
}

/* So many are in @list of the answer. */
static void expect_number(const char *path, const char *list, size_t n)
{
    json_t *json = get(path, 200);

    assert_int_equal(json_array_size(json_object_get(json, list)), n);
    json_decref(json);
}

/* ---- traffic ----------------------------------------------------------------------------------
 */

static void test_what_was_moved(void **state)
{
    const json_t *row;
    json_t *json;

    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    json = get(NET "/traffic?" DAY, 200);
    assert_string_equal(text_at(json, "network"), "default");
    assert_string_equal(text_at(json, "since"), "2026-11-23");
    assert_string_equal(text_at(json, "until"), "2026-11-23");
    assert_true(number_at(json, "keptDays") > 1);
    assert_int_equal(json_array_size(json_object_get(json, "rows")), 2);
    row = json_array_get(json_object_get(json, "rows"), 0);
    assert_string_equal(text_at(row, "day"), "2026-11-23");
    assert_string_equal(text_at(row, "from"), "a");
    assert_string_equal(text_at(row, "to"), "b");
    assert_string_equal(text_at(row, "job"), "llama");
    assert_string_equal(text_at(row, "path"), "direct");
    assert_string_equal(text_at(row, "word"), "both");
    assert_int_equal(number_at(row, "bytes"), 300);
    assert_int_equal(json_array_size(json_object_get(json, "disputes")), 0);
    assert_int_equal(number_at(json_object_get(json, "leftOut"), "rows"), 0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "hubs"), 0)), "hub");
    assert_null(json_object_get(json, "prices"));
    assert_null(json_object_get(json, "budgets"));
    json_decref(json);
}

/* One job, and nothing of the others. */
static void test_what_a_job_has_moved(void **state)
{
    json_t *json;

    tellers_tell("a", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":"
        "[{\"peer\":\"b\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":300,\"received\":10},"
        "{\"peer\":\"b\",\"path\":\"direct\",\"job\":\"other\",\"sent\":50,\"received\":0}]}");
    json = get(NET "/traffic?" DAY "&job=other", 200);
    assert_int_equal(json_array_size(json_object_get(json, "rows")), 1);
    assert_int_equal(number_at(json_array_get(json_object_get(json, "rows"), 0), "bytes"), 50);
    json_decref(json);
    expect_number(NET "/traffic?" DAY "&job=none", "rows", 0);
    json_decref(get(NET "/traffic?" DAY "&job=A_b", 400));
}

/* Where two ends differ about all of an edge, it is told whichever job is asked for: nobody knows
 * how much of it is a job's. */
static void test_disputes(void **state)
{
    const json_t *row;
    json_t *json;

    tellers_tell("a", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":[{\"peer\":\"b\",\"path\":\"direct\","
        "\"job\":\"llama\",\"sent\":900000000000,\"received\":10}]}");
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    json = get(NET "/traffic?" DAY, 200);
    assert_int_equal(json_array_size(json_object_get(json, "disputes")), 1);
    row = json_array_get(json_object_get(json, "disputes"), 0);
    assert_string_equal(text_at(row, "from"), "a");
    assert_string_equal(text_at(row, "to"), "b");
    assert_int_equal(number_at(row, "sent"), 900000000000);
    assert_int_equal(number_at(row, "received"), 300);
    assert_int_equal(number_at(row, "counted"), 330 + 65536 - 0);
    assert_string_equal(text_at(row, "day"), "2026-11-23");
    assert_null(json_object_get(row, "job"));
    json_decref(json);
    expect_number(NET "/traffic?" DAY "&job=none", "disputes", 1);
}

/* Two ends that agree about all of an edge, and not about how much of it is a job's. */
static void test_disputes_of_a_job(void **state)
{
    json_t *json;

    tellers_tell("a", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":["
        "{\"peer\":\"b\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":900000000000,"
        "\"received\":0},{\"peer\":\"b\",\"path\":\"direct\",\"sent\":300,\"received\":0}]}");
    tellers_tell("b", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":8,\"flows\":["
        "{\"peer\":\"a\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":0,\"received\":300},"
        "{\"peer\":\"a\",\"path\":\"direct\",\"sent\":0,\"received\":900000000000}]}");
    json = get(NET "/traffic?" DAY "&job=llama", 200);
    assert_int_equal(json_array_size(json_object_get(json, "disputes")), 1);
    assert_string_equal(
        text_at(json_array_get(json_object_get(json, "disputes"), 0), "job"), "llama");
    json_decref(json);
    expect_number(NET "/traffic?" DAY "&job=none", "disputes", 0);
}

/* Records as other hubs have written them. */
static void put_all(const struct store_op *ops, size_t n)
{
    assert_int_equal(
        store_now_commit(tellers_hub.hub->store, ops, n, tellers_hub.now, NULL, NULL, NULL), 0);
}

static char *record_text(const struct traffic *t)
{
    json_t *json = traffic_encode(t);
    char *text = json_dumps(json, JSON_COMPACT);

    json_decref(json);
    assert_non_null(text);
    return text;
}

/* What has no room is summed up. */
static void test_more_rows_than_there_is_room_for(void **state)
{
    struct store_op ops[51];
    char keys[51][64];
    char job[16];
    json_t *json;

    for (unsigned i = 0; i < 51; i++) {
        struct traffic t = {.day = TELLERS_DAY};

        for (unsigned k = 0; k < (i == 50 ? 3 : 400); k++) {
            (void)snprintf(job, sizeof(job), "j%03u", k);
            traffic_add(
                traffic_at(&t, 1 + k / 200, "gone", job, PATH_KIND_LAN), i == 50 ? 7 : 1, 0);
        }
        (void)snprintf(keys[i], sizeof(keys[i]), "traffic/default/2026-11-23/n%02u/far", i);
        ops[i] = (struct store_op){.kind = STORE_OP_PUT,
            .key = keys[i],
            .value = record_text(&t),
            .expect = STORE_EXPECT_ANY};
        traffic_deinit(&t);
    }
    put_all(ops, 51);
    json = get(NET "/traffic?" DAY, 200);
    assert_int_equal(json_array_size(json_object_get(json, "rows")), 20000);
    assert_int_equal(number_at(json_object_get(json, "leftOut"), "rows"), 3);
    assert_int_equal(number_at(json_object_get(json, "leftOut"), "bytes"), 21);
    json_decref(json);
    for (unsigned i = 0; i < 51; i++)
        free((char *)ops[i].value);
}

/* Of so many disputes it is told, and no more. */
static void test_more_disputes_than_there_is_room_for(void **state)
{
    static struct store_op ops[5 * (TRAFFIC_DISPUTES_MAX + 1)];
    static char keys[5 * (TRAFFIC_DISPUTES_MAX + 1)][64];
    char *said[5];
    size_t n = 0;

    for (unsigned day = 0; day < 5; day++) {
        struct traffic t = {.day = TELLERS_DAY - (int32_t)day};

        for (unsigned i = 0; i < TRAFFIC_DISPUTES_MAX; i++) {
            char name[8];

            (void)snprintf(name, sizeof(name), "n%03u", i);
            traffic_add(traffic_at(&t, 1, name, "", PATH_KIND_LAN), UINT64_C(1) << 40, 0);
            (void)snprintf(
                keys[n], sizeof(keys[n]), "traffic/default/2026-11-%u/%s/far", 23 - day, name);
            ops[n] = (struct store_op){.key = keys[n], .value = TELLERS_B_300};
            n++;
        }
        (void)snprintf(keys[n], sizeof(keys[n]), "traffic/default/2026-11-%u/a/far", 23 - day);
        said[day] = record_text(&t);
        ops[n] = (struct store_op){.key = keys[n], .value = said[day]};
        n++;
        traffic_deinit(&t);
    }
    for (size_t i = 0; i < n; i++) {
        ops[i].kind = STORE_OP_PUT;
        ops[i].expect = STORE_EXPECT_ANY;
    }
    put_all(ops, n);
    expect_number(NET "/traffic?since=2026-11-20&until=2026-11-23", "disputes", 1024);
    expect_number(NET "/traffic?since=2026-11-21&until=2026-11-23", "disputes", 768);
    expect_number(NET "/traffic?since=2026-11-19&until=2026-11-23", "disputes", 1024);
    for (unsigned day = 0; day < 5; day++)
        free(said[day]);
}

/* What cannot be read is said; nothing is made up. */
static void test_records_that_cannot_be_read(void **state)
{
    int status;

    store_wait(tellers_hub.hub->store);
    tellers_hub.may_fail = true;
    failing_store_begin(tellers_hub.hub->store, STORE_JOB_LIST);
    status = sample_hub_ask(
        &tellers_hub, API_ACCESS_ADMIN, NULL, "GET", NET "/traffic?" DAY, NULL, NULL);
    failing_store_end(tellers_hub.hub->store);
    assert_int_equal(status, 507);
    failing_store_set_full(tellers_hub.hub->store, true);
    status = sample_hub_ask(
        &tellers_hub, API_ACCESS_ADMIN, NULL, "GET", NET "/traffic?" DAY, NULL, NULL);
    failing_store_set_full(tellers_hub.hub->store, false);
    assert_int_equal(status, 503);
}

static void test_which_days(void **state)
{
    json_t *json;

    expect_refusal(NET "/traffic?since=2026-11-24&until=2026-11-23", 400,
        "since, 2026-11-24, is a later day than until, 2026-11-23");
    json_decref(get(NET "/traffic?since=yesterday", 400));
    json_decref(get(NET "/traffic?until=tomorrow", 400));
    json_decref(get("/v1/networks/none/traffic", 404));
    /* Without days it is today's. */
    json = get(NET "/traffic", 200);
    assert_string_equal(text_at(json, "since"), text_at(json, "until"));
    json_decref(json);
}

static void set_network(const char *field, const char *value)
{
    json_t *net = get(NET "/objects/Network/default", 200);
    char *body;

    (void)json_object_set_new(json_object_get(net, "spec"), field, json_loads(value, 0, NULL));
    body = json_dumps(net, 0);
    assert_int_equal(sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "PUT",
                         NET "/objects/Network/default", body, NULL),
        200);
    free(body);
    json_decref(net);
}

static void judge(void)
{
    store_wait(tellers_hub.hub->store);
    tellers_hub.now += SPENDING_EACH;
    /* The first time it is read. */
    for (unsigned i = 0; i < 2; i++) {
        spending_tick(
            &tellers_hub.hub->spending, tellers_hub.now, (int64_t)TELLERS_DAY * 86400 + 43200);
        store_wait(tellers_hub.hub->store);
    }
}

static void test_budgets_are_told(void **state)
{
    const json_t *budget;
    json_t *json;

    set_network("budgets", "[{\"bytesPerDay\":1000}]");
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    judge();
    json = get(NET "/traffic?" DAY, 200);
    assert_int_equal(json_array_size(json_object_get(json, "budgets")), 1);
    budget = json_array_get(json_object_get(json, "budgets"), 0);
    assert_int_equal(number_at(budget, "bytesPerDay"), 1000);
    assert_int_equal(number_at(budget, "bytes"), 310);
    assert_string_equal(text_at(budget, "level"), "low");
    json_decref(json);
}

static struct response get_raw(route_fn handle, const char *query)
{
    struct request rq = {.access = API_ACCESS_ADMIN,
        .now = tellers_hub.now,
        .query = query,
        .query_value = sample_hub_query_value};
    struct response rs = {0};

    (void)snprintf(rq.params[0], sizeof(rq.params[0]), "default");
    store_wait(tellers_hub.hub->store);
    handle(&tellers_hub.hub->handlers, &rq, &rs);
    if (rs.deferred) {
        struct deferred *d = rs.deferred;

        store_wait(tellers_hub.hub->store);
        assert_true(d->is_ready);
        rs = d->rs;
        d->rs = (struct response){0};
        d->on_closed(d);
    }
    return rs;
}

static void test_the_page(void **state)
{
    struct response rs = get_raw(handlers_page, NULL);

    assert_int_equal(rs.status, 200);
    assert_string_equal(rs.type, "text/html; charset=utf-8");
    assert_string_equal(rs.policy, PAGE_POLICY);
    assert_non_null(strstr(rs.text, "default"));
    assert_non_null(strstr(rs.text, "</html>"));
    response_deinit(&rs);
    rs = get_raw(handlers_page, "since=x\0");
    assert_int_equal(rs.status, 400);
    assert_null(rs.policy);
    response_deinit(&rs);
}

/* ---- metrics ----------------------------------------------------------------------------------
 */

static void expect_metric(const char *line)
{
    struct response rs = get_raw(handlers_metrics, NULL);
    char whole[256];

    (void)snprintf(whole, sizeof(whole), "\n%s\n", line);
    assert_string_equal(rs.type, "text/plain; version=0.0.4; charset=utf-8");
    if (!strstr(rs.text, whole)) {
        (void)fputs(rs.text, stderr);
        fail_msg("\"%s\" is not there", line);
    }
    response_deinit(&rs);
}

/* What the nodes of a network say, summed up. */
static void test_metrics_of_a_network(void **state)
{
    struct reported_node *a = tellers_node("a")->reported;
    struct reported_node *b = tellers_node("b")->reported;

    a->counts = (struct reported_counts){.alarms = 1, .fallen = 2, .failing = 3, .unreached = 4};
    b->counts =
        (struct reported_counts){.alarms = 10, .fallen = 20, .failing = 30, .unreached = 40};
    a->heard.report.error = strdup("no tun");
    a->counts.by_path[PATH_KIND_RELAY] = 5;
    b->counts.by_path[PATH_KIND_RELAY] = 6;
    b->was_unapplied = true;
    a->was_silent = b->was_silent = true;
    tellers_network()->sent_bytes[PATH_KIND_DIRECT] = 77;
    tellers_network()->sent_bytes[PATH_KIND_RELAY] = 78;
    expect_metric("weft_nodes{network=\"default\"} 3");
    expect_metric("weft_agents{network=\"default\"} 2");
    expect_metric("weft_agents_failing{network=\"default\"} 1");
    expect_metric("weft_agents_never_applied{network=\"default\"} 1");
    expect_metric("weft_agents_silent{network=\"default\"} 2");
    expect_metric("weft_path_alarms{network=\"default\"} 11");
    expect_metric("weft_edge_ends_fallen{network=\"default\"} 22");
    expect_metric("weft_edge_ends_failing{network=\"default\"} 33");
    expect_metric("weft_edge_ends_unreached{network=\"default\"} 44");
    expect_metric("weft_edge_ends{network=\"default\",path=\"relay\"} 11");
    expect_metric("weft_edge_ends{network=\"default\",path=\"direct\"} 0");
    expect_metric("weft_traffic_sent_bytes_total{network=\"default\",path=\"direct\"} 77");
    expect_metric("weft_traffic_sent_bytes_total{network=\"default\",path=\"relay\"} 78");
    a->counts = b->counts = (struct reported_counts){0};
    b->was_unapplied = a->was_silent = b->was_silent = false;
}

/* Each code has a count, and what is found a sample of its own. What a machine said that is down is
 * not counted. */
static void test_metrics_of_what_is_found(void **state)
{
    struct health *h = &tellers_hub.hub->reports.health;
    struct reported_node *a = tellers_node("a")->reported;
    struct findings *found = health_begin(h, "default", FINDING_OF_NODE, "a");

    assert_non_null(found);
    (void)findings_add(found, FINDING_NODE_DOWN, "a", 1, "It is down.");
    health_end(h, "default", "a", 1);
    a->counts = (struct reported_counts){.fallen = 2, .unreached = 4};
    a->counts.by_path[PATH_KIND_RELAY] = 5;
    a->is_down = true;
    expect_metric("weft_findings{network=\"default\",code=\"WEFT-NODE-001\","
                  "severity=\"critical\"} 1");
    expect_metric("weft_findings{network=\"default\",code=\"WEFT-COST-001\",severity=\"note\"} "
                  "0");
    expect_metric("weft_finding{network=\"default\",code=\"WEFT-NODE-001\","
                  "severity=\"critical\",subject=\"a\"} 1");
    expect_metric("weft_agents_silent{network=\"default\"} 1");
    expect_metric("weft_edge_ends_fallen{network=\"default\"} 0");
    expect_metric("weft_edge_ends_unreached{network=\"default\"} 0");
    expect_metric("weft_edge_ends{network=\"default\",path=\"relay\"} 0");
    a->is_down = false;
    expect_metric("weft_edge_ends_unreached{network=\"default\"} 4");
    a->is_probe_silent = true;
    expect_metric("weft_edge_ends_unreached{network=\"default\"} 0");
    a->is_probe_silent = false;
    a->counts = (struct reported_counts){0};
    (void)health_begin(h, "default", FINDING_OF_NODE, "a");
    health_end(h, "default", "a", 1);
    expect_metric("weft_findings{network=\"default\",code=\"WEFT-NODE-001\","
                  "severity=\"critical\"} 0");
}

static void test_metrics_of_a_budget(void **state)
{
    set_network("budgets", "[{\"bytesPerDay\":620}]");
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    judge();
    expect_metric("weft_budget_share{network=\"default\",job=\"\"} 0.5");
}

static void test_metrics_of_the_hub(void **state)
{
    struct hub *hub = tellers_hub.hub;
    static const char *const none[] = {"weft_api_connections_total",
        "weft_api_connections_refused_total", "weft_api_connections_cut_total",
        "weft_api_requests_total", "weft_api_connections", "weft_store_refuses",
        "weft_store_commits_refused_total", "weft_store_behind_seconds", "weft_store_relists_total",
        "weft_damaged_records", "weft_rendezvous_jobs", "weft_rendezvous_connections",
        "weft_rendezvous_store_requests_total", "weft_rendezvous_etcd_requests_total",
        "weft_rendezvous_hung_up_total", "weft_rendezvous_accepts_deferred_total",
        "weft_rendezvous_unsaved", "weft_rendezvous_commits_total",
        "weft_rendezvous_commits_failed_total", "weft_rendezvous_restarts_total"};
    static struct resource_counts shown;
    char line[128];

    hub->watcher.n_overrun = 2;
    hub->watcher.n_resumed = 3;
    hub->enrol.n_enrolled = 4;
    hub->enrol.n_refused = 5;
    hub->reports.n_parts = 6;
    hub->reports.n_parts_left_out = 7;
    hub->traffic.n_left_out = 8;
    hub->streams.rx_bytes = 9;
    hub->streams.tx_bytes = 10;
    expect_metric("weft_watch_overruns_total 2");
    expect_metric("weft_watches_resumed_total 3");
    expect_metric("weft_enrolments_total 4");
    expect_metric("weft_enrolments_refused_total 5");
    expect_metric("weft_edge_parts 6");
    expect_metric("weft_edge_parts_left_out_total 7");
    expect_metric("weft_traffic_left_out_total 8");
    expect_metric("weft_stream_bytes_total{direction=\"rx\"} 9");
    expect_metric("weft_stream_bytes_total{direction=\"tx\"} 10");
    expect_metric("weft_streams 0");
    expect_metric("weft_watches 0");
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        (void)snprintf(line, sizeof(line), "%s 0", none[i]);
        expect_metric(line);
    }
    hub->store->refused_since = 1;
    hub->store->n_refused = 17;
    expect_metric("weft_store_refuses 1");
    expect_metric("weft_store_commits_refused_total 17");
    hub->store->refused_since = 0;
    hub->reports.events.counts[EDGE_EVENT_SILENT] = 18;
    expect_metric("weft_edge_events_total{type=\"AgentSilent\"} 18");
    expect_metric("weft_edge_events_total{type=\"NodeCopiedNoMore\"} 0");
    (void)snprintf(line, sizeof(line), "weft_store_revision %llu",
        (unsigned long long)store_revision(hub->store));
    expect_metric(line);
    hub->reports.n_parts = 0;
    /* Where it shows resources. */
    shown.is_leading = true;
    shown.n_applied = 11;
    shown.n_status = 12;
    shown.n_failed = 13;
    shown.n_requests = 14;
    shown.n_refused = 15;
    shown.n_conflicts = 16;
    hub->handlers.resources = &shown;
    expect_metric("weft_kubernetes_leading 1");
    expect_metric("weft_kubernetes_applied_total 11");
    expect_metric("weft_kubernetes_status_total 12");
    expect_metric("weft_kubernetes_failed_total 13");
    expect_metric("weft_kubernetes_wishes_total 14");
    expect_metric("weft_kubernetes_refused_total 15");
    expect_metric("weft_kubernetes_conflicts_total 16");
    hub->handlers.resources = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_moved, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_what_a_job_has_moved, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_disputes, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_disputes_of_a_job, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(
            test_more_rows_than_there_is_room_for, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(
            test_more_disputes_than_there_is_room_for, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(
            test_records_that_cannot_be_read, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_which_days, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_budgets_are_told, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_the_page, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_metrics_of_a_network, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(
            test_metrics_of_what_is_found, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_metrics_of_a_budget, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_metrics_of_the_hub, tellers_enter, tellers_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
