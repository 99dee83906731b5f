/* test-pair-history.c - how a pair has been: minutes, hours, and what has no point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/watch/pair_history.h"
#include "hub/watch/reports.h"
#include "test/support/audience.h"

/* The begin of an hour. */
#define WALL 1800000000

static const struct pair_point idle = {
    .loss0 = PAIR_POINT_NO_LOSS, .loss1 = PAIR_POINT_NO_LOSS, .state = EDGE_STATE_IDLE};

static struct pair_point direct(uint32_t rtt_us)
{
    struct pair_point p = idle;

    p.state = EDGE_STATE_DIRECT;
    p.rtt_us = rtt_us;
    return p;
}

static void put(struct pair_history *h, int64_t minute, struct pair_point p)
{
    pair_history_put(h, WALL + minute * 60 + 7, &p);
}

static void expect(const struct pair_history *h, int64_t minute, const char *list, size_t n)
{
    json_t *json = pair_history_encode(h, WALL + minute * 60 + 30);

    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, list)), n);
    json_decref(json);
}

static void expect_text(json_t *json, const char *expected)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));

    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static void test_points(void **state)
{
    struct pair_history h = {0};
    struct pair_point p = direct(1500);

    expect_text(pair_history_encode(&h, WALL), "{\"minutes\":[],\"hours\":[]}");
    p.jitter_us = 250;
    p.loss0 = 2500;
    p.rate_kib[1] = 2;
    put(&h, 0, p);
    put(&h, 0, idle); /* the same minute */
    put(&h, 2, idle);
    expect_text(pair_history_encode(&h, WALL + 150),
        "{\"minutes\":[{\"at\":1800000000,\"state\":\"direct\",\"rttMs\":1.5,"
        "\"jitterMs\":0.25,\"lossPercent\":[0.25,null],\"bytesPerSecond\":[0,2048]},{\"at\":"
        "1800000120,\"state\":\"idle\"}],\"hours\":[]}");
}

/* What is an hour old is no minute any more, also where nothing has come since. */
static void test_minutes(void **state)
{
    struct pair_history h = {0};

    for (int64_t i = 0; i < 90; i++)
        put(&h, i, idle);
    expect(&h, 89, "minutes", 60);
    expect(&h, 99, "minutes", 50);
    expect(&h, 149, "minutes", 0);
    put(&h, 100, idle);
    expect(&h, 100, "minutes", 50);
    put(&h, 1000, idle);
    expect(&h, 1000, "minutes", 1);
}

static void test_hours(void **state)
{
    struct pair_history h = {0};
    struct pair_point lossy = direct(3000);
    json_t *json;

    lossy.loss1 = 100;
    lossy.jitter_us = 500;
    lossy.rate_kib[0] = 10;
    put(&h, 57, direct(1000));
    put(&h, 58, lossy);
    put(&h, 59, idle);
    expect(&h, 59, "hours", 0);
    put(&h, 60, idle);
    json = pair_history_encode(&h, WALL + 3600);
    expect_text(json_incref(json_object_get(json, "hours")),
        "[{\"at\":1800000000,\"state\":\"direct\",\"rttMs\":2.0,\"jitterMs\":0.5,"
        "\"lossPercent\":[null,0.01],\"bytesPerSecond\":[10240,0]}]");
    json_decref(json);
    /* Hours without any point have none, and neither do minutes of the hour before. */
    put(&h, 60 * 5 + 10, direct(5000));
    put(&h, 60 * 6, idle);
    json = pair_history_encode(&h, WALL + 6 * 3600);
    assert_int_equal(json_array_size(json_object_get(json, "hours")), 3);
    expect_text(json_incref(json_array_get(json_object_get(json, "hours"), 2)),
        "{\"at\":1800018000,\"state\":\"direct\",\"rttMs\":5.0}");
    json_decref(json);
}

static void test_a_week(void **state)
{
    struct pair_history h = {0};

    for (int64_t i = 0; i <= 60 * 200; i += 30)
        put(&h, i, idle);
    expect(&h, 60 * 200, "hours", 168);
    expect(&h, 60 * 208, "hours", 160);
    put(&h, 60 * 2000, idle);
    expect(&h, 60 * 2000, "hours", 0);
}

static void test_a_clock_that_is_set_back(void **state)
{
    struct pair_history h = {0};

    for (int64_t i = 0; i < 70; i++)
        put(&h, i, idle);
    put(&h, 20, idle);
    expect(&h, 20, "minutes", 1);
    expect(&h, 20, "hours", 0);
}

/* ---- those of a network --------------------------------------------------------------------- */

static struct reports reports;

static int enter(void **state)
{
    int r = audience_enter(state);

    assert_int_equal(reports_flush(&audience_hub.hub->reports, NSEC_PER_SEC, NULL), 0);
    reports_init(&reports, audience_network()->model);
    return r;
}

static int leave(void **state)
{
    reports_deinit(&reports);
    return audience_leave(state);
}

static void say(const char *name, const char *text, int64_t wall_s)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;
    json_t *json = json_loads(text, 0, NULL);

    if (!json || report_decode(&rp, json, wall_s, &e) != 0)
        fail_msg("%s: %s", text, err_text(&e));
    json_decref(json);
    (void)reports_take(&reports, audience_node(name), &rp, wall_s);
}

static size_t minutes_of(const char *name, int64_t wall_s)
{
    struct edge_pair pair;
    json_t *json;
    size_t n;

    assert_true(edge_pair_find(&pair, audience_network(), name));
    json = pair_histories_show(&reports.histories, &pair, wall_s);
    assert_string_equal(json_string_value(json_object_get(json, "name")), "a--b");
    n = json_array_size(json_object_get(json, "minutes"));
    json_decref(json);
    return n;
}

/* A pair has a history from its first figure on, and until one of the two is gone. */
static void test_which_pairs(void **state)
{
    struct pair_histories *all = &reports.histories;

    say("a", "{\"edges\":{\"b\":{\"path\":\"direct\",\"handshakeAgeSeconds\":3}}}", WALL);
    pair_histories_pass(all, audience_network()->model, WALL);
    assert_int_equal(all->n, 0);
    assert_int_equal(minutes_of("a--b", WALL), 0);
    assert_int_equal(audience_node("a")->reported->heard.report.edges.n, 1);
    audience_node("a")->reported->heard.report.edges.items[0]->said.spread =
        (struct rtt_spread){.p50_us = 700, .p99_us = 900, .jitter_us = 10, .samples = 100};
    pair_histories_pass(all, audience_network()->model, WALL + 1);
    assert_int_equal(all->n, 0);
    pair_histories_pass(all, audience_network()->model, WALL + 60);
    assert_int_equal(all->n, 1);
    assert_int_equal(minutes_of("b--a", WALL + 60), 1);
    /* It has none any more, and goes on, for a week. */
    audience_node("a")->reported->heard.report.edges.items[0]->said.spread.samples = 0;
    pair_histories_pass(all, audience_network()->model, WALL + 120);
    assert_int_equal(minutes_of("a--b", WALL + 120), 2);
    pair_histories_pass(all, audience_network()->model, WALL + 8 * 86400);
    assert_int_equal(all->n, 0);
    audience_node("a")->reported->heard.report.edges.items[0]->said.spread.samples = 100;
    pair_histories_pass(all, audience_network()->model, WALL + 8 * 86400 + 60);
    assert_int_equal(all->n, 1);
    audience_remove("b");
    pair_histories_pass(all, audience_network()->model, WALL + 8 * 86400 + 120);
    assert_int_equal(all->n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_minutes),
        cmocka_unit_test(test_hours),
        cmocka_unit_test(test_a_week),
        cmocka_unit_test(test_a_clock_that_is_set_back),
        cmocka_unit_test_setup_teardown(test_which_pairs, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
