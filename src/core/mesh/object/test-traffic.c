/* test-traffic.c - days, and sums that come twice, in parts, or from two meters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/object/traffic.h"

static void test_days(void **state)
{
    char text[TRAFFIC_DAY_TEXT_MAX];
    char libc[32];
    int32_t day;

    assert_int_equal(traffic_day(-1), 0);
    assert_int_equal(traffic_day(0), 0);
    assert_int_equal(traffic_day(86399), 0);
    assert_int_equal(traffic_day((int64_t)TRAFFIC_DAY_MAX * 86400), TRAFFIC_DAY_MAX);
    assert_int_equal(traffic_day(((int64_t)TRAFFIC_DAY_MAX + 1) * 86400), TRAFFIC_DAY_MAX);
    assert_int_equal(traffic_day(INT64_MAX), TRAFFIC_DAY_MAX);
    assert_int_equal(traffic_day(86400), 1);
    assert_int_equal(traffic_day(1795392000 - 1), 20779);
    assert_int_equal(traffic_day(1795392000), 20780);
    /* Every day of 200 years, and the last ones, against the C library. */
    for (int32_t d = 0; d <= TRAFFIC_DAY_MAX; d = d == 73000 ? TRAFFIC_DAY_MAX - 800 : d + 1) {
        time_t at = (time_t)d * 86400;
        struct tm tm;

        assert_non_null(gmtime_r(&at, &tm));
        (void)strftime(libc, sizeof(libc), "%Y-%m-%d", &tm);
        assert_string_equal(traffic_day_format(d, text), libc);
        assert_int_equal(traffic_day_parse(&day, text, NULL), 0);
        assert_int_equal(day, d);
    }
}

static void test_no_days(void **state)
{
    static const char *const cases[] = {"", "2026-11-31", "2023-02-29", "2026-13-01", "2026-00-01",
        "2026-01-00", "1969-12-31", "10000-01-1", "2026-11.23", "2026.11-23", "/026-11-23",
        ":026-11-23", "2026-11-233", "2026-1-01", "20261101", "2026-11-2x", "2026-0:-01",
        "202/-11-23", "\x7f\x7f\x7f\x7f-11-23", "2026-11-\x80\x80",
        "\xff\xff\xff\xff-\xff\xff-\xff\xff", "today"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        int32_t day = 7;
        char says[80];

        assert_int_equal(traffic_day_parse(&day, cases[i], &e), -EINVAL);
        assert_int_equal(day, 7);
        (void)snprintf(
            says, sizeof(says), "\"%s\" is no day such as 2026-11-23, from 1970 to 9999", cases[i]);
        text_make_plain(says, '?');
        assert_string_equal(e.text, says);
    }
}

static struct traffic_flow *flow_find(
    const struct traffic *t, uint64_t meter, const char *peer, const char *job, enum path_kind path)
{
    for (size_t i = 0; i < t->n; i++) {
        struct traffic_flow *f = &t->flows[i];

        if (f->meter == meter && f->path == path && strcmp(f->peer, peer) == 0 &&
            strcmp(f->job, job) == 0)
            return f;
    }
    return NULL;
}

static uint64_t sent_in_all(const struct traffic *t)
{
    uint64_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        n += t->flows[i].sent;
    return n;
}

static void count(struct traffic *t, uint64_t meter, const char *peer, uint64_t sent)
{
    traffic_add(traffic_at(t, meter, peer, "", PATH_KIND_DIRECT), sent, 0);
}

/* The same report again, an older one after a newer one, and in another order: as once. */
static void test_what_comes_twice(void **state)
{
    struct traffic early = TRAFFIC_NULL;
    struct traffic late = TRAFFIC_NULL;
    struct traffic kept = TRAFFIC_NULL;

    count(&early, 1, "b", 100);
    count(&late, 1, "b", 300);
    count(&late, 1, "c", 7);
    assert_int_equal(traffic_merge(&kept, &late, SIZE_MAX), 0);
    assert_int_equal(traffic_merge(&kept, &early, SIZE_MAX), 0);
    assert_int_equal(traffic_merge(&kept, &late, SIZE_MAX), 0);
    assert_int_equal(sent_in_all(&kept), 307);
    traffic_deinit(&early);
    traffic_deinit(&late);
    traffic_deinit(&kept);
}

/* A node that has lost its state counts from 0, and what it had said stays. */
static void test_two_meters(void **state)
{
    struct traffic before = TRAFFIC_NULL;
    struct traffic after = TRAFFIC_NULL;

    count(&before, 9, "b", 100);
    count(&after, 4, "b", 30);
    assert_int_equal(traffic_merge(&before, &after, SIZE_MAX), 0);
    assert_int_equal(before.n, 2);
    assert_int_equal(sent_in_all(&before), 130);
    traffic_deinit(&before);
    traffic_deinit(&after);
}

/* Peers beyond the limit share one flow; none of their bytes is lost, and known ones go on. */
static void test_limits(void **state)
{
    struct traffic t = TRAFFIC_NULL;
    struct traffic kept = TRAFFIC_NULL;
    char peer[16];

    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(peer, sizeof(peer), "n%u", i);
        count(&t, 1, peer, 1);
    }
    count(&t, 1, "n0", 1);
    assert_int_equal(t.n, TRAFFIC_FLOWS_MAX + 1);
    assert_int_equal(sent_in_all(&t), 1001);
    assert_int_equal(flow_find(&t, 1, "n0", "", PATH_KIND_DIRECT)->sent, 2);
    assert_int_equal(flow_find(&t, 1, "", "", PATH_KIND_DIRECT)->sent, 1000 - TRAFFIC_FLOWS_MAX);
    assert_int_equal(traffic_merge(&kept, &t, 200), TRAFFIC_FLOWS_MAX + 1 - 200);
    assert_int_equal(kept.n, 200);
    assert_int_equal(traffic_merge(&kept, &t, 201), TRAFFIC_FLOWS_MAX + 1 - 201);
    assert_int_equal(kept.n, 201);
    traffic_add(traffic_at(&t, 1, "n0", "", PATH_KIND_DIRECT), UINT64_MAX, 0);
    assert_true(
        t.flows[flow_find(&t, 1, "n0", "", PATH_KIND_DIRECT) - t.flows].sent == TRAFFIC_BYTES_MAX);
    traffic_deinit(&t);
    traffic_deinit(&kept);
}

/* A meter that is full leaves the room of the meters before and after it as it is. */
static void test_limits_are_of_each_meter(void **state)
{
    struct traffic t = TRAFFIC_NULL;
    char peer[16];

    for (unsigned i = 0; i < TRAFFIC_FLOWS_MAX; i++) {
        (void)snprintf(peer, sizeof(peer), "n%u", i);
        count(&t, 5, peer, 1);
        count(&t, 7, peer, 1);
    }
    count(&t, 4, "new", 1);
    count(&t, 6, "new", 2);
    count(&t, 8, "new", 3);
    assert_int_equal(t.n, 2 * TRAFFIC_FLOWS_MAX + 3);
    assert_int_equal(flow_find(&t, 4, "new", "", PATH_KIND_DIRECT)->sent, 1);
    assert_int_equal(flow_find(&t, 6, "new", "", PATH_KIND_DIRECT)->sent, 2);
    assert_int_equal(flow_find(&t, 8, "new", "", PATH_KIND_DIRECT)->sent, 3);
    count(&t, 5, "new", 4);
    count(&t, 7, "new", 5);
    assert_null(flow_find(&t, 5, "new", "", PATH_KIND_DIRECT));
    assert_int_equal(flow_find(&t, 5, "", "", PATH_KIND_DIRECT)->sent, 4);
    assert_int_equal(flow_find(&t, 7, "", "", PATH_KIND_DIRECT)->sent, 5);
    assert_int_equal(flow_find(&t, 5, "", "", PATH_KIND_DIRECT)->path, PATH_KIND_DIRECT);
    traffic_deinit(&t);
}

/* By meter, then by peer, by job and by the kind of path; what there is none of is not said. */
static void test_order_of_flows(void **state)
{
    static const struct traffic_flow flows[] = {
        {.meter = 3, .peer = (char *)"b", .job = "", .path = PATH_KIND_RELAY},
        {.meter = 3, .peer = (char *)"b", .job = "k", .path = PATH_KIND_LAN},
        {.meter = 3, .peer = (char *)"b", .job = "j", .path = PATH_KIND_STREAM},
        {.meter = 3, .peer = (char *)"b", .job = "j", .path = PATH_KIND_LAN},
        {.meter = 3, .peer = (char *)"a", .job = "z", .path = PATH_KIND_STREAM},
        {.meter = 2, .peer = (char *)"c", .job = "", .path = PATH_KIND_DIRECT},
        {.meter = 4, .peer = (char *)"", .job = "a", .path = PATH_KIND_DIRECT},
    };
    struct traffic t = {.day = 20780};
    json_t *json;
    char *text;

    for (size_t i = 0; i < sizeof(flows) / sizeof(*flows); i++)
        traffic_add(
            traffic_at(&t, flows[i].meter, flows[i].peer, flows[i].job, flows[i].path), i, 10 + i);
    json = traffic_encode(&t);
    text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text,
        "{\"day\":\"2026-11-23\",\"flows\":["
        "{\"meter\":2,\"peer\":\"c\",\"path\":\"direct\",\"sent\":5,\"received\":15},"
        "{\"meter\":3,\"peer\":\"a\",\"job\":\"z\",\"path\":\"stream\",\"sent\":4,"
        "\"received\":14},"
        "{\"meter\":3,\"peer\":\"b\",\"path\":\"relay\",\"sent\":0,\"received\":10},"
        "{\"meter\":3,\"peer\":\"b\",\"job\":\"j\",\"path\":\"lan\",\"sent\":3,"
        "\"received\":13},"
        "{\"meter\":3,\"peer\":\"b\",\"job\":\"j\",\"path\":\"stream\",\"sent\":2,"
        "\"received\":12},"
        "{\"meter\":3,\"peer\":\"b\",\"job\":\"k\",\"path\":\"lan\",\"sent\":1,"
        "\"received\":11},"
        "{\"meter\":4,\"job\":\"a\",\"path\":\"direct\",\"sent\":6,\"received\":16}]}");
    free(text);
    json_decref(json);
    traffic_deinit(&t);
}

/* What a node says of jobs without a peer is bounded, too. */
static void test_limits_of_jobs(void **state)
{
    struct traffic t = TRAFFIC_NULL;
    char job[16];

    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(job, sizeof(job), "j%u", i);
        traffic_add(traffic_at(&t, 1, "", job, PATH_KIND_DIRECT), 1, 0);
    }
    assert_int_equal(t.n, TRAFFIC_FLOWS_MAX + 1);
    assert_int_equal(sent_in_all(&t), 1000);
    traffic_deinit(&t);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *in;
        const char *says;
    } cases[] = {
        {"{}", "x: \"day\" is missing"},
        {"{\"day\":\"tomorrow\",\"flows\":[]}",
            "x: \"day\": \"tomorrow\" is no day such as 2026-11-23, from 1970 to 9999"},
        {"{\"day\":\"2026-11-23\",\"flows\":[{\"path\":\"lan\",\"sent\":1,\"received\":1}]}",
            "x: \"meter\" is missing"},
        {"{\"day\":\"2026-11-23\",\"meter\":1,\"flows\":[{\"path\":\"none\",\"sent\":1,"
         "\"received\":1}]}",
            "x: \"path\" is \"none\", and one of lan, direct, relay, stream is allowed"},
        {"{\"day\":\"2026-11-23\",\"meter\":1,\"flows\":[{\"path\":\"lan\",\"sent\":-1,"
         "\"received\":1}]}",
            "x: \"sent\" is not a whole number from 0 to 9007199254740992"},
        {"{\"day\":\"2026-11-23\",\"meter\":1,\"flows\":[{\"path\":\"lan\",\"sent\":1,"
         "\"received\":9007199254740993}]}",
            "x: \"received\" is not a whole number from 0 to 9007199254740992"},
        {"{\"day\":\"2026-11-23\",\"meter\":0,\"flows\":[]}",
            "x: \"meter\" is not a whole number from 1 to 9223372036854775807"},
        /* The first that is at fault is told. */
        {"{\"day\":\"2026-11-23\",\"meter\":1,\"flows\":[{\"path\":\"lan\",\"sent\":1,"
         "\"received\":1},{\"path\":\"lan\",\"sent\":1},{\"path\":\"lan\",\"received\":1}]}",
            "x: \"received\" is missing"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = json_loads(cases[i].in, 0, NULL);
        struct traffic t;
        struct err e = ERR_NULL;

        assert_int_equal(traffic_decode(&t, json, "x", &e), -EINVAL);
        assert_string_equal(e.text, cases[i].says);
        json_decref(json);
    }
}

/* What is said in JSON comes back, names of full length too; flows of one key are one. */
static void test_flows_come_back(void **state)
{
    static const char name[] = "a23456789-123456789-123456789-123456789-123456789-123456789-123";
    struct traffic t = TRAFFIC_NULL;
    struct traffic again = TRAFFIC_NULL;
    struct err e = ERR_NULL;
    char in[1024];
    json_t *json;

    assert_int_equal(strlen(name), 63);
    (void)snprintf(in, sizeof(in),
        "{\"day\":\"2026-11-23\",\"meter\":5,\"flows\":["
        "{\"peer\":\"%s\",\"path\":\"lan\",\"sent\":1,\"received\":2},"
        "{\"job\":\"%s\",\"path\":\"stream\",\"sent\":3,\"received\":4,\"meter\":6},"
        "{\"path\":\"direct\",\"sent\":5,\"received\":6},"
        "{\"path\":\"direct\",\"sent\":10,\"received\":20}]}",
        name, name);
    json = json_loads(in, 0, NULL);
    assert_non_null(json);
    assert_int_equal(traffic_decode(&t, json, "x", &e), 0);
    json_decref(json);
    json = traffic_encode(&t);
    assert_non_null(json);
    assert_int_equal(traffic_decode(&again, json, "x", &e), 0);
    json_decref(json);
    for (unsigned i = 0; i < 2; i++) {
        const struct traffic *r = i == 0 ? &t : &again;
        const struct traffic_flow *f = flow_find(r, 5, name, "", PATH_KIND_LAN);

        assert_int_equal(r->day, 20780);
        assert_int_equal(r->n, 3);
        assert_non_null(f);
        assert_int_equal(f->sent, 1);
        assert_int_equal(f->received, 2);
        f = flow_find(r, 6, "", name, PATH_KIND_STREAM);
        assert_non_null(f);
        assert_int_equal(f->sent, 3);
        assert_int_equal(f->received, 4);
        f = flow_find(r, 5, "", "", PATH_KIND_DIRECT);
        assert_non_null(f);
        assert_int_equal(f->sent, 15);
        assert_int_equal(f->received, 26);
    }
    traffic_deinit(&t);
    traffic_deinit(&again);
    assert_int_equal(t.n, 0);
    assert_null(t.flows);
}

/* Each of the two counts goes up alone, whichever report comes first. */
static void test_the_greater_of_two_reports_counts(void **state)
{
    struct traffic a = TRAFFIC_NULL;
    struct traffic b = TRAFFIC_NULL;
    struct traffic_flow *f;

    traffic_add(traffic_at(&a, 1, "b", "", PATH_KIND_LAN), 10, 40);
    traffic_add(traffic_at(&b, 1, "b", "", PATH_KIND_LAN), 30, 20);
    assert_int_equal(traffic_merge(&a, &b, 1), 0);
    f = flow_find(&a, 1, "b", "", PATH_KIND_LAN);
    assert_int_equal(f->sent, 30);
    assert_int_equal(f->received, 40);
    traffic_add(traffic_at(&b, 1, "b", "", PATH_KIND_LAN), 0, 21);
    assert_int_equal(traffic_merge(&a, &b, 1), 0);
    assert_int_equal(f->sent, 30);
    assert_int_equal(f->received, 41);
    traffic_deinit(&a);
    traffic_deinit(&b);
    assert_true(traffic_total(INT64_MAX - 1, 1) == INT64_MAX);
    assert_true(traffic_total(INT64_MAX - 1, 2) == INT64_MAX);
    assert_true(traffic_total(3, 4) == 7);
    assert_true(traffic_total(UINT64_MAX, 1) == INT64_MAX);
    assert_true(traffic_total(1, UINT64_MAX) == INT64_MAX);
}

/* A sum stops at what is exact in JSON, each by itself. */
static void test_a_sum_that_stops(void **state)
{
    struct traffic_flow f = {.sent = TRAFFIC_BYTES_MAX - 2, .received = 1};

    traffic_add(&f, 1, TRAFFIC_BYTES_MAX - 2);
    assert_true(f.sent == TRAFFIC_BYTES_MAX - 1);
    assert_true(f.received == TRAFFIC_BYTES_MAX - 1);
    traffic_add(&f, 2, 1);
    assert_true(f.sent == TRAFFIC_BYTES_MAX);
    assert_true(f.received == TRAFFIC_BYTES_MAX);
    traffic_add(&f, 1, 2);
    assert_true(f.sent == TRAFFIC_BYTES_MAX);
    assert_true(f.received == TRAFFIC_BYTES_MAX);
}

/* What there is no room for is counted, also when what comes after it is known already. */
static void test_what_is_left_out_is_counted(void **state)
{
    struct traffic kept = TRAFFIC_NULL;
    struct traffic from = TRAFFIC_NULL;

    count(&kept, 1, "c", 1);
    count(&from, 1, "a", 1);
    count(&from, 1, "b", 1);
    count(&from, 1, "c", 5);
    assert_int_equal(traffic_merge(&kept, &from, 1), 2);
    assert_int_equal(kept.n, 1);
    assert_int_equal(kept.flows[0].sent, 5);
    traffic_deinit(&kept);
    traffic_deinit(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days),
        cmocka_unit_test(test_no_days),
        cmocka_unit_test(test_what_comes_twice),
        cmocka_unit_test(test_two_meters),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_limits_are_of_each_meter),
        cmocka_unit_test(test_limits_of_jobs),
        cmocka_unit_test(test_order_of_flows),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_flows_come_back),
        cmocka_unit_test(test_the_greater_of_two_reports_counts),
        cmocka_unit_test(test_a_sum_that_stops),
        cmocka_unit_test(test_what_is_left_out_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
