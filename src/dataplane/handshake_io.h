/*
 * handshake_io.h - handshakes on the control thread: messages in, messages out, sessions begun.
 *
 * Where the sans-I/O handshake of noise/ meets sockets and the index table. All
 * calls are under the port's lock.
 */
#pragma once

#include "base/clock.h"

struct handshake_msg;
struct peer;
struct port;

/**
 * handshake_io_take() - a handshake message that came in
 *
 * Its mac1 was right for @m->device, if it has one. Under load an initiation or a response
 * is answered with a cookie unless it carries one.
 */
void handshake_io_take(struct port *p, const struct handshake_msg *m, nsec_t now);

/** handshake_io_initiate() - create and send an initiation; tells the timers. */
void handshake_io_initiate(struct peer *peer, nsec_t now);

/** handshake_io_session_ready() - the peer can be sent to: do so, and tell the listener. */
void handshake_io_session_ready(struct peer *peer, nsec_t now);

/** handshake_io_abandon() - wipe a handshake that is under way, and release its index. */
void handshake_io_abandon(struct peer *peer);
