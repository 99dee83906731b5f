/* agent_routes.c - what this node forwards to the subnets behind it; see route_guard.h. */
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/route_guard.h"

/* Whoever loads a packet filter of their own often flushes all others'. */
#define GUARD_PERIOD (60 * NSEC_PER_SEC)

void agent__guard_routes(struct agent *a, nsec_t now)
{
    static const struct subnets none = SUBNETS_NULL;
    const struct node *self = snapshot_self(&a->snapshot);
    const struct subnets *routes = self->routes ? self->routes : &none;
    bool is_way = routes->n > 0 || a->state.routes.n > 0;
    struct err e = ERR_NULL;
    int r;

    /* What an earlier run has left is removed, too. */
    if (!is_way && a->is_unguarded)
        return;
    if (a->guarded != 0 && now - a->guarded < GUARD_PERIOD &&
        subnets_equal(routes, &a->guarded_routes) && is_way == a->was_way)
        return;
    a->was_way = is_way;
    if (is_way)
        r = route_guard_put(a->state.interface, routes, !a->state.keeps_sources, &e);
    else
        r = route_guard_remove(a->state.interface, &e);
    if (r < 0 && is_way && a->guard_fault.code == 0)
        log_warning(
            "what is forwarded to the subnets behind this node is not limited: %s", err_text(&e));
    a->guarded = now;
    a->guarded_routes = *routes;
    a->is_unguarded = !is_way && r == 0;
    a->guard_fault = is_way ? e : (struct err)ERR_NULL;
}

struct status_routes agent__status_routes(const struct agent *a)
{
    return (struct status_routes){
        .others = &a->reconcile.subnets,
        .self = snapshot_self(&a->snapshot),
        .asked = &a->state.routes,
        .forwards4 = route_guard_is_forwarding(a->state.interface, true),
        .forwards6 = route_guard_is_forwarding(a->state.interface, false),
        .masquerades = !a->state.keeps_sources,
        .guard_fault = a->guard_fault.text,
    };
}
