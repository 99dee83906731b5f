/* node_routes.c - see node_routes.h. */
#include "hub/model/node_routes.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "mesh/object/subnets.h"

/* A route must not hold an endpoint of the hub: what nodes send there would go into the tunnel. */
static int check_hub(const struct node *hub, const struct ip_prefix *route, struct err *e)
{
    char text[IP_PREFIX_TEXT_MAX];
    char endpoint[ENDPOINT_TEXT_MAX];

    for (unsigned i = 0; i < hub->hub->n_endpoints; i++)
        if (ip_prefix_has(route, &hub->hub->endpoints[i].addr))
            return err_set(e, -EINVAL,
                "route %s holds %s, where nodes reach the hub: what they send to it would go into "
                "the tunnel",
                ip_prefix_format(route, text), endpoint_format(&hub->hub->endpoints[i], endpoint));
    return 0;
}

int node_routes_check_block(
    const struct model_network *net, const struct ip_prefix *route, struct err *e)
{
    int r = subnets_check_network(route, &net->spec, e);

    for (size_t i = 0; r == 0 && i < net->nodes.n; i++) {
        const struct node *node = &model_node_at(net, i)->spec;

        if (node->hub)
            r = check_hub(node, route, e);
    }
    return r;
}

/* The node other than @name that has a part of @route, and which; NULL: none. */
static const struct node *find_owner(const struct model_network *net, const char *name,
    const struct ip_prefix *route, const struct ip_prefix **ret)
{
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct node *node = &model_node_at(net, i)->spec;

        if (!node->routes || strcmp(node->meta.name, name) == 0)
            continue;
        *ret = subnets_find(node->routes, route);
        if (*ret)
            return node;
    }
    return NULL;
}

int node_routes_check(
    const struct model_network *net, const char *name, const struct subnets *routes, struct err *e)
{
    const struct ip_prefix *theirs;
    char ours_text[IP_PREFIX_TEXT_MAX];
    char theirs_text[IP_PREFIX_TEXT_MAX];

    for (unsigned i = 0; routes && i < routes->n; i++) {
        const struct ip_prefix *route = &routes->items[i];
        const struct node *owner = find_owner(net, name, route, &theirs);
        int r = node_routes_check_block(net, route, e);

        if (r != 0)
            return r;
        if (owner)
            return err_set(e, NODE_ROUTES_E_TAKEN,
                "route %s overlaps %s, which is reached through node \"%s\": \"weft node set %s "
                "--no-route %s\" takes it from there",
                ip_prefix_format(route, ours_text), ip_prefix_format(theirs, theirs_text),
                owner->meta.name, owner->meta.name, theirs_text);
    }
    return 0;
}
