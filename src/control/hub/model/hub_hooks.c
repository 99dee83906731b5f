/* hub_hooks.c - see hub_hooks.h. */
#include "hub/model/hub_hooks.h"

#include "hub/model/model.h"

struct hub_node *hub_next_node(struct hub_network *net, struct hub_node *after)
{
    const struct keys *nodes = &model_network_of(net)->nodes;
    size_t i = after ? keys_lower(nodes, model_node_of(after)->keyed.key) + 1 : 0;

    return i < nodes->n ? &model_node_at(model_network_of(net), i)->pub : NULL;
}

bool hub_may_talk(const struct hub_node *a, const struct hub_node *b)
{
    return model_may_talk(model_node_of(a), model_node_of(b));
}
