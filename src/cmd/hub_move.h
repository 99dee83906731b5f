/* hub_move.h - weft hub move: the command; hub.c dispatches to it. */
#pragma once

int hub_move(int argc, char **argv);
