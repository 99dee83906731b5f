/*
 * socket.h - for any socket: buffers, waiting, and who has which port.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct sock_filter;

/* For any socket: the size of its buffers, and waiting until it is ready. */

/**
 * socket_set_receive_buffer() - of what has arrived and was not read yet
 * socket_set_send_buffer() - of what was written and has not left: of a unix socket what its other
 *			      end has not read yet
 * @bytes:	as the kernel counts, with its own expenses: about 16 KiB for a jumbo packet
 *
 * Beyond the system's limit it needs CAP_NET_ADMIN. Without, the room is what the limit allows, and
 * more is lost in a rush: nothing that a caller can act upon.
 */
void socket_set_receive_buffer(int fd, int bytes);
void socket_set_send_buffer(int fd, int bytes);

/** socket_filter() - have @n instructions look at what comes in. 0 or negative errno. */
int socket_filter(int fd, int option, struct sock_filter *code, unsigned short n);

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

/*
 * The ports that the kernel chooses where a program names none.
 *
 * net.ipv4.ip_local_port_range, of this network namespace and for both families.
 */

/** First to last. */
struct local_ports {
    uint16_t first;
    uint16_t last;
};

/** local_ports_read() - the range; the kernel's default if it cannot be read. */
struct local_ports local_ports_read(void);

/*
 * Is a port taken, and by which program?
 *
 * The kernel tells each socket's inode (/proc/net/udp, udp6), and each process its descriptors;
 * both are of this network namespace.
 */

/** The port is taken. */
#define UDP_OWNER_E_TAKEN 1

/**
 * udp_owner_check() - can WireGuard listen on that port?
 *
 * Return: 0; UDP_OWNER_E_TAKEN with words that name EADDRINUSE, and the process where it can be
 * found; or negative errno with words.
 */
int udp_owner_check(uint16_t port, struct err *e);

/**
 * port_taken() - say that the port is in use, and by which process where it can be found
 *
 * Return: @r.
 */
int port_taken(bool is_tcp, uint16_t port, int r, struct err *e);

/** listener_fn - takes a socket that listens: its port, and its inode as in /proc/PID/fd. */
typedef void (*listener_fn)(void *ctx, uint16_t port, uint64_t inode);

/** listeners_list() - the TCP sockets of this network namespace that listen, on any address. */
void listeners_list(listener_fn fn, void *ctx);
