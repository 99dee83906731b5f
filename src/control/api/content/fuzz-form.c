/* fuzz-form.c - forms as a stranger sends them; nothing decoded is longer than it was. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "test/support/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct form form = {.n = 0};
    char words[FORM_WORDS_MAX];
    char *text = fuzz_text(data, len);

    (void)form_type(text, words);
    assert(strlen(words) < sizeof(words));
    assert((form_parse(&form, text, len, words) == 0) == (words[0] == '\0'));
    for (size_t i = 0; i < form.n; i++) {
        const struct form_field *field = form_find(&form, form.fields[i].name);

        assert(field && strlen(field->name) + form.fields[i].value_len <= len);
        assert(field->value[field->value_len] == '\0');
    }
    free(text);
    return 0;
}
