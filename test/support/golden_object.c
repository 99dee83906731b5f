/* golden_object.c - see golden_object.h. */
#include "test/support/golden_object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/object/object.h"

void golden_object_check(const struct object_kind *kind, const char *file)
{
    const char *root = getenv("WEFT_SOURCE_ROOT");
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;
    json_error_t error;
    char path[512];
    json_t *encoded;
    json_t *json;
    char *before;
    char *after;

    (void)snprintf(path, sizeof(path), "%s/%s", root ? root : ".", file);
    json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        fail_msg("%s: %s", path, error.text);
    if (object_decode(&o, json, OBJECT_STRICT, &e) != 0)
        fail_msg("%s: %s", path, err_text(&e));
    assert_ptr_equal(o.kind, kind);
    encoded = object_encode(&o);
    /* The fields in the same order, too. */
    before = json_dumps(json, JSON_INDENT(2));
    after = json_dumps(encoded, JSON_INDENT(2));
    assert_string_equal(before, after);
    free(before);
    free(after);
    json_decref(encoded);
    json_decref(json);
    object_deinit(&o);
}
