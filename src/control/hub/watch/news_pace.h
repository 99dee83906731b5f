/*
 * news_pace.h - when changed nodes are told of: one at once, many together.
 *
 * Theory of operation. A change goes to all watches. What that costs is known about: so much a
 * watch, and so much more a watch for each node in it. The data plane, TCP and its acknowledgements
 * are most of it, on machines that are to do other things as well. So after a telling the next one
 * waits, the longer the more watches there are and the more nodes were told of then.
 *
 * While machines join one after another (a rush), each of them would be told of at a price that
 * leaves no time to let the others in; and as they come slower, fewer are told of together, which
 * costs more still. So in a rush a telling waits so long that telling takes a third of a core at
 * most, and the machines come first. NEWS_PACE_RUSH_MAX is the longest that they are not told of.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

/** With so many watches or fewer, everything is told at once. */
#define NEWS_PACE_FEW 16

/** What it costs to tell one watch something, the hub's data plane included, and for each node in
 * it on top of that (make bench PARTS=scale). */
#define NEWS_PACE_WATCH (25 * NSEC_PER_USEC)
#define NEWS_PACE_NODE  (1 * NSEC_PER_USEC)

/** The next telling waits NEWS_PACE_WATCH times the watches, times the nodes of the last one; but
 * at most so many times. In a rush it waits that long at least. */
#define NEWS_PACE_PATIENCE 16

/** In a rush it waits so many times what the last telling cost, and at most the second. */
#define NEWS_PACE_RUSH_SHARE 3
#define NEWS_PACE_RUSH_MAX   (10 * NSEC_PER_SEC)

/** It is a rush while no more than this time is between one machine that joins and the next. */
#define NEWS_PACE_RUSH_GAP NSEC_PER_SEC

struct news_pace {
    nsec_t told_at;     /* the last telling; 0: there was none */
    unsigned n_told;    /* nodes in it */
    nsec_t newcomer_at; /* the last machine that joined; 0: none did */
    bool is_rush;       /* the last two came within NEWS_PACE_RUSH_GAP */
};

/** news_pace_on_newcomer() - a machine has joined. */
void news_pace_on_newcomer(struct news_pace *p, nsec_t now);

/** news_pace_on_told() - @n_nodes are told of now. */
void news_pace_on_told(struct news_pace *p, unsigned n_nodes, nsec_t now);

/** news_pace_due() - when @n_watches may be told of nodes; 0: at once. */
nsec_t news_pace_due(const struct news_pace *p, unsigned n_watches, nsec_t now);
