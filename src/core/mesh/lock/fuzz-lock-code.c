/* fuzz-lock-code.c - any text is a code of recovery, which is then written as one, or none. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "mesh/lock/lock_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char text[256];
    char again[LOCK_CODE_TEXT_MAX];
    struct lock_code code, parsed;
    struct err e = ERR_NULL;

    if (len >= sizeof(text))
        return 0;
    memcpy(text, data, len);
    text[len] = '\0';
    if (lock_code_parse(&code, text, &e) != 0) {
        assert(e.text[0] != '\0');
        return 0;
    }
    assert(lock_code_parse(&parsed, lock_code_write(&code, again), NULL) == 0);
    assert(memcmp(&parsed, &code, sizeof(code)) == 0);
    return 0;
}
