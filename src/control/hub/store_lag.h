/*
 * store_lag.h - says when the hub does not hear what changes in its store, or when the store does
 * not take what is to be written, and when that is over.
 *
 * Another hub may have changed what this hub still tells its nodes. The back end repairs that by
 * itself: it begins its watch again behind what came last, and reads all keys where that is gone.
 * Here people are told, by an event in each network and in the log. Heartbeats say it as well
 * (watch/view.h), and so does "weft status" on each node.
 *
 * Of a store that refuses commits the log says it, GET /v1/health and the metrics. Nothing may want
 * to be written while it does, so something is then written each few seconds, to see whether it is
 * over.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct store_lag_teller {
    struct model *model;     /* pins */
    struct reports *reports; /* pins */
    bool is_behind;          /* as it was told last */
    bool is_refusing;        /* likewise */
};

/** store_lag_tick() - each second. @wall_s: s since 1970. */
void store_lag_tick(struct store_lag_teller *t, nsec_t now, int64_t wall_s);
