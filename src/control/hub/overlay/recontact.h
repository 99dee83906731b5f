/*
 * recontact.h - which nodes the hub speaks to first, though nodes otherwise come to it.
 *
 * When a hub is started again, the sessions of all nodes are void, and nothing tells them. So the
 * hub remembers where each node was (addresses.h), and has its WireGuard device make a handshake
 * with it there: it gives the peer that endpoint, and a keepalive, which is sent at once, and
 * without a session begins a handshake. The keepalive is taken back when the node was heard, or
 * after 20 s: a node that has moved meanwhile comes by itself, as ever. The same is done for a node
 * without a session that has opened a stream.
 *
 * Theory of operation. Only the times are kept here. The owner, overlay_nodes.c, says where a node
 * may be and whether it was heard, and changes its peer as it is told.
 *
 * Pure: no I/O, and time is an argument.
 */
#pragma once

#include <stdbool.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/list.h"

/** Seconds between two keepalives to such a node. */
#define RECONTACT_KEEPALIVE_S 5

/** For how long the hub tries to reach such a node. */
#define RECONTACT_FOR (20 * NSEC_PER_SEC)

/** What is kept for each node. */
struct recontact_node {
    struct list link;   /* in the recontact's nodes, while it is spoken to */
    struct endpoint at; /* where it may be; none: nobody knows */
    nsec_t ends_at;     /* when it is spoken to no more */
};

struct recontact {
    struct list nodes; /* of struct recontact_node: those that are spoken to */
};

/** recontact_init() - nobody is spoken to. */
void recontact_init(struct recontact *r);

/** recontact_node_init() - @at: where it may be; none: nobody knows. */
void recontact_node_init(struct recontact_node *node, const struct endpoint *at);

/**
 * recontact_begin() - is the node to be spoken to, at node->at, from now on?
 *
 * Once more for a node that is spoken to already begins its time anew.
 *
 * Return: false when nobody knows where it may be.
 */
bool recontact_begin(struct recontact *r, struct recontact_node *node, nsec_t now);

/** recontact_end() - the node is spoken to no more. Fine when it was not. */
void recontact_end(struct recontact_node *node);

/** recontact_is_over() - is a node that is spoken to to be left alone now? @is_heard: it answered.
 */
bool recontact_is_over(const struct recontact_node *node, bool is_heard, nsec_t now);
