/* hub_backup.h - weft hub backup and weft hub restore: the commands; hub.c dispatches to them. */
#pragma once

/** hub_backup(), hub_restore() - as a cmd_fn: argv[0] is the last word of the command. */
int hub_backup(int argc, char **argv);
int hub_restore(int argc, char **argv);
