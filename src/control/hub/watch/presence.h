/*
 * presence.h - which nodes are present now.
 *
 * A node is present if its watch is open, if it has made a request recently, or if it has a
 * WireGuard session with the hub. The hub knows nothing but the handshakes of a node without an
 * agent. A node that is present is noted as seen, and if it is ephemeral its lease begins anew. Its
 * lease begins anew as well when another hub of the same store has noted that it was seen.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct overlay_facts;

struct presence {
    struct model *model;     /* pins */
    struct reports *reports; /* pins: notes which nodes were seen */
    nsec_t looked_at;        /* when all nodes were last looked at */
};

/** presence_tick() - call it each second; it checks all nodes every ten seconds. @wall_s: seconds
 * since 1970. */
void presence_tick(struct presence *p, nsec_t now, int64_t wall_s);

/** presence_has_session() - has the node of @facts a WireGuard session with the hub? */
bool presence_has_session(const struct overlay_facts *facts, nsec_t now);
