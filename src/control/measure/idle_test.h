/*
 * idle_test.h - measures the way to a peer without loading it: from one ping to 256 KiB over TCP.
 *
 * Each step needs less trust than the next: is anything answered at all; a train of pings for round
 * trip, loss and the difference of the clocks; datagrams of many sizes that may not be fragmented;
 * a TCP connection, for the MSS that its handshake agrees on; and full-size segments through it.
 *
 * Threads: the caller's, which blocks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "measure/dial.h"
#include "measure/result.h"

/**
 * idle_test_warm_up() - ping members until each has answered, so that the tunnels to them are up
 * @to:		interface, port and session of the pings; its peer is not used
 * @peers:	@n of them, IPv4 on the overlay
 *
 * Takes 7 s at most, which is as long as WireGuard needs when its first handshake is lost.
 */
void idle_test_warm_up(const struct dial_target *to, const struct ip_addr *peers, size_t n);

/**
 * idle_test_run() - all steps, as far as they get
 * @ret:	set to what was found; a step that failed says so in @why; @path is left to the
 * caller
 * @to:		the peer, on the overlay
 * @pings:	length of the train
 *
 * Takes about a second where the peer answers, and two where it does not.
 */
void idle_test_run(struct idle_test *ret, const struct dial_target *to, uint32_t pings);
