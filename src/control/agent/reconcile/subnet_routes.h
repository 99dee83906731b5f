/*
 * subnet_routes.h - the way from this machine to the subnets behind other nodes.
 *
 * Theory of operation. Each subnet that a snapshot gives to a peer becomes a
 * route into the interface, unless this machine has a way of its own to a part
 * of it: a machine that stands in that very subnet must not be cut off from its
 * neighbours and its router. So whatever overlaps keeps its place, but for ways
 * out to the world, and for wider blocks that lie behind a router. And a hub
 * could name any subnet of the world: so only those of private addresses are
 * used, if the node was not told otherwise.
 *
 * What WireGuard itself sends must not take these routes: a peer's own endpoint
 * may lie in the subnet behind it, and its packets would go round in the
 * tunnel. They have a mark (the interface's fwmark), the routes are in a table
 * of their own, and a routing rule sends all but what has the mark through that
 * table before the main one. Since no route of the main table that is used is
 * narrower, that is the same as one table, but for what is marked. Mark and
 * rule are there only while there are such routes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/parse.h"
#include "crypto/x25519.h"
#include "mesh/object/subnets.h"

struct netlink;
struct rtnl_entry;
struct snapshot;
struct wg_config;

/** Room for a reason. */
#define SUBNET_ROUTE_WHY_MAX 160

/** One subnet behind another node. */
struct subnet_route {
    char node[NAME_MAX_LEN + 1]; /* through which */
    struct x25519_public key;    /* of it */
    struct ip_prefix to;
    char why[SUBNET_ROUTE_WHY_MAX]; /* a clause: why it is not used here; "": it is */
};

struct subnet_routes {
    struct subnet_route *items; /* owns; in order of nodes, then of blocks */
    size_t n;
    bool is_clean; /* nothing of ours is in the kernel */
};

#define SUBNET_ROUTES_NULL                                                                         \
    {                                                                                              \
        0                                                                                          \
    }

/** subnet_routes_deinit() - what is in the kernel stays. Idempotent. */
void subnet_routes_deinit(struct subnet_routes *sr);

/** subnet_routes_table() - the routing table of that interface. */
uint32_t subnet_routes_table(const char *interface);

/**
 * subnet_routes_is_in_the_way() - is @used, a route of another interface, why @to is not used?
 *
 * Pure.
 */
bool subnet_routes_is_in_the_way(const struct rtnl_entry *used, const struct ip_prefix *to);

/**
 * subnet_routes_plan() - which there are, and which of them are used here
 * @ifindex:	of our interface; 0: it is not there yet
 * @accepts:	those that the node was told to use
 * @want:	as rendered, sorted; gets the mark if any is used, and loses what is not accepted
 *
 * Return: 0 or negative errno; then the plan is as it was.
 */
int subnet_routes_plan(struct subnet_routes *sr, struct netlink *nl, unsigned ifindex,
    enum subnets_accept accepts, const struct snapshot *s, struct wg_config *want);

/**
 * subnet_routes_apply() - make the kernel's routes and rules what was planned
 * @interface:	its name
 * @want:	the configuration that the plan was made with; its MTUs count
 * @lacks_v6:	this machine takes no IPv6 address, hence no such route
 *
 * Return: 0, also where the kernel has no routing rules, and then the reasons say so; or negative
 * errno: not all are as they should be.
 */
int subnet_routes_apply(struct subnet_routes *sr, struct netlink *nl, unsigned ifindex,
    const char *interface, const struct wg_config *want, bool lacks_v6);

/** subnet_routes_remove() - the rules; routes go with the interface. 0 or negative errno. */
int subnet_routes_remove(struct netlink *nl, const char *interface);
