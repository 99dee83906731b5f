/*
 * fuzz-resolved-link.c - what root reads of the agent's about systemd-resolved; what is taken must
 * survive being written.
 */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/resolved_link.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void write_again(const struct resolved_link *a, struct err *e)
{
    json_t *json = resolved_link_encode(a);
    struct resolved_link b;

    assert(json && resolved_link_decode(&b, json, e) == 0);
    assert(resolved_link_equal(a, &b));
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
    struct resolved_link link;
    struct err e = ERR_NULL;

    if (!json)
        return 0;
    if (resolved_link_decode(&link, json, &e) == 0)
        write_again(&link, &e);
    else
        assert(e.text[0] != '\0');
    json_decref(json);
    return 0;
}
