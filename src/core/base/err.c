/* err.c - failure texts; see err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* The static analyzer's macro is for callers. */
#undef err_set

int err_set(struct err *e, int code, const char *fmt, ...)
{
    va_list ap;

    if (!e)
        return code;
    e->code = code;
    va_start(ap, fmt);
    (void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    /* Texts quote input from outside; a terminal must not obey it. */
    text_make_plain(e->text, '?');
    return code;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
    struct err old;
    va_list ap;
    int n;

    if (!e)
        return -EINVAL;
    old = *e;
    va_start(ap, fmt);
    n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(e->text))
        (void)snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", err_text(&old));
    /* Texts quote input from outside; a terminal must not obey it. */
    text_make_plain(e->text, '?');
    return e->code;
}

const char *err_text(const struct err *e)
{
    if (e->text[0])
        return e->text;
    return strerror(e->code < 0 ? -e->code : e->code);
}
