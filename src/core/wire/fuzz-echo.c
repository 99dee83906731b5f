/* fuzz-echo.c - answers to pings, of both families. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "wire/ip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    for (int v4 = 0; v4 < 2; v4++) {
        struct echo e;
        uint8_t out[ECHO_LEN];

        if (!echo_decode(&e, v4, data, len))
            continue;
        assert(len >= ECHO_LEN && data[0] == (v4 ? 0 : 129));
        echo_encode(&e, v4, out);
        assert(memcmp(out + 4, data + 4, ECHO_LEN - 4) == 0);
        assert(!echo_decode(&e, v4, out, sizeof(out)));
    }
    return 0;
}
