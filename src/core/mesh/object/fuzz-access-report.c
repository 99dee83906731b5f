/* fuzz-access-report.c - what a node says that it has refused; what is taken must survive being
 * written. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/access.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const json_t *json)
{
    struct access_report a;
    struct access_report b;
    struct err e = ERR_NULL;
    json_t *text;
    json_t *again;

    if (access_report_decode(&a, json, &e) != 0) {
        assert(e.text[0] != '\0');
        return;
    }
    assert(a.n_rules <= ACCESS_RULES_MAX && a.n_refused <= ACCESS_REFUSED_MAX);
    text = access_report_encode(&a);
    assert(text && access_report_decode(&b, text, &e) == 0);
    again = access_report_encode(&b);
    assert(json_equal(text, again));
    json_decref(text);
    json_decref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);

    if (json)
        check(json);
    json_decref(json);
    return 0;
}
