/*
 * peer_poll.h - what a peer needs done: what its timers ask for, and what data threads told of it.
 *
 * Threads: under the port's lock.
 */
#pragma once

#include "base/clock.h"

struct peer;
struct port;

/** peer_poll() - do what its timers ask for at @now, and arm them again. */
void peer_poll(struct peer *peer, nsec_t now);

/** peer_poll_told() - poll the peers of which data threads have told (peer_tell()): afterwards none
 * of them is in port->polls' stack. */
void peer_poll_told(struct port *p);

/** peer_poll_due() - poll the peers whose timers are due at @now. */
void peer_poll_due(struct port *p, nsec_t now);

/** peer_forget_session() - wipe its keys and its handshake under way. */
void peer_forget_session(struct peer *peer);
