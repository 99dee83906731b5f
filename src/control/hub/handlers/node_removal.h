/*
 * node_removal.h - a node is removed, with what is known about it.
 */
#pragma once

#include "api/content/route.h"

struct handlers;
struct model_node;

/**
 * node_removal_start() - answer a request by removing @node
 * @reason:	a constant: what the node is told
 * @rs:		the answer, or that it comes later
 */
void node_removal_start(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node *node, const char *reason);

/** node_removal_by_admin() - node_removal_start() for an administrator, unless it is the hub. */
void node_removal_by_admin(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node *node);
