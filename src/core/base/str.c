/* str.c - see str.h. */
#include "str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"

void str_deinit(struct str *s)
{
    if (s->text)
        secret_wipe(s->text, s->cap);
    free(s->text);
    *s = (struct str)STR_NULL;
}

/* Room for @len more bytes and a zero. Not realloc(), which leaves a copy behind. */
static bool reserve(struct str *s, size_t len)
{
    size_t cap = s->cap ? s->cap : 64;
    char *grown;

    if (s->failed)
        return false;
    if (s->text && len < s->cap - s->len)
        return true;
    while (cap - s->len <= len) {
        if (__builtin_mul_overflow(cap, 2, &cap)) {
            s->failed = true;
            return false;
        }
    }
    grown = malloc(cap);
    if (!grown) {
        s->failed = true;
        return false;
    }
    if (s->text) {
        memcpy(grown, s->text, s->len + 1);
        secret_wipe(s->text, s->cap);
        free(s->text);
    }
    s->text = grown;
    s->cap = cap;
    return true;
}

void str_add_bytes(struct str *s, const char *bytes, size_t len)
{
    if (!reserve(s, len))
        return;
    /* No bytes may be nowhere, of which memcpy() would not hear. */
    if (len > 0)
        memcpy(s->text + s->len, bytes, len);
    s->len += len;
    s->text[s->len] = '\0';
}

void str_add(struct str *s, const char *text)
{
    str_add_bytes(s, text, strlen(text));
}

void str_addf(struct str *s, const char *fmt, ...)
{
    va_list ap;
    int len;

    va_start(ap, fmt);
    len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (len < 0 || !reserve(s, (size_t)len)) {
        s->failed = true;
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(s->text + s->len, s->cap - s->len, fmt, ap);
    va_end(ap);
    s->len += (size_t)len;
}

const char *str_text(const struct str *s)
{
    return s->text ? s->text : "";
}

char *str_take(struct str *s, size_t *ret_len)
{
    char *text = NULL;

    if (!s->text)
        str_add(s, "");
    if (s->failed) {
        str_deinit(s);
        return NULL;
    }
    text = s->text;
    if (ret_len)
        *ret_len = s->len;
    *s = (struct str)STR_NULL;
    return text;
}
