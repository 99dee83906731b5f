/*
 * allreduce.h - an all-reduce over plain TCP, to see what the mesh gives a collective.
 *
 * It sums vectors of floats in the two shapes that collective libraries use: a ring
 * (reduce-scatter, then all-gather; each member sends 2(n-1)/n of the vector) and a binary tree
 * (sums go up to rank 0, the result comes down). The sums are checked.
 */
#pragma once

#include "measure/dial.h"
#include "measure/result.h"

struct session;

/**
 * allreduce_run() - this member's part, as often as the order says
 * @ret:	set; what failed is in its @why
 * @to:		interface, port and session of the connections; its peer is not used
 * @o:		ALLREDUCE, with the addresses of all ranks
 * @s:		at which the connections from neighbours of lower rank arrive
 *
 * Threads: the caller's, which blocks for the time in @o at most, and 3 s to meet the neighbours.
 */
void allreduce_run(
    struct allreduce *ret, const struct dial_target *to, const struct order *o, struct session *s);
