/*
 * test-kinds-calls.c - the calls for objects of a kind that means nothing to the hub, which is
 * test/support/notice.c: what is written is read back and listed, as it was given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/handlers/handlers.h"
#include "test/support/notice.h"
#include "test/support/sample_hub.h"

#define NOTICES "/v1/networks/default/objects/Notice"

static struct sample_hub hub;

static int begin(void **state)
{
    sample_hub_begin(&hub);
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    return 0;
}

static int end(void **state)
{
    sample_hub_end(&hub);
    return 0;
}

/* The answer is exactly that JSON, but for versions; NULL: any. */
static void ask(
    const char *method, const char *path, const char *body, int status, const char *expected)
{
    json_t *is = NULL;
    json_t *item;
    char *text;
    size_t i;

    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, method, path, body, &is), status);
    json_array_foreach(json_object_get(is, "items"), i, item)
        json_object_del(json_object_get(item, "metadata"), "resourceVersion");
    json_object_del(json_object_get(is, "metadata"), "resourceVersion");
    text = json_dumps(is, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (expected)
        assert_string_equal(text, expected);
    free(text);
    json_decref(is);
}

/* The notice of that name, about two nodes. */
#define NOTICE(name, node)                                                                         \
    "{\"kind\":\"Notice\",\"metadata\":{\"name\":\"" name "\",\"network\":\"default\"},\"spec\":{" \
    "\"nodes\":[\"" node "\",\"b\"],\"text\":\"be careful\"}}"

static void test_written_and_read(void **state)
{
    ask("GET", NOTICES, NULL, 200, "{\"items\":[]}");
    ask("PUT", NOTICES "/x", NOTICE("x", "a"), 200, NULL);
    ask("PUT", NOTICES "/w", NOTICE("w", "a"), 200, NULL);
    ask("GET", NOTICES "/x", NULL, 200, NOTICE("x", "a"));
    ask("GET", NOTICES, NULL, 200, "{\"items\":[" NOTICE("w", "a") "," NOTICE("x", "a") "]}");
    ask("DELETE", NOTICES "/x", NULL, 204, NULL);
    ask("GET", NOTICES, NULL, 200, "{\"items\":[" NOTICE("w", "a") "]}");
    ask("GET", NOTICES "/x", NULL, 404,
        "{\"error\":\"network \\\"default\\\" has no Notice \\\"x\\\"\"}");
}

/* Each node that it is about has to be there, the first as well as the last. */
static void test_about_nobody(void **state)
{
    ask("PUT", NOTICES "/x", NOTICE("x", "nobody"), 404, NULL);
    ask("GET", NOTICES, NULL, 200, "{\"items\":[]}");
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "DELETE",
                         "/v1/networks/default/nodes/b", NULL, NULL),
        204);
    ask("PUT", NOTICES "/x", NOTICE("x", "a"), 404, NULL);
    ask("GET", NOTICES, NULL, 200, "{\"items\":[]}");
}

/* What the path says is what the object is. */
static void test_another_path(void **state)
{
    ask("PUT", NOTICES "/y", NOTICE("x", "a"), 400,
        "{\"error\":\"the object is \\\"x\\\" of network \\\"default\\\", not \\\"y\\\" of "
        "\\\"default\\\"\"}");
    ask("PUT", "/v1/networks/default/objects/MeshEdge/x", NOTICE("x", "a"), 400,
        "{\"error\":\"the object is a Notice, not a MeshEdge\"}");
    ask("GET", "/v1/networks/default/objects/Thing", NULL, 404,
        "{\"error\":\"kind \\\"Thing\\\" is none of Network, Node, MeshEdge, Notice\"}");
    ask("GET", NOTICES, NULL, 200, "{\"items\":[]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_written_and_read, begin, end),
        cmocka_unit_test_setup_teardown(test_about_nobody, begin, end),
        cmocka_unit_test_setup_teardown(test_another_path, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
