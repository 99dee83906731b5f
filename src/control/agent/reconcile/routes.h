/*
 * routes.h - routes into the overlay's interface: to single peers, with the MTU of their paths, and
 * to the subnets behind other nodes.
 *
 * Threads: the loop's, where nothing else is said.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/parse.h"
#include "crypto/x25519.h"
#include "mesh/object/subnets.h"
#include "net/netlink/rtnl.h"

struct snapshot;
struct wg_config;

/* ---- to single peers ------------------------------------------------------------------------- */

/*
 * Routes to single peers, which carry the MTU of each peer's path.
 *
 * The kernel's TCP takes its segment size from the MTU of the route, for new
 * connections and for those that exist already; UDP and forwarding obey it as well.
 * A peer whose path was not measured has only the route of the whole network.
 */

/** A route that should be there. */
struct peer_route {
    struct ip_prefix to;
    struct rtnl_metrics metrics;
    bool found; /* the kernel has it, with these metrics */
};

/** The routes that should be there, and those of the kernel that should not. */
struct peer_routes {
    struct peer_route *wanted; /* owns; sorted by @to */
    size_t n;
    struct ip_prefix *extra; /* owns; routes to be removed */
    size_t n_extra;
    size_t cap_extra;
};

/** peer_routes_deinit() - what is in the kernel stays. Idempotent, and safe on a zeroed one. */
void peer_routes_deinit(struct peer_routes *pr);

/**
 * peer_routes_plan() - list the routes that should be there
 * @pr:		zeroed; to be released with peer_routes_deinit(), also after a failure
 * @want:	sorted; of it the peers' MTUs and the interface's are used
 * @lacks_v6:	this machine takes no IPv6 address, hence no such route
 *
 * Return: 0 or -ENOMEM.
 */
int peer_routes_plan(struct peer_routes *pr, const struct wg_config *want, bool lacks_v6);

/**
 * peer_routes_take() - take in a route of the interface, as the kernel has it
 *
 * To be called with each, before peer_routes_apply(). Routes without the mark RTNL_PEER_ROUTES were
 * made by somebody else, and stay.
 *
 * Return: 0 or -ENOMEM.
 */
int peer_routes_take(struct peer_routes *pr, const struct rtnl_entry *entry);

/**
 * peer_routes_apply() - add, change and remove routes; nothing if all are as they should be
 *
 * Return: 0; or negative errno, and then some routes are not as they should be.
 */
int peer_routes_apply(const struct peer_routes *pr, struct netlink *nl, unsigned ifindex);

/**
 * peer_routes_metrics() - the metrics of a route whose packets have at most @mtu bytes
 * @mss_mtu:	TCP at the other end, which cannot know what its packets may have, is asked for
 *		packets of so much at most; 0: it can know
 *
 * The announced MSS is what this machine's links can carry, whatever the path's MTU is now: the
 * other end limits what it sends by its own route, and connections that begin on a narrow path may
 * grow with it.
 */
struct rtnl_metrics peer_routes_metrics(
    const struct wg_config *c, uint16_t mtu, uint16_t mss_mtu, bool is_v4);

/* ---- to subnets behind other nodes ----------------------------------------------------------- */

/*
 * The way from this machine to the subnets behind other nodes.
 *
 * Theory of operation. Each subnet that a snapshot gives to a peer becomes a
 * route into the interface, unless this machine has a way of its own to a part
 * of it: a machine that stands in that very subnet must not be cut off from its
 * neighbours and its router. So a route of this machine that overlaps is kept in
 * force, except a default route and a wider block that lies behind a router. A hub
 * could name any subnet of the world, so only those of private addresses are used
 * unless the node was told otherwise at its join.
 *
 * What WireGuard itself sends must not take these routes: a peer's own endpoint
 * may lie in the subnet behind it, and sealed packets to it would be sent into the
 * tunnel again. So sealed packets have a mark (the interface's fwmark), the routes
 * are in a table of their own, and a routing rule looks that table up before the
 * main one for all packets without the mark. No route of the main table that is in
 * force is narrower than these, so for packets without the mark the two tables
 * behave as one. Mark and rule are there only while there are such routes.
 */

/** Room for @why of a subnet, with its zero. */
#define SUBNET_ROUTE_WHY_MAX 160

/** One subnet behind another node. */
struct subnet_route {
    char node[NAME_MAX_LEN + 1]; /* the node that it is behind */
    struct x25519_public key;    /* that node's */
    struct ip_prefix to;
    char why[SUBNET_ROUTE_WHY_MAX]; /* a clause: why it is not used here; "": it is used */
};

struct subnet_routes {
    struct subnet_route *items; /* owns; in order of nodes, then of blocks */
    size_t n;
    bool is_clean; /* the kernel has neither routes nor rules of ours */
};

/** subnet_routes_deinit() - what is in the kernel stays. */
void subnet_routes_deinit(struct subnet_routes *sr);

/**
 * subnet_routes_is_in_the_way() - is @used, a route of another interface, why @to is not used?
 *
 * Pure.
 */
bool subnet_routes_is_in_the_way(const struct rtnl_entry *used, const struct ip_prefix *to);

/**
 * subnet_routes_plan() - list the subnets behind other nodes, and decide which are used here
 * @ifindex:	of our interface; 0: it is not there yet
 * @accepts:	which ones the node was told to use
 * @want:	as rendered, sorted; gets the mark if any is used, and loses what is not accepted
 *
 * Return: 0; or negative errno, and then the plan has not changed.
 */
int subnet_routes_plan(struct subnet_routes *sr, struct netlink *nl, unsigned ifindex,
    enum subnets_accept accepts, const struct snapshot *s, struct wg_config *want);

/**
 * subnet_routes_apply() - make the kernel's routes and rules what was planned
 * @interface:	its name
 * @want:	the configuration that the plan was made with; its MTUs count
 * @lacks_v6:	this machine takes no IPv6 address, hence no such route
 *
 * Return: 0, also where the kernel has no routing rules, and then each subnet's @why says so; or
 * negative errno, and then some routes or rules are not as they should be.
 */
int subnet_routes_apply(struct subnet_routes *sr, struct netlink *nl, unsigned ifindex,
    const char *interface, const struct wg_config *want, bool lacks_v6);

/** subnet_routes_remove() - remove the rules; the routes go with the interface. 0 or negative
 * errno.
 */
int subnet_routes_remove(struct netlink *nl, const char *interface);
