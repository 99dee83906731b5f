/*
 * script.h - is the script of a command on this machine?
 *
 * torchrun says that a script is missing only when all nodes have met, so `weft run` looks before.
 */
#pragma once

#include <stdbool.h>

struct command;
struct err;
struct str;

/**
 * script_is_missing() - does the command name a script in ".py" that is not there?
 *
 * A relative path is looked for in the working directory, as Python does. Of a script that cannot
 * be looked for, and where it is not sure which word is the script, nothing is said.
 */
bool script_is_missing(const struct command *c);

/**
 * script_check() - refuse a command whose script is missing
 *
 * That of mpirun and of deepspeed is not refused: they may run it on other machines alone.
 *
 * Return: 0, or -ENOENT with words.
 */
int script_check(const struct command *c, struct err *e);

/** script_advise() - append a line if the script is missing. */
void script_advise(const struct command *c, struct str *out);
