/*
 * health.h - what is found of each network: of its nodes, pairs, jobs and of this hub (finding.h).
 *
 * The rules are in health/node.h and health/pair.h; here the facts are brought to them, and it is
 * decided when.
 *
 * Theory of operation. All nodes are passed every two seconds, and those are looked at that are not
 * as they were when they were looked at last; of ten thousand that are well each costs some
 * comparisons. A pair is
 * looked at when a part of it has changed. It waits in a list where it depends on whether its
 * machines are still there, and is looked at again with each pass. What changes for all pairs of a
 * node, as when it goes down or comes back, has all pairs looked at again of which something is
 * found or reported, at most every ten seconds.
 *
 * What was true of a pair while something else was wrong is reported again only after that is over.
 * So nothing new is found of a pair for HEALTH_SETTLES_S after what was found of one of its nodes
 * is over, after somebody has changed what is asked of it, and after the start of the hub.
 *
 * Whether a node that is lost is reached by a probe of another one is asked of all probes that
 * still report, in one pass over what they have said, and only while some node is lost.
 *
 * What begins and what is over is an event: one of its own kind where there is one (edge_events.h),
 * else Found and Gone.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "health/finding.h"
#include "hub/model/model.h"
#include "hub/watch/edge_events.h"
#include "store/keys.h"

/** How often all nodes are passed. */
#define HEALTH_EACH (2 * NSEC_PER_SEC)

/** How often, at most, all pairs of a network are looked at again. */
#define HEALTH_PAIRS_EACH (10 * NSEC_PER_SEC)

/** How long agents and probes have to report what is true now, s. */
#define HEALTH_SETTLES_S 20

struct health {
    struct model *model;        /* pins */
    struct edge_events *events; /* pins; who is told */
    struct keys networks;       /* of struct health_network */
    nsec_t passed_at;           /* when all nodes were passed last; 0: they were not yet */
    int64_t settles_at;         /* what is kept from before the start counts from then on */
};

/** The moment of a look. */
struct health_time {
    nsec_t now;         /* monotonic */
    int64_t wall_s;     /* s since 1970 */
    int64_t started_at; /* when the hub began to look, s since 1970 */
};

/** health_init() - nothing is found. @model, @events: pinned. */
void health_init(struct health *h, struct model *model, struct edge_events *events);

/** health_deinit() - forget all. */
void health_deinit(struct health *h);

/** health_forget() - a network is gone, and what was found of it. */
void health_forget(struct health *h, const char *network);

/** health_of() - lends what is found of that network. */
const struct findings *health_of(const struct health *h, const char *network);

/** health_pass() - each second: look at what is due. */
void health_pass(struct health *h, const struct health_time *at);

/** health_look_part() - what @node says of @peer has changed: it is @part now. */
void health_look_part(struct health *h, const struct model_node *node,
    const struct model_node *peer, const struct edge_part *part, enum edge_owner owner,
    int64_t wall_s);

/** health_edge_changed() - what is asked of the pair has changed. */
void health_edge_changed(
    struct health *h, const struct model_node *a, const struct model_node *b, int64_t wall_s);

/** health_look_pair() - what is known of the pair has changed; the two in either order. */
void health_look_pair(
    struct health *h, const struct model_node *a, const struct model_node *b, int64_t wall_s);

/** health_look_again() - something has changed for many pairs of the network. */
void health_look_again(struct health *h, const struct model_network *net);

/** health_node_gone() - the node is no more. */
void health_node_gone(struct health *h, const struct model_node *node, int64_t wall_s);

/* For what others look at. */

/** health_begin() - lends the set of that network, in which a look at @subject begins; NULL: no
 * memory. */
struct findings *health_begin(
    struct health *h, const char *network, enum finding_subject about, const char *subject);

/** health_end() - it is over: what is new and what is gone becomes an event. */
void health_end(struct health *h, const char *network, const char *subject, int64_t wall_s);
