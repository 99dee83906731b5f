/*
 * idle_test.h - measures a peer without load: from one warm-up ping to 256 KiB.
 *
 * The order of steps is that of trust: is anything answered at all; a train of
 * pings for RTT, loss and the clocks; datagrams of many sizes that may not be
 * fragmented; a TCP connection, for the MSS that its handshake agrees on; and
 * full-size segments through it.
 */
#pragma once

#include <stdint.h>

#include "measure/dial.h"
#include "measure/result.h"

/**
 * light_warm() - ping some members until each has answered, so that their tunnels are up
 * @to:		its peer is not looked at
 * @peers:	@n of them
 *
 * Takes as long as a second WireGuard handshake may, at most: 7 s.
 */
void light_warm(const struct dial_target *to, const struct ip_addr *peers, size_t n);

/**
 * light_run() - all steps, as far as they get
 * @pings:	of the train
 *
 * Takes a second at most where the peer answers, and two where it does not.
 * What failed is in words in the result; its path is left to the caller.
 */
void light_run(struct light *ret, const struct dial_target *to, uint32_t pings);
