/*
 * peer_poll.h - what a peer needs done: what its timers ask for, and what data threads told of it.
 *
 * Threads: under the port's lock.
 */
#pragma once

#include "base/clock.h"

struct peer;
struct port;

/** peer_poll() - do what its timers ask for, and arm them. */
void peer_poll(struct peer *peer, nsec_t now);

/** peer_poll_told() - peers of which data threads told (peer_tell()): afterwards none is in the
 * list. */
void peer_poll_told(struct port *p);

/** peer_poll_due() - peers whose timers are due. */
void peer_poll_due(struct port *p, nsec_t now);

/** peer_forget_session() - wipe its keys and its handshake under way. */
void peer_forget_session(struct peer *peer);
