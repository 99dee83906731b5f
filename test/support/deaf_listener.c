/* deaf_listener.c - see deaf_listener.h. */
#include "test/support/deaf_listener.h"

static void on_network(void *ctx, const struct model_network *net)
{
}

static void on_node(void *ctx, const struct model_node *node)
{
}

static void on_node_removed(void *ctx, const struct model_node *node)
{
    model_reap(node);
}

static void on_node_changed(void *ctx, const struct model_node *node, const struct node *before)
{
}

static void on_edge(void *ctx, struct model_edge *edge, enum edge_path before)
{
}

static void on_object(void *ctx, const struct model_network *net, const struct object *before,
    const struct object *now)
{
}

struct model_listener deaf_listener(void)
{
    return (struct model_listener){
        .network_added = on_network,
        .network_changed = on_network,
        .network_removed = on_network,
        .node_added = on_node,
        .node_changed = on_node_changed,
        .node_removed = on_node_removed,
        .status_changed = on_node,
        .edge_changed = on_edge,
        .object_changed = on_object,
    };
}
