/* fuzz-bundle.c - a secret that is known is in no report, whatever stands around it. */
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bundle.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first line is the secret, the rest what quotes it. One that is in "[secret]" itself, or has
 * other characters than a key or a token, proves nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    char secret[65] = "";
    struct secrets s = {.n = 0};
    struct str out = STR_NULL;
    json_t *json;
    size_t len;

    if (!end || (size_t)(end - data) >= sizeof(secret))
        return 0;
    for (len = 0; data + len < end; len++) {
        if (!isalnum(data[len]))
            return 0;
        secret[len] = (char)data[len];
    }
    json = json_pack("{s:s}", "privateKey", secret);
    secrets_take(&s, json);
    json_decref(json);
    secrets_strike(&s, (const char *)end + 1, size - len - 1, &out);
    if (s.n > 0 && !strstr("[secret]", secret) && out.len >= len &&
        memmem(out.text, out.len, secret, len))
        abort();
    str_deinit(&out);
    secrets_deinit(&s);
    return 0;
}
