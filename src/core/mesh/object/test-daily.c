/* test-daily.c - samples by peer and day: what is kept, what goes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/object/daily.h"

static struct daily_sample of_day(int32_t day)
{
    return (struct daily_sample){.day = day, .tunnel_kbit = {900, 800}, .raw_kbit = {1000, 1000}};
}

static void test_one_a_day(void **state)
{
    struct daily d = DAILY_NULL;
    struct daily_sample s = of_day(100);
    const struct daily_peer *p;

    assert_null(daily_find(&d, "b"));
    assert_true(daily_put(&d, "b", &s));
    assert_false(daily_put(&d, "b", &s));
    s.raw_rtt_us = 7;
    assert_true(daily_put(&d, "b", &s));
    p = daily_find(&d, "b");
    assert_int_equal(p->n, 1);
    assert_int_equal(p->days[0].raw_rtt_us, 7);
    /* One of before comes late, and has its place. */
    s = of_day(98);
    assert_true(daily_put(&d, "b", &s));
    s = of_day(99);
    assert_true(daily_put(&d, "b", &s));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(daily_find(&d, "b")->days[i].day, 98 + (int)i);
    daily_deinit(&d);
    daily_deinit(&d);
}

static void test_old_days_go(void **state)
{
    struct daily d = DAILY_NULL;
    struct daily_sample s;

    for (int day = 1; day <= 100; day++) {
        s = of_day(day);
        assert_true(daily_put(&d, "b", &s));
    }
    assert_int_equal(daily_find(&d, "b")->n, DAILY_DAYS_MAX);
    assert_int_equal(daily_find(&d, "b")->days[0].day, 71);
    s = of_day(70);
    assert_false(daily_put(&d, "b", &s));
    s = of_day(128);
    assert_true(daily_put(&d, "b", &s));
    assert_int_equal(daily_find(&d, "b")->n, 3);
    assert_int_equal(daily_find(&d, "b")->days[0].day, 99);
    daily_deinit(&d);
}

static void test_peers_are_bounded(void **state)
{
    struct daily d = DAILY_NULL;
    struct daily_sample s = of_day(5);
    char name[16];

    for (unsigned i = 0; i < DAILY_PEERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        assert_true(daily_put(&d, name, &s));
    }
    assert_false(daily_put(&d, "one-more", &s));
    assert_int_equal(d.n, DAILY_PEERS_MAX);
    s.day = 6;
    for (unsigned i = 1; i < DAILY_PEERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        assert_true(daily_put(&d, name, &s));
    }
    /* The one of which nothing came since gives way. */
    assert_true(daily_put(&d, "one-more", &s));
    assert_int_equal(d.n, DAILY_PEERS_MAX);
    assert_null(daily_find(&d, "n0"));
    assert_non_null(daily_find(&d, "n1"));
    daily_deinit(&d);
}

static void test_cost(void **state)
{
    struct daily_sample s = of_day(1);
    int cost = 0;

    assert_true(daily_cost_percent(&s, &cost));
    assert_int_equal(cost, 15);
    s.raw_kbit[0] = 0;
    assert_true(daily_cost_percent(&s, &cost));
    assert_int_equal(cost, 20);
    assert_false(daily_tls_cost_percent(&s, &cost));
    s.tls_kbit[1] = 600;
    assert_true(daily_tls_cost_percent(&s, &cost));
    assert_int_equal(cost, 25);
    s.tunnel_kbit[1] = 0;
    assert_false(daily_cost_percent(&s, &cost));
    assert_false(daily_tls_cost_percent(&s, &cost));
}

static void check_text(json_t *json, const char *expected)
{
    char *text = json_dumps(json, JSON_COMPACT);

    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

/* Without room for all, each has its last days. */
static void test_there_and_back(void **state)
{
    static const char text[] =
        "{\"b\":[[20785,900,800,1000,1000,412,301,720,0],[20786,0,0,0,0,0,0,0,0]],"
        "\"c\":[[20786,4000000000,0,0,0,60000000,0,0,0]]}";
    json_t *json = json_loads(text, 0, NULL);
    struct daily d = DAILY_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(daily_decode(&d, NULL, "days", &e), 0);
    assert_int_equal(d.n, 0);
    assert_int_equal(daily_decode(&d, json, "days", &e), 0);
    json_decref(json);
    assert_int_equal(d.n, 2);
    check_text(daily_encode(&d, SIZE_MAX), text);
    check_text(daily_encode(&d, 2 * (NAME_MAX_LEN + 8) + 3 * 104),
        "{\"b\":[[20786,0,0,0,0,0,0,0,0]],\"c\":[[20786,4000000000,0,0,0,60000000,0,0,0]]}");
    check_text(daily_encode(&d, 2 * (NAME_MAX_LEN + 8) + 104), "{\"b\":[[20786,0,0,0,0,0,0,0,0]]}");
    check_text(daily_encode(&d, 0), "{}");
    check_text(daily_peer_encode(daily_find(&d, "b")),
        "[{\"day\":\"2026-11-28\",\"tunnelBitsPerSecond\":[900000,800000],"
        "\"rawBitsPerSecond\":[1000000,1000000],\"tunnelRttUs\":412,\"rawRttUs\":301,"
        "\"costPercent\":15,\"tlsBitsPerSecond\":[720000,0],\"tlsCostPercent\":20},"
        "{\"day\":\"2026-11-29\"}]");
    daily_deinit(&d);
}

/* Without the figures of TLS, as it was kept before. */
static void test_a_day_without_tls(void **state)
{
    json_t *json = json_loads("[20785,900,800,1000,1000,412,301]", 0, NULL);
    struct daily_sample s;

    assert_int_equal(daily_sample_decode(&s, json, "days", NULL), 0);
    assert_int_equal(s.raw_rtt_us, 301);
    assert_int_equal(s.tls_kbit[0] + s.tls_kbit[1], 0);
    json_decref(json);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"{\"B b\":[]}", "name"},
        {"{\"b\":{}}", "days: what is of \"b\" is no array of at most 30 days"},
        {"{\"b\":[{}]}", "days: a day is no array of 7 or 9 numbers"},
        {"{\"b\":[[1,2,3,4,5,6]]}", "days: a day is no array of 7 or 9 numbers"},
        {"{\"b\":[[1,2,3,4,5,6,7,8]]}", "days: a day is no array of 7 or 9 numbers"},
        {"{\"b\":[[2932897,0,0,0,0,0,0]]}",
            "days: number 0 of a day is not a whole number from 0 to 2932896"},
        {"{\"b\":[[1,0,0,0,-1,0,0]]}", "number 4 of a day"},
        {"{\"b\":[[1,0.5,0,0,0,0,0]]}", "number 1 of a day"},
        {"{\"b\":[[1,4000000001,0,0,0,0,0]]}", "number 1 of a day"},
        {"{\"b\":[[1,0,0,0,0,0,60000001]]}", "number 6 of a day"},
        {"{\"b\":[[1,0,0,0,0,0,0,0,4000000001]]}", "number 8 of a day"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        json_t *json = json_loads(rows[i].text, 0, NULL);
        struct daily d = DAILY_NULL;
        struct err e = ERR_NULL;

        assert_int_equal(daily_decode(&d, json, "days", &e), -EINVAL);
        if (!strstr(e.text, rows[i].words))
            fail_msg("%s: %s", rows[i].text, e.text);
        assert_int_equal(d.n, 0);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_a_day),
        cmocka_unit_test(test_old_days_go),
        cmocka_unit_test(test_peers_are_bounded),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_a_day_without_tls),
        cmocka_unit_test(test_what_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
