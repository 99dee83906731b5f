/*
 * status_cluster.h - the Kubernetes cluster in a node's status: does its API say who is in the
 * network?
 *
 * A part of status.h's JSON and table, and the little that has to be remembered for it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"

struct str;

/** What is known of the cluster's API. All zero but @since: it has not answered yet. */
struct status_cluster {
    bool is_heard;  /* it answers */
    nsec_t since;   /* monotonic; so it is since then */
    struct err why; /* why it does not; no words: nothing has failed yet */
};

/** status_cluster_set() - it answers now, or does not, for the reason @why. */
void status_cluster_set(struct status_cluster *c, bool heard, const char *why, nsec_t now);

/** status_cluster_encode() - {"reachable", "sinceSeconds", "why"}; NULL for no memory. */
json_t *status_cluster_encode(const struct status_cluster *c, nsec_t now);

/** status_cluster_format() - a line for people; none without a cluster. Appends to @out. */
void status_cluster_format(const json_t *cluster, struct str *out);
