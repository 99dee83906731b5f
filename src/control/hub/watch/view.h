/*
 * view.h - what one node may see of its network, as JSON text.
 *
 * Only this module decides what a node may see. The watch, the answer to an
 * enrolment and `weft render` on the hub use it. Texts that are the same for
 * all nodes are made once and kept with the network or the node until they
 * change.
 */
#pragma once

#include <stdbool.h>

#include "hub/model/model.h"
#include "mesh/snapshot/snapshot.h"

/** A line in parts; the last one has the newline. */
struct view_parts {
    struct line **items; /* owns the array and a reference each */
    size_t n;
    size_t cap;  /* of the array */
    bool failed; /* there was no memory for one of them */
};

/**
 * view_revision() - up to which revision a node knows all, if it was told of all that is ready
 *
 * What is not ready yet has that revision or a later one.
 */
uint64_t view_revision(const struct model_network *net);

/** view_can_see() - may @self see @other? It sees itself, the hub, and each node it may talk to. */
bool view_can_see(const struct model_node *self, const struct model_node *other);

/**
 * view_snapshot() - the "snapshot" event of a node
 * @ret:	gives; to be released with view_parts_deinit()
 *
 * Most of its parts are the network's blocks of nodes (watched.h), which all nodes share.
 *
 * Return: false when there is no memory.
 */
bool view_snapshot(const struct model_node *self, struct view_parts *ret);

/** view_parts_deinit() - release. */
void view_parts_deinit(struct view_parts *parts);

/** view_snapshot_text() - the same as one text without the newline; free(). NULL: no memory. */
char *view_snapshot_text(const struct model_node *self);

/**
 * view_introduction_text() - as view_snapshot_text(), with no nodes but @self and the hub
 *
 * This is what a new node needs to begin its watch. If n nodes join one after another and each gets
 * all nodes before it, the hub sends n * n / 2 nodes. A node that has edges gets the whole
 * snapshot, because a snapshot with an edge must hold both nodes of that edge.
 */
char *view_introduction_text(const struct model_node *self);

/**
 * view_lend_snapshot() - the snapshot as a struct that borrows the nodes from the model
 * @ret:	SNAPSHOT_NULL before the call; give it to view_return_snapshot() in the same turn of
 *		the loop
 *
 * It holds nodes, edges and rules only, and no status: render.h and access_rules.h read no more
 * than that.
 *
 * Return: false when there is no memory.
 */
bool view_lend_snapshot(const struct model_node *self, struct snapshot *ret);

/** view_return_snapshot() - release what was lent; SNAPSHOT_NULL is fine. */
void view_return_snapshot(struct snapshot *s);

/** Changes of one network, as watched_read() gives them. */
struct view_changes {
    const struct model_network *net;
    const struct watched_change *const *items; /* borrowed; @n of them */
    size_t n;
    uint64_t end; /* the revision of the last line: before it there is nothing that was not told */
};

/** view_are_special() - is something among them that @self is told otherwise than all who see all?
 */
bool view_are_special(const struct view_changes *changes, const struct model_node *self);

/**
 * view_tell() - what has changed as it is now: lines, in an order in which a node can take them
 * @self:	as that node sees it; NULL: as those do that see all, without what is special
 * @ret:	gives; NULL: there is nothing to tell
 *
 * Return: false when there is no memory.
 */
bool view_tell(
    const struct view_changes *changes, const struct model_node *self, struct line **ret);

/** What a heartbeat says. */
struct heartbeat {
    uint64_t revision;
    unsigned next_s;   /* when the next one comes, in s; 0: it does not say */
    uint64_t boot;     /* the hub's run, for a node that may know another one; 0: it does not say */
    nsec_t behind_for; /* the hub has not heard what changes in its store; said if it is long */
};

/** view_heartbeat() - the hub is alive; NULL: no memory. */
struct line *view_heartbeat(const struct heartbeat *heartbeat);

/** view_removed() - the last event: the node itself was removed. @reason: for people. NULL: no
 * memory. */
struct line *view_removed(const char *reason);
