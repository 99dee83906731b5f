/*
 * store_lag.h - says when the hub does not hear what changes in its store, and when it does again.
 *
 * Another hub may have changed what this hub still tells its nodes. The back end repairs that by
 * itself: it begins its watch again behind what came last, and reads all keys where that is gone.
 * Here people are told, by an event in each network and in the log. Heartbeats say it as well
 * (watch/view.h), and so does "weft status" on each node.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct edge_events;
struct model;

struct store_lag_teller {
    struct model *model;        /* pins */
    struct edge_events *events; /* pins */
    bool is_behind;             /* as it was told last */
};

/** store_lag_tick() - each second. @wall_s: s since 1970. */
void store_lag_tick(struct store_lag_teller *t, nsec_t now, int64_t wall_s);
