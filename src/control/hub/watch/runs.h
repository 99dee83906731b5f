/*
 * runs.h - the runs of a hub on one store, and from which revision on each was.
 *
 * A watch says which run of the hub has told it its last revision. That revision says what the node
 * knows only if it is of the history that the store has now: a store that was set back to a backup
 * counts on from there, and gives revisions anew that another history had. So the store keeps a
 * list of this hub's last runs, which is set back with it. Of a run in the list those revisions
 * count that are not above the one from which the next run was.
 *
 *     runs/NAME   [[BOOT, REVISION], ...]: of each run the store's revision when it was started,
 * the oldest first
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct store;

/** Most runs that are kept, this one included. */
#define RUNS_MAX 32

struct runs {
    json_t *list; /* owns; as it is stored; NULL: there are none */
};

/**
 * runs_begin() - read the runs of hub @name, and add this one, at the store's present revision
 *
 * Waits for the store's answer to the reading, and not for that to the writing: a run that is not
 * written is one whose watches get snapshots from the next one.
 */
void runs_begin(struct runs *r, struct store *store, const char *name, uint64_t boot, nsec_t now);

/** runs_deinit() - idempotent. */
void runs_deinit(struct runs *r);

/** runs_hold() - is @revision, as run @boot has told it, of this store's history? */
bool runs_hold(const struct runs *r, uint64_t boot, uint64_t revision);
