/*
 * spending.h - how much of each budget of the networks is spent today, and who is told of it.
 *
 * Theory of operation. What a network with budgets has moved today is read from the store, where
 * all hubs' records are (traffic_read.h), priced, and judged. When a budget's share passes 80 or
 * 100 percent it is an event, and so is its end: the next day, or a greater budget; as long as it
 * lasts it is a finding. What has no price counts for nothing, and is said beside it. What one end
 * says of a member that has not told of that day spends nothing until it has.
 *
 * A network is looked at every quarter of a minute, but less often where that takes long: a look
 * takes a fiftieth of the hub's time at most.
 *
 * Of several hubs each does this by itself, and has events of its own.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "cost/ledger.h"
#include "store/keys.h"

struct edge_events;
struct health;
struct traffic_book;

/** How often budgets are judged, unless that takes long. */
#define SPENDING_EACH (15 * NSEC_PER_SEC)

struct spending {
    struct traffic_book *book;   /* pins; what is read, and whose model it is */
    struct edge_events *events;  /* pins; who is told */
    struct health *health;       /* pins; where it is found; NULL: nowhere */
    const struct prices *prices; /* pins; of networks without a table of their own; NULL: none,
                                    and budgets of money stand still in these */
    struct keys networks;        /* of struct network_spending: those with budgets;
                                    keys_free_all() after all reads have been answered */
};

/** spending_tick() - each second. @wall_s: s since 1970. */
void spending_tick(struct spending *s, nsec_t now, int64_t wall_s);

/** spending_of() - lends the budgets of that network, as they were judged last; it has none where
 * it has no budgets, or was not looked at yet. */
const struct spent_list *spending_of(const struct spending *s, const char *network);
