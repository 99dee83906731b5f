/* test-edge-pins.c - what an edge fixes of its two ends: keys, endpoints, and how they talk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/object/object.h"
#include "test/support/sample_mesh.h"

#define KEY "BwcAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

/* The edge between a and b whose spec has these fields as well. */
static int decode(struct object *ret, const char *fields, struct err *e)
{
    json_t *json;
    char text[1024];
    int r;

    (void)snprintf(text, sizeof(text),
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":"
        "\"a--b\",\"network\":\"default\"},\"spec\":{\"nodes\":[\"a\",\"b\"]%s%s}}",
        fields[0] ? "," : "", fields);
    json = json_loads(text, 0, NULL);
    if (!json)
        fail_msg("%s", text);
    r = object_decode(ret, json, OBJECT_STRICT, e);
    json_decref(json);
    return r;
}

static void refuses(const char *fields, const char *words)
{
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(decode(&o, fields, &e), -EINVAL);
    if (!strstr(e.text, words))
        fail_msg("\"%s\", and not \"%s\"", e.text, words);
}

static struct object takes(const char *fields)
{
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;

    if (decode(&o, fields, &e) != 0)
        fail_msg("%s", err_text(&e));
    return o;
}

static void test_an_edge_that_fixes_nothing(void **state)
{
    struct object o = takes("");

    for (unsigned i = 0; i < 2; i++) {
        assert_true(endpoint_is_none(&o.edge.pins[i].endpoint));
        assert_true(x25519_public_is_none(&o.edge.pins[i].key));
    }
    object_deinit(&o);
}

static void test_each_end_has_its_own(void **state)
{
    struct object o =
        takes("\"endpoints\":{\"b\":\"192.0.2.7:4000\"},\"publicKeys\":{\"a\":\"" KEY "\"}");
    char text[ENDPOINT_TEXT_MAX];
    char key[X25519_BASE64_MAX];

    assert_true(endpoint_is_none(&o.edge.pins[0].endpoint));
    assert_string_equal(endpoint_format(&o.edge.pins[1].endpoint, text), "192.0.2.7:4000");
    assert_string_equal(x25519_public_format(&o.edge.pins[0].key, key), KEY);
    assert_true(x25519_public_is_none(&o.edge.pins[1].key));
    object_deinit(&o);
}

/* What is written is read again as the same. */
static void test_there_and_back(void **state)
{
    struct object o = takes("\"endpoints\":{\"a\":\"[2001:db8::1]:7\",\"b\":\"192.0.2.7:4000\"},"
                            "\"publicKeys\":{\"b\":\"" KEY "\"},\"path\":\"direct\"");
    json_t *json = object_encode(&o);
    struct object again = OBJECT_NULL;

    assert_int_equal(object_decode(&again, json, OBJECT_STRICT, NULL), 0);
    assert_memory_equal(again.edge.pins, o.edge.pins, sizeof(o.edge.pins));
    json_decref(json);
    object_deinit(&o);
    object_deinit(&again);
}

static void test_what_cannot_be_fixed(void **state)
{
    refuses("\"endpoints\":{\"c\":\"192.0.2.7:4000\"}",
        "\"c\" is neither of its nodes, \"a\" and \"b\"");
    refuses("\"publicKeys\":{\"c\":\"" KEY "\"}", "\"c\" is neither of its nodes, \"a\" and \"b\"");
    refuses("\"endpoints\":{\"a\":7}", "the endpoint of \"a\" is not a string");
    refuses("\"endpoints\":{\"b\":\"x\"}", "the endpoint of \"b\": ");
    refuses("\"endpoints\":{\"b\":\"192.0.2.7:0\"}",
        "the endpoint of \"b\": port \"0\" is not a number from 1 to 65535");
    refuses("\"publicKeys\":{\"a\":\"short\"}", "\"a\"");
}

/* A relayed edge uses none. */
static void test_endpoints_of_a_relayed_edge(void **state)
{
    struct object o;

    refuses("\"path\":\"relay\",\"endpoints\":{\"a\":\"192.0.2.7:4000\"}",
        "\"path\" is \"relay\", and then no endpoint is used");
    refuses("\"path\":\"relay\",\"endpoints\":{\"b\":\"192.0.2.7:4000\"}",
        "\"path\" is \"relay\", and then no endpoint is used");
    o = takes("\"path\":\"relay\",\"publicKeys\":{\"a\":\"" KEY "\"}");
    object_deinit(&o);
}

/* Which ends are to talk directly: by the path, and where that is left open by the topology. */
static void test_which_edges_are_to_be_direct(void **state)
{
    static const bool expected[EDGE_PATH_N][2] = {
        [EDGE_PATH_AUTO] = {true, false}, [EDGE_PATH_DIRECT] = {true, true}};
    struct mesh_edge edge = MESH_EDGE_NULL;

    for (unsigned is_hub = 0; is_hub < 2; is_hub++) {
        assert_int_equal(mesh_edge_wants_direct(NULL, is_hub), !is_hub);
        for (unsigned i = 0; i < EDGE_PATH_N; i++) {
            edge.path = (enum edge_path)i;
            assert_int_equal(mesh_edge_wants_direct(&edge, is_hub), expected[i][is_hub]);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_edge_that_fixes_nothing),
        cmocka_unit_test(test_each_end_has_its_own),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_what_cannot_be_fixed),
        cmocka_unit_test(test_endpoints_of_a_relayed_edge),
        cmocka_unit_test(test_which_edges_are_to_be_direct),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
