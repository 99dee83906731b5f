/*
 * dial.h - opens the sockets of a measurement towards a member.
 *
 * Functions with a deadline block until then at most; the others do not block. Deadlines are
 * monotonic.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "measure/order.h"

struct err;

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
 * dial_data() - open a data connection, and wait until the peer has accepted its order
 * @o:		SINK, SOURCE or HOP; its id is set from @to
 *
 * Return: 0; or negative errno with words. The words of a refusal are the peer's.
 */
int dial_data(const struct dial_target *to, const struct order *o, nsec_t deadline, int *ret_fd,
    struct err *e);

/**
 * dial_ask() - send an order on a new connection, read the answer, and close the connection
 * @o:		PORT; its id is set from @to
 * @ret:	gives a reference to the answer, which is not a refusal
 *
 * Return: as dial_data().
 */
int dial_ask(const struct dial_target *to, const struct order *o, nsec_t deadline, json_t **ret,
    struct err *e);

/**
 * dial_all() - open several data connections at once, which takes no longer than opening one
 * @n:		how many connections; at most ORDER_STREAMS_MAX
 * @ret_fds:	room for @n
 *
 * Return: as dial_data(). After a failure no connection is left open.
 */
int dial_all(const struct dial_target *to, const struct order *o, size_t n, nsec_t deadline,
    int *ret_fds, struct err *e);

/** dial_is_own() - is this an address of this machine, as its routing sees it? */
bool dial_is_own(const struct ip_addr *a);

/** dial_bind_device() - use only this interface; NULL: nothing is done. 0 or negative errno. */
int dial_bind_device(int fd, const char *interface);
