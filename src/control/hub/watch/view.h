/*
 * view.h - what one node may see of its network, as JSON text.
 *
 * The one place that decides it: for the watch, for the answer to an enrolment
 * and for `weft render` on the hub. Texts that are the same for everybody are
 * made once and kept with the network or the node until they change.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "hub/model/model.h"
#include "mesh/snapshot/snapshot.h"

struct line;

/** view_can_see() - is @other in @self's view? Itself, the hub, and whom it may talk to. */
bool view_can_see(const struct model_node *self, const struct model_node *other);

/**
 * view_can_see_object() - is an object of another kind than Node in @self's view?
 *
 * The hub's own node sees all of them.
 */
bool view_can_see_object(const struct model_node *self, const struct object *o);

/**
 * view_snapshot() - the "snapshot" event of a node
 * @ret_head:	gives; its first part
 * @ret_tail:	gives; the rest, with the newline; shared by all nodes that see everybody
 *
 * Return: false when there is no memory.
 */
bool view_snapshot(struct model_node *self, struct line **ret_head, struct line **ret_tail);

/** view_snapshot_text() - the same as one text without the newline; free(). NULL: no memory. */
char *view_snapshot_text(struct model_node *self);

/**
 * view_introduction_text() - as view_snapshot_text(), with no nodes but @self and the hub
 *
 * What a new node needs to begin its watch. Of n nodes that join one after another, each with all
 * that were there before, the hub would send n * n / 2. A node that has edges gets all of it, since
 * a snapshot with an edge has both of its nodes.
 */
char *view_introduction_text(struct model_node *self);

/**
 * view_lend_snapshot() - the same as a struct, without a copy of what the nodes are
 * @ret:	SNAPSHOT_NULL before; for view_return_snapshot(), and in this turn of the loop
 *
 * Nobody's status is in it, and of objects only nodes and edges: what render.h reads.
 *
 * Return: false when there is no memory.
 */
bool view_lend_snapshot(const struct model_node *self, struct snapshot *ret);

/** view_return_snapshot() - release what was lent; SNAPSHOT_NULL is fine. */
void view_return_snapshot(struct snapshot *s);

/*
 * The lines of a watch, which events they are: an object as it is now; that an object is gone; that
 * the hub is there; that the node itself is removed. Each gives a line; NULL: no memory.
 */

/** view_put_network() - what the network is now. */
struct line *view_put_network(struct model_network *net);

/** view_put_node() - what @node is now, as all others see it. */
struct line *view_put_node(struct model_node *node);

/** view_put_edge() - what was said about an edge. */
struct line *view_put_edge(const struct model_network *net, const struct model_edge *edge);

/** view_put_object() - an object of any other kind. */
struct line *view_put_object(const struct model *m, const struct object *o);

/** view_delete() - the object of that kind and name is not to be seen any more. */
struct line *view_delete(const struct model *m, const struct object_kind *kind, const char *name);

/** view_heartbeat() - nothing has changed, and the hub is there. */
struct line *view_heartbeat(const struct model *m);

/** view_removed() - the last event: the node itself is none any more. @reason: for people. */
struct line *view_removed(const char *reason);
