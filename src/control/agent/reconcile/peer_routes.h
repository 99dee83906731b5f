/*
 * peer_routes.h - routes to single peers, which carry the MTU of each peer's path.
 *
 * The kernel's TCP takes its segment size from the MTU of the route, for new
 * connections and for those that exist already; UDP and forwarding obey it as well.
 * A peer whose path was not measured has only the route of the whole network.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/netlink/rtnl.h"

struct netlink;
struct wg_config;

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

#define PEER_ROUTES_NULL                                                                           \
    {                                                                                              \
        0                                                                                          \
    }

/** peer_routes_deinit() - what is in the kernel stays. Idempotent, safe on PEER_ROUTES_NULL. */
void peer_routes_deinit(struct peer_routes *pr);

/**
 * peer_routes_plan() - list the routes that should be there
 * @pr:		PEER_ROUTES_NULL; to be released with peer_routes_deinit(), also after a failure
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
