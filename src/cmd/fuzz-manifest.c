/* fuzz-manifest.c - any bytes are objects or a sentence. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "base/err.h"
#include "cmd/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err e = ERR_NULL;
    json_t *objects;
    int r = manifest_parse(&objects, (const char *)data, len, "sample", &e);

    if (r == 0) {
        assert(json_array_size(objects) > 0);
        json_decref(objects);
    } else {
        assert(r < 0 && (r == -ENOMEM || e.text[0]));
    }
    return 0;
}
