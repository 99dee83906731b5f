/*
 * access_view.h - what a network's nodes have let in and refused by its rules, as they report it.
 *
 * The numbers are sums over the nodes that have reported to this hub, since it was started. What
 * was refused becomes events, in each network at most ACCESS_EVENTS_MAX a minute; how many were too
 * many for that is an event as well, a minute later.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "hub/model/model.h"
#include "hub/watch/edge_events.h"
#include "mesh/object/access.h"

struct metrics;

/** Most events of one network in one minute. */
#define ACCESS_EVENTS_MAX 30

struct access_view {
    struct keys networks; /* of access_view.c's */
};

/** access_view_deinit() - forget all. */
void access_view_deinit(struct access_view *v);

/** access_view_take() - @node has reported @report, @wall_s seconds since 1970. */
void access_view_take(struct access_view *v, struct edge_events *events,
    const struct model_node *node, const struct access_report *report, int64_t wall_s);

/** access_view_look() - now and then: forget networks and rules that are gone, and say what had no
 * room among the events. */
void access_view_look(
    struct access_view *v, struct edge_events *events, const struct model *model, int64_t wall_s);

/** access_view_encode() - {"rules": [{"name", "passed", "refused"}], "refused": of those that no
 * rule names}: a new reference; NULL: no memory. */
json_t *access_view_encode(const struct access_view *v, const struct model_network *net);

/** access_view_add_metrics() - add the METRIC_RULE... to @m. */
void access_view_add_metrics(
    const struct access_view *v, const struct model_network *net, struct metrics *m);
