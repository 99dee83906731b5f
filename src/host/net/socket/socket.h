/*
 * socket.h - for any socket: the size of its buffers, and waiting until it is ready.
 */
#pragma once

#include "base/clock.h"

/**
 * socket_set_receive_room() - of what has arrived and was not read yet
 * socket_set_send_room() - of what was written and has not left; of a unix socket that is all that
 *			    its other end has not read yet
 * @bytes:	as the kernel counts, with its own expenses: about 16 KiB for a jumbo packet
 *
 * Beyond the system's limit it needs CAP_NET_ADMIN. Without, the room is what the limit allows, and
 * more is lost in a rush: nothing that a caller can act upon.
 */
void socket_set_receive_room(int fd, int bytes);
void socket_set_send_room(int fd, int bytes);

/** socket_wait() - until @fd is ready for poll(2)'s @events. 0, -ETIMEDOUT or negative errno. */
int socket_wait(int fd, short events, nsec_t deadline);
