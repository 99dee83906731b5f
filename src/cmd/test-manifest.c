/* test-manifest.c - what a file of objects means, and what is refused with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "cmd/manifest.h"

static void test_values(void **state)
{
    static const char text[] =
        "kind: MeshEdge\nspec: {nodes: [a, b], path: \"off\", n: 12, t: true}\n"
        "---\n{\"kind\": \"Node\", \"s\": \"12\", \"z\": null}\n";
    struct err e = ERR_NULL;
    json_t *expected = json_loads("[{\"kind\":\"MeshEdge\",\"spec\":{\"nodes\":[\"a\",\"b\"],"
                                  "\"path\":\"off\",\"n\":12,\"t\":true}},"
                                  "{\"kind\":\"Node\",\"s\":\"12\",\"z\":null}]",
        0, NULL);
    json_t *objects;

    assert_int_equal(manifest_parse(&objects, text, strlen(text), "f.yaml", &e), 0);
    assert_true(json_equal(objects, expected));
    json_decref(objects);
    json_decref(expected);
}

/* What `weft get KIND` prints can be applied; a file may begin and end with "---". */
static void test_lists(void **state)
{
    static const char text[] = "---\n---\n{\"items\": [{\"kind\": \"A\"}, {\"kind\": \"B\"}]}\n"
                               "---\nkind: C\nitems: [1]\n---\n";
    struct err e = ERR_NULL;
    json_t *expected =
        json_loads("[{\"kind\":\"A\"},{\"kind\":\"B\"},{\"kind\":\"C\",\"items\":[1]}]", 0, NULL);
    json_t *objects;

    assert_int_equal(manifest_parse(&objects, text, strlen(text), "f.yaml", &e), 0);
    assert_true(json_equal(objects, expected));
    json_decref(objects);
    json_decref(expected);
}

/* One file serves kubectl and weft. */
static void test_a_resource_of_kubernetes(void **state)
{
    static const char text[] =
        "apiVersion: weft.dev/v1alpha1\nkind: MeshEdge\n"
        "metadata: {name: default.n1--n2, namespace: weft, resourceVersion: \"7\", labels: {a: "
        "b}}\n"
        "spec: {nodes: [n1, n2]}\nstatus: {x: 1}\n"
        "---\nkind: MeshEdge\nmetadata: {name: n2--n1}\nspec: {nodes: [n2, n1]}\n"
        "---\nkind: MeshEdge\nmetadata: {name: n1--n2}\nspec: {nodes: [n2, n1]}\n"
        "---\napiVersion: weft.dev/v1alpha1\nkind: Network\nmetadata: {name: lab}\nspec: {}\n";
    static const char wanted[] =
        "[{'kind':'MeshEdge','metadata':{'name':'n1--n2','network':'default'},"
        "'spec':{'nodes':['n1','n2']}},"
        "{'kind':'MeshEdge','metadata':{'name':'n1--n2'},'spec':{'nodes':['n1','n2']}},"
        "{'kind':'MeshEdge','metadata':{'name':'n1--n2'},'spec':{'nodes':['n1','n2']}},"
        "{'kind':'Network','metadata':{'name':'lab'},'spec':{}}]";
    char json[sizeof(wanted)];
    struct err e = ERR_NULL;
    json_t *expected;
    json_t *objects;

    for (size_t i = 0; i < sizeof(json); i++)
        json[i] = wanted[i] == '\'' ? '"' : wanted[i];
    expected = json_loads(json, 0, NULL);
    assert_non_null(expected);
    assert_int_equal(manifest_parse(&objects, text, strlen(text), "f.yaml", &e), 0);
    assert_true(json_equal(objects, expected));
    json_decref(objects);
    json_decref(expected);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"", "f.yaml holds no object"},
        {"---\n---\n", "f.yaml holds no object"},
        {"items: [a]\n", "f.yaml, line 1: one of the items is no object"},
        {"\"\"\n", "f.yaml, line 1: a document must be one object"},
        {"- a\n", "f.yaml, line 1: a document must be one object"},
        {"a: 1\na: 2\n", "f.yaml, line 2: this key is there twice"},
        {"a: &x 1\nb: *x\n", "f.yaml, line 2: aliases are not taken"},
        {"kind: a\napiVersion: v1\n",
            "f.yaml, line 1: the apiVersion is none of Weft's, which is weft.dev/v1alpha1"},
        {"? [a]\n: b\n", "f.yaml, line 1: a key must be text"},
        {"a: [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\n", "f.yaml, line 1: nested more than 16 deep"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        json_t *objects;

        assert_true(
            manifest_parse(&objects, cases[i].text, strlen(cases[i].text), "f.yaml", &e) < 0);
        assert_string_equal(e.text, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_a_resource_of_kubernetes),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
