/* fuzz-service-wire.c - what an agent tells its measuring process, by somebody else. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "measure/service_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t off = 0;
    struct service_wire m;
    size_t used;

    while (service_wire_decode(&m, data + off, len - off, &used) == 0) {
        struct str again = STR_NULL;

        /* What is understood is understood in one way only. */
        assert(used > 0 && used <= len - off);
        service_wire_encode(&again, &m);
        assert(!again.failed && again.len == used && memcmp(again.text, data + off, used) == 0);
        str_deinit(&again);
        off += used;
    }
    return 0;
}
