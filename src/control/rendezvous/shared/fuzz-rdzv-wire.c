/* fuzz-rdzv-wire.c - what a hub and a rendezvous process say to each other, by neither. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "rendezvous/shared/rdzv_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t off = 0;
    struct rdzv_wire m;
    size_t used;

    while (rdzv_wire_decode(&m, data + off, len - off, &used) == 0) {
        struct str again = STR_NULL;

        /* What is understood is understood in one way only. */
        assert(used > 0 && used <= len - off);
        rdzv_wire_encode(&again, &m);
        assert(!again.failed && again.len == used && memcmp(again.text, data + off, used) == 0);
        str_deinit(&again);
        off += used;
    }
    return 0;
}
