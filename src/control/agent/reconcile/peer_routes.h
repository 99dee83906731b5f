/*
 * peer_routes.h - routes to single peers, which carry the MTU of each peer's path.
 *
 * The kernel's TCP takes its segment size from the MTU of the route, for new
 * connections and for those that exist already; UDP and forwarding obey it as well.
 * A peer whose path was not measured has only the route of the whole network.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/netlink/rtnl.h"

struct netlink;
struct wg_config;

/**
 * peer_routes_reconcile() - add, change and remove routes until they are as they should be
 * @want:	sorted; of it the peers' MTUs and the interface's are used
 * @lacks_v6:	this machine takes no IPv6 address, hence no such route
 *
 * Only routes with the mark RTNL_PEER_ROUTES are removed.
 *
 * Return: 0; or negative errno, and then some routes are not as they should be.
 */
int peer_routes_reconcile(
    struct netlink *nl, unsigned ifindex, const struct wg_config *want, bool lacks_v6);

/**
 * peer_routes_metrics() - the metrics of a route whose packets have at most @mtu bytes
 *
 * The announced MSS is what this machine's links can carry, whatever the path's MTU is now: the
 * other end limits what it sends by its own route, and connections that begin on a narrow path may
 * grow with it.
 */
struct rtnl_metrics peer_routes_metrics(const struct wg_config *c, uint16_t mtu, bool is_v4);
