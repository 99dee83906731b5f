/* fuzz-form.c - forms as a stranger sends them; nothing decoded is longer than it was. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct form form = {.n = 0};
    char *text = malloc(len + 1);

    if (!text)
        return 0;
    memcpy(text, data, len);
    text[len] = '\0';
    if (form_parse(&form, text, len) == 0)
        for (size_t i = 0; i < form.n; i++) {
            assert(strlen(form.fields[i].name) + strlen(form.fields[i].value) <= len);
            assert(form_find(&form, form.fields[i].name));
        }
    free(text);
    return 0;
}
