/* fuzz-meter.c - the file of a node's meter; what is taken must survive being written. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>

#include "agent/meter.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void write_again(const struct meter *a, struct err *e)
{
    struct meter b;
    json_t *first = meter_encode(a);
    json_t *again;

    assert(first && meter_decode(&b, first, "fuzz", e) == 0);
    again = meter_encode(&b);
    assert(json_equal(first, again));
    json_decref(first);
    json_decref(again);
    meter_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
    struct meter a;
    struct err e = ERR_NULL;

    if (!json)
        return 0;
    if (meter_decode(&a, json, "fuzz", &e) != 0) {
        assert(e.text[0] != '\0');
    } else {
        write_again(&a, &e);
        meter_deinit(&a);
    }
    json_decref(json);
    return 0;
}
