/* fail.c - how a command says that it failed; see cmd.h. */
#include <stdarg.h>
#include <stdio.h>

#include "cmd/cmd.h"

int cmd_fail(const char *command, const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "weft %s: ", command);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    return CMD_FAILED;
}
