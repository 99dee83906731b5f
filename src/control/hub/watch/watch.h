/*
 * watch.h - tells each node what changes in its view, as it changes.
 *
 * Theory of operation. A watch begins with a snapshot; after it comes every
 * change that its node may see. A line is made once for a change and shared by
 * all watches. The hub does not wait for a watch whose queue is full: it drops
 * the queue, and sends a fresh snapshot once the line that was partly sent is
 * out. Snapshots are large, so only WATCH_SNAPSHOTS_MAX are sent at a time; the
 * other watches wait for their turn, and a watch that takes too long to read
 * its snapshot is closed.
 *
 * A node decides itself how often its status changes, and each change goes to
 * all other nodes. So there is a rate limit: a few changes are told at once, and
 * after that only the latest one every two seconds. A snapshot always has the
 * latest status.
 *
 * A change of a node goes to all watches. To send one line to thousands of
 * watches takes time, but several lines together take hardly more. So a node
 * that changes soon after the last one is put into the list @news, and all nodes
 * in it are told together, as one text that is made, and packed, once; news_pace.h
 * says when. Before a change of an edge or another object is told, the news that
 * were waiting are told.
 *
 * A watch whose connection broke comes again as a new one, and says what it knows:
 * the run of the hub, and the revision of the last line that it had. If that was
 * this run it is told what has changed since (resume.h) and no snapshot. Where that is much, it
 * waits for its turn with the snapshots.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include "api/server/stream.h"
#include "base/clock.h"
#include "hub/model/model.h"
#include "hub/watch/news_pace.h"

/**
 * How often each watch is sent a heartbeat. Of a hub with more than WATCH_MANY watches these are
 * most of what it does at rest. So there the watches that accept it are sent one each
 * WATCH_HEARTBEAT_SLOW, and each such heartbeat says when the next one comes.
 */
#define WATCH_HEARTBEAT      (10 * NSEC_PER_SEC)
#define WATCH_HEARTBEAT_SLOW (20 * NSEC_PER_SEC)
#define WATCH_MANY           2000

/** Heartbeats that are due at about the same second are in one list; there are lists for so many
 * seconds, which is more than any heartbeat is away. */
#define WATCH_BEAT_LISTS 32

/** How many snapshots are sent at a time, and how long one may take. The changes for a watch that
 * goes on count as one if they have more than WATCH_SMALL bytes, before they are packed. */
#define WATCH_SNAPSHOTS_MAX   32
#define WATCH_SMALL           (16 << 10)
#define WATCH_SNAPSHOT_WITHIN (60 * NSEC_PER_SEC)

/** The rate limit for changes of one node's status: the burst, and the time for one more. */
#define WATCH_STATUS_BURST 5
#define WATCH_STATUS_EACH  (2 * NSEC_PER_SEC)

/** Watches of one node at a time: the present one, and one before it that may be dead. */
#define WATCH_BY_NODE_MAX 2

/** Most nodes in one text. */
#define WATCH_NEWS_MAX 256

/** All watches of a hub. */
struct watcher {
    struct model *model;                 /* pins */
    struct list beats[WATCH_BEAT_LISTS]; /* of struct watch, by the second of their heartbeat */
    int64_t beats_at;                    /* the second that was looked at last */
    struct list sending;                 /* of struct watch: whose snapshot is on its way */
    struct list waiting; /* of struct watch: they wait until fewer snapshots are being sent */
    struct list untold;  /* of struct model_node: whose last status has still to be told */
    unsigned n_sending;  /* snapshots that are being sent */
    unsigned n;          /* watches */
    uint64_t n_overrun;  /* queues dropped since the start */
    uint64_t n_resumed;  /* watches since the start that needed no snapshot */
    struct list news;    /* of struct model_node: to be told together */
    struct news_pace pace;
};

/** What a watch knows already. */
struct watch_known {
    uint64_t boot;     /* of which run of a hub, struct model's; 0: nothing is known */
    uint64_t revision; /* of the last line */
};

/** watcher_init() - without any watch. */
void watcher_init(struct watcher *w, struct model *model);

/**
 * watch_open() - a new watch of @node
 * @silence_max:	the longest time between two heartbeats that it accepts; 0: WATCH_HEARTBEAT
 * @known:		what it does not have to be told
 *
 * Return: the stream to answer with, NULL: no memory. It frees itself when it is closed.
 */
struct stream *watch_open(struct watcher *w, struct model_node *node, nsec_t silence_max,
    const struct watch_known *known, nsec_t now);

/** watch_is_open() - has this node a watch that can be told something? */
bool watch_is_open(const struct model_node *node);

/*
 * watch_tell_KIND() - tell the nodes that may see an object that it has changed; @now: the loop's
 * time.
 *
 * An edge may also be gone. A change of its path may make its two nodes visible to each other, or
 * hide them from each other.
 */

/** watch_tell_network() - all of its nodes hear what the network is now; @now: the turn's time. */
void watch_tell_network(struct watcher *w, struct model_network *net, nsec_t now);

/** watch_tell_node() - those that may see @node, itself included, hear what it is now. */
void watch_tell_node(struct watcher *w, struct model_node *node, nsec_t now);

/** watch_tell_newcomer() - the same of one that has just joined. */
void watch_tell_newcomer(struct watcher *w, struct model_node *node, nsec_t now);

/**
 * watch_tell_rekeyed() - the same of one whose key has changed, at once
 *
 * Until they hear of it the others let its former key in, and do not reach it. So it does not wait
 * for others, as a removal does not, however many machines join meanwhile.
 */
void watch_tell_rekeyed(struct watcher *w, struct model_node *node, nsec_t now);

/** watch_tell_edge() - both ends hear of it; @before: the path as it was, which decides whether
 * they saw each other. */
void watch_tell_edge(struct watcher *w, struct model_edge *edge, enum edge_path before, nsec_t now);

/** watch_tell_status() - the status of @node that others see has changed; tell them now, or later
 * if the rate limit says so. */
void watch_tell_status(struct watcher *w, struct model_node *node, nsec_t now);

/** watch_tell_node_removed() - tell the other nodes; tell @node the @reason, and end its watches.
 */
void watch_tell_node_removed(
    struct watcher *w, struct model_node *node, const char *reason, nsec_t now);

/**
 * watch_tell_object() - an object of another kind than Network, Node and MeshEdge has changed
 * @before:	as it was; NULL: it is new
 * @now:	as it is; NULL: it is gone
 *
 * A node that may see the object is told what it is now. A node that may not see it any more is
 * told that it is gone.
 */
void watch_tell_object(struct watcher *w, struct model_network *net, const struct object *before,
    const struct object *now, nsec_t at);

/** watch_news_due() - when watch_tell_news() is to be called; NSEC_NEVER: nothing waits. */
nsec_t watch_news_due(const struct watcher *w, nsec_t now);

/** watch_tell_news() - tell of all nodes that wait to be told of together. */
void watch_tell_news(struct watcher *w, nsec_t now);

/** watch_tick() - each second: heartbeats, what waits to be told, and watches that take too long.
 */
void watch_tick(struct watcher *w, nsec_t now);
