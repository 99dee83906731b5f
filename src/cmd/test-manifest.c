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
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
