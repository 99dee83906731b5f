/*
 * hub_access.h - the networks' rules on the hub's own interfaces.
 *
 * A hub's node is one end of a rule like any other. What members may reach of it is what the rules
 * say, and its API and pings in any case (rules/access_rules.h).
 *
 * Of two stock WireGuards no agent refuses anything, so the relay does, by the pair
 * (overlay_may_relay()).
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include "hub/model/model.h"
#include "hub/watch/access_view.h"
#include "rules/access_rules.h"

/** Hangs on served_network.access. */
struct hub_access {
    struct access_rules rules;
    uint64_t reported; /* up to where access_view.h has it */
    bool is_due;       /* something has changed that the rules are about */
    bool has_others;   /* the rules themselves have */
};

/** hub_access_mark() - something has changed that the network's rules are about. */
void hub_access_mark(const struct model_network *net);

/** hub_access_mark_rules() - the rules themselves have changed, or are about to. */
void hub_access_mark_rules(const struct model_network *net);

/** hub_access_tick() - each second: what has changed is enforced from then on, and what was counted
 * is summed up. */
void hub_access_tick(struct access_view *v, struct edge_events *events, const struct model *model,
    nsec_t now, int64_t wall_s);

/** hub_access_fault() - why the network's rules are not enforced here; NULL: they are, or there are
 * none. Lent. */
const char *hub_access_fault(const struct model_network *net);

/** hub_access_end() - the network's interface is taken down. Idempotent. */
void hub_access_end(const struct model_network *net);
