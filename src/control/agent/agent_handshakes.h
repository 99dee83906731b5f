/*
 * agent_handshakes.h - the handshakes that an agent begins, rather than WireGuard when there is
 * something to send.
 *
 * One that cannot be begun is logged for who debugs: what comes next begins it anyway.
 *
 * Threads: the loop's.
 */
#pragma once

#include "base/clock.h"

struct agent;

/** agent_handshakes_greet_hubs() - with hubs, where they are wanted. The engine has to have their
 * endpoints by now. */
void agent_handshakes_greet_hubs(struct agent *a, nsec_t now);

/** agent_handshakes_begin() - those that have waited until the engine had the routes. */
void agent_handshakes_begin(struct agent *a, nsec_t now);

/** agent_handshakes_on_hub_forgot() - the hub was started anew and has to see a handshake of each
 * edge that it relays. */
void agent_handshakes_on_hub_forgot(struct agent *a, nsec_t now);

/** agent_handshakes_renew() - with all that had a session with an engine that was replaced: a peer
 * that only sends would go on using a session that the new one lacks. */
void agent_handshakes_renew(struct agent *a);
