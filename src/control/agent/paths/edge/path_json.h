/* path_json.h - the pairs and the relays of an edge in JSON, as `weft paths --json` shows them. */
#pragma once

#include <jansson.h>

#include "base/clock.h"

struct edges;

/** path_json_pairs() - all that was tried for that peer; gives it. NULL: no peer, or no memory. */
json_t *path_json_pairs(const struct edges *e, const char *node, nsec_t now);

/** path_json_relays() - those through which it may be reached; gives it. NULL: no memory. */
json_t *path_json_relays(const struct edges *e, const char *node);
