/* test-node-keys.c - how the key of a node changes, as its object says it: what is taken, what
 * comes back, and the sentence with which the rest is refused. */
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
#include "mesh/object/node.h"
#include "mesh/object/object.h"

#define KEY  "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define NEXT "AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

/* A node with that field; what is taken is in @ret. */
static void expect(const char *keys, enum object_mode mode, const char *says, struct node *ret)
{
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:o}}", "kind", "Node",
        "metadata", "name", "a", "network", "default", "spec", "publicKey", KEY, "address4",
        "10.42.0.2", "address6", "fd5a::2", "keys", json_loads(keys, JSON_DECODE_ANY, NULL));
    struct err e = ERR_NULL;
    int r;

    *ret = (struct node)NODE_NULL;
    r = node_decode(ret, json, mode, &e);
    assert_int_equal(r, says ? -EINVAL : 0);
    if (says)
        assert_string_equal(e.text, says);
    json_decref(json);
}

/* What was taken is told as it was said. */
static void test_there_and_back(void **state)
{
    static const char *const said[] = {
        "{\"next\":\"" NEXT
        "\",\"wantedSerial\":3,\"forced\":true,\"statements\":[\"AAAA\",\"AAA=\"]}",
        "{\"wantedSerial\":1}", "{\"statements\":[\"+/+=\"]}"};

    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
        struct node n;
        json_t *json;
        char *text;

        expect(said[i], OBJECT_STRICT, NULL, &n);
        json = node_encode(&n);
        text = json_dumps(json_object_get(json_object_get(json, "spec"), "keys"), JSON_COMPACT);
        assert_string_equal(text, said[i]);
        free(text);
        json_decref(json);
        node_deinit(&n);
    }
}

static void test_nothing_is_said(void **state)
{
    struct node n;

    expect("{}", OBJECT_STRICT, NULL, &n);
    assert_null(n.keys);
    node_deinit(&n);
    expect("null", OBJECT_STRICT, NULL, &n);
    assert_null(n.keys);
    node_deinit(&n);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *said;
        const char *says;
    } cases[] = {
        {"{\"next\":\"x\"}",
            "Node \"a\": keys: \"next\" is not a public key: 44 characters of base64"},
        {"{\"wantedSerial\":0}", "Node \"a\": keys: \"wantedSerial\" is not a whole number from 1 "
                                 "to 9223372036854775807"},
        {"{\"statements\":[\"AAA\"]}",
            "Node \"a\": keys: a statement of \"statements\" is not base64 of 4 to 476 characters"},
        {"{\"statements\":[\"A===\"]}",
            "Node \"a\": keys: a statement of \"statements\" is not base64 of 4 to 476 characters"},
        {"{\"statements\":[\"AA=A\"]}",
            "Node \"a\": keys: a statement of \"statements\" is not base64 of 4 to 476 characters"},
        {"{\"statements\":[\"AA-A\"]}",
            "Node \"a\": keys: a statement of \"statements\" is not base64 of 4 to 476 characters"},
        {"{\"statements\":[3]}",
            "Node \"a\": keys: a statement of \"statements\" is not base64 of 4 to 476 characters"},
    };
    char long_one[NODE_KEYS_STATEMENT_MAX + 64];
    struct node n;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        expect(cases[i].said, OBJECT_LENIENT, cases[i].says, &n);
    expect("{\"nxt\":1}", OBJECT_STRICT, "Node \"a\": keys: \"nxt\" is not a field of it", &n);
    expect("{\"nxt\":1}", OBJECT_LENIENT, NULL, &n);
    node_deinit(&n);
    (void)snprintf(
        long_one, sizeof(long_one), "{\"statements\":[\"%0*d\"]}", NODE_KEYS_STATEMENT_MAX, 0);
    expect(long_one, OBJECT_STRICT, NULL, &n);
    assert_int_equal(strlen(node_keys_last(n.keys)), NODE_KEYS_STATEMENT_MAX);
    node_deinit(&n);
    (void)snprintf(
        long_one, sizeof(long_one), "{\"statements\":[\"%0*d\"]}", NODE_KEYS_STATEMENT_MAX + 4, 0);
    expect(long_one, OBJECT_STRICT,
        "Node \"a\": keys: a statement of \"statements\" is not base64 of 4 to 476 characters", &n);
}

/* The newest stay. */
static void test_newest_statements(void **state)
{
    struct node_keys k = NODE_KEYS_NULL;
    struct node_keys *copy;
    char text[8];

    assert_null(node_keys_last(NULL));
    assert_null(node_keys_last(&k));
    for (int i = 0; i < NODE_KEYS_STATEMENTS_MAX + 2; i++) {
        (void)snprintf(text, sizeof(text), "AA%02d", i);
        assert_int_equal(node_keys_add(&k, text), 0);
        assert_string_equal(node_keys_last(&k), text);
    }
    assert_int_equal(k.n_statements, NODE_KEYS_STATEMENTS_MAX);
    assert_string_equal(k.statements[0], "AA02");
    copy = node_keys_copy(&k);
    assert_int_equal(copy->n_statements, NODE_KEYS_STATEMENTS_MAX);
    assert_string_equal(node_keys_last(copy), text);
    assert_ptr_not_equal(node_keys_last(copy), node_keys_last(&k));
    assert_null(node_keys_free(copy));
    assert_null(node_keys_copy(NULL));
    for (unsigned i = 0; i < k.n_statements; i++)
        free(k.statements[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_nothing_is_said),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_newest_statements),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
