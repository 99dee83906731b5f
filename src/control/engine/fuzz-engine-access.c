/* fuzz-engine-access.c - any text as what an engine says of the rules that it goes by. */
#include <assert.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/engine_access.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct engine_access a = {.is_on = false};
    struct err e = ERR_NULL;

    if (engine_access_decode(&a, (const char *)data, len, &e) < 0)
        assert(err_text(&e)[0] != '\0');
    engine_access_deinit(&a);
    return 0;
}
