/*
 * peer_routes.h - the MTU of each peer's path, as the route to its addresses.
 *
 * The kernel's TCP takes the segment size from there, for new connections and
 * for those that run already; its UDP and its forwarding obey it as well. A peer
 * whose path was not measured has no route of its own, only its network's.
 */
#pragma once

#include <stdbool.h>

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

/** peer_routes_mss() - what TCP may announce on a route through an interface of @mtu. */
unsigned peer_routes_mss(unsigned mtu, bool is_v4);
