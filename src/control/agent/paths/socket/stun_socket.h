/*
 * stun_socket.h - a UDP socket on the loop, for STUN requests that do not use WireGuard's port.
 *
 * It has a port of its own, so a NAT gives it a mapping of its own, and WireGuard's
 * is not touched. Requests are encoded and answers decoded by the caller
 * (wire/stun.h).
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct endpoint;
struct stun_socket;
struct uv_loop_s;

/**
 * stun_socket_fn - a datagram has come
 * @msg:	@len bytes, any content; borrowed for the call
 *
 * May close the socket that it came to.
 */
typedef void (*stun_socket_fn)(void *ctx, const uint8_t *msg, size_t len);

/**
 * stun_socket_open() - on a port that the kernel chooses
 * @v4:		IPv4, else IPv6 only
 * @ctx:	pinned
 *
 * Return: NULL when there can be none: out of memory or of sockets, or a kernel without IPv6.
 */
struct stun_socket *stun_socket_open(
    struct uv_loop_s *loop, bool v4, stun_socket_fn on_datagram, void *ctx);

/** stun_socket_close() - its handle closes in the loop's next turns. NULL is fine. Always NULL. */
struct stun_socket *stun_socket_close(struct stun_socket *s);

/** stun_socket_send() - what cannot be sent is dropped, as if it were lost. NULL is fine. */
void stun_socket_send(
    struct stun_socket *s, const struct endpoint *to, const uint8_t *msg, size_t len);
