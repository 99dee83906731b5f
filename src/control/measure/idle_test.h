/*
 * idle_test.h - measures the path to a peer without loading it: from one ping to 256 KiB over TCP.
 *
 * There are five steps, and each relies on the ones before it: a ping, to see whether the peer
 * answers at all; a train of pings, for round trip time, loss and the difference of the clocks;
 * datagrams of many sizes that may not be fragmented, for the MTU; a TCP connection, for the MSS on
 * which its handshake agrees; and full-size segments through that connection.
 *
 * Threads: the caller's; all functions block.
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
 * Takes 7 s at most, which is enough for WireGuard's second handshake if its first one is lost.
 */
void idle_test_warm_up(const struct dial_target *to, const struct ip_addr *peers, size_t n);

/**
 * idle_test_run() - do all steps, or as many as succeed
 * @ret:	always set; if a step failed, the reason is in @why; @path is left to the caller
 * @to:		the peer, on the overlay
 * @pings:	length of the train
 *
 * Takes 4 ms for each ping, and usually less than a second for the other steps. Where the peer
 * answers nothing it takes 0.8 s.
 */
void idle_test_run(struct idle_test *ret, const struct dial_target *to, uint32_t pings);
