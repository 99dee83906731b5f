/*
 * tls_front.h - the TLS of the public API, in a thread of its own.
 *
 * Theory of operation. What is accepted by the listener is handed in here, and what
 * comes out is the other half of a socket pair that carries plain bytes, as
 * from any client. So the HTTP server knows no TLS, a handshake takes none of
 * the loop's time, and a connection that becomes a stream (upgrade.h) costs the
 * loop only its bytes. Between the two each direction has one record's room; a
 * side that does not take makes the other wait.
 *
 * The end of either side ends the other: in order, with all that was on its way.
 *
 * Threads: one of its own, which owns every link; tls_front_wrap() hands over
 * under a lock.
 */
#pragma once

struct err;
struct identity;
struct tls_front;

/** tls_front_new() - @id: borrowed for the call. 0 or negative errno with words. */
int tls_front_new(struct tls_front **ret, const struct identity *id, struct err *e);

/**
 * tls_front_free() - close everything and end the thread
 *
 * What the plain ends still have to say is lost: close them first. NULL is fine. Always NULL.
 */
struct tls_front *tls_front_free(struct tls_front *f);

/**
 * tls_front_wrap() - speak TLS, as a server, with whoever is behind @net_fd
 * @net_fd:	a connected TCP socket that does not block; taken, also on failure
 * @ret_fd:	gives the plain end, which does not block either
 *
 * A handshake that never ends is the caller's to bound: it closes the plain end.
 *
 * Return: 0 or negative errno.
 */
int tls_front_wrap(struct tls_front *f, int net_fd, int *ret_fd);
