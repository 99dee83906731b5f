/* fuzz-fabric-report.c - what a node says of its fabric; what is taken must survive being written.
 */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "mesh/object/node_status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
    struct fabric_report a;
    struct fabric_report b;
    struct err e = ERR_NULL;
    json_t *first;
    json_t *again;

    if (!json_is_object(json)) {
        json_decref(json);
        return 0;
    }
    if (fabric_report_decode(&a, json, "fuzz", &e) != 0) {
        assert(e.text[0] != '\0');
    } else {
        first = fabric_report_encode(&a);
        assert(first && fabric_report_decode(&b, first, "fuzz", &e) == 0);
        again = fabric_report_encode(&b);
        assert(json_equal(first, again));
        json_decref(first);
        json_decref(again);
    }
    json_decref(json);
    return 0;
}
