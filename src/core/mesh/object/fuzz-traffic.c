/* fuzz-traffic.c - what a node says it has moved; what is taken must survive being written, and
 * being merged with itself. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "mesh/object/traffic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void write_again(const struct traffic *a, struct err *e)
{
    struct traffic b = TRAFFIC_NULL;
    json_t *first = traffic_encode(a);
    json_t *again;

    assert(first && traffic_decode(&b, first, "fuzz", e) == 0);
    assert(traffic_merge(&b, a, SIZE_MAX) == 0);
    again = traffic_encode(&b);
    assert(json_equal(first, again));
    json_decref(first);
    json_decref(again);
    traffic_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
    struct traffic a = TRAFFIC_NULL;
    struct err e = ERR_NULL;

    if (!json)
        return 0;
    if (traffic_decode(&a, json, "fuzz", &e) != 0)
        assert(e.text[0] != '\0');
    else
        write_again(&a, &e);
    traffic_deinit(&a);
    json_decref(json);
    return 0;
}
