/* fuzz-token.c - a token that is taken must survive the round trip. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/token.h"
#include "base/err.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const char *text)
{
    struct token a = TOKEN_NULL;
    struct token b = TOKEN_NULL;
    struct err e = ERR_NULL;
    char *again = NULL;

    if (token_decode(&a, text, &e) != 0) {
        assert(e.text[0]);
        return;
    }
    /* A lenient decoder may have skipped so much that what is left is always shorter. */
    assert(token_encode(&a, &again, &e) == 0);
    assert(token_decode(&b, again, &e) == 0);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): both start as TOKEN_NULL. */
    assert(memcmp(&a, &b, sizeof(a)) == 0);
    free(again);
}

/* The input is the JSON inside a token when it begins with '{', else the token. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = malloc(6 + BASE64_SIZE(len));

    if (!text)
        return 0;
    if (len > 0 && data[0] == '{') {
        memcpy(text, "weft1.", 6);
        base64url_encode(data, len, text + 6);
    } else {
        memcpy(text, data, len);
        text[len] = '\0';
    }
    check(text);
    free(text);
    return 0;
}
