/* fuzz-uapi.c - any text as lines of the configuration protocol. */
#include <stdint.h>
#include <string.h>

#include "uapi/uapi.h"
#include "uapi/uapi_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char line[UAPI_LINE_MAX + 1];

    for (size_t off = 0; off < len;) {
        const uint8_t *end = memchr(data + off, '\n', len - off);
        size_t n = end ? (size_t)(end - data) - off : len - off;
        struct uapi_item item;

        off += n + 1;
        if (n > UAPI_LINE_MAX)
            continue;
        memcpy(line, data + off - n - 1, n);
        line[n] = '\0';
        (void)uapi_parse(&item, line);
    }
    return 0;
}
