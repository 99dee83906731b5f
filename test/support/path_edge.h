/*
 * path_edge.h - one edge alone, for the unit tests of its parts: no keys, no wire and no clock.
 *
 * The test sets what it needs of the edge's fields, calls a part, and looks at the fields and at
 * what is queued. What the two ends make of it is in path_solo.h and path_couple.h.
 */
#pragma once

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"

#define EDGE_T0 (1000 * NSEC_PER_SEC) /* now, in most tests */

/** edge_start() - an edge from node "a" to node "b" that has been on the relay for long, and of
 * which "a" chooses the pair. There is one at a time. */
struct path *edge_start(void);
void edge_stop(void);

/** edge_add() - the pair with an endpoint, of that text. */
struct path_pair *edge_add(enum candidate_kind kind, const char *text, uint32_t socket);

/** edge_answer() - the pair has answered @n_samples pings in a row by now, each in @rtt. */
void edge_answer(struct path_pair *pair, nsec_t rtt, unsigned n_samples);

/** edge_relay() - relay @n, with the round trips of both ends in ms; 0: that end does not reach it.
 */
void edge_relay(uint8_t n, unsigned here_ms, unsigned there_ms);

/**
 * edge_expect() - exactly these actions are queued; then they are taken
 * @lines:	each with a line break at its end: "ping 7 to 203.0.113.1:1", and, where they differ
 *		from the usual, " flags 8", " hops 3", " size 1400", " by 9" (the socket);
 *		"use direct 203.0.113.1:1 by 0 from none"; "use relay 5, 30 ms", and " followed";
 *		"close 9", "open 9", "fresh", "look"; "event b: words", "warning b: words"
 */
void edge_expect(const char *lines);
