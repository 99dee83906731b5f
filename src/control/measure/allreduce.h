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
 * Vectors up to this size are always taken, bytes. Each member holds two of its vectors. A larger
 * one only where that is no more than half of the memory that is available, so that measuring takes
 * nothing from a machine's own work.
 */
#define ALLREDUCE_SURE_MAX (256ull << 20)

/**
 * allreduce_run() - do this member's part of the all-reduce, as often as the order says
 * @ret:	always set; if something failed, the reason is in its @why
 * @to:		interface, port and session of the connections; its peer is not used
 * @o:		ALLREDUCE, with the addresses of all ranks
 * @s:		the session; connections from neighbours arrive in it
 *
 * Threads: the caller's. It blocks for at most the time in @o, after at most 3 s for each neighbour
 * until the connection with it is there.
 */
void allreduce_run(
    struct allreduce *ret, const struct dial_target *to, const struct order *o, struct session *s);
