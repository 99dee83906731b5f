/* edge_route.c - see edge_route.h. */
#include "agent/paths/edge/edge_route.h"

#include <string.h>

#include "mesh/render/render.h"

void edge_route_use_direct(struct edge_route *r, const struct endpoint *endpoint, nsec_t keepalive)
{
    *r = (struct edge_route){
        .kind = EDGE_ROUTE_DIRECT, .endpoint = *endpoint, .keepalive = keepalive};
}

bool edge_route_use_relay(struct edge_route *r, const struct x25519_public *relay, const char *node,
    const struct endpoint *endpoint)
{
    if (edge_route_goes_via(r, relay)) {
        r->endpoint = *endpoint;
        return false;
    }
    *r = (struct edge_route){.kind = EDGE_ROUTE_RELAY, .endpoint = *endpoint, .via = *relay};
    memcpy(r->via_node, node, strlen(node) + 1);
    return true;
}

bool edge_route_use_hub(struct edge_route *r)
{
    if (r->kind == EDGE_ROUTE_HUB)
        return false;
    *r = (struct edge_route)EDGE_ROUTE_NULL;
    return true;
}

void edge_route_on_relay_moved(
    struct edge_route *r, const struct x25519_public *relay, const struct endpoint *endpoint)
{
    if (edge_route_goes_via(r, relay))
        r->endpoint = *endpoint;
}

bool edge_route_goes_via(const struct edge_route *r, const struct x25519_public *relay)
{
    return r->kind == EDGE_ROUTE_RELAY && x25519_public_equal(&r->via, relay);
}

void edge_route_on_applied(struct edge_route *r)
{
    r->is_applied = true;
}

bool edge_route_render(const struct edge_route *r, const char *node, uint16_t mtu, bool is_standby,
    struct render_path *ret)
{
    bool is_direct = r->kind == EDGE_ROUTE_DIRECT;

    if (r->kind == EDGE_ROUTE_HUB && mtu == 0)
        return false;
    *ret = (struct render_path){
        .endpoint = r->endpoint,
        .keepalive = (uint16_t)(r->keepalive / NSEC_PER_SEC),
        .mtu = mtu,
        .is_standby = is_direct && is_standby,
    };
    memcpy(ret->node, node, strlen(node) + 1);
    memcpy(ret->via, r->via_node, sizeof(ret->via));
    return true;
}
