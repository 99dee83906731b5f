/*
 * handshake_io.h - handshakes on the control thread: messages in, messages out, sessions begun.
 *
 * Where the sans-I/O handshake of noise/ meets sockets and the index table. All
 * calls are under the port's lock.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

struct handshake_limits;
struct peer;
struct port;
struct rng;

/** handshake_limits_new() - a port's memory of who has sent too much under load, and of what was
 * logged. 0 or -ENOMEM. */
int handshake_limits_new(struct handshake_limits **ret, const struct rng *rng);

/** handshake_limits_free() - release it. */
struct handshake_limits *handshake_limits_free(struct handshake_limits *limits);

/**
 * handshake_io_take_next() - the oldest handshake message that waits in the port's queue
 * @ret_due:	the peer whose timers are to be looked at now (peer_poll()); NULL: none's
 *
 * Its mac1 was right for its device, if it has one. Under load an initiation or a response is
 * answered with a cookie unless it carries one.
 *
 * Return: false when none waits.
 */
bool handshake_io_take_next(struct port *p, nsec_t now, struct peer **ret_due);

/** handshake_io_initiate() - create and send an initiation; tells the timers. */
void handshake_io_initiate(struct peer *peer, nsec_t now);

/** handshake_io_session_ready() - the peer can be sent to: do so, and tell the listener. */
void handshake_io_session_ready(struct peer *peer, nsec_t now);

/** handshake_io_abandon() - wipe a handshake that is under way, and release its index. */
void handshake_io_abandon(struct peer *peer);
