/*
 * cluster_resource.h - resources of a Kubernetes cluster as objects of the network. Pure.
 *
 * The hub keeps its Networks, Nodes, MeshEdges and Rules as resources in its namespace, called
 * NETWORK, NETWORK.NODE, NETWORK.A--B and NETWORK.RULE. What people write there is a wish until the
 * hub has taken it; so a resource counts only when the hub says of this very spec that it is its
 * own: by the annotation "weft.dev/accepted", or by the condition "Accepted" of this generation.
 * While somebody's edit waits for the hub, or when the hub has refused it, what was known of the
 * object stays.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "mesh/snapshot/snapshot.h"
#include "mesh/snapshot/watch_event.h"

/* ---- resources ------------------------------------------------------------------------------- */

/** Kinds that an agent takes from the cluster. */
#define CLUSTER_KINDS 4

/** Longest resourceVersion. */
#define CLUSTER_VERSION_MAX 40

/** The first one is the Network. */
extern const struct object_kind *const cluster_kinds[CLUSTER_KINDS];

/** Whose view it is. */
struct cluster_self {
    char network[NAME_MAX_LEN + 1];
    char node[NAME_MAX_LEN + 1];
};

/** What a resource is to this node. */
enum cluster_verdict {
    CLUSTER_OTHER, /* of another network, or an edge of other nodes */
    CLUSTER_TAKEN, /* it counts */
    CLUSTER_KEPT,  /* the hub has not said that it does this: what was known of it stays */
    CLUSTER_GONE,  /* the hub says that it has no such object */
};

/**
 * cluster_object() - a resource as the object of the hub's API
 * @ret:	set when it is taken: gives a reference
 * @ret_name:	the object's name, set unless it is another's
 *
 * What is taken is not checked further: object_decode() does.
 */
enum cluster_verdict cluster_object(const struct object_kind *kind, const struct cluster_self *self,
    const json_t *resource, json_t **ret, char ret_name[static OBJECT_NAME_MAX + 1]);

/** What a line of a watch says. */
enum cluster_line_kind {
    CLUSTER_LINE_NOTHING, /* nothing for this node */
    CLUSTER_LINE_EVENT,   /* a change */
    CLUSTER_LINE_OLD,     /* 410: the watch's beginning is not known any more: list again */
    CLUSTER_LINE_FAILED,  /* the server ends the watch, for the reason in the words */
};

struct cluster_line {
    enum cluster_line_kind kind;
    char version[CLUSTER_VERSION_MAX + 1]; /* resourceVersion from which to go on; "": none */
    struct watch_event event;              /* EVENT: PUT or DELETE; its revision is 0 for DELETE */
};

#define CLUSTER_LINE_NULL {0}

/** cluster_line_deinit() - idempotent. */
void cluster_line_deinit(struct cluster_line *l);

/**
 * cluster_line_decode() - one line of a watch
 * @ret:	untouched on failure, else for cluster_line_deinit()
 *
 * Return: 0, also with words for FAILED; -EINVAL with words; -ENOMEM with words.
 */
int cluster_line_decode(struct cluster_line *ret, const struct object_kind *kind,
    const struct cluster_self *self, const char *line, size_t len, struct err *e);

/** cluster_version() - copy a resourceVersion. -EINVAL with words: it may be no part of a URL. */
int cluster_version(
    char ret[static CLUSTER_VERSION_MAX + 1], const json_t *resource, struct err *e);

/* ---- two sources ----------------------------------------------------------------------------- */

/*
 * The network by two sources: who is in it by the cluster, how nodes are reached
 * by the hub. Pure.
 *
 * An agent that takes its state from the cluster's API has two streams of events. The cluster's say
 * which nodes and edges there are, and what was asked for. The hub's say what nodes have reported:
 * addresses where they may be reached, which change too often for the cluster's API. While the hub
 * is away, what the cluster shows of reports is better than nothing.
 */

/**
 * cluster_merge_cluster() - make an event of the cluster fit, before it is applied to @s
 * @hub:	what the hub has said; SNAPSHOT_NULL: nothing yet
 * @kept:	of a snapshot: arrays of names by kind, of which @s is right; borrowed
 * @is_heard:	the hub answers: what it says of reports is newer than what the cluster shows
 */
void cluster_merge_cluster(struct snapshot *s, const struct snapshot *hub, struct watch_event *ev,
    const json_t *kept, bool is_heard);

/**
 * cluster_merge_hub() - take of an event of the hub what nodes have reported, and its revision
 * @hub:	what the hub has said: all of the event goes there
 * @ev:		taken
 * @ret_changed:	set: has @s changed?
 *
 * Return: 0; or as watch_event_apply(), for @hub.
 */
int cluster_merge_hub(struct snapshot *s, struct snapshot *hub, struct watch_event *ev,
    bool *ret_changed, struct err *e);
