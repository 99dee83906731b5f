/*
 * traffic_disputes.h - which edges' ends contradict each other, and go on to.
 *
 * Theory of operation. Two ends that are both honest differ for a while: one has told what it has
 * moved in the last minute, and the other one has not yet. So a dispute is not told when it is
 * seen. What the greater word was then is kept, and if the lesser one comes up to that, the time
 * begins anew; if it has not after TRAFFIC_DISPUTE_AFTER, the two contradict each other.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "hub/traffic/traffic_edges.h"

/** After which a dispute is told: two reports and a minute. */
#define TRAFFIC_DISPUTE_AFTER (180 * NSEC_PER_SEC)

struct traffic_disputed {
    struct traffic_dispute is; /* as it was said last; its names are pinned */
    uint64_t greater_then;     /* the greater word at @since */
    nsec_t since;
    bool is_told;
};

/** Those of a day. Zeroes: there are none. */
struct traffic_disputes {
    struct traffic_disputed items[TRAFFIC_DISPUTES_MAX];
    size_t n;
};

/** traffic_disputes_set() - these are the ones about what @from has sent, and all of them.
 * @list: its names are pinned. What has no room is not seen. */
void traffic_disputes_set(struct traffic_disputes *d, const char *from,
    const struct traffic_dispute *list, size_t n, nsec_t now);

/** traffic_disputes_due() - lends one that is to be told now, once; NULL: there is none. */
const struct traffic_dispute *traffic_disputes_due(struct traffic_disputes *d, nsec_t now);
