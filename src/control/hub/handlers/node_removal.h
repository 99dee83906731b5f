/*
 * node_removal.h - a node is removed, with what is known about it.
 */
#pragma once

#include "api/content/route.h"

struct handlers;
struct model_node;

/**
 * node_removal_leave() - answer a request of @node itself by removing it
 * @rs:		the answer, or that it comes later
 *
 * One that has done nothing but enrol, some minutes ago at most, gives the use of its token back:
 * to a token at most sixteen times in a run of the hub.
 */
void node_removal_leave(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node *node);

/** node_removal_by_admin() - the same because an administrator asks, unless it is the hub. */
void node_removal_by_admin(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node *node);
