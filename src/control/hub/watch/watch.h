/*
 * watch.h - tells each node what changes in its view, as it changes.
 *
 * Theory of operation. What has changed in a network is noted in its list of changes
 * (hub/model/watched.h), and nothing else happens at that time. A watch has a cursor there, and
 * pulls: when it has been woken, and when its connection has taken what there was, it reads on from
 * its cursor, and is sent what has changed as it is now (view.h), until WATCH_AHEAD bytes wait to
 * be taken. So a slow connection costs others nothing, and is told of an object once however often
 * that has changed. Watches that read the same changes share one text, made, and packed, once.
 *
 *     a change ──► list ──(ready: woken; or drained)──► watch ──► its connection
 *
 * A watch begins with a snapshot and its cursor at the end of what is ready. One whose connection
 * broke comes again as a new one, and says what it knows: the run of the hub, and the revision of
 * the last line that it had. If nothing since then is forgotten it goes on there, without a
 * snapshot; at the end a heartbeat says that this was all. A hub that is started fills the lists
 * from its store (watch_fill()), so that this is so after a restart too; the runs below say which
 * revisions of earlier runs were of the same history. A watch that has fallen behind what is kept
 * begins anew.
 *
 * Snapshots are large, so only WATCH_SNAPSHOTS_MAX are sent at a time; the other watches wait for
 * their turn, and a watch that takes too long to read its snapshot is closed.
 *
 * A line says up to which revision its watch knows everything: what it lacks has that revision or a
 * later one (view_revision(), watched_read()).
 *
 * Pace. To send one line to thousands of watches takes time, but several lines together take hardly
 * more. That is known about: so much a watch, and so much more a watch for each node in it. So
 * nodes that have changed are pending, and ready to be told together, the later the more watches
 * there are and the more nodes were told of the last time. While machines join one after another (a
 * rush), that is so late that telling takes a third of a core at most, and the machines come first.
 * Any other change, a changed key, and a removal wait for nothing, and what is pending is told with
 * them.
 *
 * A node decides itself how often its status changes, and each change goes to all other nodes. So
 * watches are woken for a few changes at once, and after that every two seconds.
 *
 * Threads: the hub's loop only. Nothing is sent inside a call that tells of a change: watch_turn()
 * does that.
 */
#pragma once

#include "api/server/stream.h"
#include "base/clock.h"
#include "hub/model/model.h"

/**
 * How often each watch is sent a heartbeat. Of a hub with more than WATCH_MANY watches these are
 * most of what it does at rest. So there the watches that accept it are sent one each
 * WATCH_HEARTBEAT_SLOW, and each such heartbeat says when the next one comes.
 */
#define WATCH_HEARTBEAT      (10 * NSEC_PER_SEC)
#define WATCH_HEARTBEAT_SLOW (20 * NSEC_PER_SEC)
#define WATCH_MANY           2000

/** A heartbeat is to be acknowledged, by the machine at the other end, within this time. */
#define WATCH_ANSWER (2 * NSEC_PER_SEC)

/** A watch reads on while fewer bytes than this wait for its connection. */
#define WATCH_AHEAD (64u << 10)

/** How many snapshots are sent at a time, and how long one may take. */
#define WATCH_SNAPSHOTS_MAX   32
#define WATCH_SNAPSHOT_WITHIN (60 * NSEC_PER_SEC)

/** The rate limit for changes of one node's status: the burst, and the time for one more. */
#define WATCH_STATUS_BURST 5
#define WATCH_STATUS_EACH  (2 * NSEC_PER_SEC)

/** With so many watches or fewer, nothing is pending for long. */
#define WATCH_FEW 16

/** What it costs to tell one watch something, the hub's data plane included, and for each node in
 * it on top of that (make bench PARTS=scale). */
#define WATCH_COST      (25 * NSEC_PER_USEC)
#define WATCH_COST_NODE (1 * NSEC_PER_USEC)

/** Nodes that are pending wait WATCH_COST times the watches, times the nodes of the last time; but
 * at most so many times. In a rush they wait that long at least. */
#define WATCH_PATIENCE 16

/** In a rush they wait so many times what the last time has cost, and at most the second. */
#define WATCH_RUSH_SHARE 3
#define WATCH_RUSH_MAX   (10 * NSEC_PER_SEC)

/** It is a rush while no more than this time is between one machine that joins and the next. */
#define WATCH_RUSH_GAP NSEC_PER_SEC

struct watch_pace {
    nsec_t sent_at;     /* when watches were told of nodes last; 0: never */
    unsigned n_sent;    /* how many */
    nsec_t newcomer_at; /* the last machine that joined; 0: none did */
    bool is_rush;       /* the last two came within WATCH_RUSH_GAP */
};

/** Most runs that are kept, this one included. */
#define RUNS_MAX 32

struct runs {
    json_t *list; /* owns; as it is stored; NULL: there are none */
};

/** All watches of a hub. */
struct watcher {
    struct model *model;       /* pins */
    struct list sending;       /* of struct watch: whose snapshot is on its way */
    struct list waiting;       /* of struct watch: they wait until fewer snapshots are being sent */
    struct list woken;         /* of struct watch: there is something for them */
    struct list heartbeats[2]; /* of struct watch, by when they are due; those that wait longer */
    struct list asked;         /* of struct watch, whose last heartbeat may be unanswered yet */
    unsigned n_pending;        /* nodes that have changed since watches were told of all */
    nsec_t held_until;  /* they are told of then, since a status changes too often; 0: sooner */
    unsigned n_sending; /* snapshots that are being sent */
    unsigned n;         /* watches */
    uint64_t n_overrun; /* watches since the start that have fallen behind */
    uint64_t n_resumed; /* watches since the start that needed no snapshot */
    struct watch_pace pace;
    struct runs runs; /* the hub's, this one the last */
};

/** What a watch knows already. */
struct watch_known {
    uint64_t boot;      /* of which run of a hub, struct model's; 0: nothing is known */
    uint64_t revision;  /* of the last line */
    bool takes_any_run; /* it may go on in another run; then it is told which one this is */
};

/** watcher_init() - without any watch. */
void watcher_init(struct watcher *w, struct model *model);

/**
 * watch_fill() - begin each network's changes with what the store knows of earlier ones
 *
 * Waits for the store; before the first watch. Without the store's help all watches get snapshots.
 */
void watch_fill(struct watcher *w);

/**
 * watch_open() - a new watch of @node
 * @silence_max:	the longest time between two heartbeats that it accepts; 0: WATCH_HEARTBEAT
 * @known:		what it does not have to be told
 *
 * Return: the stream to answer with, NULL: no memory. It frees itself when it is closed.
 */
struct stream *watch_open(struct watcher *w, const struct model_node *node, nsec_t silence_max,
    const struct watch_known *known, nsec_t now);

/** watch_is_open() - has this node a watch that can be told something? */
bool watch_is_open(const struct model_node *node);

/** watch_lost_for() - for how long does the machine of @node, that had a watch, acknowledge nothing
 * that it is sent? 0: it does, or was heard since. */
nsec_t watch_lost_for(const struct model_node *node, nsec_t now);

/* watch_tell_KIND() - those nodes that may see an object are to be told of it; see above when. */

/** watch_tell_node() - a node has changed. */
void watch_tell_node(struct watcher *w, const struct model_node *node);

/** watch_tell_newcomer() - a machine has just joined. */
void watch_tell_newcomer(struct watcher *w, const struct model_node *node, nsec_t now);

/**
 * watch_tell_rekeyed() - the key of a node has changed, which waits for nothing
 *
 * Until they hear of it the others let its former key in, and do not reach it.
 */
void watch_tell_rekeyed(struct watcher *w, const struct model_node *node, nsec_t now);

/** watch_tell_edge() - an edge has changed, or is gone. That may make its two nodes visible to each
 * other, or hide them from each other. */
void watch_tell_edge(struct watcher *w, struct model_edge *edge, nsec_t now);

/** watch_tell_status() - the status of @node that others see has changed. */
void watch_tell_status(struct watcher *w, const struct model_node *node, nsec_t now);

/** watch_tell_node_removed() - a node is gone; itself is told the @reason, and its watches end. */
void watch_tell_node_removed(
    struct watcher *w, const struct model_node *node, const char *reason, nsec_t now);

/** watch_tell_object() - the network itself, or an object of another kind than these, has changed:
 * @c is its; NULL: it is gone. */
void watch_tell_object(struct watcher *w, const struct model_network *net, struct watched_change *c,
    const struct object_kind *kind, const char *name, nsec_t now);

/** watch_due() - when watch_turn() has to be called for what is pending; NSEC_NEVER: not at all. */
nsec_t watch_due(const struct watcher *w, nsec_t now);

/** watch_turn() - at the end of each turn of the loop: those that were woken read on. */
void watch_turn(struct watcher *w, nsec_t now);

/** watch_tick() - each second: heartbeats, and watches that take too long. */
void watch_tick(struct watcher *w, nsec_t now);

/* ---- the hub's runs on one store, and from which revision on each was ------------------------ */

/*
 * A watch says which run of the hub has told it its last revision. That revision says what the node
 * knows only if it is of the history that the store has now: a store that was set back to a backup
 * counts on from there, and gives revisions anew that another history had. So the store keeps a
 * list of this hub's last runs, which is set back with it. Of a run in the list those revisions
 * count that are not above the one from which the next run was.
 *
 *     runs/NAME   [[BOOT, REVISION], ...]: of each run the store's revision when it was started,
 * the oldest first
 */

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
