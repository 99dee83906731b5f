/* test-islands.c - who is together, why, and how sure that is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "train/islands/islands.h"

/* The status of an agent with the node itself, a, and what is given of its peers. */
static json_t *find(const char *self, const char *peers, struct str *text)
{
    struct islands islands;
    struct str s = STR_NULL;
    json_t *status;
    json_t *json;

    str_addf(&s, "{\"self\":{\"name\":\"a\"%s},\"peers\":[%s]}", self, peers);
    status = json_loads(str_text(&s), 0, NULL);
    assert_non_null(status);
    assert_int_equal(islands_find(&islands, status, NULL), 0);
    json = islands_encode(&islands);
    assert_non_null(json);
    if (text)
        islands_format(text, json);
    islands_deinit(&islands);
    json_decref(status);
    str_deinit(&s);
    return json;
}

#define PEER(name, rest) "{\"name\":\"" name "\"" rest "}"
#define LABEL(name)      ",\"island\":\"" name "\""
#define FABRIC(kind, key, exact)                                                                   \
    ",\"fabric\":{\"kind\":\"" kind "\",\"keys\":[{\"key\":\"" key "\",\"exact\":" exact "}]}"
#define TOGETHER                                                                                   \
    ",\"fabric\":{\"kind\":\"efa\",\"askedTogether\":true,"                                        \
    "\"keys\":[{\"key\":\"aws-group/z/g\",\"exact\":true}]}"
#define BUSY(path, least) ",\"path\":\"" path "\",\"rttMs\":9.5,\"leastRttMs\":" least
#define RTT(path, ms)     ",\"path\":\"" path "\",\"rttMs\":" ms

static void check(const json_t *json, size_t i, const char *field, const char *expected)
{
    const json_t *island = json_array_get(json_object_get(json, "islands"), i);
    const json_t *value = json_object_get(island, field);
    const json_t *name;
    struct str names = STR_NULL;
    size_t k;

    assert_non_null(island);
    json_array_foreach(value, k, name)
        str_addf(&names, "%s%s", k > 0 ? " " : "", json_string_value(name));
    assert_string_equal(
        json_is_array(value) ? str_text(&names) : json_string_value(value), expected);
    str_deinit(&names);
}

static size_t count(const json_t *json, const char *list)
{
    return json_array_size(json_object_get(json, list));
}

static void test_labels(void **state)
{
    json_t *json = find(LABEL("rack1") FABRIC("efa", "k", "true"),
        PEER("b", LABEL("rack1")) "," PEER("c", FABRIC("efa", "k", "true")) "," PEER(
            "d", LABEL("rack2")),
        NULL);

    assert_int_equal(count(json, "islands"), 1);
    check(json, 0, "name", "rack1");
    check(json, 0, "nodes", "a b");
    check(json, 0, "fabric", "mixed");
    check(json, 0, "state", "found");
    assert_int_equal(count(json, "alone"), 2);
    json_decref(json);
}

static void test_exact_keys(void **state)
{
    json_t *json = find(FABRIC("efa", "aws-group/z/g", "true"),
        PEER("b", FABRIC("efa", "aws-group/z/g", "true") RTT("lan", "0.2")) "," PEER(
            "c", FABRIC("infiniband", "aws-group/z/g", "true")) "," PEER("d",
            FABRIC("efa", "aws-group/z/other", "true")) "," PEER("e",
            FABRIC("efa", "aws-group/z/g", "true")),
        NULL);

    assert_int_equal(count(json, "islands"), 1);
    check(json, 0, "name", "efa-a");
    check(json, 0, "nodes", "a b e");
    check(json, 0, "evidence", "they have aws-group/z/g");
    /* The ordinary network is near; over EFA nothing has gone. */
    check(json, 0, "state", "found");
    check(json, 0, "nearness", "near");
    json_decref(json);
}

/* The default prefix of InfiniBand is that of many places. */
static void test_other_keys(void **state)
{
    json_t *json = find(FABRIC("infiniband", "ib-subnet/fe80", "false"),
        PEER("b", FABRIC("infiniband", "ib-subnet/fe80", "false") RTT("lan", "0.3")) "," PEER("c",
            FABRIC("infiniband", "ib-subnet/fe80", "false")
                RTT("direct", "12")) "," PEER("d", FABRIC("infiniband", "ib-subnet/fe80", "false")),
        NULL);

    check(json, 0, "nodes", "a b");
    assert_int_equal(count(json, "islands"), 1);
    assert_int_equal(count(json, "alone"), 2);
    json_decref(json);
}

static void test_lan(void **state)
{
    json_t *json = find("",
        PEER("b", RTT("lan", "0.4")) "," PEER("c", RTT("direct", "0.4")) "," PEER(
            "d", RTT("lan", "3")) "," PEER("e", FABRIC("efa", "k", "true") RTT("lan", "0.4")),
        NULL);

    assert_int_equal(count(json, "islands"), 1);
    check(json, 0, "name", "lan-a");
    check(json, 0, "nodes", "a b");
    check(json, 0, "fabric", "ethernet");
    check(json, 0, "state", "verified");
    json_decref(json);
}

/* Machines that are busy answer late, and are where they were. */
static void test_busy(void **state)
{
    json_t *json = find("", PEER("b", BUSY("lan", "0.4")) "," PEER("c", BUSY("lan", "1.4")), NULL);

    assert_int_equal(count(json, "islands"), 1);
    check(json, 0, "nodes", "a b");
    check(json, 0, "state", "verified");
    json_decref(json);
}

static void test_contradicted(void **state)
{
    struct str text = STR_NULL;
    json_t *json = find(TOGETHER,
        PEER("b", TOGETHER RTT("lan", "0.2")) "," PEER("c", TOGETHER RTT("direct", "7.5")), &text);

    check(json, 0, "state", "contradicted");
    check(json, 0, "nearness", "far");
    assert_string_equal(str_text(&text),
        "efa-a (efa)\n"
        "  nodes: a b c\n"
        "  because they have aws-group/z/g\n"
        "  contradicted: a round trip takes 7.50 ms, though the machines were asked to be placed "
        "together\n");
    str_deinit(&text);
    json_decref(json);
}

/* A bench of all pairs says what this node alone cannot know; what it has measured itself stays. */
static void test_measured_between_others(void **state)
{
    static const char measured[] =
        "{\"pairs\":[{\"nodes\":[\"b\",\"c\"],\"path\":\"lan\",\"rttMedianUs\":300},"
        "{\"nodes\":[\"a\",\"b\"],\"path\":\"lan\",\"rttMedianUs\":200},"
        "{\"nodes\":[\"c\",\"d\"],\"path\":\"lan\",\"ways\":[{\"rttMedianUs\":400},null]},"
        "{\"nodes\":[\"d\",\"x\"],\"rttMedianUs\":1},{\"nodes\":[\"d\",\"d\"],\"rttMedianUs\":1},"
        "{\"nodes\":[\"b\",\"d\"],\"rttMedianUs\":-1},7]}";
    json_t *status = json_loads("{\"self\":{\"name\":\"a\"},\"peers\":[" PEER("b",
                                    RTT("direct", "20")) "," PEER("c", "") "," PEER("d", "") "]}",
        0, NULL);
    json_t *json = json_loads(measured, 0, NULL);
    struct islands islands = ISLANDS_NULL;

    assert_true(status && json);
    assert_int_equal(islands_find(&islands, status, json), 0);
    assert_int_equal(islands.n_pairs, 3);
    assert_int_equal(islands.n, 1);
    assert_int_equal(islands.items[0].n_nodes, 3);
    assert_int_equal(islands.items[0].n_pairs, 2);
    assert_int_equal(islands.of[0], SIZE_MAX);
    islands_deinit(&islands);
    json_decref(json);
    json_decref(status);
}

/* A report that is not well formed is no report. */
static void test_wrong_report(void **state)
{
    struct str text = STR_NULL;
    json_t *json = find(",\"fabric\":{\"kind\":1}", PEER("b", ",\"fabric\":[]"), &text);

    assert_int_equal(count(json, "islands"), 0);
    assert_string_equal(str_text(&text), "in no island: a b\n");
    str_deinit(&text);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_exact_keys),
        cmocka_unit_test(test_other_keys),
        cmocka_unit_test(test_lan),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_contradicted),
        cmocka_unit_test(test_measured_between_others),
        cmocka_unit_test(test_wrong_report),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
