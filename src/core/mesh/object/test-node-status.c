/* test-node-status.c - what a node reports of itself is what others read, and it is bounded. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/object/node_status.h"
#include "path/path.h"
#include "relay/line.h"

/* Each field differs from what a decoder would have without it, and from its neighbours. */
static struct path_side make_side(void)
{
    struct path_side side = {
        .generation = 7,
        .nat = {.mapping = BEHAVIOR_PORT_DEPENDENT,
            .filtering = BEHAVIOR_ADDRESS_DEPENDENT,
            .is_natted = true,
            .is_blocked = true,
            .port_step = -2,
            .last_port = 40001},
        .keepalive = 25 * NSEC_PER_SEC,
        .can_guess = true,
        .relay_run = 9,
        .n_relays = 2,
        .relays = {{.rtt = 30 * NSEC_PER_MSEC, .mtu = 1420}, {.rtt = 0, .is_stream = true}},
    };
    struct endpoint at;

    side.relays[0].key.b[0] = 1;
    side.relays[1].key.b[31] = 2;
    assert_int_equal(endpoint_parse(&at, "192.0.2.7:51820", NULL), 0);
    assert_true(candidates_add(&side.candidates, CANDIDATE_HOST, &at));
    assert_int_equal(endpoint_parse(&at, "[2001:db8::7]:4500", NULL), 0);
    assert_true(candidates_add(&side.candidates, CANDIDATE_MAPPED, &at));
    return side;
}

static void test_a_report_comes_back(void **state)
{
    const struct path_side side = make_side();
    json_t *candidates = path_report_encode_candidates(&side);
    json_t *facts = path_report_encode_facts(&side);
    struct path_side found;
    struct err e = ERR_NULL;

    if (path_report_decode(&found, candidates, facts, "the node", &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_true(path_side_equal(&found, &side));
    assert_int_equal(found.generation, 7);
    assert_int_equal(found.candidates.items[1].kind, CANDIDATE_MAPPED);
    json_decref(candidates);
    json_decref(facts);
}

/* What a newer node may say is passed over. */
static void test_what_is_not_known_is_passed_over(void **state)
{
    json_t *candidates = json_loads("[{\"type\": \"pigeon\", \"endpoint\": \"192.0.2.7:1\"},"
                                    " {\"type\": \"host\", \"endpoint\": \"192.0.2.7:2\"}]",
        0, NULL);
    json_t *facts = json_loads("{\"mapping\": \"by-the-moon\", \"wings\": 2}", 0, NULL);
    struct path_side found;

    assert_int_equal(path_report_decode(&found, candidates, facts, "the node", NULL), 0);
    assert_int_equal(found.candidates.n, 1);
    assert_int_equal(found.candidates.items[0].endpoint.port, 2);
    assert_int_equal(found.nat.mapping, BEHAVIOR_UNKNOWN);
    assert_false(found.nat.is_natted || found.nat.is_blocked || found.can_guess);
    json_decref(candidates);
    json_decref(facts);
}

#define KEY "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

/** Facts, and what is said of them; NULL: they are taken. */
struct facts_case {
    const char *facts;
    const char *says;
};

static void test_facts_are_bounded(void **state)
{
    static const struct facts_case cases[] = {
        {"{\"portStep\": 32767}", NULL},
        {"{\"portStep\": -32768}", NULL},
        {"{\"portStep\": 32768}", "\"portStep\" is not a number from -32768 to 32767"},
        {"{\"portStep\": -32769}", "\"portStep\" is not a number from -32768 to 32767"},
        {"{\"portStep\": \"1\"}", "\"portStep\" is not a number from -32768 to 32767"},
        {"{\"lastPort\": 65535, \"keepaliveMs\": 3600000}", NULL},
        {"{\"lastPort\": 65536}", "\"lastPort\""},
        {"{\"keepaliveMs\": 3600001}", "\"keepaliveMs\""},
        {"{\"generation\": -1}", "\"generation\""},
        {"{\"blocked\": 1}", "\"blocked\""},
        {"{\"relays\": [{\"key\": \"short\"}]}", "\"key\""},
        {"{\"relays\": [{}]}", "\"key\""},
        {"{\"relays\": [{\"key\": \"" KEY "\", \"rttUs\": 60000000, \"mtu\": 65535}]}", NULL},
        {"{\"relays\": [{\"key\": \"" KEY "\", \"rttUs\": 60000001}]}", "\"rttUs\""},
        {"{\"relays\": [{\"key\": \"" KEY "\", \"mtu\": 65536}]}", "\"mtu\""},
        {"{\"relays\": [{\"key\": \"" KEY "\", \"stream\": 1}, {\"key\": \"" KEY "\"}]}",
            "\"stream\""},
        {"{\"relays\": [{}, {}, {}, {}, {}, {}, {}, {}, {}]}",
            "\"relays\" is not an array of 0 to 8 items"},
        {"{\"natted\": 1}", "\"natted\""},
        {"{\"canSpray\": 1}", "\"canSpray\""},
        {"{\"relayRun\": -1}", "\"relayRun\""},
        {"{\"portStep\": 1.5}", "\"portStep\" is not a number from -32768 to 32767"},
        {"{\"mapping\": 1}", "\"mapping\""},
        {"{\"filtering\": 1}", "\"filtering\""},
        {"[]", "is not a JSON object"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *facts = json_loads(cases[i].facts, 0, NULL);
        struct path_side found = {.generation = 5};
        struct err e = ERR_NULL;
        int r = path_report_decode(&found, NULL, facts, "the node", &e);

        assert_non_null(facts);
        assert_int_equal(r, cases[i].says ? -EINVAL : 0);
        if (cases[i].says && (!strstr(err_text(&e), cases[i].says) || found.generation != 5))
            fail_msg("%s: \"%s\"", cases[i].facts, err_text(&e));
        json_decref(facts);
    }
}

/* As many candidates as a node keeps of a peer, each with what it needs. */
static void test_candidates_are_bounded(void **state)
{
    static const char *const refused[][2] = {
        {"[7]", "the node: is not a JSON object"},
        {"[{\"endpoint\": \"192.0.2.7:1\"}]", "the node: \"type\" is missing"},
        {"[{\"type\": \"host\"}]", "the node: \"endpoint\" is missing"},
        {"[{\"type\": \"host\", \"endpoint\": \"x\"}, {}]",
            "the node: a candidate's endpoint: \"x\" is not ADDRESS:PORT"},
    };
    struct path_side found = {.generation = 5};
    json_t *items = json_array();
    struct err e = ERR_NULL;

    for (int port = 1; port <= CANDIDATES_MAX; port++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "192.0.2.7:%d", port);
        assert_int_equal(
            json_array_append_new(items, json_pack("{s:s, s:s}", "type", "host", "endpoint", text)),
            0);
    }
    assert_int_equal(path_report_decode(&found, items, NULL, "the node", &e), 0);
    assert_int_equal(found.candidates.n, CANDIDATES_MAX);
    assert_int_equal(found.generation, 0);
    assert_int_equal(json_array_append(items, json_array_get(items, 0)), 0);
    assert_int_equal(path_report_decode(&found, items, NULL, "the node", &e), -EINVAL);
    assert_string_equal(e.text, "the node has 33 candidates, and 32 are allowed");
    json_decref(items);
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        items = json_loads(refused[i][0], 0, NULL);
        assert_int_equal(path_report_decode(&found, items, NULL, "the node", &e), -EINVAL);
        assert_string_equal(e.text, refused[i][1]);
        assert_int_equal(found.candidates.n, CANDIDATES_MAX);
        json_decref(items);
    }
}

/* Of a fabric only its kind is needed. */
static void test_a_fabric_is_bounded(void **state)
{
    static const struct facts_case cases[] = {
        {"{\"kind\": \"efa\"}", NULL},
        {"{}", "\"kind\" is missing"},
        {"{\"kind\": \"\"}", "\"kind\" has 0 bytes"},
        {"{\"kind\": \"efa\", \"gbit\": 1000000}", NULL},
        {"{\"kind\": \"efa\", \"gbit\": 1000001}", "\"gbit\""},
        {"{\"kind\": \"efa\", \"machine\": 1}", "\"machine\""},
        {"{\"kind\": \"efa\", \"gpu\": 1}", "\"gpu\""},
        {"{\"kind\": \"efa\", \"askedTogether\": 1}", "\"askedTogether\""},
        {"{\"kind\": \"efa\", \"keys\": [{}, {\"key\": \"a\"}]}", "\"key\" is missing"},
        {"{\"kind\": \"efa\", \"keys\": [{\"key\": \"a\", \"exact\": 1}]}", "\"exact\""},
        {"[]", "is not a JSON object"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *json = json_loads(cases[i].facts, 0, NULL);
        struct fabric_report found = {.n_gpus = 5};
        struct err e = ERR_NULL;
        int r = fabric_report_decode(&found, json, "the node", &e);

        assert_int_equal(r, cases[i].says ? -EINVAL : 0);
        assert_int_equal(found.n_gpus, cases[i].says ? 5 : 0);
        if (cases[i].says && !strstr(err_text(&e), cases[i].says))
            fail_msg("%s: \"%s\"", cases[i].facts, err_text(&e));
        json_decref(json);
    }
}

static void test_a_fabric_comes_back(void **state)
{
    const struct fabric_report report = {
        .kind = "efa",
        .machine = "p5.48xlarge",
        .gpu = "H100",
        .n_gpus = 8,
        .gbit = 3200,
        .asked_together = true,
        .keys = {{"aws-group/use1-az4/train", false}, {"aws-node/nn-1", true}},
        .n_keys = 2,
    };
    json_t *json = fabric_report_encode(&report);
    json_t *again;
    struct fabric_report found;
    struct err e = ERR_NULL;

    if (fabric_report_decode(&found, json, "the node", &e) != 0)
        fail_msg("%s", err_text(&e));
    again = fabric_report_encode(&found);
    assert_true(json_equal(again, json));
    json_decref(again);
    assert_int_equal(json_object_set_new(json, "gpus", json_integer(FABRIC_GPUS_MAX + 1)), 0);
    assert_int_equal(fabric_report_decode(&found, json, "the node", &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "\"gpus\""));
    assert_int_equal(found.n_gpus, 8);
    json_decref(json);
}

static void test_a_line_comes_back(void **state)
{
    const struct relay_line_report report = {
        .level = RELAY_LINE_FULL,
        .rate = 9600000,
        .capacity = 10000000,
        .pairs = {{.pair = {.keys = {{{1}}, {{2}}}, .rate = 5000000}, .is_away = true},
            {.pair = {.keys = {{{3}}, {{4}}}, .rate = 4000000}}},
        .n_pairs = 2,
        .notice = {.is_closed = true, .away = {0x00ff, UINT64_MAX}, .n_away = 2},
    };
    json_t *json = relay_line_encode(&report);
    json_t *again;
    struct relay_line_report found;
    struct err e = ERR_NULL;

    if (relay_line_decode(&found, json, "the node", &e) != 0)
        fail_msg("%s", err_text(&e));
    again = relay_line_encode(&found);
    assert_true(json_equal(again, json));
    assert_true(path_relay_notice_equal(&found.notice, &report.notice));
    assert_int_equal(found.pairs[1].pair.rate, 4000000);
    assert_string_equal(json_string_value(json_object_get(json, "capacityFrom")), "typed");
    assert_false(found.is_measured);
    (void)json_object_set_new(json, "capacityFrom", json_string("measured"));
    assert_int_equal(relay_line_decode(&found, json, "the node", &e), 0);
    assert_true(found.is_measured);
    json_decref(again);
    again = relay_line_encode(&found);
    assert_true(json_equal(again, json));
    /* A relay of an earlier version does not say it. */
    (void)json_object_del(json, "capacityFrom");
    assert_int_equal(relay_line_decode(&found, json, "the node", &e), 0);
    assert_false(found.is_measured);
    json_decref(again);
    json_decref(json);
    /* Others are told whether it is full, and whom it asks to go. */
    json = relay_notice_encode(&report.notice);
    assert_int_equal(relay_line_decode(&found, json, "the node", &e), 0);
    assert_true(path_relay_notice_equal(&found.notice, &report.notice));
    assert_int_equal(found.rate + found.capacity + found.n_pairs, 0);
    json_decref(json);
    assert_null(relay_notice_encode(&(struct path_relay_notice){.n_away = 0}));
}

static void test_a_line_is_bounded(void **state)
{
    static const struct {
        const char *line;
        const char *says; /* NULL: it is fine */
    } cases[] = {
        {"{}", NULL},
        {"{\"level\": \"near\", \"new\": 1}", NULL},
        {"{\"capacityFrom\": \"elsewhere\"}", NULL},
        {"{\"capacityFrom\": 1}", "\"capacityFrom\""},
        {"{\"level\": \"overfull\"}", "\"level\""},
        {"{\"rate\": -1}", "\"rate\""},
        {"{\"closed\": 1}", "\"closed\""},
        {"{\"away\": [\"00ff\"]}", "\"away\" holds something that is not 16 hex digits"},
        {"{\"away\": [7]}", "\"away\" holds something that is not 16 hex digits"},
        {"{\"pairs\": [{\"rate\": 1}]}", "\"a\" is missing"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *json = json_loads(cases[i].line, 0, NULL);
        struct relay_line_report found = {.rate = 5};
        struct err e = ERR_NULL;
        int r = relay_line_decode(&found, json, "the node", &e);

        assert_int_equal(r, cases[i].says ? -EINVAL : 0);
        assert_int_equal(found.rate, cases[i].says ? 5 : 0);
        if (cases[i].says && !strstr(err_text(&e), cases[i].says))
            fail_msg("%s: \"%s\"", cases[i].line, err_text(&e));
        json_decref(json);
    }
}

static void test_an_uplink_comes_back(void **state)
{
    static const struct uplink_report reports[] = {
        {.is_said = true, .state = UPLINK_UNKNOWN},
        {.is_said = true, .state = UPLINK_FAST, .bits_per_s = 2400000000, .at_s = 1800000000},
        {.is_said = true,
            .state = UPLINK_FOUND,
            .bits_per_s = 20000000,
            .at_s = 1800000000,
            .rate = 19000000,
            .from = UPLINK_FROM_FOUND},
        {.is_said = true, .rate = 5000000, .from = UPLINK_FROM_TYPED},
    };

    for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
        json_t *json = uplink_report_encode(&reports[i]);
        struct uplink_report found;
        struct err e = ERR_NULL;

        assert_int_equal(uplink_report_decode(&found, json, "the node", &e), 0);
        assert_true(uplink_report_equal(&found, &reports[i]));
        for (size_t k = 0; k < sizeof(reports) / sizeof(reports[0]); k++)
            assert_int_equal(uplink_report_equal(&found, &reports[k]), i == k);
        json_decref(json);
    }
    assert_null(uplink_report_encode(&(struct uplink_report){.is_said = false}));
}

static void test_an_uplink_is_bounded(void **state)
{
    static const struct {
        const char *uplink;
        const char *says; /* NULL: it is taken, as of nothing that is known */
    } cases[] = {
        {"{}", NULL},
        {"{\"state\": \"guessed\", \"from\": \"afar\", \"new\": 1}", NULL},
        {"{\"state\": 1}", "\"state\""},
        {"{\"from\": \"seventeen letters\"}", "\"from\""},
        {"{\"bitsPerSecond\": -1}", "\"bitsPerSecond\""},
        {"{\"rateBitsPerSecond\": 1.5}", "\"rateBitsPerSecond\""},
        {"{\"at\": -1}", "\"at\""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static const struct uplink_report none = {.is_said = true};
        json_t *json = json_loads(cases[i].uplink, 0, NULL);
        struct uplink_report found = {.rate = 5};
        struct err e = ERR_NULL;
        int r = uplink_report_decode(&found, json, "the node", &e);

        assert_int_equal(r, cases[i].says ? -EINVAL : 0);
        if (cases[i].says && !strstr(err_text(&e), cases[i].says))
            fail_msg("%s: \"%s\"", cases[i].uplink, err_text(&e));
        assert_true(cases[i].says ? found.rate == 5 : uplink_report_equal(&found, &none));
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_report_comes_back),
        cmocka_unit_test(test_what_is_not_known_is_passed_over),
        cmocka_unit_test(test_facts_are_bounded),
        cmocka_unit_test(test_candidates_are_bounded),
        cmocka_unit_test(test_a_fabric_comes_back),
        cmocka_unit_test(test_a_fabric_is_bounded),
        cmocka_unit_test(test_a_line_comes_back),
        cmocka_unit_test(test_a_line_is_bounded),
        cmocka_unit_test(test_an_uplink_comes_back),
        cmocka_unit_test(test_an_uplink_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
