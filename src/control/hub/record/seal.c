/* seal.c - see seal.h. */
#include "seal.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

#define FIELD ",\"sum\":\""
#define FIELD_LEN (sizeof(FIELD) - 1)
#define SUM_BYTES 8
#define SUM_LEN   (2 * SUM_BYTES)
#define END       "\"}"
#define END_LEN   (sizeof(END) - 1)
#define TAIL_LEN (FIELD_LEN + SUM_LEN + END_LEN)

/* Of @key and of the object whose first @len bytes are at @text, all but the closing brace. */
static bool make_sum(const char *key, const char *text, size_t len, char ret[static SUM_LEN + 1])
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    char *both;
    int n = asprintf(&both, "%s\n%.*s", key, (int)len, text);

    if (n < 0)
        return false;
    SHA256((const uint8_t *)both, (size_t)n, digest);
    free(both);
    hex_encode(digest, SUM_BYTES, ret);
    return true;
}

char *seal_add(const char *key, const char *text)
{
    size_t len = strlen(text);
    char sum[SUM_LEN + 1];
    char *sealed = NULL;

    /* An object without fields would need no comma; no record is one. */
    if (len < sizeof("{\"a\":0}") - 1 || text[len - 1] != '}')
        return NULL;
    if (!make_sum(key, text, len - 1, sum) ||
        asprintf(&sealed, "%.*s" FIELD "%s" END, (int)(len - 1), text, sum) < 0)
        return NULL;
    return sealed;
}

/* Is there a sum, however the text ends behind it? */
static bool has_field(const char *text, size_t len)
{
    return len >= TAIL_LEN && memcmp(text + len - TAIL_LEN, FIELD, FIELD_LEN) == 0;
}

static bool has_end(const char *text, size_t len)
{
    return memcmp(text + len - END_LEN, END, END_LEN) == 0;
}

bool seal_is_there(const char *text)
{
    size_t len = strlen(text);

    return has_field(text, len) && has_end(text, len);
}

int seal_check(const char *key, const char *text, struct err *e)
{
    size_t len = strlen(text);
    char sum[SUM_LEN + 1];
    const char *tail;

    if (!has_field(text, len))
        return 0;
    if (!has_end(text, len))
        return err_set(
            e, -EINVAL, "its last characters are %s, and not %s", text + len - END_LEN, END);
    tail = text + len - TAIL_LEN;
    if (!make_sum(key, text, len - TAIL_LEN, sum))
        return err_set(e, -ENOMEM, "no memory for a sum");
    if (memcmp(tail + FIELD_LEN, sum, SUM_LEN) == 0)
        return 0;
    return err_set(e, -EINVAL, "the sum in it is \"%.*s\", and that of its key and text is \"%s\"",
        (int)SUM_LEN, tail + FIELD_LEN, sum);
}
