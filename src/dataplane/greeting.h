/*
 * greeting.h - handshakes on the control thread: messages in, messages out, sessions begun.
 *
 * Where the sans-I/O handshake of noise/ meets sockets and the index table. All
 * calls are under the port's lock.
 */
#pragma once

#include "base/clock.h"

struct greeting;
struct peer;
struct port;

/**
 * greeting_take() - a handshake message that came in
 *
 * Its mac1 was right for @g->device, if it has one. Under load an initiation or a response
 * is answered with a cookie unless it carries one.
 */
void greeting_take(struct port *p, const struct greeting *g, nsec_t now);

/** greeting_initiate() - create and send an initiation; tells the timers. */
void greeting_initiate(struct peer *peer, nsec_t now);

/** greeting_session_ready() - the peer can be sent to: do so, and tell the listener. */
void greeting_session_ready(struct peer *peer, nsec_t now);

/** greeting_abandon() - wipe a handshake that is under way, and release its index. */
void greeting_abandon(struct peer *peer);
