/* test-kube-part.c - a writer's part of a status: whose it is, how old, and how it is applied. */
#include "backends/kubernetes/kube_part.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/object/mesh_edge.h"
#include "os/clock.h"
#include "test/support/canned_kube.h"

#define AT 1800000000 /* 2027-01-15T08:00:00Z */

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

static void test_times(void **state)
{
    static const char *const bad[] = {"", "2027-01-15", "2027-01-15 08:00:00Z",
        "2027-01-15T08:00:00+", "2027-02-30T08:00:00Z", "2027-1-015T08:00:00Z",
        "1969-12-31T23:59:59Z", "2027-01-15T08:00:00ZZ", "2027-01-15T8:000:00Z"};
    char text[CLOCK_TEXT_MAX];
    int64_t at = 7;

    assert_string_equal(clock_text(text, AT), "2027-01-15T08:00:00Z");
    assert_true(clock_text_parse(text, &at));
    assert_int_equal(at, AT);
    assert_string_equal(clock_text(text, 0), "1970-01-01T00:00:00Z");
    assert_true(clock_text_parse(text, &at));
    assert_int_equal(at, 0);
    /* Of a year with five digits there is none. */
    assert_string_equal(clock_text(text, INT64_C(253402300800)), "");
    assert_false(clock_text_parse(NULL, &at));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (clock_text_parse(bad[i], &at))
            fail_msg("\"%s\" was taken", bad[i]);
}

static void test_whose_it_is(void **state)
{
    static const char *const not_own[] = {"{}", "7", "{\"observedAt\":\"2027-01-15T08:00:00Z\"}",
        "{\"everySeconds\":300}", "{\"observedAt\":\"today\",\"everySeconds\":300}",
        "{\"observedAt\":\"2027-01-15T08:00:00Z\",\"everySeconds\":0}",
        "{\"observedAt\":\"2027-01-15T08:00:00Z\",\"everySeconds\":172801}",
        "{\"observedAt\":\"2027-01-15T08:00:00Z\",\"everySeconds\":\"300\"}",
        "{\"observedAt\":1800000000,\"everySeconds\":300}"};
    json_t *part = json_object();
    int64_t every_s = 7;
    int64_t at = 7;

    kube_part_stamp(part, AT, 300);
    assert_true(kube_part_is_own(part, &at, &every_s));
    assert_int_equal(at, AT);
    assert_int_equal(every_s, 300);
    json_decref(part);
    for (size_t i = 0; i < sizeof(not_own) / sizeof(*not_own); i++) {
        part = json_loads(not_own[i], JSON_DECODE_ANY, NULL);
        if (kube_part_is_own(part, &at, &every_s))
            fail_msg("%s was taken", not_own[i]);
        json_decref(part);
    }
}

/* Two turns may be missed, and a half; and clocks differ a little. */
static void test_when_it_is_old(void **state)
{
    assert_false(kube_part_is_old(AT, 300, AT));
    assert_false(kube_part_is_old(AT, 300, AT + 750));
    assert_true(kube_part_is_old(AT, 300, AT + 751));
    assert_false(kube_part_is_old(AT, 300, AT - 300));
    assert_true(kube_part_is_old(AT, 300, AT - 301));
}

static void expect_says(const char *part, const char *expected)
{
    char says[KUBE_PART_SAYS_MAX];
    json_t *json = parse(part);

    kube_part_says(says, json);
    assert_string_equal(says, expected);
    json_decref(json);
}

static void test_the_gist(void **state)
{
    expect_says("{\"path\":\"relay\",\"error\":\"no\"}", "relay");
    expect_says("{\"tunnel\":\"reached\",\"underlay\":\"silent\"}", "reached, UDP silent");
    expect_says("{\"tunnel\":\"reached\"}", "reached, UDP unknown");
    expect_says("{\"applied\":{}}", "");
    expect_says("{\"path\":7}", "");
    expect_says("{\"path\":\"a-path-of-a-version-that-is-to-come\"}", "a-path-of-a-vers");
}

/* Times and ages alone are no reason for a write, at any depth. */
static void test_what_is_worth_a_write(void **state)
{
    json_t *part = parse("{\"path\":\"lan\",\"applied\":{\"revision\":3,\"engine\":\"kernel\"}}");
    char before[KUBE_SPEC_HASH_MAX];
    char after[KUBE_SPEC_HASH_MAX];

    kube_part_hash(before, part);
    kube_part_stamp(part, AT, 300);
    (void)json_object_set_new(json_object_get(part, "applied"), "revision", json_integer(4));
    kube_part_hash(after, part);
    assert_string_equal(after, before);
    (void)json_object_set_new(json_object_get(part, "applied"), "engine", json_string(""));
    kube_part_hash(after, part);
    assert_string_not_equal(after, before);
    kube_part_drop_empty(part);
    assert_null(json_object_get(json_object_get(part, "applied"), "engine"));
    assert_true(kube_part_is_restless("observedAt"));
    assert_false(kube_part_is_restless("path"));
    json_decref(part);
}

static void expect_applied(
    bool by_force, const char *const *answers, int expected_r, const char *asked)
{
    json_t *status = parse("{\"agent/gpu-1\":{\"path\":\"lan\"}}");
    struct canned_server server;
    struct kube_client c;
    struct err e = ERR_NULL;
    int r;

    canned_kube_start(&server, &c, answers, 1);
    r = kube_part_apply(&c, &mesh_edge_kind, "default.gpu-1--gpu-2", "agent/gpu-1", status,
        by_force, clock_now() + NSEC_PER_SEC, NULL, &e);
    assert_int_equal(r, expected_r);
    canned_server_join(&server);
    assert_string_equal(server.asked, asked);
    assert_non_null(strstr(server.got, "Content-Type: application/apply-patch+yaml\r\n"));
    assert_non_null(
        strstr(server.got, "{\"apiVersion\":\"weft.dev/v1alpha1\",\"kind\":\"MeshEdge\","
                           "\"metadata\":{\"name\":\"default.gpu-1--gpu-2\"},"
                           "\"status\":{\"agent/gpu-1\":{\"path\":\"lan\"}}}"));
    kube_client_deinit(&c);
    json_decref(status);
}

#define STATUS "PATCH /apis/weft.dev/v1alpha1/namespaces/weft/meshedges/default.gpu-1--gpu-2/status"

static void test_apply(void **state)
{
    static const char *const taken[] = {CANNED_OK "{}"};
    static const char *const forbidden[] = {
        CANNED_STATUS("403 Forbidden") "{\"message\":\"not yours\"}"};
    static const char *const owned[] = {
        CANNED_STATUS("409 Conflict") "{\"message\":\"Apply failed with 1 conflict\"}"};

    expect_applied(true, taken, 0, STATUS "?force=true&fieldManager=agent%2Fgpu-1|");
    expect_applied(false, forbidden, -EACCES, STATUS "?fieldManager=agent%2Fgpu-1|");
    expect_applied(false, owned, KUBE_E_EXISTS, STATUS "?fieldManager=agent%2Fgpu-1|");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_whose_it_is),
        cmocka_unit_test(test_when_it_is_old),
        cmocka_unit_test(test_the_gist),
        cmocka_unit_test(test_what_is_worth_a_write),
        cmocka_unit_test(test_apply),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
