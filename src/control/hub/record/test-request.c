/* test-request.c - what a report may say, and what its sender is told otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "base/err.h"
#include "base/text.h"
#include "hub/record/request.h"

static int decode(struct report *ret, const char *text, struct err *e)
{
    json_t *json = NULL;
    int r = body_parse(&json, text, strlen(text), e);

    if (r == 0)
        r = report_decode(ret, json, 1790000000, e);
    json_decref(json);
    return r;
}

/* Each of these was taken once, and then refused by every node that heard of it. */
static void test_refusals(void **state)
{
    static const struct {
        const char *body;
        const char *says;
    } cases[] = {
        {"{\"node\":{\"candidates\":[1]}}", "report: is not a JSON object"},
        {"{\"node\":{\"candidates\":[{\"endpoint\":\"192.0.2.1:1\"}]}}",
            "report: \"type\" is missing"},
        {"{\"node\":{\"candidates\":[{\"type\":\"host\",\"endpoint\":\"192.0.2.1\"}]}}",
            "report: a candidate's endpoint: \"192.0.2.1\" is not ADDRESS:PORT"},
        {"{\"node\":{\"paths\":{\"relays\":{}}}}",
            "report: \"relays\" is not an array of 0 to 8 items"},
        {"{\"node\":{\"paths\":{\"generation\":-1}}}",
            "report: \"generation\" is not a whole number from 0 to 9223372036854775807"},
        {"{\"node\":{\"paths\":{\"portStep\":1e300}}}",
            "report: \"portStep\" is not a number from -32768 to 32767"},
        {"{\"daily\":[]}", "report: \"daily\" is not an object"},
        {"{\"daily\":{\"b\":[[1]]}}", "report: daily: a day is no array of 7 or 9 numbers"},
        {"{\"owner\":\"probe/b\",\"daily\":{}}",
            "report: \"daily\" is the agent's to say, and this is a probe's report"},
        {"{\"node\":{\"nat\":7}}", "report: \"nat\" is not an object"},
        {"{\"node\":{\"nat\":{\"natted\":1}}}",
            "report: nat: \"natted\" is neither true nor false"},
        {"{\"node\":{\"uplink\":7}}", "report: \"uplink\" is not an object"},
        {"{\"node\":{\"uplink\":{\"bitsPerSecond\":\"fast\"}}}",
            "report: uplink: \"bitsPerSecond\""},
        {"{\"node\":{\"nat\":{\"forgottenMs\":3600001}}}",
            "report: nat: \"forgottenMs\" is not a whole number from 0 to 3600000"},
        {"{\"node\":{\"paths\":{\"natted\":1}}}", "report: \"natted\" is neither true nor false"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct report rp = REPORT_NULL;
        struct err e = ERR_NULL;

        assert_int_equal(decode(&rp, cases[i].body, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].says);
    }
}

/* What a newer node says is not ours to refuse. */
static void test_unknown_fields(void **state)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(decode(&rp,
                         "{\"node\":{\"candidates\":[{\"type\":\"future\",\"endpoint\":\"192.0.2.1:"
                         "1\",\"x\":1}],"
                         "\"paths\":{\"future\":{\"a\":[]}},\"future\":[]},\"future\":1}",
                         &e),
        0);
    assert_string_equal(rp.paths, "{\"future\":{\"a\":[]}}");
    report_deinit(&rp);
}

/* A hub tells nobody that a node is reached at an address of the network itself. */
static void test_candidates_of_the_overlay(void **state)
{
    struct report rp = REPORT_NULL;
    struct ip_prefix cidr4, cidr6;
    struct err e = ERR_NULL;

    assert_int_equal(ip_prefix_parse(&cidr4, "10.77.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&cidr6, "fd77::/48", NULL), 0);
    assert_int_equal(decode(&rp,
                         "{\"node\":{\"candidates\":["
                         "{\"type\":\"host\",\"endpoint\":\"10.77.0.4:51407\"},"
                         "{\"type\":\"host\",\"endpoint\":\"192.0.2.1:1\"},"
                         "{\"type\":\"host\",\"endpoint\":\"[fd77::4]:51407\"}]}}",
                         &e),
        0);
    assert_int_equal(report_drop_candidates(&rp, &cidr4, &cidr6, &e), 0);
    assert_string_equal(rp.candidates, "[{\"type\":\"host\",\"endpoint\":\"192.0.2.1:1\"}]");
    report_deinit(&rp);
    /* Nothing is changed where there is none, and what has no endpoint stays. */
    assert_int_equal(report_drop_candidates(&rp, &cidr4, &cidr6, &e), 0);
    assert_null(rp.candidates);
    rp.candidates = strdup("[ {}, {\"endpoint\":\"x\"} ]");
    assert_int_equal(report_drop_candidates(&rp, &cidr4, &cidr6, &e), 0);
    assert_string_equal(rp.candidates, "[ {}, {\"endpoint\":\"x\"} ]");
    report_deinit(&rp);
}

/* What a node says of its fabric is kept as it says it, and checked as others will read it. */
static void test_fabric(void **state)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(decode(&rp, "{\"node\":{\"fabric\":{\"kind\":\"efa\",\"future\":1}}}", &e), 0);
    assert_string_equal(rp.fabric, "{\"kind\":\"efa\",\"future\":1}");
    report_deinit(&rp);
    assert_int_equal(
        decode(&rp, "{\"node\":{\"fabric\":{\"kind\":\"efa\",\"gbit\":-1}}}", &e), -EINVAL);
    assert_non_null(strstr(e.text, "gbit"));
    report_deinit(&rp);
    assert_int_equal(
        decode(&rp, "{\"node\":{\"fabric\":{\"kind\":\"efa\",\"keys\":[1,2,3,4,5]}}}", &e),
        -EINVAL);
    report_deinit(&rp);
}

static char *nested(unsigned depth)
{
    struct str s = STR_NULL;

    str_add(&s, "{\"node\":{\"paths\":{\"x\":");
    for (unsigned i = 0; i < depth; i++)
        str_add(&s, "[");
    for (unsigned i = 0; i < depth; i++)
        str_add(&s, "]");
    str_add(&s, "}}}");
    return str_take(&s, NULL);
}

/* Others read it as a part of something larger, and a parser has its limit. */
static void test_depth(void **state)
{
    static const unsigned depths[] = {13, 14, 40, 2000};

    for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
        struct report rp = REPORT_NULL;
        struct err e = ERR_NULL;
        char *text = nested(depths[i]);

        assert_int_equal(decode(&rp, text, &e), i == 0 ? 0 : -EINVAL);
        if (i > 0)
            assert_non_null(strstr(e.text, "objects or arrays in one another"));
        report_deinit(&rp);
        free(text);
    }
}

/* A number that takes four bytes in a body takes 18 in the record. */
static void test_growth(void **state)
{
    struct report rp = REPORT_NULL;
    struct str s = STR_NULL;
    struct err e = ERR_NULL;
    char *text;

    str_add(&s, "{\"node\":{\"candidates\":[");
    for (unsigned i = 0; i < 30; i++)
        str_addf(&s, "%s{\"type\":\"x\",\"endpoint\":\"192.0.2.1:1\",\"x\":[1e15,1e15,1e15,1e15]}",
            i > 0 ? "," : "");
    str_add(&s, "],\"paths\":{\"x\":[1e15");
    for (unsigned i = 0; i < 200; i++)
        str_add(&s, ",1e15");
    str_add(&s, "]},\"aead\":{}}}");
    text = str_take(&s, NULL);
    assert_int_equal(decode(&rp, text, &e), 0);
    assert_true(strlen(rp.paths) > 2 * 1000 && strlen(text) < 5000);
    report_deinit(&rp);
    free(text);
}

/* Whose part it is, which report it is, and what has been applied. */
static void test_whose_and_which(void **state)
{
    static const struct {
        const char *body;
        const char *says;
    } cases[] = {
        {"{\"owner\":\"hub/a\"}",
            "report: \"owner\" is \"hub/a\", and agent/NODE or probe/NODE is allowed"},
        {"{\"owner\":\"agent/\"}",
            "report: \"owner\" is \"agent/\", and agent/NODE or probe/NODE is allowed"},
        {"{\"owner\":\"probe/a\",\"node\":{}}",
            "report: \"node\" is the agent's to say, and this is a probe's report"},
        {"{\"run\":5}", "report: \"number\" is missing"},
        {"{\"run\":0}", "report: \"run\" is not a whole number from 1 to 9223372036854775807"},
        {"{\"applied\":{}}", "report: applied: \"revision\" is missing"},
    };
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(decode(&rp, cases[i].body, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].says);
    }
    assert_int_equal(decode(&rp,
                         "{\"owner\":\"agent/a\",\"run\":7,\"number\":3,\"begins\":true,"
                         "\"applied\":{\"revision\":41,\"error\":\"no\"},"
                         "\"edges\":{\"b\":{\"path\":\"lan\"},\"c\":null}}",
                         &e),
        0);
    assert_string_equal(rp.owner_node, "a");
    assert_true(rp.run == 7 && rp.number == 3 && rp.begins && !rp.ends);
    assert_int_equal(rp.applied, 41);
    assert_string_equal(rp.error, "no");
    assert_int_equal(rp.edges.n, 2);
    assert_int_equal(rp.edges.items[0]->said.path, PATH_KIND_LAN);
    assert_true(rp.edges.items[1]->is_gone);
    report_deinit(&rp);
}

/* ---- all that a node says of itself ---------------------------------------------------------- */

static void test_whole_report(void **state)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(
        decode(&rp,
            "{\"node\":{\"engine\":\"kernel\",\"version\":\"1.2\",\"hostname\":\"gpu-1\","
            "\"routes\":[\"10.9.0.0/24\"],"
            "\"candidates\":[{\"type\":\"host\",\"endpoint\":\"192.0.2.1:1\"}],"
            "\"paths\":{\"natted\":true},\"aead\":{\"aes256gcm\":7},"
            "\"fabric\":{\"kind\":\"efa\"},"
            "\"nat\":{\"natted\":true,\"survivedMs\":27000,\"forgottenMs\":3600000},"
            "\"uplink\":{\"state\":\"found\",\"bitsPerSecond\":20000000,\"at\":1800000000},"
            "\"machine\":{\"place\":\"p1\",\"host\":\"h1\",\"joinedHere\":true}},"
            "\"traffic\":{\"day\":\"2026-11-23\",\"meter\":17,\"flows\":[{\"peer\":\"b\","
            "\"path\":\"lan\",\"sent\":5,\"received\":6}]},"
            "\"run\":9223372036854775807,\"number\":1,\"ends\":true}",
            &e),
        0);
    assert_true(rp.has_node);
    assert_string_equal(rp.engine, "kernel");
    assert_string_equal(rp.version, "1.2");
    assert_string_equal(rp.hostname, "gpu-1");
    assert_int_equal(rp.routes.n, 1);
    assert_string_equal(rp.candidates, "[{\"type\":\"host\",\"endpoint\":\"192.0.2.1:1\"}]");
    assert_string_equal(rp.paths, "{\"natted\":true}");
    assert_string_equal(rp.aead, "{\"aes256gcm\":7}");
    assert_string_equal(rp.fabric, "{\"kind\":\"efa\"}");
    assert_true(rp.nat.is_measured && rp.nat.is_natted);
    assert_int_equal(rp.nat.survived_ms, 27000);
    assert_int_equal(rp.nat.forgotten_ms, 3600000);
    assert_true(rp.uplink.is_said && rp.uplink.state == UPLINK_FOUND);
    assert_int_equal(rp.uplink.bits_per_s, 20000000);
    assert_string_equal(rp.machine.place, "p1");
    assert_string_equal(rp.machine.host, "h1");
    assert_true(rp.machine.has_origin);
    assert_true(rp.machine.is_origin);
    assert_true(rp.has_traffic);
    assert_int_equal(rp.traffic.n, 1);
    assert_int_equal(rp.traffic.flows[0].received, 6);
    assert_int_equal(rp.run, INT64_MAX);
    assert_int_equal(rp.number, 1);
    assert_false(rp.begins);
    assert_true(rp.ends);
    assert_false(rp.has_edges);
    assert_false(rp.has_applied);
    assert_null(rp.error);
    report_deinit(&rp);
    assert_null(rp.candidates);
    assert_int_equal(rp.run, 0);
}

/* No body is a report that says nothing; without a run, neither its number nor its ends count. */
static void test_what_is_not_said(void **state)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(report_decode(&rp, NULL, 1790000000, &e), 0);
    assert_false(rp.has_node);
    assert_false(rp.has_applied);
    assert_false(rp.has_edges);
    assert_false(rp.has_traffic);
    assert_null(rp.candidates);
    assert_int_equal(rp.edges.owner, EDGE_OWNER_AGENT);
    assert_string_equal(rp.owner_node, "");
    assert_int_equal(decode(&rp,
                         "{\"number\":3,\"begins\":true,\"ends\":true,\"edges\":{},"
                         "\"node\":{\"machine\":{\"joinedHere\":false}},"
                         "\"applied\":{\"revision\":0}}",
                         &e),
        0);
    assert_true(rp.run == 0 && rp.number == 0 && !rp.begins && !rp.ends);
    assert_true(rp.has_edges);
    assert_true(rp.machine.has_origin);
    assert_false(rp.machine.is_origin);
    assert_true(rp.has_applied);
    assert_int_equal(rp.applied, 0);
    assert_null(rp.error);
    report_deinit(&rp);
    assert_int_equal(decode(&rp, "{\"node\":{\"machine\":{}}}", &e), 0);
    assert_false(rp.machine.has_origin);
    assert_null(rp.aead);
    report_deinit(&rp);
    assert_int_equal(decode(&rp, "{\"owner\":\"probe/gpu-1\",\"edges\":{\"b\":null}}", &e), 0);
    assert_int_equal(rp.edges.owner, EDGE_OWNER_PROBE);
    assert_string_equal(rp.owner_node, "gpu-1");
    report_deinit(&rp);
}

/* A text of @n bytes that @format has %s for: one that is just taken, and one byte more. */
static void expect_longest(const char *format, unsigned n, const char *says)
{
    for (unsigned more = 0; more < 2; more++) {
        struct report rp = REPORT_NULL;
        struct str s = STR_NULL;
        struct str x = STR_NULL;
        struct err e = ERR_NULL;
        char *text;
        char *filled;

        for (unsigned i = 0; i < n + more; i++)
            str_add(&x, "x");
        filled = str_take(&x, NULL);
        str_addf(&s, format, filled);
        text = str_take(&s, NULL);
        assert_int_equal(decode(&rp, text, &e), more ? -EINVAL : 0);
        assert_string_equal(e.text, more ? says : "");
        report_deinit(&rp);
        free(filled);
        free(text);
    }
}

static void test_longest_texts(void **state)
{
    expect_longest("{\"node\":{\"candidates\":[{\"type\":\"host\",\"endpoint\":\"192.0.2.1:1\","
                   "\"x\":\"%s\"}]}}",
        8192 - 49, "report: \"candidates\" is longer than 8192 bytes");
    expect_longest("{\"node\":{\"paths\":{\"x\":\"%s\"}}}", 4096 - 8,
        "report: \"paths\" is longer than 4096 bytes");
    expect_longest("{\"node\":{\"fabric\":{\"kind\":\"efa\",\"x\":\"%s\"}}}", 2048 - 21,
        "report: \"fabric\" is longer than 2048 bytes");
    expect_longest("{\"node\":{\"engine\":\"%s\"}}", 31,
        "report: \"engine\" has 32 bytes, and 0 to 31 are allowed");
    expect_longest("{\"node\":{\"version\":\"%s\"}}", 31,
        "report: \"version\" has 32 bytes, and 0 to 31 are allowed");
    expect_longest("{\"node\":{\"hostname\":\"%s\"}}", 63,
        "report: \"hostname\" has 64 bytes, and 1 to 63 are allowed");
    expect_longest("{\"node\":{\"machine\":{\"place\":\"%s\"}}}", 31,
        "report: machine: \"place\" has 32 bytes, and 0 to 31 are allowed");
    expect_longest("{\"node\":{\"machine\":{\"host\":\"%s\"}}}", 31,
        "report: machine: \"host\" has 32 bytes, and 0 to 31 are allowed");
    expect_longest("{\"applied\":{\"revision\":1,\"error\":\"%s\"}}", 300,
        "report: applied: \"error\" has 301 bytes, and 1 to 300 are allowed");
}

static void test_refused_reports(void **state)
{
    static const struct {
        const char *body;
        const char *says;
    } cases[] = {
        {"{\"node\":1}", "report: \"node\" is not an object"},
        {"{\"node\":{\"routes\":1}}", "report: \"routes\" is not an array of 0 to 16 items"},
        {"{\"node\":{\"machine\":{\"joinedHere\":1}}}",
            "report: machine: \"joinedHere\" is neither true nor false"},
        {"{\"owner\":\"agents/a\"}",
            "report: \"owner\" is \"agents/a\", and agent/NODE or probe/NODE is allowed"},
        {"{\"owner\":\"agenx/a\"}",
            "report: \"owner\" is \"agenx/a\", and agent/NODE or probe/NODE is allowed"},
        {"{\"owner\":\"agent/a--b\"}",
            "report: \"owner\" is \"agent/a--b\", and agent/NODE or probe/NODE is allowed"},
        {"{\"owner\":\"agent\"}",
            "report: \"owner\" is \"agent\", and agent/NODE or probe/NODE is allowed"},
        {"{\"owner\":\"probe/a\",\"applied\":{\"revision\":1}}",
            "report: \"applied\" is the agent's to say, and this is a probe's report"},
        {"{\"owner\":\"probe/a\",\"traffic\":{}}",
            "report: \"traffic\" is the agent's to say, and this is a probe's report"},
        {"{\"run\":5,\"number\":0}",
            "report: \"number\" is not a whole number from 1 to 9223372036854775807"},
        {"{\"run\":5,\"number\":1,\"begins\":1}", "report: \"begins\" is neither true nor false"},
        {"{\"run\":5,\"number\":1,\"ends\":1}", "report: \"ends\" is neither true nor false"},
        {"{\"traffic\":{\"day\":\"2026-11-23\"}}", "report: traffic: \"flows\" is missing"},
        {"{\"edges\":{\"b\":{\"path\":\"x\"}},\"node\":{\"engine\":1}}",
            "report: \"engine\" is not a string"},
        {"{\"edges\":{\"b\":1},\"node\":{\"engine\":1}}",
            "the edge to \"b\": is not a JSON object"},
        {"{\"node\":{\"engine\":1},\"applied\":{}}", "report: \"engine\" is not a string"},
        {"{\"applied\":{},\"traffic\":{}}", "report: applied: \"revision\" is missing"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct report rp = {.run = 41};
        struct err e = ERR_NULL;

        assert_int_equal(decode(&rp, cases[i].body, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].says);
        assert_int_equal(rp.run, 41);
    }
}

#define NO_SPEED(cipher)                                                                           \
    "report: the speed of cipher \"" cipher "\" is not a number from 0 to 1000000"

static void test_speeds_of_ciphers(void **state)
{
    static const struct {
        const char *aead;
        const char *says; /* "": it is taken */
    } cases[] = {
        {"{\"a\":0,\"b\":1000000,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1}", ""},
        {"{\"a\":0,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1}",
            "report: \"aead\" names 9 ciphers, and 8 are allowed"},
        {"{\"a234567890123456789012345678901\":1}", ""},
        {"{\"a2345678901234567890123456789012\":1}", NO_SPEED("a2345678901234567890123456789012")},
        {"{\"a\\u0007\":1}", NO_SPEED("a?")},
        {"{\"a\":\"1\"}", NO_SPEED("a")},
        {"{\"a\":-1}", NO_SPEED("a")},
        {"{\"a\":1000001}", NO_SPEED("a")},
        {"{\"a\":1,\"b\":2.5}", NO_SPEED("b")},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct report rp = REPORT_NULL;
        struct str s = STR_NULL;
        struct err e = ERR_NULL;
        char *text;

        str_addf(&s, "{\"node\":{\"aead\":%s}}", cases[i].aead);
        text = str_take(&s, NULL);
        assert_int_equal(decode(&rp, text, &e), cases[i].says[0] ? -EINVAL : 0);
        assert_string_equal(e.text, cases[i].says);
        if (!cases[i].says[0])
            assert_string_equal(rp.aead, cases[i].aead);
        report_deinit(&rp);
        free(text);
    }
}

/* What others see of a node: its name, where it is reached, its ciphers and its fabric. */
static void test_what_others_see(void **state)
{
    char x[] = "x";
    char same[] = "x";
    char y[] = "y";
    const struct report a = {
        .hostname = "h", .candidates = x, .paths = x, .aead = x, .fabric = x, .engine = "e"};
    struct report b = a;

    assert_true(report_is_same_text(NULL, NULL));
    assert_true(report_is_same_text(x, same));
    assert_false(report_is_same_text(x, y));
    assert_false(report_is_same_text(x, NULL));
    assert_false(report_is_same_text(NULL, x));
    b.candidates = same;
    b.engine[0] = '\0';
    assert_false(report_is_seen_otherwise(&a, &b));
    b.hostname[0] = 'i';
    assert_true(report_is_seen_otherwise(&a, &b));
    b = a;
    b.candidates = y;
    assert_true(report_is_seen_otherwise(&a, &b));
    b = a;
    b.paths = y;
    assert_true(report_is_seen_otherwise(&a, &b));
    b = a;
    b.aead = NULL;
    assert_true(report_is_seen_otherwise(&a, &b));
    b = a;
    b.fabric = y;
    assert_true(report_is_seen_otherwise(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_unknown_fields),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_candidates_of_the_overlay),
        cmocka_unit_test(test_fabric),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_whose_and_which),
        cmocka_unit_test(test_whole_report),
        cmocka_unit_test(test_what_is_not_said),
        cmocka_unit_test(test_longest_texts),
        cmocka_unit_test(test_refused_reports),
        cmocka_unit_test(test_speeds_of_ciphers),
        cmocka_unit_test(test_what_others_see),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
