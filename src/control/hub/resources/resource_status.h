/*
 * resource_status.h - the status of a network, node or edge, as its resource of Kubernetes shows
 * it.
 *
 * It is what the hub's API answers of the object, and of a node the condition "Ready" besides,
 * which "kubectl wait" can wait for.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>

struct model;
struct object_kind;

/**
 * resource_status() - what is known of the object now
 * @of:	the name of its resource
 *
 * Return: a new reference; NULL: there is no such object any more, or no memory.
 */
json_t *resource_status(const struct model *m, const struct object_kind *kind, const char *of);
