/*
 * notice_kinds.c - the kinds of object of a test that has one more: src/core/mesh/object/kinds.c
 * with the example's line, which the linker takes in its place.
 */
#include <stddef.h>

#include "test/support/notice.h"

const struct object_kind *const object_kinds[] = {
    &network_kind,
    &node_kind,
    &mesh_edge_kind,
    &notice_kind,
    NULL,
};
