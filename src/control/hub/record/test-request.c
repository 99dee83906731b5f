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
    assert_non_null(strstr(rp.candidates, "192.0.2.1:1"));
    assert_null(strstr(rp.candidates, "51407"));
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

/* ---- where the hub will be ------------------------------------------------------------------ */

/* Which of several places is meant, whoever reads the sentence has to be told. */
static void test_refused_places(void **state)
{
    static const struct {
        const char *body;
        const char *says;
    } cases[] = {
        {"{\"public\":[\"192.0.2.1\",1]}", "move: entry 2 of \"public\" is not a text"},
        {"{\"public\":[\"192.0.2.1\",\"hub.example\",\"127.0.0.1\"]}",
            "move: entry 3 of \"public\": 127.0.0.1 is in "},
        {"{\"public\":[\"a b\"]}", "move: entry 1 of \"public\": "},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = json_loads(cases[i].body, 0, NULL);
        struct hub_places places;
        struct err e = ERR_NULL;

        assert_int_equal(move_request_decode(&places, json, 51820, &e), -EINVAL);
        e.text[strlen(cases[i].says)] = '\0';
        assert_string_equal(e.text, cases[i].says);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_places),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_unknown_fields),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_candidates_of_the_overlay),
        cmocka_unit_test(test_fabric),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_whose_and_which),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
