/*
 * snapshot.h - all that one node may know of its network, at one revision.
 *
 * It begins with the hub's "snapshot" event and is kept current by the deltas
 * that follow it (watch_event.h). It is the input of render.h and what the
 * agent keeps on disk, so that a restart without the hub still knows its peers.
 *
 * Nodes and edges are arrays of pointers, sorted by name: lookups are binary
 * searches, and whoever walks them gets the same order every time.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "mesh/object/object.h"

/** Objects of one kind, sorted by name. */
struct snapshot_list {
    struct object **items; /* owns the array and what it points to */
    size_t n;
    size_t cap;
};

struct snapshot {
    uint64_t revision;           /* of the hub's store */
    uint64_t boot;               /* of the hub's run, random; after another one the hub does not
                                    know any more what it relayed; 0: not told */
    char self[NAME_MAX_LEN + 1]; /* the node whose view this is; "" in SNAPSHOT_NULL */
    struct network network;
    struct snapshot_list nodes;                    /* at most SNAPSHOT_NODES_MAX; holds self */
    struct snapshot_list edges;                    /* at most SNAPSHOT_EDGES_MAX */
    struct snapshot_list others[OBJECT_KINDS_MAX]; /* of the other kinds, by object_kind_index();
                                                      each at most SNAPSHOT_OTHERS_MAX */
};

#define SNAPSHOT_NULL {0}

/** What was passed over, because it could not be understood: objects, or a node's status. */
struct snapshot_skips {
    size_t n;
    struct err first; /* which one, and why */
};

#define SNAPSHOT_SKIPS_NULL {0}

/** snapshot_skip() - one more was passed over, for the reason in @why. NULL for @skips is fine. */
void snapshot_skip(struct snapshot_skips *skips, const struct err *why);

/** snapshot_deinit() - release everything; idempotent, safe on SNAPSHOT_NULL. */
void snapshot_deinit(struct snapshot *s);

/**
 * snapshot_decode_object() - one object of a view
 * @ret:	untouched on failure, else to be released with object_deinit(); OBJECT_NULL when it
 *		was passed over
 * @skips:	gets longer by what is passed over; may be NULL
 *
 * A node whose status cannot be understood is taken without it. The status is
 * the node's own word, and its peers need the rest.
 *
 * Return: 0 or -ENOMEM.
 */
int snapshot_decode_object(
    struct object *ret, const json_t *json, struct snapshot_skips *skips, struct err *e);

/**
 * snapshot_decode() - take in a "snapshot" event, or the file that was made of one
 * @ret:	untouched on failure, else to be released with snapshot_deinit()
 * @skips:	gets longer by what is passed over: an object that cannot be understood, is of
 *		another network, or has the name of another; may be NULL
 *
 * Return: 0; -EINVAL with words: a field is out of bounds, the network cannot be
 * understood, or the node itself is missing; -ENOMEM.
 */
int snapshot_decode(
    struct snapshot *ret, const json_t *json, struct snapshot_skips *skips, struct err *e);

/** snapshot_encode() - the "snapshot" event; a new reference, NULL for no memory. */
json_t *snapshot_encode(const struct snapshot *s);

/** snapshot_find_node() - lends; NULL if there is none of that name. */
const struct node *snapshot_find_node(const struct snapshot *s, const char *name);

/** snapshot_find_edge() - lends the object about the edge between two nodes, NULL if none. */
const struct mesh_edge *snapshot_find_edge(const struct snapshot *s, const char *a, const char *b);

/** snapshot_list() - lends the objects of a kind that has a list; its order is that of the names.
 */
const struct snapshot_list *snapshot_list(const struct snapshot *s, const struct object_kind *kind);

/** snapshot_self() - lends the node whose view this is; NULL only for SNAPSHOT_NULL. */
const struct node *snapshot_self(const struct snapshot *s);

/**
 * snapshot_put() - add an object, or replace the one of the same kind and name
 * @o:		taken, also on failure
 *
 * Return: 0; -EINVAL with words when it is of another network or one too many; -ENOMEM.
 */
int snapshot_put(struct snapshot *s, struct object *o, struct err *e);

/**
 * snapshot_delete() - forget an object; one that is not there is fine
 *
 * Return: 0; -EINVAL with words for the network and the node itself, without
 * which there is no view.
 */
int snapshot_delete(
    struct snapshot *s, const struct object_kind *kind, const char *name, struct err *e);
