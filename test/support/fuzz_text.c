/* fuzz_text.c - see fuzz_text.h. */
#include "test/support/fuzz_text.h"

#include <stdlib.h>
#include <string.h>

char *fuzz_text(const uint8_t *data, size_t len)
{
    char *text = malloc(len + 1);

    if (!text)
        abort();
    if (len > 0)
        memcpy(text, data, len);
    text[len] = '\0';
    return text;
}
