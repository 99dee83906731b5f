/* hub_backup.h - weft hub backup and weft hub restore: the commands; hub.c dispatches to them. */
#pragma once

int hub_backup(int argc, char **argv);
int hub_restore(int argc, char **argv);
