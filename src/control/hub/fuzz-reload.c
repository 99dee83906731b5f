/* fuzz-reload.c - what is stored loads: requests and damage that a fuzzer decides. */
#include <stdint.h>

#include "test/support/sample_reload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    sample_reload_run(data, len < 4096 ? len : 4096);
    return 0;
}
