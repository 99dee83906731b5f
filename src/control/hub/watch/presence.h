/*
 * presence.h - which nodes are there now.
 *
 * A node is there if its watch is open, if it has made a request of late, or if it has a WireGuard
 * session with the hub. Of a node without an agent nothing but its handshakes is known. A node that
 * is there is noted as seen, and the lease of an ephemeral one begins anew.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct hub_facts;
struct hub_hooks;
struct model;
struct reports;

struct presence {
    struct model *model;           /* pins */
    struct reports *reports;       /* pins: note who was seen */
    const struct hub_hooks *hooks; /* pins: know the handshakes */
    nsec_t looked_at;              /* when all nodes were last looked at */
};

/** presence_tick() - each second; looks at all nodes every ten. @wall_s: seconds since 1970. */
void presence_tick(struct presence *p, nsec_t now, int64_t wall_s);

/** presence_has_session() - has the node of @facts a WireGuard session with the hub? */
bool presence_has_session(const struct hub_facts *facts, nsec_t now);
