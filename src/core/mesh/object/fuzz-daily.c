/* fuzz-daily.c - what a node, or a record, says of its lines day by day; what is taken must survive
 * being written. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/daily.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const json_t *json)
{
    struct daily a = DAILY_NULL;
    struct daily b = DAILY_NULL;
    struct err e = ERR_NULL;
    json_t *text;
    json_t *again;

    if (daily_decode(&a, json, "days", &e) != 0) {
        assert(e.text[0] != '\0');
        return;
    }
    assert(a.n <= DAILY_PEERS_MAX);
    for (size_t i = 0; i < a.n; i++) {
        assert(a.items[i]->n <= DAILY_DAYS_MAX);
        for (unsigned k = 1; k < a.items[i]->n; k++)
            assert(a.items[i]->days[k - 1].day < a.items[i]->days[k].day);
    }
    text = daily_encode(&a, SIZE_MAX);
    assert(text && daily_decode(&b, text, "days", &e) == 0);
    again = daily_encode(&b, SIZE_MAX);
    assert(json_equal(text, again));
    json_decref(text);
    json_decref(again);
    daily_deinit(&a);
    daily_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);

    if (json_is_object(json))
        check(json);
    json_decref(json);
    return 0;
}
