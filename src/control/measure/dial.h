/*
 * dial.h - sockets of a measurement: opened towards a member, with a deadline.
 *
 * All of them block for at most as long as their deadline says.
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
    const char *interface; /* borrowed; packets leave and come by it only; NULL: as routed */
    struct session_id id;  /* of the session that both are in */
};

/** dial_udp() - a connected datagram socket that never fragments; 0 or negative errno with words.
 */
int dial_udp(const struct dial_target *to, int *ret_fd, struct err *e);

/**
 * dial_data() - a data connection, of which the peer has taken the order
 * @o:		SINK, SOURCE or HOP; its id is set from @to
 *
 * Return: 0; or negative errno with words, which may be the peer's.
 */
int dial_data(const struct dial_target *to, const struct order *o, nsec_t deadline, int *ret_fd,
    struct err *e);

/**
 * dial_ask() - one order to a member that takes it without a session of its own; its answer
 * @o:		PORT; its id is set from @to
 * @ret:	gives a reference; no refusal
 *
 * Return: as dial_data().
 */
int dial_ask(const struct dial_target *to, const struct order *o, nsec_t deadline, json_t **ret,
    struct err *e);

/**
 * dial_all() - several data connections at once, in the time of one
 * @n:		how many; at most ORDER_STREAMS_MAX
 * @ret_fds:	room for @n
 *
 * Return: as dial_data(), and then none is left open.
 */
int dial_all(const struct dial_target *to, const struct order *o, size_t n, nsec_t deadline,
    int *ret_fds, struct err *e);

/** dial_is_own() - does the address belong to this machine, as it would route to it? */
bool dial_is_own(const struct ip_addr *a);

/** dial_bind_device() - only this interface; NULL is fine. 0 or negative errno. */
int dial_bind_device(int fd, const char *interface);
