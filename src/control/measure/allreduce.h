/*
 * allreduce.h - an all-reduce over plain TCP, to see what the mesh gives a collective.
 *
 * Sum of float vectors, the two shapes that collective libraries use: a ring
 * (reduce-scatter, then all-gather; each member sends 2(n-1)/n of the vector)
 * and a binary tree (up, then down). The sums are checked.
 */
#pragma once

#include "measure/dial.h"
#include "measure/result.h"

struct session;

/**
 * reduce_run() - this member's part
 * @to:		interface, port and session; its peer is not looked at
 * @o:		ALLREDUCE
 * @s:		where the neighbours' connections arrive
 *
 * What failed is in words in the result.
 */
void reduce_run(
    struct reduction *ret, const struct dial_target *to, const struct order *o, struct session *s);
