/* fuzz-accept.c - what the hub accepts, every agent accepts: requests that a fuzzer decides. */
#include <stdint.h>

#include "test/support/sample_hub.h"
#include "test/support/sample_ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct sample_hub s;
    struct choices c = {.bytes = data, .n = len < 4096 ? len : 4096};

    if (!s.dir[0])
        sample_hub_make_dir(&s, false);
    sample_hub_open(&s);
    sample_ops_run(&s, &c);
    sample_hub_close(&s);
    return 0;
}
