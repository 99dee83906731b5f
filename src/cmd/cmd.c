/* cmd.c - see cmd.h. */
#include "cmd/cmd.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

bool cmd_write(FILE *out, const char *text)
{
    size_t len = strlen(text);
    size_t from = 0; /* up to here it is written */

    for (size_t i = 0, n; i < len; i += n) {
        enum text_kind kind;

        n = text_next(text + i, len - i, &kind);
        if (kind == TEXT_KIND_PLAIN || text[i] == '\n' || text[i] == '\t')
            continue;
        (void)fwrite(text + from, 1, i - from, out);
        (void)fputc('?', out);
        from = i + n;
    }
    (void)fwrite(text + from, 1, len - from, out);
    return !ferror(out);
}

static void say(const char *command, const char *fmt, va_list ap)
{
    char *text = NULL;

    (void)fprintf(stderr, "weft %s: ", command);
    if (vasprintf(&text, fmt, ap) >= 0) {
        (void)cmd_write(stderr, text);
        free(text);
    }
    (void)fputc('\n', stderr);
}

int cmd_fail(const char *command, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(command, fmt, ap);
    va_end(ap);
    return CMD_FAILED;
}

int cmd_refuse(const char *command, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(command, fmt, ap);
    va_end(ap);
    return CMD_USAGE;
}

int cmd_print(const char *command, const char *text)
{
    if (!cmd_write(stdout, text) || fflush(stdout) != 0)
        return cmd_fail(command, "standard output does not take it");
    return CMD_OK;
}
