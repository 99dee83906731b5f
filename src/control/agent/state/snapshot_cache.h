/*
 * snapshot_cache.h - the last snapshot of the network, kept on the disk for the next start.
 *
 * A node that starts while its hub is away begins with it. It is written soon after a change, but
 * not after each, because others decide how often there is one and each write is of the whole
 * snapshot: at most every SNAPSHOT_CACHE_EACH, and at most every SNAPSHOT_CACHE_STATUS_EACH while
 * only the nodes' status has changed, which is out of date soon anyway. What is not written yet
 * when the agent ends is written then. A file that does not parse is named in the log and never
 * overwritten. One that gives the network other blocks than it had at the join is not used.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "os/log.h"

struct err;
struct snapshot;
struct state;
struct watch_event;

/** Time from a change to the write, if there was none shortly before. */
#define SNAPSHOT_CACHE_DELAY (1 * NSEC_PER_SEC)

/** Shortest time between two writes; and between two when only status has changed. */
#define SNAPSHOT_CACHE_EACH        (5 * NSEC_PER_SEC)
#define SNAPSHOT_CACHE_STATUS_EACH (30 * NSEC_PER_SEC)

struct snapshot_cache {
    const char *dir; /* pins: the state directory */
    nsec_t saved_at; /* time of the last write; 0: none */
    nsec_t due_at;   /* time of the next write; NSEC_NEVER: all is written */
    bool is_damaged; /* the file does not parse, or is of another node, and is left alone */
    struct log_limit limit;
};

/**
 * snapshot_cache_load() - the cached snapshot, or what is known from the join
 * @dir:	pinned
 * @st:		who this node is
 * @ret:	gives
 *
 * Return: 0 or negative errno with words.
 */
int snapshot_cache_load(struct snapshot_cache *sc, const char *dir, const struct state *st,
    struct snapshot *ret, struct err *e);

/**
 * snapshot_cache_check_event() - may what a hub, or the cluster, says be believed?
 *
 * What is said of this node has to be about it, with its own key. The network's blocks stay what
 * they were at the join, and each node's addresses lie in them, so that nobody who says who is in
 * the network can draw traffic for other addresses.
 *
 * Return: 0 or -EINVAL with words.
 */
int snapshot_cache_check_event(const struct state *st, const struct watch_event *ev, struct err *e);

/** snapshot_cache_on_change() - plan a write. @is_status: only a node's status has changed. */
void snapshot_cache_on_change(struct snapshot_cache *sc, bool is_status, nsec_t now);

/** snapshot_cache_save() - write it now; one that fails is logged, and planned again. */
void snapshot_cache_save(struct snapshot_cache *sc, const struct snapshot *s, nsec_t now);
