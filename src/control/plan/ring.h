/*
 * ring.h - in which order the nodes of a ring follow each other, and who is whose parent in a tree.
 *
 * A ring is as fast as its slowest link, so the best ring is the cycle whose slowest link is the
 * fastest (the bottleneck travelling salesman problem); among those with the same slowest link the
 * one with the least sum. Pure.
 */
#pragma once

#include <stddef.h>

/** Up to so many nodes the best cycle is found by trying all; for more, it is improved by 2-opt. */
#define RING_EXACT_MAX 9

/**
 * ring_order() - a good cycle through all nodes
 * @cost:	@n times @n seconds; cost[a * n + b] is for what passes from a to b
 * @ret:	room for @n; each index once, beginning with 0. Passing goes from each to
 *		the next, and from the last to the first
 *
 * For more than RING_EXACT_MAX nodes: Croes, "A method for solving traveling-salesman problems"
 * (Operations Research 6, 1958), which reverses parts of the cycle for as long as that helps.
 */
void ring_order(const double *cost, size_t n, size_t *ret);

/** ring_bottleneck() - the cost of the cycle's slowest link. */
double ring_bottleneck(const double *cost, size_t n, const size_t *order);

/** Most children of a node of a tree: two, as in NCCL's trees. */
#define RING_CHILDREN_MAX 2

/**
 * ring_tree() - a tree of cheap links with at most two children a node
 * @cost:	as above; the dearer direction of a pair counts
 * @ret_parent:	room for @n; the parent of each node; the root is its own
 *
 * Prim, "Shortest connection networks and some generalizations" (Bell System Technical Journal 36,
 * 1957), with the bound on children. The root is the node with the cheapest links.
 */
void ring_tree(const double *cost, size_t n, size_t *ret_parent);
