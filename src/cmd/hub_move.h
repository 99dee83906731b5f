/* hub_move.h - weft hub move: the command; hub.c dispatches to it. */
#pragma once

/** hub_move() - as a cmd_fn: argv[0] is "move". */
int hub_move(int argc, char **argv);
