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

/**
 * socket_split_by_interface() - part what comes to one address and port by where it comes in
 * @fd:		the first of two sockets, not bound yet; both have SO_REUSEPORT
 *
 * What comes in by the interface @ifindex goes to the socket that was bound first (with TCP: that
 * listened first), all else to the second one. Binding one of them to the interface would not do:
 * the kernel takes the first group of sockets that fits, not the one that fits best.
 *
 * Return: 0 or negative errno.
 */
int socket_split_by_interface(int fd, unsigned ifindex);

/** socket_wait() - until @fd is ready for poll(2)'s @events. 0, -ETIMEDOUT or negative errno. */
int socket_wait(int fd, short events, nsec_t deadline);
