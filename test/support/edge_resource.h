/*
 * edge_resource.h - the edge of the nodes "a" and "b", as the hub has it and as an API server has
 * it, for the tests of what the two sides make of each other.
 */
#pragma once

#include <jansson.h>

#include "hub/resources/resource.h"

/** The name of its resource. */
#define EDGE_RESOURCE "default.a--b"

/** edge_object() - as the hub's API has it, with that path, at that revision. */
json_t *edge_object(const char *path, int revision);

/**
 * edge_resource() - as the API server would send it
 * @version:	its resourceVersion
 * @done:	hash of the spec that the hub has dealt with, which is its own; NULL: no such
 * annotation
 * @revision:	of the hub's object then; NULL: no such annotation
 */
json_t *edge_resource(
    const char *path, const char *version, const char *done, const char *revision);

/** edge_hash() - of the spec with that path. */
void edge_hash(const char *path, char ret[static RESOURCE_HASH_MAX]);
