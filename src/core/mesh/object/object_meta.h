/*
 * object_meta.h - what every object has besides its spec, and how strictly it is read.
 *
 * Below the kinds (network.h, node.h, mesh_edge.h), which object.h puts together.
 */
#pragma once

#include <stdint.h>

#include "base/parse.h"

#define OBJECT_NAME_MAX (2 * NAME_MAX_LEN + 2) /* bytes; the longest is an edge's, "a--b" */

/** The first member of each kind's struct. */
struct object_meta {
    char name[OBJECT_NAME_MAX + 1];
    char network[NAME_MAX_LEN + 1]; /* "" for a Network */
    uint64_t resource_version;      /* 0: none given */
};

/** How strict a decoder is with fields that it does not know. */
enum object_mode {
    OBJECT_LENIENT, /* from a hub that may be newer: ignored */
    OBJECT_STRICT,  /* from a person: refused, since it may be a typing error */
};
