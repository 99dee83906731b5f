/* fuzz-gpu-xid.c - a record of the kernel's log. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "health/gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char bus[GPU_BUS_MAX] = "";
    uint32_t xid = UINT32_MAX;
    uint64_t us = UINT64_MAX;

    if (gpu_xid_parse((const char *)data, len, bus, &xid, &us))
        assert(strlen(bus) >= 12 && strspn(bus, "0123456789abcdef:.") == strlen(bus) &&
               xid <= 99999 && us <= INT64_MAX);
    else
        assert(bus[0] == '\0' && xid == UINT32_MAX && us == UINT64_MAX);
    return 0;
}
