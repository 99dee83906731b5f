/* fuzz-edge-parts.c - what a writer says of its edges; what is taken must survive being written. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/edge_status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define AT 1790000000

static void check(const json_t *json, enum edge_owner owner)
{
    struct edge_parts a = {.owner = owner};
    struct edge_parts b = {.owner = owner};
    struct err e = ERR_NULL;
    json_t *text;
    json_t *again;

    if (edge_parts_decode(&a, json, AT, &e) != 0) {
        assert(e.text[0] != '\0');
        return;
    }
    for (size_t i = 1; i < a.n; i++)
        assert(strcmp(a.items[i - 1]->peer, a.items[i]->peer) < 0);
    text = edge_parts_encode(&a, SIZE_MAX, AT);
    assert(text && json_object_size(text) == a.n);
    assert(edge_parts_decode(&b, text, AT, &e) == 0);
    again = edge_parts_encode(&b, SIZE_MAX, AT);
    assert(json_equal(text, again));
    edge_parts_begin(&b);
    edge_parts_end(&b);
    assert(b.n == 0);
    json_decref(text);
    json_decref(again);
    edge_parts_deinit(&a);
    edge_parts_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);

    if (json_is_object(json)) {
        check(json, EDGE_OWNER_AGENT);
        check(json, EDGE_OWNER_PROBE);
    }
    json_decref(json);
    return 0;
}
