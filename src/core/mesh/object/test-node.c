/* test-node.c - a node's labels, hub, rates and status, and an edge's ends: what is taken, what
 * comes back, and the sentence with which the rest is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/mesh_edge.h"
#include "mesh/object/node.h"
#include "mesh/object/node_status.h"
#include "mesh/object/object.h"
#include "path/path.h"

#define KEY "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

/* A node with these members of its spec, and that status; NULL: without one. */
static json_t *node_json(const char *spec, const char *status)
{
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s}}", "kind", "Node", "metadata",
        "name", "a", "network", "default", "spec", "publicKey", KEY, "address4", "10.42.0.2",
        "address6", "fd5a::2");
    json_t *more = json_loads(spec, JSON_REJECT_DUPLICATES, NULL);

    assert_true(json && more);
    assert_int_equal(json_object_update(json_object_get(json, "spec"), more), 0);
    json_decref(more);
    if (status)
        assert_int_equal(json_object_set_new(json, "status", json_loads(status, 0, NULL)), 0);
    return json;
}

/* NULL in place of a text: it is to be taken. */
static void expect(
    const char *spec, const char *status, enum object_mode mode, const char *says, struct node *ret)
{
    json_t *json = node_json(spec, status);
    struct err e = ERR_NULL;
    int r;

    *ret = (struct node)NODE_NULL;
    r = node_decode(ret, json, mode, &e);
    assert_int_equal(r, says ? -EINVAL : 0);
    if (says)
        assert_string_equal(e.text, says);
    json_decref(json);
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Every character that a key may have, and what lies beside each range. */
static void test_characters_of_a_key(void **state)
{
    for (int c = 1; c < 256; c++) {
        const char key[] = {'x', (char)c, '\0'};
        bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '/';

        assert_int_equal(label_check(key, "", NULL), is_good ? 0 : -EINVAL);
    }
}

static void test_lengths_of_labels(void **state)
{
    char text[OBJECT_LABEL_MAX + 2];

    memset(text, 'x', sizeof(text));
    text[OBJECT_LABEL_MAX + 1] = '\0';
    assert_int_equal(label_check(text, "", NULL), -EINVAL);
    assert_int_equal(label_check("k", text, NULL), -EINVAL);
    text[OBJECT_LABEL_MAX] = '\0';
    assert_int_equal(label_check(text, text, NULL), 0);
    assert_int_equal(label_check("k", "", NULL), 0);
    assert_int_equal(label_check("", "v", NULL), -EINVAL);
}

/* As many as there may be come back, by their keys. */
static void test_all_labels(void **state)
{
    json_t *json = node_json("{\"labels\": {}}", NULL);
    json_t *labels = json_object_get(json_object_get(json, "spec"), "labels");
    struct node n = NODE_NULL;
    json_t *back;

    for (unsigned i = OBJECT_LABELS_MAX; i > 0; i--) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%02u", i);
        assert_int_equal(json_object_set_new(labels, key, json_integer(i)), 0);
        assert_int_equal(json_object_set_new(labels, key, json_sprintf("v%u", i)), 0);
    }
    assert_int_equal(node_decode(&n, json, OBJECT_STRICT, NULL), 0);
    assert_int_equal(n.n_labels, OBJECT_LABELS_MAX);
    assert_string_equal(n.labels[0].key, "k01");
    assert_string_equal(n.labels[0].value, "v1");
    assert_string_equal(n.labels[OBJECT_LABELS_MAX - 1].key, "k32");
    back = node_encode(&n);
    assert_true(json_equal(json_object_get(json_object_get(back, "spec"), "labels"), labels));
    json_decref(back);
    json_decref(json);
    node_deinit(&n);
    assert_null(n.labels);
}

/* ---- hub, island, rates ---------------------------------------------------------------------- */

static void test_what_a_spec_may_not_say(void **state)
{
    static const struct {
        const char *spec;
        const char *says;
    } rows[] = {
        {"{\"hub\": {\"endpoints\": [7], \"apiPort\": 1}}",
            "Node \"a\": a hub's endpoint is not a string"},
        {"{\"hub\": {\"endpoints\": [\"1.2.3.4:5\"], \"names\": [7], \"apiPort\": 1}}",
            "Node \"a\": a hub's name is not a string"},
        {"{\"hub\": {\"endpoints\": [\"1.2.3.4:5\"], \"apiPort\": 1, \"shiny\": 1}}",
            "Node \"a\": \"shiny\" is not a field of it"},
        {"{\"island\": \"A\"}", "Node \"a\": island \"A\" is not a name: 1 to 63 of a-z, 0-9 and "
                                "'-', not first or last a '-'"},
        {"{\"classRates\": {\"shiny\": \"1Mbit\"}}",
            "Node \"a\": classRates: \"shiny\" is not a field of it"},
        {"{\"rate\": \"1bit\", \"classRates\": {\"bulk\": \"1Mbit\"}}",
            "Node \"a\": \"rate\" \"1bit\" is not from 100kbit to 1000Gbit"},
        {"{\"drained\": \"\"}", "Node \"a\": \"drained\" has 0 bytes, and 1 to 255 are allowed"},
    };
    struct node n;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        expect(rows[i].spec, NULL, OBJECT_STRICT, rows[i].says, &n);
    /* What a newer version knows is no reason to refuse what another hub has stored. */
    for (size_t i = 2; i < 5; i += 2) {
        expect(rows[i].spec, NULL, OBJECT_LENIENT, NULL, &n);
        assert_int_equal(!n.hub, i == 4);
        assert_null(n.rates);
        node_deinit(&n);
    }
    expect("{\"island\": \"\"}", NULL, OBJECT_STRICT, NULL, &n);
    assert_string_equal(n.island, "");
    node_deinit(&n);
}

/* All that a spec has, there and back. */
static void test_a_whole_spec(void **state)
{
    static const char spec[] =
        "{\"labels\": {\"gpu\": \"h100\"}, \"island\": \"rack-1\", \"ephemeral\": true, "
        "\"relay\": true, \"showDscp\": true, \"drained\": \"disk full\", "
        "\"routes\": [\"10.9.0.0/24\"], \"rate\": \"100Mbit\", \"classRates\": {\"normal\": "
        "\"1Mbit\", \"bulk\": \"20Mbit\"}, "
        "\"hub\": {\"endpoints\": [\"203.0.113.10:51820\", \"[2001:db8::1]:51820\"], \"names\": "
        "[\"hub.example.org:51820\"], \"apiPort\": 8443, \"tlsPin\": "
        "\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\", \"rendezvousEpoch\": 7}}";
    json_t *json = node_json(spec, NULL);
    struct node n = NODE_NULL;
    struct err e = ERR_NULL;
    json_t *back;

    if (node_decode(&n, json, OBJECT_STRICT, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_false(node_has_agent(&n));
    assert_int_equal(n.hub->n_endpoints, 2);
    assert_int_equal(n.hub->n_names, 1);
    assert_true(n.rates->all == 100000000);
    back = node_encode(&n);
    assert_true(json_equal(json_object_get(back, "spec"), json_object_get(json, "spec")));
    json_decref(back);
    json_decref(json);
    node_deinit(&n);
    expect("{\"stock\": true}", NULL, OBJECT_STRICT, NULL, &n);
    assert_false(node_has_agent(&n));
    node_deinit(&n);
    expect("{\"classRates\": {}}", NULL, OBJECT_STRICT, NULL, &n);
    assert_true(node_has_agent(&n));
    assert_null(n.rates);
    node_deinit(&n);
    /* Of rates alone, and without a rate of a class. */
    json = node_json("{\"rate\": \"100Mbit\"}", NULL);
    assert_int_equal(node_decode(&n, json, OBJECT_STRICT, NULL), 0);
    back = node_encode(&n);
    assert_null(json_object_get(json_object_get(back, "spec"), "classRates"));
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(back, "spec"), "rate")), "100Mbit");
    json_decref(back);
    json_decref(json);
    node_deinit(&n);
}

/* ---- status ---------------------------------------------------------------------------------- */

#define CANDIDATES                                                                                 \
    "[{\"type\": \"host\", \"endpoint\": \"192.0.2.7:51820\"}, "                                   \
    "{\"type\": \"host\", \"endpoint\": \"192.0.2.8:51820\"}]"

static void test_a_status(void **state)
{
    struct node n;

    expect("{}",
        "{\"hostname\": \"gpu-7\", \"candidates\": " CANDIDATES ", \"paths\": {}, \"fabric\": "
        "{\"kind\": \"efa\", \"gbit\": 400}, \"aead\": {\"chacha20poly1305\": 1300}}",
        OBJECT_LENIENT, NULL, &n);
    assert_string_equal(n.hostname, "gpu-7");
    assert_non_null(n.side);
    assert_int_equal(n.side->candidates.n, 2);
    assert_string_equal(n.fabric->kind, "efa");
    assert_int_equal(n.fabric->gbit, 400);
    assert_int_equal(n.speeds.mb_per_s[AEAD_CIPHER_CHACHA20POLY1305], 1300);
    assert_false(node_speeds_known(&n.speeds));
    node_deinit(&n);
    assert_null(n.hostname);
    /* What is not there is not there. */
    expect("{}", "{\"candidates\": []}", OBJECT_LENIENT, NULL, &n);
    assert_null(n.hostname);
    assert_null(n.side);
    assert_null(n.fabric);
    assert_false(node_speeds_known(&n.speeds));
    node_deinit(&n);
}

static void test_what_a_status_may_not_say(void **state)
{
    static const struct {
        const char *status;
        const char *says;
    } rows[] = {
        {"{\"hostname\": \"GPU\"}", "hostname \"GPU\" is not a name: 1 to 63 of a-z, 0-9 and '-', "
                                    "not first or last a '-'"},
        {"{\"hostname\": \"GPU\", \"fabric\": {}}",
            "hostname \"GPU\" is not a name: 1 to 63 of a-z, 0-9 and '-', not first or last a "
            "'-'"},
        {"{\"candidates\": [{\"type\": \"host\", \"endpoint\": \"x\"}], \"aead\": {}}",
            "a candidate's endpoint: \"x\" is not ADDRESS:PORT"},
        {"{\"fabric\": {}, \"aead\": {}}", "\"kind\" is missing"},
        {"{\"aead\": {\"aes256gcm\": -1}}", "\"aes256gcm\" is not a whole number from 0 to "
                                            "1000000"},
        {"{\"paths\": 7}", "\"paths\" is not an object"},
    };
    struct node n;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        json_t *status = json_loads(rows[i].status, 0, NULL);
        struct err e = ERR_NULL;
        char says[200];

        (void)snprintf(says, sizeof(says), "Node \"a\": %s", rows[i].says);
        expect("{}", rows[i].status, OBJECT_LENIENT, says, &n);
        assert_int_equal(node_check_status(status, "Node \"a\"", &e), -EINVAL);
        assert_string_equal(e.text, says);
        json_decref(status);
    }
}

/* Here the facts about paths count even without candidates. */
static void test_checking_a_status(void **state)
{
    static const struct {
        const char *status;
        bool is_good;
    } rows[] = {
        {"{}", true},
        {"{\"candidates\": " CANDIDATES ", \"hostname\": \"gpu-7\"}", true},
        {"{\"paths\": {}}", true},
        {"{\"paths\": {\"keepaliveMs\": -1}}", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        json_t *status = json_loads(rows[i].status, 0, NULL);

        assert_int_equal(node_check_status(status, "it", NULL), rows[i].is_good ? 0 : -EINVAL);
        json_decref(status);
    }
}

static void test_speeds(void **state)
{
    struct node_speeds s = {.mb_per_s = {0}};
    json_t *json;

    for (unsigned c = 0; c < AEAD_CIPHER_N; c++) {
        assert_false(node_speeds_known(&s));
        s.mb_per_s[c] = 100 + c;
    }
    assert_true(node_speeds_known(&s));
    json = node_speeds_encode(&s);
    assert_int_equal(json_object_size(json), AEAD_CIPHER_N);
    for (unsigned c = 0; c < AEAD_CIPHER_N; c++)
        assert_int_equal(json_integer_value(json_object_get(json, aead_cipher_names[c])), 100 + c);
    json_decref(json);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static int edge_decode(
    struct object *ret, const char *spec, const char *status, enum object_mode mode, struct err *e)
{
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:o}", "kind", "MeshEdge", "metadata", "name",
        "a--b", "network", "default", "spec", json_loads(spec, 0, NULL));
    int r;

    assert_non_null(json);
    if (status)
        assert_int_equal(json_object_set_new(json, "status", json_loads(status, 0, NULL)), 0);
    r = object_decode(ret, json, mode, e);
    json_decref(json);
    return r;
}

static void test_what_an_edge_may_not_say(void **state)
{
    static const struct {
        const char *spec;
        const char *status;
        const char *says;
    } rows[] = {
        {"{\"nodes\": [7, \"b\"]}", NULL, "a node's name is not a string"},
        {"{\"nodes\": [\"a\", \"B\"]}", NULL,
            "node name \"B\" is not a name: 1 to 63 of a-z, 0-9 "
            "and '-', not first or last a '-'"},
        {"{\"nodes\": [\"a\", \"a\"]}", NULL,
            "the names \"a\" and \"a\" are not two in byte "
            "order"},
        {"{\"nodes\": [\"a\", \"b\"], \"shiny\": 1}", NULL, "\"shiny\" is not a field of it"},
        {"{\"nodes\": [\"a\", \"b\"]}", "{\"agent/a\": 7}",
            "the status of \"agent/a\" is not an object"},
        {"{\"nodes\": [\"a\", \"b\"]}",
            "{\"1\": {}, \"2\": {}, \"3\": {}, \"4\": {}, \"5\": {}, \"6\": {}, \"7\": {}, "
            "\"8\": {}, \"9\": {}}",
            "its status has 9 owners, and 8 are allowed"},
        {"{\"nodes\": [\"a\", \"b\"], \"path\": \"x\"}", "{\"agent/a\": {}}",
            "\"path\" is \"x\", and one of auto, direct, relay, off is allowed"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct object o = OBJECT_NULL;
        struct err e = ERR_NULL;
        char says[200];

        (void)snprintf(says, sizeof(says), "MeshEdge \"a--b\": %s", rows[i].says);
        assert_int_equal(edge_decode(&o, rows[i].spec, rows[i].status, OBJECT_STRICT, &e), -EINVAL);
        assert_string_equal(e.text, says);
    }
}

static void test_an_edge(void **state)
{
    static const char spec[] = "{\"nodes\": [\"a\", \"b\"], \"shiny\": 1}";
    static const char eight[] = "{\"1\": {}, \"2\": {}, \"3\": {}, \"4\": {}, \"5\": {}, \"6\": "
                                "{}, \"7\": {}, \"8\": {}}";
    const struct node a = {.meta.name = "a"};
    const struct node b = {.meta.name = "b"};
    const struct node c = {.meta.name = "c"};
    struct object o = OBJECT_NULL;

    assert_int_equal(edge_decode(&o, spec, eight, OBJECT_LENIENT, NULL), 0);
    assert_int_equal(json_object_size(o.edge.status), 8);
    assert_ptr_equal(mesh_edge_pin(&o.edge, "a"), &o.edge.pins[0]);
    assert_ptr_equal(mesh_edge_pin(&o.edge, "b"), &o.edge.pins[1]);
    assert_null(mesh_edge_pin(&o.edge, "c"));
    assert_null(mesh_edge_pin(NULL, "a"));
    assert_string_equal(o.kind->node(&o, 0), "a");
    assert_string_equal(o.kind->node(&o, 1), "b");
    assert_null(o.kind->node(&o, 2));
    assert_true(o.kind->can_see(&o, &a));
    assert_true(o.kind->can_see(&o, &b));
    assert_false(o.kind->can_see(&o, &c));
    object_deinit(&o);
}

/* The longest names that two nodes have. */
static void test_the_longest_edge(void **state)
{
    char a[NAME_MAX_LEN + 1];
    char b[NAME_MAX_LEN + 1];
    char name[OBJECT_NAME_MAX + 1];
    char expected[2 * NAME_MAX_LEN + 3];
    struct object o = OBJECT_NULL;
    json_t *json;

    memset(a, 'a', NAME_MAX_LEN);
    memset(b, 'b', NAME_MAX_LEN);
    a[NAME_MAX_LEN] = b[NAME_MAX_LEN] = '\0';
    (void)snprintf(expected, sizeof(expected), "%s--%s", a, b);
    assert_string_equal(edge_name(b, a, name), expected);
    json = json_pack("{s:s, s:{s:s, s:s}, s:{s:[s, s]}}", "kind", "MeshEdge", "metadata", "name",
        name, "network", "default", "spec", "nodes", a, b);
    assert_int_equal(object_decode(&o, json, OBJECT_STRICT, NULL), 0);
    json_decref(json);
    object_deinit(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_characters_of_a_key),
        cmocka_unit_test(test_lengths_of_labels),
        cmocka_unit_test(test_all_labels),
        cmocka_unit_test(test_what_a_spec_may_not_say),
        cmocka_unit_test(test_a_whole_spec),
        cmocka_unit_test(test_a_status),
        cmocka_unit_test(test_what_a_status_may_not_say),
        cmocka_unit_test(test_checking_a_status),
        cmocka_unit_test(test_speeds),
        cmocka_unit_test(test_what_an_edge_may_not_say),
        cmocka_unit_test(test_an_edge),
        cmocka_unit_test(test_the_longest_edge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
