/*
 * edge_route.h - which way the packets of one edge go, as render is to put it into the engine.
 *
 * A route is to the hub (which render knows), to the peer itself, or to a relay that
 * is a node, whose own direct endpoint is then that of the edge.
 *
 * Pure: choices in, a struct render_path out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/parse.h"
#include "crypto/x25519.h"

struct render_path;

enum edge_route_kind {
    EDGE_ROUTE_HUB,
    EDGE_ROUTE_DIRECT,
    EDGE_ROUTE_RELAY,
};

struct edge_route {
    enum edge_route_kind kind;
    struct endpoint endpoint;        /* where WireGuard sends; none for the hub */
    nsec_t keepalive;                /* DIRECT: what the path needs of WireGuard; 0: nothing */
    struct x25519_public via;        /* RELAY: its key; else none */
    char via_node[NAME_MAX_LEN + 1]; /* RELAY: its name; else "" */
    bool is_applied;                 /* the engine has been told of it */
};

#define EDGE_ROUTE_NULL                                                                            \
    {                                                                                              \
        .kind = EDGE_ROUTE_HUB                                                                     \
    }

/** edge_route_use_direct() - go to the peer itself at @endpoint; has to be applied in any case. */
void edge_route_use_direct(struct edge_route *r, const struct endpoint *endpoint, nsec_t keepalive);

/**
 * edge_route_use_relay() - go through a relay that is a node
 * @endpoint:	where that relay is reached directly
 *
 * Return: true if this is another way than before, which has to be applied.
 */
bool edge_route_use_relay(struct edge_route *r, const struct x25519_public *relay, const char *node,
    const struct endpoint *endpoint);

/** edge_route_use_hub() - go through the hub. Return: as edge_route_use_relay(). */
bool edge_route_use_hub(struct edge_route *r);

/** edge_route_on_relay_moved() - that relay, if it is the one in use, is at another endpoint now.
 */
void edge_route_on_relay_moved(
    struct edge_route *r, const struct x25519_public *relay, const struct endpoint *endpoint);

/** edge_route_goes_via() - does it go through that relay? */
bool edge_route_goes_via(const struct edge_route *r, const struct x25519_public *relay);

/** edge_route_on_applied() - the engine has been told of it. */
void edge_route_on_applied(struct edge_route *r);

/**
 * edge_route_render() - the route as render_config() takes it
 * @node:	the peer
 * @mtu:	inner bytes that the route carries; 0: not measured
 * @is_standby:	it is a relay that is kept ready
 *
 * Return: false for a route through the hub that is not measured, which render_config() knows
 * without being told.
 */
bool edge_route_render(const struct edge_route *r, const char *node, uint16_t mtu, bool is_standby,
    struct render_path *ret);
