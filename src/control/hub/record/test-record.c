/* test-record.c - keys, sums and values of the hub's records: what is written, what is read of it,
 * and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/record/record.h"
#include "test/support/sample_mesh.h"

#define HEX_OF_SEVENS "0707070707070707070707070707070707070707070707070707070707070707"

static struct token_hash sevens(void)
{
    struct token_hash h;

    memset(h.b, 7, sizeof(h.b));
    return h;
}

/* @text is taken. */
static void expect_text(char *text, const char *expected)
{
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void expect_refusal(int r, struct err *e, const char *says)
{
    assert_int_equal(r, -EINVAL);
    assert_string_equal(err_text(e), says);
    *e = (struct err)ERR_NULL;
}

/* A text with the key of number 1 in the place of each %s. */
static const char *with_key(const char *format)
{
    static char text[1024];
    static char key[X25519_BASE64_MAX];
    struct x25519_public public = sample_key(1);

    (void)x25519_public_format(&public, key);
    (void)snprintf(text, sizeof(text), format, key, key);
    return text;
}

/* ---- sums ----------------------------------------------------------------------------------- */

#define SEALED "{\"next\":7,\"sum\":\"090d690afde64130\"}"

static void test_sums(void **state)
{
    struct err e = ERR_NULL;

    expect_text(seal_add("ipam/default", "{\"next\":7}"), SEALED);
    assert_true(seal_is_there(SEALED));
    assert_int_equal(seal_check("ipam/default", SEALED, &e), 0);
    /* The shortest object that there is. */
    expect_text(seal_add("k", "{\"a\":0}"), "{\"a\":0,\"sum\":\"f7d1dd29180c7207\"}");
    assert_null(seal_add("k", "{\"a\":}"));
    assert_null(seal_add("k", "[1,2,3,4]"));
    /* A record without a sum, however short, passes. */
    assert_false(seal_is_there(""));
    assert_false(seal_is_there("{\"next\":7}"));
    assert_int_equal(seal_check("ipam/default", "", &e), 0);
    assert_int_equal(seal_check("ipam/default", "{\"next\":7}", &e), 0);
    assert_int_equal(
        seal_check("ipam/default", "{\"next\":7,\"more\":\"090d690afde64130\"}", &e), 0);
}

static void test_sums_of_damaged_records(void **state)
{
    struct err e = ERR_NULL;

    expect_refusal(seal_check("ipam/other", SEALED, &e), &e,
        "the sum in it is \"090d690afde64130\", and that of its key and text is "
        "\"a1380d0ce1025846\"");
    assert_int_equal(
        seal_check("ipam/default", "{\"next\":8,\"sum\":\"090d690afde64130\"}", &e), -EINVAL);
    assert_int_equal(
        seal_check("ipam/default", "{\"next\":7,\"sum\":\"090d690afde64131\"}", &e), -EINVAL);
    /* A tail alone is the sum of no text. */
    assert_true(seal_is_there(",\"sum\":\"090d690afde64130\"}"));
    assert_false(seal_is_there("\"sum\":\"090d690afde64130\"}"));
    assert_false(seal_is_there("{\"next\":7,\"sum\":\"090d690afde64130\"]"));
    expect_refusal(seal_check("ipam/default", "{\"next\":7,\"sum\":\"090d690afde64130\"]", &e), &e,
        "its last characters are \"], and not \"}");
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void test_prefixes(void **state)
{
    assert_string_equal(record_prefix(RECORD_NONE), "");
    assert_string_equal(record_prefix(RECORD_OBJECT), "");
    assert_string_equal(record_prefix(RECORD_NETWORK), "network/");
    assert_string_equal(record_prefix(RECORD_NODE), "node/");
    assert_string_equal(record_prefix(RECORD_EDGE), "edge/");
    assert_string_equal(record_prefix(RECORD_IPAM), "ipam/");
    assert_string_equal(record_prefix(RECORD_TOKEN), "token/");
    assert_string_equal(record_prefix(RECORD_REPORT), "report/");
    assert_int_equal(record_kind_of(&network_kind), RECORD_NETWORK);
    assert_int_equal(record_kind_of(&node_kind), RECORD_NODE);
    assert_int_equal(record_kind_of(&mesh_edge_kind), RECORD_EDGE);
    assert_string_equal(record_key_prefix("edge/x"), "edge/");
    assert_string_equal(record_key_prefix("report/"), "report/");
    assert_null(record_key_prefix("report"));
    assert_null(record_key_prefix("unheard-of/x"));
}

static void test_keys(void **state)
{
    static const struct {
        const char *key;
        enum record_kind kind;
        const char *network;
        const char *name;
        const struct object_kind *object;
    } cases[] = {
        {"network/default", RECORD_NETWORK, "default", "", &network_kind},
        {"node/default/n2", RECORD_NODE, "default", "n2", &node_kind},
        {"edge/default/n2--n3", RECORD_EDGE, "default", "n2--n3", &mesh_edge_kind},
        {"ipam/default", RECORD_IPAM, "default", "", NULL},
        {"report/default/n2", RECORD_REPORT, "default", "n2", NULL},
        {"token/ab12", RECORD_TOKEN, "", "ab12", NULL},
    };
    char buf[RECORD_KEY_MAX];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct record_key k = record_key_parse(cases[i].key);

        assert_int_equal(k.kind, cases[i].kind);
        assert_string_equal(k.network, cases[i].network);
        assert_string_equal(k.name, cases[i].name);
        assert_ptr_equal(k.object, cases[i].object);
        assert_string_equal(record_key(buf, k.kind, k.network, k.name), cases[i].key);
    }
    assert_string_equal(record_object_key(buf, &node_kind, "default", "n2"), "node/default/n2");
    assert_int_equal(record_key_parse("unheard-of/default").kind, RECORD_NONE);
    assert_null(record_key_parse("unheard-of/default").object);
    assert_int_equal(record_key_parse("").kind, RECORD_NONE);
    /* A name that is longer than any may be. */
    assert_int_equal(
        record_key_parse("network/"
                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
            .kind,
        RECORD_NONE);
}

static void test_keys_of_tokens(void **state)
{
    static const struct token_secret secret = {.b = {1}};
    struct token_hash hash = sevens();
    char buf[RECORD_KEY_MAX];

    assert_string_equal(token_hash_key(buf, &hash), "token/" HEX_OF_SEVENS);
    hash = token_hash_of(&secret);
    assert_string_equal(token_hash_key(buf, &hash),
        "token/01d0fabd251fcbbe2b93b4b927b26ad2a1a99077152e45ded1e678afa45dbec5");
}

/* ---- networks, nodes, edges ----------------------------------------------------------------- */

static void test_networks(void **state)
{
    struct snapshot s = sample_snapshot(1, 1);
    struct network_maker maker = {.key = sample_key(3), .name = "h2"};
    struct network_maker is = {.name = "untouched"};
    struct network n = {.mtu = 1};
    struct err e = ERR_NULL;
    char *text;

    s.network.meta.resource_version = 40;
    text = record_network_encode(&s.network, &maker);
    assert_null(strstr(text, "resourceVersion"));
    assert_int_equal(record_network_decode(&n, &is, text, &e), 0);
    assert_string_equal(n.meta.name, s.network.meta.name);
    assert_int_equal(n.mtu, s.network.mtu);
    assert_string_equal(is.name, "h2");
    assert_true(x25519_public_equal(&is.key, &maker.key));
    free(text);
    network_deinit(&n);
    is.name[0] = '\0';
    n.mtu = 1;
    expect_refusal(record_network_decode(&n, &is, "{}", &e), &e, "network: \"hubKey\" is missing");
    assert_int_equal(
        record_network_decode(&n, &is, with_key("{\"hubKey\":\"%s\",\"hubName\":\"h2\"}"), &e),
        -EINVAL);
    assert_int_equal(record_network_decode(&n, &is, "{", &e), -EINVAL);
    assert_int_equal(n.mtu, 1);
    assert_string_equal(is.name, "");
    snapshot_deinit(&s);
}

/* The network of an earlier hub, which had no name. */
static void test_a_network_of_a_hub_without_a_name(void **state)
{
    struct snapshot s = sample_snapshot(1, 1);
    struct network_maker maker = {.key = sample_key(1), .name = "h2"};
    struct network_maker is;
    struct network n;
    struct err e = ERR_NULL;
    char *text = record_network_encode(&s.network, &maker);
    json_t *json = json_loads(text, 0, NULL);

    free(text);
    assert_int_equal(json_object_del(json, "hubName"), 0);
    text = json_dumps(json, 0);
    assert_int_equal(record_network_decode(&n, &is, text, &e), 0);
    assert_string_equal(is.name, HUB_NAME_DEFAULT);
    network_deinit(&n);
    free(text);
    json_decref(json);
    snapshot_deinit(&s);
}

static void test_nodes(void **state)
{
    struct object o = sample_node(2);
    struct token_hash token = sevens();
    struct token_hash is = {.b = {0}};
    struct node n = {.address4 = {{0}}};
    struct err e = ERR_NULL;
    char *text;

    o.node.meta.resource_version = 40;
    o.node.status = json_pack("{s:s}", "engine", "x");
    text = record_node_encode(&o.node, &token);
    assert_null(strstr(text, "resourceVersion"));
    assert_null(strstr(text, "status"));
    assert_non_null(strstr(text, "\"token\":\"" HEX_OF_SEVENS "\""));
    assert_int_equal(record_node_decode(&n, &is, text, &e), 0);
    assert_string_equal(n.meta.name, "n2");
    assert_true(x25519_public_equal(&n.key, &o.node.key));
    assert_true(ip_addr_equal(&n.address4, &o.node.address4));
    assert_memory_equal(is.b, token.b, sizeof(is.b));
    free(text);
    node_deinit(&n);
    is = (struct token_hash){.b = {1}};
    expect_refusal(record_node_decode(&n, &is, "{}", &e), &e,
        "\"token\" of a stored node is not the hex of 32 bytes");
    expect_refusal(record_node_decode(&n, &is, "{\"token\":\"07\"}", &e), &e,
        "\"token\" of a stored node is not the hex of 32 bytes");
    assert_int_equal(record_node_decode(&n, &is, "{\"token\":\"" HEX_OF_SEVENS "\"}", &e), -EINVAL);
    assert_int_equal(record_node_decode(&n, &is, "[", &e), -EINVAL);
    assert_int_equal(is.b[0], 1);
    json_decref(o.node.status);
    o.node.status = NULL;
    object_deinit(&o);
}

static void test_edges(void **state)
{
    struct object o = sample_edge(2, 3, EDGE_PATH_OFF);
    struct object is = {.kind = NULL};
    struct err e = ERR_NULL;
    char *text;

    o.meta.resource_version = 40;
    o.edge.status = json_pack("{s:s}", "hub", "x");
    text = record_object_encode(&o);
    assert_null(strstr(text, "resourceVersion"));
    assert_null(strstr(text, "status"));
    assert_int_equal(record_object_decode(&is, &mesh_edge_kind, text, &e), 0);
    assert_ptr_equal(is.kind, &mesh_edge_kind);
    assert_string_equal(is.meta.name, "n2--n3");
    assert_int_equal(is.edge.path, EDGE_PATH_OFF);
    object_deinit(&is);
    free(text);
    is = (struct object){.kind = NULL};
    assert_int_equal(record_object_decode(&is, &mesh_edge_kind, "{", &e), -EINVAL);
    assert_int_equal(record_object_decode(&is, &mesh_edge_kind, "{}", &e), -EINVAL);
    assert_null(is.kind);
    json_decref(o.edge.status);
    o.edge.status = NULL;
    object_deinit(&o);
}

/* ---- cursors and join tokens ---------------------------------------------------------------- */

static void test_cursors(void **state)
{
    struct err e = ERR_NULL;
    uint32_t next = 0;
    uint32_t high = 0;

    expect_text(record_ipam_encode(9, 12), "{\"next\":9,\"high\":12}");
    assert_int_equal(record_ipam_decode(&next, &high, "{\"next\":9,\"high\":12}", &e), 0);
    assert_int_equal(next, 9);
    assert_int_equal(high, 12);
    /* An earlier hub's. */
    assert_int_equal(record_ipam_decode(&next, &high, "{\"next\":7}", &e), 0);
    assert_int_equal(next, 7);
    assert_int_equal(high, 6);
    assert_int_equal(record_ipam_decode(&next, &high, "{\"next\":1,\"high\":0}", &e), 0);
    assert_int_equal(high, 0);
    expect_refusal(record_ipam_decode(&next, &high, "{\"high\":12}", &e), &e,
        "address cursor: \"next\" is missing");
    expect_refusal(record_ipam_decode(&next, &high, "{\"next\":0}", &e), &e,
        "address cursor: \"next\" is not a whole number from 1 to 4294967295");
    expect_refusal(record_ipam_decode(&next, &high, "{\"next\":3,\"high\":-1}", &e), &e,
        "address cursor: \"high\" is not a whole number from 0 to 4294967295");
    assert_int_equal(record_ipam_decode(&next, &high, "{", &e), -EINVAL);
    assert_int_equal(next, 1);
    assert_int_equal(high, 0);
}

static void test_join_tokens(void **state)
{
    static const char *const missing[][2] = {
        {"network", "token: \"network\" is missing"},
        {"hubKey", "token: \"hubKey\" is missing"},
        {"expires", "token: \"expires\" is missing"},
        {"uses", "token: \"uses\" is missing"},
        {"ephemeral", "token: \"ephemeral\" is missing"},
    };
    struct token_record t = {.network = "default",
        .hub_key = sample_key(1),
        .expires_at = 11,
        .uses = 3,
        .ephemeral = true,
        .relay = true,
        .created_at = 5,
        .created_by = "admin x"};
    struct token_record is;
    struct err e = ERR_NULL;
    json_t *json;
    char *text;

    expect_text(record_token_encode(&t),
        with_key("{\"network\":\"default\",\"hubKey\":\"%s\",\"expires\":11,\"uses\":3,"
                 "\"ephemeral\":true,\"relay\":true,\"created\":5,\"createdBy\":\"admin x\"}"));
    assert_int_equal(subnets_parse(&t.routes, "10.1.0.0/16", &e), 0);
    text = record_token_encode(&t);
    assert_non_null(strstr(text, ",\"routes\":[\"10.1.0.0/16\"]}"));
    assert_int_equal(record_token_decode(&is, text, &e), 0);
    assert_string_equal(is.network, "default");
    assert_true(x25519_public_equal(&is.hub_key, &t.hub_key));
    assert_int_equal(is.expires_at, 11);
    assert_int_equal(is.uses, 3);
    assert_true(is.ephemeral);
    assert_true(is.relay);
    assert_int_equal(is.created_at, 5);
    assert_string_equal(is.created_by, "admin x");
    assert_int_equal(is.routes.n, 1);
    free(text);
    t = (struct token_record){.network = "default", .hub_key = sample_key(1)};
    for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++) {
        text = record_token_encode(&t);
        json = json_loads(text, 0, NULL);
        free(text);
        (void)json_object_del(json, missing[i][0]);
        text = json_dumps(json, 0);
        expect_refusal(record_token_decode(&is, text, &e), &e, missing[i][1]);
        free(text);
        json_decref(json);
    }
    assert_string_equal(is.created_by, "admin x");
    assert_int_equal(record_token_decode(&is, "{", &e), -EINVAL);
}

/* ---- reports -------------------------------------------------------------------------------- */

#define REPORT                                                                                     \
    "{\"lastSeen\":1000,\"by\":9,\"reported\":true,\"node\":{\"engine\":\"kernel\","               \
    "\"version\":\"1.2\",\"hostname\":\"box\","                                                    \
    "\"candidates\":[{\"type\":\"host\",\"endpoint\":\"192.0.2.1:1\"}],\"paths\":{\"natted\":"     \
    "true},\"aead\":{\"aes256gcm\":700},\"fabric\":{\"kind\":\"efa\"},\"routes\":["                \
    "\"10.1.0.0/"                                                                                  \
    "16\"],\"uplink\":{\"state\":\"fast\",\"from\":\"nobody\"}},\"applied\":{\"revision\":8,"      \
    "\"error\":\"no tun\"},"                                                                       \
    "\"edges\":{\"b\":{\"path\":\"relay\"}},\"probes\":{\"b\":{\"tunnel\":\"silent\","             \
    "\"underlay\":\"unknown\"}}}"

/* All that a report may say comes back as it was. */
static void test_reports(void **state)
{
    struct report_record r;
    struct err e = ERR_NULL;
    char *text;

    assert_int_equal(record_report_decode(&r, REPORT, &e), 0);
    assert_int_equal(r.last_seen_at, 1000);
    assert_int_equal(r.by, 9);
    assert_true(r.has_reported);
    assert_int_equal(r.probed.n, 1);
    assert_int_equal(r.probed.owner, EDGE_OWNER_PROBE);
    assert_int_equal(r.probed.items[0]->probed.tunnel, EDGE_REACH_SILENT);
    assert_string_equal(r.report.hostname, "box");
    assert_int_equal(r.report.applied, 8);
    assert_int_equal(r.report.edges.n, 1);
    text = record_report_encode(&r);
    report_record_deinit(&r);
    assert_int_equal(r.probed.n, 0);
    expect_text(text, REPORT);
    /* A node that was only seen. */
    r = (struct report_record){.last_seen_at = 7};
    expect_text(record_report_encode(&r),
        "{\"lastSeen\":7,\"by\":0,\"node\":{\"engine\":\"\",\"version\":\"\"}}");
}

static void test_reports_of_earlier_hubs(void **state)
{
    struct report_record r;
    struct err e = ERR_NULL;

    /* What is said about edges is not understood, and left out; all else stays. */
    assert_int_equal(
        record_report_decode(
            &r, "{\"lastSeen\":1000,\"node\":{\"version\":\"1\"},\"edges\":{\"b\":7}}", &e),
        0);
    assert_int_equal(r.report.edges.n, 0);
    assert_string_equal(r.report.version, "1");
    /* It does not say that there was a report, but whose version it was. */
    assert_true(r.has_reported);
    report_record_deinit(&r);
    assert_int_equal(record_report_decode(&r, "{\"lastSeen\":1000,\"node\":{}}", &e), 0);
    assert_false(r.has_reported);
    assert_int_equal(r.by, 0);
    report_record_deinit(&r);
    r.by = 77;
    assert_int_equal(
        record_report_decode(&r, "{\"lastSeen\":1000,\"node\":7,\"edges\":{}}", &e), -EINVAL);
    assert_int_equal(record_report_decode(&r, "{\"lastSeen\":1000,\"node\":7}", &e), -EINVAL);
    expect_refusal(record_report_decode(&r, "{}", &e), &e, "report: \"lastSeen\" is missing");
    assert_int_equal(record_report_decode(&r, "{\"lastSeen\":1,\"by\":-1}", &e), -EINVAL);
    assert_int_equal(record_report_decode(&r, "{\"lastSeen\":1,\"reported\":1}", &e), -EINVAL);
    assert_int_equal(
        record_report_decode(&r, "{\"lastSeen\":1,\"probes\":{\"b\":7}}", &e), -EINVAL);
    assert_int_equal(record_report_decode(&r, "{", &e), -EINVAL);
    assert_int_equal(r.by, 77);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_sums_of_damaged_records),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_keys_of_tokens),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_a_network_of_a_hub_without_a_name),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_cursors),
        cmocka_unit_test(test_join_tokens),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_reports_of_earlier_hubs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
