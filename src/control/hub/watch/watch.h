/*
 * watch.h - tells each node what changes in its view, as it changes.
 *
 * Theory of operation. A watch begins with a snapshot; after it comes every
 * change that its node may see. A line is made once for a change and shared by
 * all watches. A watch whose queue is full is not waited for: its queue is
 * dropped, and it gets a fresh snapshot when it has taken what was half out.
 * Snapshots are large, so only so many are on their way at a time; the other
 * watches wait in a line, and one that takes too long over its snapshot is cut.
 *
 * A node says itself how often its status changes, and each change is for
 * everybody. So others are told of some at once and then of one each two seconds,
 * which is the last one; a snapshot always has it.
 *
 * What is told of a node goes to all others, and one line to each of thousands of
 * watches is work for a while, but several lines at once are hardly more. So nodes
 * that change sooner after the last one wait as news, and are told together. What
 * is told of edges and objects comes after the news that was there before it.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include "api/server/stream.h"
#include "base/clock.h"
#include "hub/model/model.h"

/** How often a quiet watch hears that the hub is there. */
#define WATCH_HEARTBEAT (10 * NSEC_PER_SEC)

/** Snapshots on their way at a time, and how long one may take. */
#define WATCH_SNAPSHOTS_MAX   32
#define WATCH_SNAPSHOT_WITHIN (60 * NSEC_PER_SEC)

/** How many changes of a node's status are told at once, and how often one more. */
#define WATCH_STATUS_BURST 5
#define WATCH_STATUS_EACH  (2 * NSEC_PER_SEC)

/** Watches of one node at a time: the present one, and one before it that may be dead. */
#define WATCH_BY_NODE_MAX 2

/** Beyond a few watches, all are told of nodes no sooner than so long a watch after the last time:
 * about what a line costs the hub, its data plane included (make bench PARTS=scale). */
#define WATCH_FEW       16
#define WATCH_LINE_TIME (25 * NSEC_PER_USEC)

/** All watches of a hub. */
struct watcher {
    struct model *model; /* pins */
    struct list waiting; /* of struct watch: those whose snapshot has to wait for others */
    struct list untold;  /* of struct model_node: whose last status has still to be told */
    unsigned n_sending;  /* snapshots on their way */
    unsigned n;          /* watches */
    uint64_t n_overrun;  /* queues dropped since the start */
    nsec_t heartbeat_at; /* when the last one was sent */
    struct list news;    /* of struct model_node: to be told together */
    nsec_t told_at;      /* when all were last told of a node; 0: never */
};

/** watcher_init() - without any watch. */
void watcher_init(struct watcher *w, struct model *model);

/**
 * watch_open() - a new watch of @node
 *
 * Return: the stream to answer with, NULL: no memory. It frees itself when it is closed.
 */
struct stream *watch_open(struct watcher *w, struct model_node *node);

/** watch_is_open() - has this node a watch that can be told something? */
bool watch_is_open(const struct model_node *node);

/*
 * watch_tell_KIND() - tell those who may see it that the object has changed; @now: the loop's time.
 *
 * An edge may also be gone, and a change of its path may show its two nodes to each other, or hide
 * them: @before is the path as it was.
 */

/** watch_tell_network() - all of its nodes hear what the network is now; @now: the turn's time. */
void watch_tell_network(struct watcher *w, struct model_network *net, nsec_t now);

/** watch_tell_node() - those that may see @node, itself included, hear what it is now. */
void watch_tell_node(struct watcher *w, struct model_node *node, nsec_t now);

/** watch_tell_edge() - both ends hear of it; @before: the path as it was, which decides whether
 * they saw each other. */
void watch_tell_edge(struct watcher *w, struct model_edge *edge, enum edge_path before, nsec_t now);

/** watch_tell_status() - @node has reported what others see; now, or when it is its turn. */
void watch_tell_status(struct watcher *w, struct model_node *node, nsec_t now);

/** watch_tell_node_removed() - the others hear of it, the node itself with @reason; its end. */
void watch_tell_node_removed(
    struct watcher *w, struct model_node *node, const char *reason, nsec_t now);

/**
 * watch_tell_object() - an object of another kind than Network, Node and MeshEdge has changed
 * @before:	as it was; NULL: it is new
 * @now:	as it is; NULL: it is gone
 *
 * Who may see it is told; who may not see it any more is told that it is gone.
 */
void watch_tell_object(struct watcher *w, struct model_network *net, const struct object *before,
    const struct object *now, nsec_t at);

/** watch_news_due() - when watch_tell_news() is to be called; NSEC_NEVER: nothing waits. */
nsec_t watch_news_due(const struct watcher *w);

/** watch_tell_news() - tell of all nodes that wait to be told of together. */
void watch_tell_news(struct watcher *w, nsec_t now);

/** watch_tick() - each second: heartbeats, what waits to be told, and watches that take too long.
 */
void watch_tick(struct watcher *w, nsec_t now);
