/*
 * peer_routes.h - the MTU of each peer's path, as the route to its addresses.
 *
 * The kernel's TCP takes the segment size from there, for new connections and
 * for those that run already; its UDP and its forwarding obey it as well. A peer
 * whose path was not measured has no route of its own, only its network's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/netlink/rtnl.h"

struct netlink;
struct wg_config;

/**
 * peer_routes_reconcile() - make them what they should be
 * @want:	sorted; its peers' MTUs count, and the interface's
 * @lacks_v6:	this machine takes no IPv6 address, hence no such route
 *
 * Only routes with the mark RTNL_PEER_ROUTES are taken away.
 *
 * Return: 0 or negative errno; then some are not as they should be.
 */
int peer_routes_reconcile(
    struct netlink *nl, unsigned ifindex, const struct wg_config *want, bool lacks_v6);

/**
 * peer_routes_metrics() - of a route through the interface whose packets have at most @mtu bytes
 *
 * The announced MSS is what this machine's links can carry, whatever the path's MTU is now: the
 * other end limits what it sends by its own route, and connections that begin on a narrow path may
 * grow with it.
 */
struct rtnl_metrics peer_routes_metrics(const struct wg_config *c, uint16_t mtu, bool is_v4);
