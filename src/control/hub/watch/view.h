/*
 * view.h - what one node may see of its network, as JSON text.
 *
 * Only this module decides what a node may see. The watch, the answer to an
 * enrolment and `weft render` on the hub use it. Texts that are the same for
 * all nodes are made once and kept with the network or the node until they
 * change.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "hub/model/model.h"
#include "mesh/snapshot/snapshot.h"

struct line;

/** A line in parts; the last one has the newline. */
struct view_parts {
    struct line **items; /* owns the array and a reference each */
    size_t n;
    size_t cap;  /* of the array */
    bool failed; /* there was no memory for one of them */
};

/** view_can_see() - may @self see @other? It sees itself, the hub, and each node it may talk to. */
bool view_can_see(const struct model_node *self, const struct model_node *other);

/** view_sees_all() - does @self see all nodes of its network, those that are yet to come included?
 * False only if one of its edges is off. */
bool view_sees_all(const struct model_node *self);

/**
 * view_can_see_object() - is an object of another kind than Node in @self's view?
 *
 * The hub's own node sees all of them.
 */
bool view_can_see_object(const struct model_node *self, const struct object *o);

/**
 * view_snapshot() - the "snapshot" event of a node
 * @ret:	gives; to be released with view_parts_deinit()
 *
 * Its nodes are those of the network's roster, and most of its parts are shared by all nodes.
 *
 * Return: false when there is no memory.
 */
bool view_snapshot(struct model_node *self, struct view_parts *ret);

/** view_parts_deinit() - release; idempotent. */
void view_parts_deinit(struct view_parts *parts);

/** view_snapshot_text() - the same as one text without the newline; free(). NULL: no memory. */
char *view_snapshot_text(struct model_node *self);

/**
 * view_introduction_text() - as view_snapshot_text(), with no nodes but @self and the hub
 *
 * This is what a new node needs to begin its watch. If n nodes join one after another and each gets
 * all nodes before it, the hub sends n * n / 2 nodes. A node that has edges gets the whole
 * snapshot, because a snapshot with an edge must hold both nodes of that edge.
 */
char *view_introduction_text(struct model_node *self);

/**
 * view_lend_snapshot() - the snapshot as a struct that borrows the nodes from the model
 * @ret:	SNAPSHOT_NULL before the call; give it to view_return_snapshot() in the same turn of
 *		the loop
 *
 * It holds nodes and edges only, and no status: render.h reads no more than that.
 *
 * Return: false when there is no memory.
 */
bool view_lend_snapshot(const struct model_node *self, struct snapshot *ret);

/** view_return_snapshot() - release what was lent; SNAPSHOT_NULL is fine. */
void view_return_snapshot(struct snapshot *s);

/*
 * The lines of a watch. Each line is one event: an object has changed, an object is gone, the hub
 * is alive, or the node itself was removed. Each function gives a line; NULL: no memory.
 */

/** view_put_network() - what the network is now. */
struct line *view_put_network(struct model_network *net);

/** view_put_nodes() - what these nodes of one network are now, as others see them: one line each,
 * in one text. */
struct line *view_put_nodes(struct model_node *const *nodes, size_t n);

/** view_put_edge() - the MeshEdge object of an edge. */
struct line *view_put_edge(const struct model_network *net, const struct model_edge *edge);

/** view_put_object() - an object of any other kind. */
struct line *view_put_object(const struct model *m, const struct object *o);

/** view_delete() - the object of that kind and name is not to be seen any more. */
struct line *view_delete(const struct model *m, const struct object_kind *kind, const char *name);

/**
 * view_heartbeat() - nothing has changed, and the hub is alive
 * @next_s:	when the next one comes, in s; 0: it does not say
 * @now:	monotonic; 0: it says nothing of the store
 *
 * It says for how long the hub has not heard what changes in its store, where that is longer than
 * STORE_LAG_MAX.
 */
struct line *view_heartbeat(const struct model *m, unsigned next_s, nsec_t now);

/** view_removed() - the last event: the node itself was removed. @reason: for people. */
struct line *view_removed(const char *reason);
