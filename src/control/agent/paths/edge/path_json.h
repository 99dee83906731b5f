/* path_json.h - the pairs and the relays of an edge in JSON, as `weft paths --json` shows them. */
#pragma once

#include <jansson.h>

#include "base/clock.h"

struct edges;

/** path_json_pairs() - all pairs that were tried to reach that peer; gives. NULL: no such peer, or
 * no memory. */
json_t *path_json_pairs(const struct edges *e, const char *node, nsec_t now);

/** path_json_relays() - the relays through which that peer may be reached; gives. NULL: no memory.
 */
json_t *path_json_relays(const struct edges *e, const char *node);
