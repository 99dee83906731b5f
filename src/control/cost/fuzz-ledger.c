/* fuzz-ledger.c - a hub's answer of what was moved: sums that agree, and texts. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "cost/ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint64_t sum_of(const struct ledger_part *p)
{
    uint64_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        n += p->lines[i].sum.bytes;
    return n;
}

static void show(const struct ledger *l, const struct prices *prices, const json_t *answer)
{
    struct str out = STR_NULL;
    json_t *json = ledger_encode(l, prices, answer);

    assert(sum_of(&l->edges) == l->total.bytes && sum_of(&l->jobs) == l->total.bytes &&
           sum_of(&l->days) == l->total.bytes);
    assert(json);
    ledger_format(&out, json);
    str_deinit(&out);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
    struct ledger l = LEDGER_NULL;
    struct prices prices;
    struct err e = ERR_NULL;

    if (!json)
        return 0;
    prices_default(&prices);
    if (ledger_read(&l, &prices, json, &e) != 0)
        assert(e.text[0] != '\0');
    else
        show(&l, &prices, json);
    ledger_deinit(&l);
    json_decref(json);
    return 0;
}
