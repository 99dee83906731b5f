/*
 * traffic_edges.h - from what nodes say they have moved on a day to what went each way of each
 * edge.
 *
 * Both ends count what went from A to B: A what it has sent, B what it has received. The one that
 * has counted more is believed, and all of that edge's direction is as that one says: of a machine
 * that ended at once, the last minute is missing; of a stock WireGuard and of a hub, all is. What
 * was lost on the way was sent, and is paid for.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/object/traffic.h"

/** What one node says of one day. */
struct traffic_node {
    char name[NAME_MAX_LEN + 1];
    struct traffic traffic; /* owns */
};

/** What went from one node to another one, by one path and for one job. */
struct traffic_row {
    const char *from; /* borrowed, like @to and @job, from the struct traffic_node */
    const char *to;   /* "": nodes that had no sum of their own */
    const char *job;  /* "": none */
    enum path_kind path;
    uint64_t bytes;
};

/** What one end says of one direction of an edge. */
struct traffic_claim {
    struct traffic_row row;
    bool is_senders;
    bool is_only; /* the sender has more flows than it can tell apart: only its own words count */
};

/** traffic_claims_of() - what @f, told by @node, claims: one or two, into @ret. How many. */
size_t traffic_claims_of(
    const char *node, const struct traffic_flow *f, struct traffic_claim ret[static 2]);

/**
 * traffic_claims_settle() - from claims to rows, in the order of from, to, job and path
 * @claims:	all of each sender that has any; they are sorted
 * @ret:	room for @n
 *
 * Return: how many rows.
 */
size_t traffic_claims_settle(struct traffic_claim *claims, size_t n, struct traffic_row *ret);

/**
 * traffic_edges_make() - in the order of from, to, job and path
 * @ret:	gives, for free(); borrows from @nodes
 *
 * Return: 0 or -ENOMEM.
 */
int traffic_edges_make(
    const struct traffic_node *nodes, size_t n, struct traffic_row **ret, size_t *ret_n);
