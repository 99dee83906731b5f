/* test-edge-view.c - which edges are known, and how each is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "test/support/audience.h"
#include "test/support/store_now.h"

#define WALL 1800000000
#define AT   ",\"observedAt\":\"2027-01-15T08:00:00Z\""

#define QUIET "the two have not spoken to each other yet"

#define NAME_OF_63 "a23456789012345678901234567890123456789012345678901234567890123"

static struct reports reports;

static int enter(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    int r = audience_enter(state);

    assert_int_equal(reports_flush(&audience_hub.hub->reports, NSEC_PER_SEC, NULL), 0);
    reports_init(&reports, audience_network()->model);
    for (unsigned i = 0; i < 3; i++)
        audience_node(names[i])->spec.stock = false;
    return r;
}

static int leave(void **state)
{
    reports_deinit(&reports);
    return audience_leave(state);
}

/* A report with ' for ". */
static void say(const char *name, const char *text)
{
    struct report rp = REPORT_NULL;
    struct err e = ERR_NULL;
    char copy[512];
    json_t *json;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json = json_loads(copy, 0, NULL);
    if (!json || report_decode(&rp, json, WALL, &e) != 0)
        fail_msg("%s: %s", text, err_text(&e));
    json_decref(json);
    (void)reports_take(&reports, audience_node(name), &rp, WALL);
}

static struct edge_pair pair_of(const char *name)
{
    struct edge_pair pair;

    assert_true(edge_pair_find(&pair, audience_network(), name));
    return pair;
}

static void expect_text(json_t *json, const char *expected)
{
    char *text = json_dumps(json, JSON_COMPACT);

    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static void expect_pairs(bool and_implied, const char *expected)
{
    struct edge_pairs pairs = EDGE_PAIRS_NULL;
    struct str s = STR_NULL;
    char *text;

    assert_int_equal(edge_pairs_known(&pairs, audience_network(), and_implied), 0);
    str_add(&s, " ");
    for (size_t i = 0; i < pairs.n; i++)
        str_addf(&s, "%s--%s ", pairs.items[i].nodes[0]->spec.meta.name,
            pairs.items[i].nodes[1]->spec.meta.name);
    text = str_take(&s, NULL);
    assert_string_equal(text, expected);
    free(text);
    edge_pairs_deinit(&pairs);
    assert_null(pairs.items);
}

static void test_names_of_pairs(void **state)
{
    static const char *const none[] = {
        "a-b", "a--x", "x--b", "x--y", "--b", "a--", NAME_OF_63 "--b", NAME_OF_63 "4--b"};
    struct edge_pair pair = pair_of("b--a");

    assert_ptr_equal(pair.nodes[0], audience_node("b"));
    assert_ptr_equal(pair.nodes[1], audience_node("a"));
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        if (edge_pair_find(&pair, audience_network(), none[i]))
            fail_msg("%s", none[i]);
    audience_add(NAME_OF_63);
    pair = pair_of(NAME_OF_63 "--b");
    assert_string_equal(pair.nodes[0]->spec.meta.name, NAME_OF_63);
}

static void test_which_are_known(void **state)
{
    static const char *const all[] = {"a", "b", "c"};

    expect_pairs(false, " ");
    expect_pairs(true, " a--b a--c b--c ");
    for (unsigned i = 0; i < 3; i++)
        say(all[i], "{'applied':{'revision':1}}");
    expect_pairs(true, " ");
    say("b", "{'applied':{'revision':0}}");
    expect_pairs(true, " a--b b--c ");
    expect_pairs(false, " ");
    say("b", "{'applied':{'revision':1,'error':'x'}}");
    expect_pairs(true, " a--b b--c ");
    say("b", "{'applied':{'revision':1}}");
    /* Both ends say it, and each pair is there once. */
    say("c", "{'edges':{'a':{'path':'lan'},'b':{'path':'lan'}}}");
    say("b", "{'owner':'probe/b','edges':{'c':{'tunnel':'reached'}}}");
    audience_set_edge("relay");
    expect_pairs(false, " a--b a--c b--c ");
    /* Without an agent nothing is implied. */
    say("c", "{'edges':{}}");
    say("b", "{'owner':'probe/b','edges':{}}");
    audience_node("b")->spec.stock = true;
    audience_node("b")->reported->reported_at = 0;
    expect_pairs(true, " a--b ");
    /* What is off is none either. */
    audience_node("b")->spec.stock = false;
    audience_set_edge("off");
    expect_pairs(true, " a--b b--c ");
    audience_remove("b");
    expect_pairs(true, " ");
}

/* One whose other node is not there yet is none. */
static void test_an_edge_to_nobody(void **state)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = "edge/default/a--z",
        .value = "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--z\",\"network\":"
                 "\"default\"},\"spec\":{\"nodes\":[\"a\",\"z\"],\"path\":\"relay\"}}",
        .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(audience_hub.hub->store, &op, 1, 1, NULL, NULL, NULL), 0);
    assert_int_equal(audience_network()->edges.n, 1);
    expect_pairs(false, " ");
}

static void test_the_status_of_an_edge(void **state)
{
    struct edge_pair pair = pair_of("a--b");

    expect_text(edge_view_status(&pair, WALL),
        "{\"hub\":{\"state\":\"never-applied\",\"why\":\"the agent of a has never been heard\"}}");
    say("a", "{'node':{'engine':'e'},'applied':{'revision':3,'error':'no tun'},"
             "'edges':{'b':{'path':'direct','handshakeAgeSeconds':3}}}");
    say("a", "{'owner':'probe/a','edges':{'b':{'tunnel':'reached'}}}");
    say("b", "{'applied':{'revision':4}}");
    expect_text(edge_view_status(&pair, WALL),
        "{\"agent/a\":{\"path\":\"direct\",\"handshakeAgeSeconds\":3,"
        "\"applied\":{\"revision\":3,\"engine\":\"e\",\"error\":\"no tun\"}" AT "},"
        "\"probe/a\":{\"tunnel\":\"reached\",\"underlay\":\"unknown\"" AT "},"
        "\"agent/b\":{\"applied\":{\"revision\":4,\"engine\":\"\"}" AT "},"
        "\"hub\":{\"state\":\"failing\",\"why\":\"a cannot apply it: no tun\"}}");
}

/* Round trips are shown while both machines are there, and who has measured them is heard. */
static void test_the_round_trips_of_an_edge(void **state)
{
    struct edge_pair pair = pair_of("a--b");
    const json_t *rtt;
    json_t *json;

    say("a", "{'applied':{'revision':3},'edges':{'b':{'path':'direct','rtt':{'p50Ms':20.5,"
             "'p99Ms':31,'jitterMs':0.25,'samples':9,'usualMs':19.5}}}}");
    for (unsigned i = 0; i < 4; i++) {
        audience_node("a")->reported->is_down = i == 1;
        audience_node("b")->reported->is_down = i == 2;
        json = edge_view_status(&pair, i == 3 ? WALL + 3600 : WALL);
        rtt = json_object_get(json_object_get(json, "agent/a"), "rtt");
        assert_int_equal(rtt != NULL, i == 0);
        assert_true(i != 0 || json_real_value(json_object_get(rtt, "usualMs")) == 19.5);
        assert_int_equal(
            json_object_get(json_object_get(json, "agent/a"), "stale") != NULL, i == 1 || i == 3);
        json_decref(json);
    }
}

/* The last day in the list, each day of a single edge. */
static void test_the_days_of_an_edge(void **state)
{
    struct edge_pair pair = pair_of("a--b");
    json_t *json;
    json_t *part;

    say("a", "{'daily':{'b':[[20785,900,900,1000,1000,412,301],[20786,0,800,0,1000,0,0]],"
             "'nobody':[[20786,1,1,1,1,1,1]]}}");
    json = edge_view_status(&pair, WALL);
    part = json_object_get(json, "agent/a");
    assert_null(json_object_get(part, "lineByDay"));
    expect_text(json_incref(json_object_get(part, "line")),
        "{\"day\":\"2026-11-29\",\"tunnelBitsPerSecond\":[0,800000],"
        "\"rawBitsPerSecond\":[0,1000000],\"costPercent\":20}");
    json_decref(json);
    json = edge_view_object(&pair, WALL);
    part = json_object_get(json_object_get(json, "status"), "agent/a");
    assert_int_equal(json_array_size(json_object_get(part, "lineByDay")), 2);
    json_decref(json);
    assert_int_equal(audience_node("a")->reported->heard.report.daily.n, 1);
    /* One of the same day takes the place of that. */
    say("a", "{'daily':{'b':[[20786,0,900,0,1000,0,0]]}}");
    json = edge_view_object(&pair, WALL);
    part = json_object_get(json_object_get(json, "status"), "agent/a");
    assert_int_equal(json_array_size(json_object_get(part, "lineByDay")), 2);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(part, "line"), "costPercent")), 10);
    json_decref(json);
}

static void test_edges_as_objects(void **state)
{
    struct edge_pair pair = pair_of("a--b");
    json_t *json;

    say("a", "{'applied':{'revision':3}}");
    say("b", "{'applied':{'revision':4}}");
    json = edge_view_object(&pair, WALL);
    expect_text(json,
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\",\"network\":\"default\"},"
        "\"spec\":{\"nodes\":[\"a\",\"b\"],\"path\":\"auto\"},"
        "\"status\":{\"agent/a\":{\"applied\":{\"revision\":3,\"engine\":\"\"}" AT "},"
        "\"agent/b\":{\"applied\":{\"revision\":4,\"engine\":\"\"}" AT "},"
        "\"hub\":{\"state\":\"idle\",\"why\":\"" QUIET "\"}}}");
    audience_set_edge("relay");
    json = edge_view_object(&pair, WALL);
    expect_text(json,
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\",\"network\":\"default\","
        "\"resourceVersion\":6},\"spec\":{\"nodes\":[\"a\",\"b\"],\"path\":\"relay\"},"
        "\"status\":{\"agent/a\":{\"applied\":{\"revision\":3,\"engine\":\"\"}" AT "},"
        "\"agent/b\":{\"applied\":{\"revision\":4,\"engine\":\"\"}" AT "},"
        "\"hub\":{\"state\":\"idle\",\"why\":\"" QUIET "\"}}}");
}

static void test_the_list(void **state)
{
    say("a", "{'applied':{'revision':3},'edges':{'b':{'path':'direct','handshakeAgeSeconds':3},"
             "'c':{'path':'none'}}}");
    say("b", "{'applied':{'revision':3},'edges':{'a':{'path':'direct','handshakeAgeSeconds':3}}}");
    say("c", "{'applied':{'revision':3},'edges':{'a':{'path':'none'}}}");
    expect_text(edge_view_list(audience_network(), WALL),
        "{\"edges\":[{\"name\":\"a--c\",\"nodes\":[\"a\",\"c\"],\"state\":\"no-path\","
        "\"why\":\"a has no path to c\",\"since\":1800000000,\"forSeconds\":0,"
        "\"trouble\":true,"
        "\"status\":{\"agent/a\":{\"path\":\"none\",\"applied\":{\"revision\":3,"
        "\"engine\":\"\"}" AT "},\"agent/c\":{\"path\":\"none\",\"applied\":{\"revision\":3,"
        "\"engine\":\"\"}" AT "},\"hub\":{\"state\":\"no-path\",\"why\":\"a has no path to c\"}}},"
        "{\"name\":\"a--b\",\"nodes\":[\"a\",\"b\"],\"state\":\"direct\",\"why\":\"\","
        "\"since\":1800000000,\"forSeconds\":0,\"trouble\":false,"
        "\"status\":{\"agent/a\":{\"path\":\"direct\","
        "\"handshakeAgeSeconds\":3,\"applied\":{\"revision\":3,\"engine\":\"\"}" AT "},"
        "\"agent/b\":{\"path\":\"direct\",\"handshakeAgeSeconds\":3,"
        "\"applied\":{\"revision\":3,\"engine\":\"\"}" AT "},\"hub\":{\"state\":\"direct\","
        "\"why\":\"\"}}}],\"counts\":{\"no-path\":1,\"direct\":1},\"leftOut\":0}");
}

/* What is off is no trouble. */
static void test_a_list_of_edges_that_are_off(void **state)
{
    static const char *const all[] = {"a", "b", "c"};

    for (unsigned i = 0; i < 3; i++)
        say(all[i], "{'applied':{'revision':1}}");
    audience_set_edge("off");
    expect_text(edge_view_list(audience_network(), WALL),
        "{\"edges\":[{\"name\":\"a--b\",\"nodes\":[\"a\",\"b\"],\"state\":\"off\","
        "\"why\":\"\",\"trouble\":false,\"status\":{\"agent/a\":{\"applied\":{\"revision\":1,"
        "\"engine\":\"\"}" AT "},\"agent/b\":{\"applied\":{\"revision\":1,\"engine\":\"\"}" AT "},"
        "\"hub\":{\"state\":\"off\",\"why\":\"\"}}}],\"counts\":{\"off\":1},\"leftOut\":0}");
}

/* "NAME STATE; ..." of the list with the idle ones, and how many have no room. */
static void expect_all(const char *expected)
{
    json_t *list = edge_view_list_all(audience_network(), WALL);
    struct str s = STR_NULL;
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(list, "edges"), i, row)
        str_addf(&s, "%s %s; ", json_string_value(json_object_get(row, "name")),
            json_string_value(json_object_get(row, "state")));
    str_addf(&s, "%d", (int)json_integer_value(json_object_get(list, "leftOut")));
    assert_string_equal(str_text(&s), expected);
    str_deinit(&s);
    json_decref(list);
}

/* Pairs that nobody says anything of come last, or first where one of the two is not heard. */
static void test_a_list_with_idle_edges(void **state)
{
    static const char *const all[] = {"a", "b", "c"};

    expect_all("a--b never-applied; a--c never-applied; b--c never-applied; 0");
    for (unsigned i = 0; i < 3; i++)
        say(all[i], "{'applied':{'revision':1}}");
    expect_all("a--b idle; a--c idle; b--c idle; 0");
    say("b", "{'applied':{'revision':1},'edges':{'c':{'path':'lan','handshakeAgeSeconds':3}}}");
    expect_all("b--c lan; a--b idle; a--c idle; 0");
    audience_node("c")->reported->is_down = true;
    expect_all("b--c agent-silent; a--c agent-silent; a--b idle; 0");
    audience_node("a")->reported->is_down = true;
    expect_all("b--c agent-silent; a--b agent-silent; a--c agent-silent; 0");
    expect_pairs(true, " b--c ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names_of_pairs, enter, leave),
        cmocka_unit_test_setup_teardown(test_which_are_known, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_edge_to_nobody, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_status_of_an_edge, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_round_trips_of_an_edge, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_days_of_an_edge, enter, leave),
        cmocka_unit_test_setup_teardown(test_edges_as_objects, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_list, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_list_of_edges_that_are_off, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_list_with_idle_edges, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
