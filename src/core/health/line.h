/*
 * line.h - what is found of the line of a relay, a hub's or another node's, from what the relay
 * says of it (relay/line.h).
 *
 * Pure: facts in, findings out; no clock.
 */
#pragma once

#include <stdint.h>

#include "health/finding.h"
#include "relay/line.h"

/** A pair that goes by the line, by the names of its nodes. */
struct line_pair {
    const char *nodes[2];
    uint64_t rate; /* bit/s */
    bool is_away;  /* it was asked to go another way */
};

/** All that is known of a line. Borrowed. */
struct line_facts {
    const char *node; /* that relays; NULL: this hub */
    const struct relay_line_report *line;
    struct line_pair pairs[RELAY_LINE_REPORTED_MAX]; /* @n_pairs of one network, heaviest first */
    unsigned n_pairs;
};

/** line_find() - add to @set what is found; the caller has begun the look at the node or the hub.
 */
void line_find(const struct line_facts *f, struct findings *set, int64_t at);
