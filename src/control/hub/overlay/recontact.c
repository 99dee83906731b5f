/* recontact.c - see recontact.h. */
#include "hub/overlay/recontact.h"

void recontact_init(struct recontact *r)
{
    list_init(&r->nodes);
}

void recontact_node_init(struct recontact_node *node, const struct endpoint *at)
{
    list_init(&node->link);
    node->at = *at;
    node->ends_at = 0;
}

bool recontact_begin(struct recontact *r, struct recontact_node *node, nsec_t now)
{
    if (endpoint_is_none(&node->at))
        return false;
    node->ends_at = now + RECONTACT_FOR;
    list_remove(&node->link);
    list_add_tail(&r->nodes, &node->link);
    return true;
}

void recontact_end(struct recontact_node *node)
{
    list_remove(&node->link);
}

bool recontact_is_over(const struct recontact_node *node, bool is_heard, nsec_t now)
{
    return is_heard || now >= node->ends_at;
}
