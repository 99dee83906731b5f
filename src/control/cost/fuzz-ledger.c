/* fuzz-ledger.c - a hub's answer of what was moved: sums that agree, and texts. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "cost/ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static json_int_t sum_of(const json_t *ledger, const char *part)
{
    const json_t *line;
    json_int_t n = 0;
    size_t i;

    json_array_foreach(json_object_get(ledger, part), i, line)
        n += json_integer_value(json_object_get(line, "bytes"));
    return n;
}

static void show(const json_t *ledger)
{
    json_int_t total =
        json_integer_value(json_object_get(json_object_get(ledger, "total"), "bytes"));
    struct str out = STR_NULL;

    assert(sum_of(ledger, "edges") == total && sum_of(ledger, "jobs") == total &&
           sum_of(ledger, "days") == total);
    ledger_format(&out, ledger);
    str_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
    json_t *ledger;
    struct prices prices;
    struct err e = ERR_NULL;

    if (!json)
        return 0;
    prices_default(&prices);
    ledger = ledger_make(&prices, json, &e);
    if (ledger)
        show(ledger);
    else
        assert(e.text[0] != '\0');
    json_decref(ledger);
    json_decref(json);
    return 0;
}
