/* fuzz-prices.c - a price table from a file that somebody wrote. */
#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "base/err.h"
#include "mesh/object/prices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
    struct prices p;
    struct err e = ERR_NULL;

    if (prices_decode(&p, json, OBJECT_STRICT, &e) != 0) {
        assert(e.text[0] != '\0');
    } else {
        assert(p.n_islands > 0 && p.n_islands <= PRICES_ISLANDS_MAX);
        assert(p.n_lines <= PRICES_LINKS_MAX);
        assert(prices_per_gb(&p, "a") >= 0 && isfinite(prices_per_gb(&p, "a")));
        for (size_t i = 0; i < p.n_lines; i++)
            assert(prices_break_even(&p.lines[i], 1) >= 0);
    }
    json_decref(json);
    return 0;
}
