/*
 * notice.h - the example of a kind of object that docs/HACKING.md explains: words about some nodes.
 *
 * Only tests have it: those that are linked with notice_kinds.c.
 */
#pragma once

#include "mesh/object/object.h"

#define NOTICE_NODES_MAX 8
#define NOTICE_TEXT_MAX  200 /* bytes */

/** Its spec. */
struct notice {
    char nodes[NOTICE_NODES_MAX][NAME_MAX_LEN + 1]; /* whom it is about, and who sees it */
    unsigned n_nodes;
    char text[NOTICE_TEXT_MAX + 1];
};

/** The row of the kind; notice_kinds.c lists it. */
extern const struct object_kind notice_kind;

/** notice_of() - lends the spec of an object of this kind. */
const struct notice *notice_of(const struct object *o);
