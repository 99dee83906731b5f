/* cmd.c - see cmd.h. */
#include "cmd/cmd.h"

#include <stdarg.h>
#include <stdio.h>

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

int cmd_print(const char *command, const char *text)
{
    if (fputs(text, stdout) < 0 || fflush(stdout) < 0)
        return cmd_fail(command, "standard output does not take it");
    return CMD_OK;
}
