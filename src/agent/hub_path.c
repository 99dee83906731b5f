/* hub_path.c - see hub_path.h. */
#include "agent/hub_path.h"

#include <stdio.h>
#include <string.h>

/* Where in the hub's list the present endpoint is; the list's length if it is not there any more.
 */
static unsigned find_present(const struct hub_path *hp, const struct node *hub)
{
    unsigned i = 0;

    if (strcmp(hp->path.node, hub->meta.name) != 0)
        return hub->hub->n_endpoints;
    while (
        i < hub->hub->n_endpoints && !endpoint_equal(&hub->hub->endpoints[i], &hp->path.endpoint))
        i++;
    return i;
}

/* The next after @present that has a route; else @present, or the first when there is none. */
static unsigned find_next(
    const struct node *hub, unsigned present, hub_path_fn has_route, void *ctx)
{
    unsigned n = hub->hub->n_endpoints;
    unsigned start = present < n ? present + 1 : 0;

    for (unsigned k = 0; k < n; k++) {
        unsigned i = (start + k) % n;

        if (has_route(ctx, &hub->hub->endpoints[i].addr))
            return i;
    }
    return present < n ? present : 0;
}

bool hub_path_take(struct hub_path *hp, const struct node *hub, bool works, nsec_t now,
    hub_path_fn has_route, void *ctx)
{
    unsigned present = find_present(hp, hub);
    unsigned next;

    if (present < hub->hub->n_endpoints && (works || now - hp->since < HUB_PATH_TRY))
        return false;
    next = find_next(hub, present, has_route, ctx);
    hp->since = now;
    if (next == present)
        return false;
    (void)snprintf(hp->path.node, sizeof(hp->path.node), "%.*s", NAME_MAX_LEN, hub->meta.name);
    hp->path.endpoint = hub->hub->endpoints[next];
    return true;
}
