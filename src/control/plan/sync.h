/*
 * sync.h - how long one synchronisation takes: an all-reduce by a ring, a tree, or island by
 * island.
 *
 * Each time has a part for latency, which does not depend on the bytes, and a part for the bytes.
 * Pure.
 */
#pragma once

#include <stddef.h>

#include "plan/matrix.h"

/** Who carries the bytes; they use TCP in different ways. */
enum sync_transport {
    SYNC_GLOO, /* one TCP connection a pair, two segments in flight */
    SYNC_NCCL, /* NCCL's sockets: several connections, a window of its own buffers */
    SYNC_TRANSPORT_N,
};

/** "gloo" and "nccl". */
extern const char *const sync_transport_names[];

/**
 * Share of a connection's rate that is left when as much goes the other way at the same time, as in
 * any ring: acknowledgements take the rest, and wait behind data. By Gloo over emulated links, with
 * BBR; test/bench/plan shows how far it carries. TCP that a loss slows down (Reno, CUBIC) keeps
 * less, and how much less depends on the queues before the line: there the share is what was
 * measured both ways at once, if that was; farther away than MATRIX_ISLAND_RTT it is reckoned from
 * a queue of one round trip's bytes (sync.c, bursts()).
 */
#define SYNC_DUPLEX 0.9

/**
 * Bytes that NCCL keeps in flight: its channels over a network, each with a buffer of NCCL_BUFFSIZE
 * (NCCL user guide, Environment Variables: 4 MiB).
 */
#define SYNC_NCCL_WINDOW (2 * 4194304.0)

/** sync_rate() - bytes per second from @from to @to in a ring; 0: not measured. */
double sync_rate(const struct matrix *m, size_t from, size_t to, enum sync_transport t);

/** sync_costs() - for ring_order(): seconds to pass @bytes from each of @nodes to each. */
void sync_costs(const struct matrix *m, const size_t *nodes, size_t n, double bytes,
    enum sync_transport t, double *ret);

/**
 * sync_ring() - seconds of an all-reduce of @bytes by a ring
 * @nodes:	@n of them in the order of the ring; data passes from each to the next
 *
 * With NCCL: 2 (n - 1) steps, in each of which every node passes a chunk of 1/n (Patarasuk and
 * Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69, 2009,
 * section 3): 2 (n - 1) * (latency + bytes / n / rate) of the slowest link.
 *
 * With Gloo: its ring is played through, segment by segment (gloo/allreduce.cc, ring()): a node
 * tells its neighbour that it is ready for a segment before that is sent (gloo/transport/tcp/
 * pair.cc), and has two of them in flight. So a round trip passes for each two segments.
 *
 * Return: 0 for fewer than two nodes or no bytes; INFINITY when a link of it was not measured, or
 * without memory.
 */
double sync_ring(
    const struct matrix *m, const size_t *nodes, size_t n, double bytes, enum sync_transport t);

/**
 * sync_gather() - seconds until each node has @bytes of every other one
 *
 * With NCCL n - 1 steps of a ring, of @bytes each. With Gloo these steps are played through; each
 * passes on two halves (gloo/allgather.cc).
 *
 * Return: as sync_ring().
 */
double sync_gather(
    const struct matrix *m, const size_t *nodes, size_t n, double bytes, enum sync_transport t);

/**
 * sync_tree() - seconds of an all-reduce of @bytes by a tree of all nodes: summed towards the root,
 * sent back
 * @parent:	by node; the root is its own
 *
 * Pipelined, so a link is passed by the bytes once each way, and a node with two children takes in
 * twice as much (Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast,
 * reduction and scan", Parallel Computing 35, 2009, section 3):
 * 2 * (latency of the deepest way + most bytes into one node / rate).
 *
 * Return: as sync_ring().
 */
double sync_tree(const struct matrix *m, const size_t *parent, double bytes, enum sync_transport t);

/**
 * sync_broadcast() - seconds until @bytes of the first of @nodes are at all of them
 *
 * A binomial tree, as Gloo has it (gloo/broadcast.cc): log2(n) levels, one after the other.
 */
double sync_broadcast(
    const struct matrix *m, const size_t *nodes, size_t n, double bytes, enum sync_transport t);

/**
 * sync_restart() - seconds that TCP loses at a synchronisation after a long pause
 * @bytes:	that go over the connection
 *
 * A connection that was idle begins again with ten segments (RFC 5681, section 4.1; RFC 6928) and
 * doubles them each round trip, until the link is full or all bytes are sent.
 *
 * Return: 0 also where the ends' TCP keeps its window over a pause (matrix_link.restarts).
 */
double sync_restart(
    const struct matrix *m, size_t from, size_t to, double bytes, enum sync_transport t);

/*
 * In which order the nodes of a ring follow each other, and who is whose parent in a tree.
 *
 * A ring is as fast as its slowest link, so the best ring is the cycle whose slowest link is the
 * fastest (the bottleneck travelling salesman problem); among those with the same slowest link the
 * one with the least sum. Pure.
 */

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
