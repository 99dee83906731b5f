/* sample_command.c - see sample_command.h. */
#include "test/support/sample_command.h"

#include <stdio.h>
#include <string.h>

struct command sample_command_read(const char *line, char buf[static SAMPLE_COMMAND_MAX])
{
    static char *words[24 + 1];
    struct command c;
    size_t n = 0;
    char *rest = NULL;

    memset(words, 0, sizeof(words));
    (void)snprintf(buf, SAMPLE_COMMAND_MAX, "%s", line);
    for (char *word = strtok_r(buf, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[n++] = word;
    command_read(&c, words);
    return c;
}
