/* fail.c - how a command says that it failed; see cmd.h. */
#include <stdarg.h>
#include <stdio.h>

#include "cmd/cmd.h"

static void say(const char *command, const char *fmt, va_list ap)
{
    (void)fprintf(stderr, "weft %s: ", command);
    (void)vfprintf(stderr, fmt, ap);
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
