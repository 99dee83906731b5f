/*
 * dial.h - opens the sockets of a measurement towards a member, and reads and writes orders and
 * answers on them; each is one line of JSON.
 *
 * Functions with a deadline block until then at most; the others do not block. Deadlines are
 * monotonic.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "measure/order.h"

/** The other end of a measurement. */
struct dial_target {
    struct ip_addr peer;
    uint16_t port;
    const char *interface; /* pins; packets leave and arrive by it only; NULL: as routed */
    struct session_id id;  /* of the session in which both take part */
};

/**
 * dial_udp() - open a connected datagram socket that never fragments
 *
 * Return: 0 or negative errno with words.
 */
int dial_udp(const struct dial_target *to, int *ret_fd, struct err *e);

/**
 * dial_ask() - send an order on a new connection, read the answer, and close the connection
 * @o:		PORT; its id is set from @to
 * @ret:	gives a reference to the answer, which is not a refusal
 *
 * Return: as dial_all().
 */
int dial_ask(const struct dial_target *to, const struct order *o, nsec_t deadline, json_t **ret,
    struct err *e);

/**
 * dial_open() - the same, and the connection stays open
 * @o:		CATCH; its id is set from @to
 * @ret_fd:	owned by the caller
 *
 * Return: as dial_all().
 */
int dial_open(const struct dial_target *to, const struct order *o, nsec_t deadline, int *ret_fd,
    json_t **ret, struct err *e);

/**
 * dial_all() - open data connections, all at once, which takes no longer than opening one
 * @o:		SINK, SOURCE or HOP; its id is set from @to
 * @n:		how many connections; at most ORDER_STREAMS_MAX
 * @ret_fds:	room for @n
 *
 * Each has its order, and the peer has accepted it.
 *
 * Return: 0; or negative errno with words, and then no connection is left open. The words of a
 * refusal are the peer's.
 */
int dial_all(const struct dial_target *to, const struct order *o, size_t n, nsec_t deadline,
    int *ret_fds, struct err *e);

/** dial_is_own() - is this an address of this machine, as its routing sees it? */
bool dial_is_own(const struct ip_addr *a);

/** dial_is_fit_peer() - can a peer have this address? Not when it is one of this machine's own, or
 * a loopback, link-local or multicast address. This holds wherever the address comes from. */
bool dial_is_fit_peer(const struct ip_addr *a);

/** dial_bind_device() - use only this interface; NULL: nothing is done. 0 or negative errno. */
int dial_bind_device(int fd, const char *interface);

/* ---- lines ----------------------------------------------------------------------------------- */

/** Bytes that were read from a connection and not taken yet. */
struct line_buffer {
    char *text; /* owns */
    size_t len;
    size_t cap;
};

#define LINE_BUFFER_NULL                                                                           \
    {                                                                                              \
        0                                                                                          \
    }

/** line_buffer_deinit() - release what was read; idempotent, safe on LINE_BUFFER_NULL. */
void line_buffer_deinit(struct line_buffer *lb);

/**
 * line_read() - wait for the next line
 * @lb:		after a time-out it keeps the part of the line that has arrived
 * @fd:		borrowed; a connected stream socket
 * @deadline:	monotonic
 * @ret:	gives a reference to a JSON object
 *
 * Return: 0; -EPIPE when the other end has closed; -ETIMEDOUT; -EINVAL when the line is no JSON or
 * longer than ORDER_LINE_MAX; or another negative errno. All but -ENOMEM with words.
 */
int line_read(struct line_buffer *lb, int fd, nsec_t deadline, json_t **ret, struct err *e);

/**
 * line_write() - send one line
 * @json:	borrowed; NULL, which an encoder returns when it has no memory, gives -ENOMEM
 * @deadline:	monotonic; the call blocks until then at most
 *
 * Return: 0 or negative errno with words.
 */
int line_write(int fd, const json_t *json, nsec_t deadline, struct err *e);

/**
 * line_take() - remove a complete line from the buffer, without reading from the socket
 * @ret:	gives a reference to a JSON object
 *
 * Return: 0; -EAGAIN when the buffer has no complete line; -EINVAL with words.
 */
int line_take(struct line_buffer *lb, json_t **ret, struct err *e);

/**
 * line_fill() - read once into the buffer, without waiting
 *
 * Return: 0; -EAGAIN when nothing has arrived; -EPIPE when the other end has closed; or another
 * negative errno. All but -EAGAIN and -ENOMEM with words.
 */
int line_fill(struct line_buffer *lb, int fd, struct err *e);

/** line_check_answer() - 0; or -EPROTO with a refusal's sentence ({"error": "..."}). */
int line_check_answer(const json_t *json, struct err *e);
