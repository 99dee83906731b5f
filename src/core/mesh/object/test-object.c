/* test-object.c - what the decoders take, and the sentence with which they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/object/object.h"
#include "mesh/object/prices.h"
#include "mesh/object/subnets.h"
#include "test/support/golden_object.h"
#include "test/support/sample_mesh.h"

#define TLS_PIN "\"AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\""
#define KEY     "\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\""

#define NODE_WITH(name, spec)                                                                      \
    "{\"kind\": \"Node\", \"metadata\": {\"name\": \"" name "\", \"network\": \"default\"}, "      \
    "\"spec\": {\"publicKey\": " KEY                                                               \
    ", \"address4\": \"10.42.0.2\", \"address6\": \"fd5a::2\"" spec "}}"
#define EDGE_WITH(name, spec)                                                                      \
    "{\"kind\": \"MeshEdge\", \"metadata\": {\"name\": \"" name                                    \
    "\", \"network\": \"default\"}, \"spec\": {" spec "}}"
#define NETWORK_WITH(spec)                                                                         \
    "{\"kind\": \"Network\", \"metadata\": {\"name\": \"default\", \"resourceVersion\": 3}, "      \
    "\"spec\": {" spec "}}"

static json_t *load(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    if (!json)
        fail_msg("%s in %s", error.text, text);
    return json;
}

static int decode(struct object *ret, const char *text, enum object_mode mode, struct err *e)
{
    json_t *json = load(text);
    int r = object_decode(ret, json, mode, e);

    json_decref(json);
    return r;
}

static void test_node(void **state)
{
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(
        decode(&o,
            NODE_WITH("gpu-1", ", \"labels\": {\"zone\": \"b\", \"gpu\": \"h100\"}, "
                               "\"island\": \"rack-7\", \"ephemeral\": true, \"relay\": true, "
                               "\"routes\": [\"fd09::/64\", \"10.9.0.0/24\"], \"hub\": {"
                               "\"endpoints\": [\"203.0.113.10:51820\", \"[2001:db8::1]:7\"], "
                               "\"names\": [\"hub.example.org:51820\"], \"apiPort\": 8443, "
                               "\"tlsPin\": " TLS_PIN ", \"rendezvousEpoch\": 7}"),
            OBJECT_STRICT, &e),
        0);
    assert_ptr_equal(o.kind, &node_kind);
    assert_string_equal(o.node.meta.name, "gpu-1");
    assert_int_equal(o.node.key.b[0], 1);
    assert_int_equal(o.node.n_labels, 2);
    assert_string_equal(o.node.labels[0].key, "gpu");
    assert_string_equal(o.node.labels[1].value, "b");
    assert_string_equal(o.node.island, "rack-7");
    assert_true(o.node.ephemeral);
    assert_true(o.node.relay);
    assert_int_equal(o.node.routes->n, 2);
    assert_int_equal(o.node.routes->items[1].len, 64);
    assert_int_equal(o.node.hub->n_endpoints, 2);
    assert_int_equal(o.node.hub->endpoints[1].port, 7);
    assert_int_equal(o.node.hub->api_port, 8443);
    assert_int_equal(o.node.hub->n_names, 1);
    assert_string_equal(o.node.hub->names[0], "hub.example.org:51820");
    assert_true(o.node.hub->has_tls_pin);
    assert_int_equal(o.node.hub->tls_pin.b[31], 2);
    assert_int_equal(o.node.hub->rendezvous_epoch, 7);
    object_deinit(&o);
    object_deinit(&o);
}

static void test_defaults(void **state)
{
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(decode(&o, NODE_WITH("a", ", \"island\": \"\""), OBJECT_STRICT, &e), 0);
    assert_string_equal(o.node.island, "");
    assert_false(o.node.ephemeral);
    assert_false(o.node.relay);
    assert_null(o.node.hub);
    assert_null(o.node.routes);
    object_deinit(&o);
    assert_int_equal(
        decode(&o, NETWORK_WITH("\"cidr4\": \"10.42.0.0/16\", \"cidr6\": \"fd5a::/64\""),
            OBJECT_STRICT, &e),
        0);
    assert_int_equal(o.network.mtu, 1420);
    assert_int_equal(o.network.keepalive, NETWORK_KEEPALIVE_AUTO);
    assert_int_equal(o.network.topology, TOPOLOGY_AUTO);
    assert_int_equal(o.network.meta.resource_version, 3);
    object_deinit(&o);
    assert_int_equal(
        decode(&o, EDGE_WITH("a--b", "\"nodes\": [\"a\", \"b\"]"), OBJECT_STRICT, &e), 0);
    assert_int_equal(o.edge.path, EDGE_PATH_AUTO);
    object_deinit(&o);
}

#define SHINY_PRICES                                                                               \
    "\"cidr4\": \"10.42.0.0/16\", \"cidr6\": \"fd5a::/64\", "                                      \
    "\"prices\": {\"islands\": [{\"shiny\": 1}]}"
#define SHINY_BUDGET                                                                               \
    "\"cidr4\": \"10.42.0.0/16\", \"cidr6\": \"fd5a::/64\", "                                      \
    "\"budgets\": [{\"costPerDay\": 1, \"shiny\": 1}], "                                           \
    "\"prices\": {\"shiny\": 1, \"islands\": [{\"shiny\": 1, \"natPerGB\": 2}]}"

#define SHINY_METADATA                                                                             \
    "{\"kind\": \"Network\", \"metadata\": {\"name\": \"a\", \"shiny\": 1}, \"spec\": {"           \
    "\"cidr4\": \"10.42.0.0/16\", \"cidr6\": \"fd5a::/64\"}}"

/* A newer hub may know more fields than this program. */
static void test_unknown_fields(void **state)
{
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(decode(&o, NODE_WITH("a", ", \"shiny\": 1"), OBJECT_LENIENT, &e), 0);
    object_deinit(&o);
    assert_true(decode(&o, NODE_WITH("a", ", \"shiny\": 1"), OBJECT_STRICT, &e) < 0);
    assert_string_equal(e.text, "Node \"a\": \"shiny\" is not a field of it");
    assert_int_equal(decode(&o, NETWORK_WITH(SHINY_BUDGET), OBJECT_LENIENT, &e), 0);
    assert_true(o.network.prices->islands[0].nat == 2);
    object_deinit(&o);
    assert_true(decode(&o, NETWORK_WITH(SHINY_BUDGET), OBJECT_STRICT, &e) < 0);
    assert_string_equal(e.text, "Network \"default\": \"shiny\" is not a field of it");
    assert_true(decode(&o, NETWORK_WITH(SHINY_PRICES), OBJECT_STRICT, &e) < 0);
    assert_string_equal(e.text,
        "Network \"default\": an island of the price table: \"shiny\" is not a "
        "field of it");
    assert_int_equal(decode(&o, SHINY_METADATA, OBJECT_LENIENT, &e), 0);
    object_deinit(&o);
    assert_true(decode(&o, SHINY_METADATA, OBJECT_STRICT, &e) < 0);
    assert_string_equal(e.text, "Network \"a\": \"shiny\" is not a field of it");
}

#define CAPPED_BUDGET                                                                              \
    "\"cidr4\": \"10.42.0.0/16\", \"cidr6\": \"fd5a::/64\", "                                      \
    "\"budgets\": [{\"costPerDay\": 1, \"cap\": \"50Mbit\"}]"

/* Budgets once had a rate for when they are spent. A stored one loads, and is not written again. */
static void test_stored_cap(void **state)
{
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;
    json_t *json;

    assert_int_equal(decode(&o, NETWORK_WITH(CAPPED_BUDGET), OBJECT_LENIENT, &e), 0);
    assert_string_equal(o.network.budgets.items[0].ignored_cap, "50Mbit");
    json = budgets_encode(&o.network.budgets);
    assert_null(json_object_get(json_array_get(json, 0), "cap"));
    assert_non_null(json_object_get(json_array_get(json, 0), "costPerDay"));
    json_decref(json);
    object_deinit(&o);
    assert_true(decode(&o, NETWORK_WITH(CAPPED_BUDGET), OBJECT_STRICT, &e) < 0);
    assert_string_equal(
        e.text, "Network \"default\": \"cap\" of a budget has no effect any more: leave it out");
}

/* Every sentence with which an object is refused. */
static const struct {
    const char *in;
    const char *says;
} refusals[] = {
    {"[]", "the object: is not a JSON object"},
    {"{}", "the object: \"kind\" is missing"},
    {"{\"kind\": \"Nodes\"}", "the object's kind is \"Nodes\", and @kinds are allowed"},
    {"{\"kind\": \"Node\", \"spec\": {}}", "Node: \"metadata\" is missing"},
    {"{\"kind\": \"Node\", \"metadata\": {}, \"spec\": {}}", "Node: \"name\" is missing"},
    {"{\"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}}", "Node \"a\": \"spec\" is missing"},
    {"{\"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}, \"spec\": {}}",
        "Node \"a\": \"network\" is missing"},
    {"{\"kind\": \"Network\", \"metadata\": {\"name\": \"a\", \"resourceVersion\": -1}, \"spec\": "
     "{}}",
        "Network \"a\": \"resourceVersion\" is not a whole number from 0 to "
        "9223372036854775807"},
    {"{\"kind\": \"Network\", \"metadata\": {\"name\": \"a\"}, \"spec\": {}, \"status\": 7}",
        "Network \"a\": \"status\" is not an object"},
    {NODE_WITH("gpu--1", ""), "node name \"gpu--1\" has two '-' in a row, which separate the "
                              "names in an edge's"},
    {NODE_WITH("GPU", ""), "node name \"GPU\" is not a name: 1 to 63 of a-z, 0-9 and '-', not "
                           "first or last a '-'"},
    {NODE_WITH("a", ", \"labels\": {\"k\": 1}"), "Node \"a\": label \"k\" is not a string"},
    {NODE_WITH("a", ", \"labels\": {\"k k\": \"\"}"),
        "Node \"a\": label key \"k k\" is not 1 to 63 of letters, digits, '-', '_', '.', '/'"},
    {NODE_WITH("a", ", \"ephemeral\": 1"), "Node \"a\": \"ephemeral\" is neither true nor false"},
    {NODE_WITH("a", ", \"relay\": \"yes\""), "Node \"a\": \"relay\" is neither true nor false"},
    {NODE_WITH("a", ", \"rate\": \"fast\""), "Node \"a\": \"rate\" \"fast\" is not a rate in bits "
                                             "per second, such as 10Gbit, 2.5Gbit or "
                                             "500Mbit"},
    {NODE_WITH("a", ", \"rate\": 100000000"), "Node \"a\": \"rate\" is not a string"},
    {NODE_WITH("a", ", \"classRates\": \"1Mbit\""), "Node \"a\": \"classRates\" is not an object"},
    {NODE_WITH("a", ", \"classRates\": {\"bulk\": \"9kbit\"}"),
        "Node \"a\": classRates: \"bulk\" \"9kbit\" is not from 100kbit to 1000Gbit"},
    {NODE_WITH("a", ", \"routes\": {}"), "Node \"a\": \"routes\" is not an array of 0 to 16 items"},
    {NODE_WITH("a", ", \"routes\": [1]"), "Node \"a\": \"routes\" is not a list of texts"},
    {NODE_WITH("a", ", \"routes\": [\"10.9.0.5/24\"]"),
        "Node \"a\": route \"10.9.0.5/24\" has bits set after its length: the subnet is "
        "10.9.0.0/24"},
    {NODE_WITH("a", ", \"hub\": {\"endpoints\": [], \"apiPort\": 1}"),
        "Node \"a\": \"endpoints\" is not an array of 1 to 8 items"},
    {NODE_WITH("a", ", \"hub\": {\"endpoints\": [\"x\"], \"apiPort\": 1}"),
        "Node \"a\": a hub's endpoint: \"x\" is not ADDRESS:PORT"},
    {NODE_WITH("a", ", \"hub\": {\"endpoints\": [\"1.2.3.4:5\"], \"names\": [\"a b:1\"], "
                    "\"apiPort\": 1}"),
        "Node \"a\": a hub's name: \"a b:1\" is not HOST:PORT"},
    {NODE_WITH("a", ", \"hub\": {\"endpoints\": [\"1.2.3.4:5\"], \"names\": [\"a:1\", \"b:1\", "
                    "\"c:1\", \"d:1\", \"e:1\"], \"apiPort\": 1}"),
        "Node \"a\": \"names\" is not an array of 0 to 4 items"},
    {NODE_WITH("a", ", \"hub\": {\"endpoints\": [\"1.2.3.4:5\"], \"apiPort\": 0}"),
        "Node \"a\": \"apiPort\" is not a whole number from 1 to 65535"},
    {NODE_WITH("a", ", \"hub\": {\"endpoints\": [\"1.2.3.4:5\"], \"apiPort\": 1, \"tlsPin\": "
                    "\"AgIC\"}"),
        "Node \"a\": a hub's tlsPin \"AgIC\" is not the base64 of 32 bytes"},
    {NODE_WITH("a", ", \"labels\": {\"gpu\": \"\\u009b31m\"}"),
        "Node \"a\": the value of label \"gpu\" is not 0 to 63 bytes of UTF-8 without control "
        "characters"},
    {NODE_WITH("a", "}, \"status\": {\"aead\": 7"), "Node \"a\": \"aead\" is not an object"},
    {NODE_WITH("a", "}, \"status\": {\"aead\": {\"aes256gcm\": 1000001}"),
        "Node \"a\": \"aes256gcm\" is not a whole number from 0 to 1000000"},
    {NODE_WITH("a", "}, \"status\": {\"aead\": {\"chacha20poly1305\": \"fast\"}"),
        "Node \"a\": \"chacha20poly1305\" is not a whole number from 0 to 1000000"},
    {EDGE_WITH("a--b", "\"nodes\": [\"a\"]"),
        "MeshEdge \"a--b\": \"nodes\" is not an array of 2 to 2 items"},
    {EDGE_WITH("b--a", "\"nodes\": [\"b\", \"a\"]"),
        "MeshEdge \"b--a\": the names \"b\" and \"a\" are not two in byte order"},
    {EDGE_WITH("a--c", "\"nodes\": [\"a\", \"b\"]"),
        "MeshEdge \"a--c\": the edge of these nodes is called \"a--b\""},
    {EDGE_WITH("a--b", "\"nodes\": [\"a\", \"b\"], \"rate\": \"2Tbit\""),
        "MeshEdge \"a--b\": \"rate\" \"2Tbit\" is not from 100kbit to 1000Gbit"},
    {EDGE_WITH("a--b", "\"nodes\": [\"a\", \"b\"], \"path\": \"fast\""),
        "MeshEdge \"a--b\": \"path\" is \"fast\", and one of auto, direct, relay, off is "
        "allowed"},
    {NETWORK_WITH("\"cidr4\": \"10.42.0.1/16\", \"cidr6\": \"fd5a::/64\""),
        "Network \"default\": \"cidr4\" is \"10.42.0.1/16\", which has bits set after its "
        "length"},
    {NETWORK_WITH("\"cidr4\": \"10.0.0.0/31\", \"cidr6\": \"fd5a::/64\""),
        "Network \"default\": \"cidr4\" is \"10.0.0.0/31\", and lengths /8 to /30 are allowed"},
    {NETWORK_WITH("\"cidr4\": \"fd5a::/64\", \"cidr6\": \"fd5a::/64\""),
        "Network \"default\": \"cidr4\" is \"fd5a::/64\", which is not IPv4"},
    {NETWORK_WITH("\"cidr4\": \"224.0.0.0/16\", \"cidr6\": \"fd5a::/64\""),
        "Network \"default\": \"cidr4\" is \"224.0.0.0/16\", which overlaps 224.0.0.0/3, and nodes "
        "cannot have those"},
    {NETWORK_WITH("\"cidr4\": \"127.0.0.0/8\", \"cidr6\": \"fd5a::/64\""),
        "Network \"default\": \"cidr4\" is \"127.0.0.0/8\", which overlaps 127.0.0.0/8, and nodes "
        "cannot have those"},
    {NETWORK_WITH("\"cidr4\": \"10.42.0.0/16\", \"cidr6\": \"fe80::/64\""),
        "Network \"default\": \"cidr6\" is \"fe80::/64\", which overlaps fe80::/10, and nodes "
        "cannot have those"},
    {NETWORK_WITH("\"cidr4\": \"10.0.0.0/16\", \"cidr6\": \"fd5a::/64\", \"prices\": []"),
        "Network \"default\": \"prices\" is not an object"},
    {NETWORK_WITH("\"cidr4\": \"10.0.0.0/16\", \"cidr6\": \"fd5a::/64\", "
                  "\"prices\": {\"islands\": [{\"natPerGB\": -1}]}"),
        "Network \"default\": an island of the price table: \"natPerGB\" is no number from 0 to "
        "1e+09"},
    {NETWORK_WITH("\"cidr4\": \"10.0.0.0/16\", \"cidr6\": \"fd5a::/64\", \"mtu\": 1279"),
        "Network \"default\": \"mtu\" is not a whole number from 1280 to 65455"},
};

static void test_refusals(void **state)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        struct object o = OBJECT_NULL;
        struct err e = ERR_NULL;
        char says[SAMPLE_SENTENCE_MAX];

        assert_true(decode(&o, refusals[i].in, OBJECT_LENIENT, &e) < 0);
        assert_string_equal(e.text, sample_sentence(refusals[i].says, says));
        assert_null(o.kind);
    }
}

/* Where the kind is known before the object is read, it has to say the same. */
static void test_objects_of_another_kind(void **state)
{
    static const struct {
        const struct object_kind *kind;
        const char *in, *says;
    } cases[] = {
        {&node_kind, EDGE_WITH("a--b", "\"nodes\": [\"a\", \"b\"]"),
            "Node \"a--b\": \"kind\" is \"MeshEdge\", not \"Node\""},
        {&network_kind, NODE_WITH("a", ""), "Network \"a\": \"kind\" is \"Node\", not \"Network\""},
        {&mesh_edge_kind, NETWORK_WITH(""),
            "MeshEdge \"default\": \"kind\" is \"Network\", not \"MeshEdge\""},
        {&network_kind, "{\"metadata\": {}, \"spec\": {}}", "Network: \"kind\" is missing"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct object o = OBJECT_NULL;
        struct err e = ERR_NULL;
        json_t *json = load(cases[i].in);

        assert_int_equal(cases[i].kind->decode(&o, json, OBJECT_LENIENT, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].says);
        json_decref(json);
    }
}

static void test_public_key_refused(void **state)
{
    static const char *const bad[] = {
        "\"\"",
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"", /* zero */
        "\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=\"", /* spare bits set */
        "\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"",
        "7",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *json = load(NODE_WITH("a", ""));
        struct object o = OBJECT_NULL;
        json_t *key = json_loads(bad[i], JSON_DECODE_ANY, NULL);

        assert_int_equal(json_object_set_new(json_object_get(json, "spec"), "publicKey", key), 0);
        assert_true(object_decode(&o, json, OBJECT_LENIENT, NULL) < 0);
        json_decref(json);
    }
}

static void test_too_many_labels(void **state)
{
    json_t *json = load(NODE_WITH("a", ", \"labels\": {}"));
    json_t *labels = json_object_get(json_object_get(json, "spec"), "labels");
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;
    char key[16];

    for (unsigned i = 0; i <= OBJECT_LABELS_MAX; i++) {
        (void)snprintf(key, sizeof(key), "k%u", i);
        assert_int_equal(json_object_set_new(labels, key, json_string("v")), 0);
    }
    assert_true(object_decode(&o, json, OBJECT_LENIENT, &e) < 0);
    assert_string_equal(e.text, "Node \"a\": has 33 labels, and 32 are allowed");
    json_decref(json);
}

/* NULL in place of a text: it is to be taken. */
static void expect_key_rotation(
    json_t *value, enum object_mode mode, uint32_t seconds, const char *says)
{
    json_t *json =
        load("{\"kind\": \"Network\", \"metadata\": {\"name\": \"default\"}, \"spec\": {\"cidr4\": "
             "\"10.42.0.0/16\", \"cidr6\": \"fd5a::/64\"}}");
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;
    int r;

    assert_int_equal(json_object_set_new(json_object_get(json, "spec"), "keyRotation", value), 0);
    r = object_decode(&o, json, mode, &e);
    assert_int_equal(r, says ? -EINVAL : 0);
    if (says)
        assert_string_equal(e.text, says);
    else
        assert_int_equal(o.network.key_rotation, seconds);
    object_deinit(&o);
    json_decref(json);
}

static void test_key_rotation(void **state)
{
    expect_key_rotation(json_integer(0), OBJECT_STRICT, 0, NULL);
    expect_key_rotation(json_string("0"), OBJECT_STRICT, 0, NULL);
    expect_key_rotation(json_integer(60), OBJECT_STRICT, 60, NULL);
    expect_key_rotation(json_string("30d"), OBJECT_STRICT, 30 * 86400, NULL);
    expect_key_rotation(json_integer(59), OBJECT_STRICT, 0,
        "Network \"default\": \"keyRotation\" is 59 s, and only 0 or 60 to 316224000 s are "
        "allowed");
    expect_key_rotation(json_string("1s"), OBJECT_STRICT, 0,
        "Network \"default\": \"keyRotation\" is 1 s, and only 0 or 60 to 316224000 s are allowed");
    expect_key_rotation(json_integer(316224001), OBJECT_STRICT, 0,
        "Network \"default\": \"keyRotation\" is 316224001 s, and only 0 or 60 to 316224000 s are "
        "allowed");
    expect_key_rotation(json_string("monthly"), OBJECT_STRICT, 0,
        "Network \"default\": \"keyRotation\" \"monthly\" is not a duration from 0 s to 3660 d 0 h "
        "(such "
        "as 90s, 15m, 1h, 7d)");
    /* As an earlier hub has stored it. */
    expect_key_rotation(json_integer(7), OBJECT_LENIENT, 7, NULL);
}

#define BLOCKS "\"cidr4\": \"10.42.0.0/16\", \"cidr6\": \"fd5a::/64\""

/* What each spec of a Network becomes: with what it does not say, and without what is usual. */
static void test_specs_of_a_network(void **state)
{
    static const struct {
        const char *spec;
        const char *becomes;
    } cases[] = {
        {NETWORK_WITH(BLOCKS),
            "{\"cidr4\":\"10.42.0.0/16\",\"cidr6\":\"fd5a::/64\",\"topology\":\"auto\","
            "\"mtu\":1420,\"keepalive\":\"auto\",\"cipher\":\"auto\",\"keyRotation\":0}"},
        {NETWORK_WITH(BLOCKS ", \"topology\": \"hub\", \"mtu\": 1280, \"keepalive\": 0, "
                             "\"cipher\": \"chacha20poly1305\", \"showDscp\": true, "
                             "\"drainShare\": 100"),
            "{\"cidr4\":\"10.42.0.0/16\",\"cidr6\":\"fd5a::/64\",\"topology\":\"hub\","
            "\"mtu\":1280,\"keepalive\":0,\"cipher\":\"chacha20poly1305\",\"keyRotation\":0,"
            "\"showDscp\":true,\"drainShare\":100}"},
        {NETWORK_WITH(BLOCKS ", \"topology\": \"mesh\", \"mtu\": 65455, \"keepalive\": 3600, "
                             "\"cipher\": \"aes256gcm\", \"showDscp\": false, \"budgets\": ["
                             "{\"costPerDay\": 2.5}, {\"job\": \"a\", \"bytesPerDay\": 7}]"),
            "{\"cidr4\":\"10.42.0.0/16\",\"cidr6\":\"fd5a::/64\",\"topology\":\"mesh\","
            "\"mtu\":65455,\"keepalive\":3600,\"cipher\":\"aes256gcm\",\"keyRotation\":0,"
            "\"budgets\":[{\"costPerDay\":2.5},{\"job\":\"a\",\"bytesPerDay\":7}]}"},
        {NETWORK_WITH(BLOCKS ", \"keepalive\": \"auto\", \"budgets\": [], "
                             "\"prices\": {\"islands\": [{\"natPerGB\": 2}]}"),
            "{\"cidr4\":\"10.42.0.0/16\",\"cidr6\":\"fd5a::/64\",\"topology\":\"auto\","
            "\"mtu\":1420,\"keepalive\":\"auto\",\"cipher\":\"auto\",\"keyRotation\":0,"
            "\"prices\":{\"currency\":\"USD\",\"islands\":[{\"natPerGB\":2.0,\"zones\":1}]}}"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct object o = OBJECT_NULL;
        struct err e = ERR_NULL;
        json_t *json;
        char *text;

        if (decode(&o, cases[i].spec, OBJECT_STRICT, &e) != 0)
            fail_msg("%s", e.text);
        assert_string_equal(o.network.meta.name, "default");
        json = object_encode(&o);
        text = json_dumps(json_object_get(json, "spec"), JSON_COMPACT);
        assert_string_equal(text, cases[i].becomes);
        free(text);
        json_decref(json);
        object_deinit(&o);
        assert_null(o.network.prices);
    }
}

static void test_networks_that_are_none(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"{\"kind\": \"Network\", \"metadata\": {\"name\": \"A b\"}, \"spec\": {" BLOCKS "}}",
            "network name"},
        {NETWORK_WITH(BLOCKS ", \"mtu\": 1279"),
            "\"mtu\" is not a whole number from 1280 to 65455"},
        {NETWORK_WITH(BLOCKS ", \"mtu\": 65456"),
            "\"mtu\" is not a whole number from 1280 to 65455"},
        {NETWORK_WITH(BLOCKS ", \"drainShare\": 101"),
            "\"drainShare\" is not a whole number from 0 to 100"},
        {NETWORK_WITH(BLOCKS ", \"keepalive\": -1"),
            "\"keepalive\" is neither \"auto\" nor a number from 0 to 3600"},
        {NETWORK_WITH(BLOCKS ", \"keepalive\": 3601"),
            "\"keepalive\" is neither \"auto\" nor a number from 0 to 3600"},
        {NETWORK_WITH(BLOCKS ", \"keepalive\": \"often\""),
            "\"keepalive\" is neither \"auto\" nor a number from 0 to 3600"},
        {NETWORK_WITH(BLOCKS ", \"keepalive\": true"),
            "\"keepalive\" is neither \"auto\" nor a number from 0 to 3600"},
        {NETWORK_WITH(BLOCKS ", \"keepalive\": 2.5"),
            "\"keepalive\" is neither \"auto\" nor a number from 0 to 3600"},
        {NETWORK_WITH(BLOCKS ", \"prices\": {\"islands\": [{\"natPerGB\": -2}]}"), "natPerGB"},
        {NETWORK_WITH("\"cidr4\": \"10.42.0.0/16\""), "\"cidr6\" is missing"},
        {NETWORK_WITH("\"cidr6\": \"fd5a::/64\""), "\"cidr4\" is missing"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct object o = OBJECT_NULL;
        struct err e = ERR_NULL;

        assert_true(decode(&o, cases[i].text, OBJECT_STRICT, &e) < 0);
        if (!strstr(e.text, cases[i].says))
            fail_msg("\"%s\" has no \"%s\"", e.text, cases[i].says);
        object_deinit(&o);
    }
}

static void test_round_trip(void **state)
{
    static const char *const cases[] = {
        "{\"kind\": \"Network\", \"metadata\": {\"name\": \"default\", \"resourceVersion\": 3}, "
        "\"spec\": {\"cidr4\": \"10.42.0.0/16\", \"cidr6\": \"fd5a::/64\", \"topology\": \"mesh\", "
        "\"mtu\": 1400, \"keepalive\": 25, \"cipher\": \"aes256gcm\", \"keyRotation\": 0}}",
        "{\"kind\": \"Network\", \"metadata\": {\"name\": \"default\", \"resourceVersion\": 3}, "
        "\"spec\": {\"cidr4\": \"10.42.0.0/16\", \"cidr6\": \"fd5a::/64\", \"topology\": \"auto\", "
        "\"mtu\": 1400, \"keepalive\": \"auto\", \"cipher\": \"auto\", \"keyRotation\": 0}}",
        "{\"kind\": \"Node\", \"metadata\": {\"name\": \"gpu-1\", \"network\": \"default\", "
        "\"resourceVersion\": 9}, \"spec\": {\"publicKey\": " KEY ", \"address4\": \"10.42.0.1\", "
        "\"address6\": \"fd5a::1\", \"labels\": {\"gpu\": \"h100\"}, \"island\": \"\", "
        "\"ephemeral\": false, \"hub\": {\"endpoints\": [\"203.0.113.10:51820\"], \"apiPort\": "
        "8443}"
        "}, \"status\": {\"lastSeen\": 1790000000, \"candidates\": [], "
        "\"aead\": {\"chacha20poly1305\": 1300, \"aes256gcm\": 2900}}}",
        "{\"kind\": \"MeshEdge\", \"metadata\": {\"name\": \"a--b\", \"network\": \"default\", "
        "\"resourceVersion\": 12}, \"spec\": {\"nodes\": [\"a\", \"b\"], \"path\": \"off\"}, "
        "\"status\": {\"agent/a\": {\"path\": \"relay\"}, \"probe/a\": {}}}",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = load(cases[i]);
        struct object o = OBJECT_NULL;
        struct err e = ERR_NULL;
        json_t *encoded;

        assert_int_equal(object_decode(&o, json, OBJECT_STRICT, &e), 0);
        encoded = object_encode(&o);
        assert_true(json_equal(json, encoded));
        json_decref(encoded);
        json_decref(json);
        object_deinit(&o);
    }
}

static void test_golden(void **state)
{
    for (unsigned i = 0; object_kinds[i]; i++) {
        char file[128];

        (void)snprintf(file, sizeof(file), "test/golden/objects/%s.json", object_kinds[i]->name);
        golden_object_check(object_kinds[i], file);
    }
}

/* No two rows have a name, a list or a prefix in common. */
static void test_rows(void **state)
{
    static const char first[] = "Network, Node, MeshEdge";
    char all[OBJECT_KINDS_TEXT_MAX];

    assert_memory_equal(object_kinds_text(all), first, sizeof(first) - 1);
    for (unsigned i = 0; object_kinds[i]; i++) {
        const struct object_kind *a = object_kinds[i];

        assert_int_equal(object_kind_index(a), i);
        assert_ptr_equal(object_kind_find(a->name), a);
        assert_int_equal(a->prefix[strlen(a->prefix) - 1], '/');
        assert_int_equal(a->is_network, !a->list);
        for (unsigned k = 0; k < i; k++) {
            const struct object_kind *b = object_kinds[k];

            assert_string_not_equal(a->name, b->name);
            assert_string_not_equal(a->prefix, b->prefix);
            assert_true(!a->list || !b->list || strcmp(a->list, b->list) != 0);
        }
    }
    assert_null(object_kind_find("Sheep"));
}

static void test_edge_name(void **state)
{
    char buf[OBJECT_NAME_MAX + 1];

    assert_string_equal(edge_name("gpu-2", "gpu-1", buf), "gpu-1--gpu-2");
    assert_string_equal(edge_name("gpu-1", "gpu-2", buf), "gpu-1--gpu-2");
    assert_string_equal(edge_name("gpu-10", "gpu-2", buf), "gpu-10--gpu-2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_unknown_fields),
        cmocka_unit_test(test_stored_cap),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_objects_of_another_kind),
        cmocka_unit_test(test_public_key_refused),
        cmocka_unit_test(test_too_many_labels),
        cmocka_unit_test(test_key_rotation),
        cmocka_unit_test(test_specs_of_a_network),
        cmocka_unit_test(test_networks_that_are_none),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_edge_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
