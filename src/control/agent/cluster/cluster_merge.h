/*
 * cluster_merge.h - the network by two sources: who is in it by the cluster, how nodes are reached
 * by the hub. Pure.
 *
 * An agent that takes its state from the cluster's API has two streams of events. The cluster's say
 * which nodes and edges there are, and what was asked for. The hub's say what nodes have reported:
 * addresses where they may be reached, which change too often for the cluster's API. While the hub
 * is away, what the cluster shows of reports is better than nothing.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "mesh/snapshot/snapshot.h"
#include "mesh/snapshot/watch_event.h"

struct err;

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
