/*
 * stun_socket.h - a UDP socket on the loop that STUN requests go from.
 *
 * Of its own port, so what it sees is the NAT's doing and not WireGuard's
 * mapping. It knows nothing of who asked what: requests are made, and answers
 * taken apart, with wire/stun.h.
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
 * stun_socket_open() - on any port
 * @v4:		of which family
 * @ctx:	pinned
 *
 * Return: NULL when there can be none: out of memory or of sockets, or a kernel without IPv6.
 */
struct stun_socket *stun_socket_open(
    struct uv_loop_s *loop, bool v4, stun_socket_fn on_datagram, void *ctx);

/** stun_socket_close() - its handle closes in the loop's next turns. NULL is fine. Always NULL. */
struct stun_socket *stun_socket_close(struct stun_socket *s);

/** stun_socket_send() - what cannot be sent is as good as lost. NULL is fine. */
void stun_socket_send(
    struct stun_socket *s, const struct endpoint *to, const uint8_t *msg, size_t len);
