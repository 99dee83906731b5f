/*
 * control.h - commands to a running emulator, over a unix socket.
 *
 * The socket is SOCK_SEQPACKET: one packet is one command, and one packet answers it, with "ok"
 * or "error: " and a sentence.  By hand:  socat - UNIX-CONNECT:PATH,type=5
 *
 *   add LINK TAP TAP [WORD…]   create a link between two new TAP devices
 *   set LINK WORD…             change parameters; for the words see params.h
 *   down LINK                  cut the link: both directions lose everything, also in flight
 *   up LINK                    mend it
 *   show LINK                  one line of counters for each direction
 */
#pragma once

struct emulator;

/**
 * control_listen() - open the socket at @path, which a dead emulator may have left behind.
 *
 * Return: 0, or a negative errno.
 */
int control_listen(const char *path, int *ret_fd);

/**
 * control_serve() - read one command from a client, do it and answer.
 * @fd:		closed here when the client is gone
 */
void control_serve(struct emulator *em, int fd);
