/* uapi_text.c - see uapi_text.h. */
#include "uapi/uapi_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "uapi/uapi.h"

static bool make_room(struct uapi_text *t, size_t more)
{
    size_t cap = t->cap ? t->cap : 512;
    char *p;

    while (cap - t->len <= more)
        cap *= 2;
    if (cap == t->cap)
        return true;
    /* Not realloc(): what it leaves behind may hold a key. */
    p = malloc(cap);
    if (!p)
        return false;
    if (t->p) {
        memcpy(p, t->p, t->len);
        secret_wipe(t->p, t->len);
        free(t->p);
    }
    t->p = p;
    t->cap = cap;
    return true;
}

void uapi_text_add(struct uapi_text *t, const char *fmt, ...)
{
    char line[UAPI_LINE_MAX];
    va_list ap;
    size_t len;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    len = n < 0 ? 0 : (size_t)n;
    if (len >= sizeof(line))
        len = sizeof(line) - 1;
    if (!make_room(t, len)) {
        t->has_failed = true;
    } else {
        memcpy(t->p + t->len, line, len);
        t->len += len;
        t->p[t->len] = '\0';
    }
    secret_wipe(line, len);
}

void uapi_text_deinit(struct uapi_text *t)
{
    if (t->p)
        secret_wipe(t->p, t->len);
    free(t->p);
    *t = (struct uapi_text){0};
}
