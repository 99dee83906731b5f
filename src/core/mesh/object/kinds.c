/*
 * kinds.c - the list of the kinds of object; see object.h.
 *
 * It is alone in its file, so that a test can be linked with a longer one: test/support/notice.
 */
#include <stddef.h>

#include "mesh/object/object.h"
#include "mesh/object/rule.h"

const struct object_kind *const object_kinds[] = {
    &network_kind,
    &node_kind,
    &mesh_edge_kind,
    &rule_kind,
    NULL,
};
