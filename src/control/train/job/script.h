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
struct torch_install;

/**
 * script_is_missing() - does the command name a script in ".py" that is not there?
 * @torch:	what torch_find() has found for it
 *
 * A relative path is looked for in the working directory, as Python does. Of a script that cannot
 * be looked for, and where it is not sure which word is the script, nothing is said; nor of a
 * launcher that is no Python of this machine, such as a shell script that starts a container.
 */
bool script_is_missing(const struct command *c, const struct torch_install *torch);

/**
 * script_check() - refuse a command whose script is missing
 *
 * That of mpirun and of deepspeed is not refused: they may run it on other machines alone.
 *
 * Return: 0, or -ENOENT with words.
 */
int script_check(const struct command *c, const struct torch_install *torch, struct err *e);

/** script_advise() - append a line if the script is missing. */
void script_advise(const struct command *c, const struct torch_install *torch, struct str *out);
