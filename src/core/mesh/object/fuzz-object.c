/* fuzz-object.c - an object that decodes must survive a round trip, also as a strict one. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "mesh/object/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const json_t *json, enum object_mode mode)
{
    struct object a = OBJECT_NULL;
    struct object b = OBJECT_NULL;
    struct err e = ERR_NULL;
    json_t *encoded;
    json_t *again;

    if (object_decode(&a, json, mode, &e) != 0) {
        assert(e.text[0] != '\0');
        return;
    }
    /* An earlier hub's, which nobody may ask for any more. */
    if (a.kind == &network_kind)
        a.network.key_rotation = 0;
    encoded = object_encode(&a);
    assert(encoded);
    assert(object_decode(&b, encoded, OBJECT_STRICT, &e) == 0);
    again = object_encode(&b);
    assert(json_equal(encoded, again));
    json_decref(encoded);
    json_decref(again);
    object_deinit(&a);
    object_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);

    if (!json)
        return 0;
    check(json, OBJECT_LENIENT);
    check(json, OBJECT_STRICT);
    json_decref(json);
    return 0;
}
