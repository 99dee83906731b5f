/*
 * poll_plan.h - when the agent asks its engine about the peers.
 *
 * A poll asks for the facts of every peer, which is most of what an idle node costs. So once a
 * second the agent only compares the interface's packet count with that of the last poll, and polls
 * if it has changed, if something has happened since, or if the last poll is ten seconds old.
 *
 * Pure: times and counts in, a deadline out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct poll_plan {
    nsec_t due_at;      /* time of the next comparison; NSEC_NEVER: none is planned */
    nsec_t polled_at;   /* time of the last poll; 0: never */
    uint64_t n_packets; /* that had passed through the interface by then; 0: not known */
    bool has_news;      /* something has happened since then */
};

#define POLL_PLAN_NULL                                                                             \
    {                                                                                              \
        .due_at = NSEC_NEVER                                                                       \
    }

/** poll_plan_on_news() - something has happened: the next time that is due is a poll. */
void poll_plan_on_news(struct poll_plan *p);

/** poll_plan_request() - something has happened: have a poll at @at or earlier. */
void poll_plan_request(struct poll_plan *p, nsec_t at);

/** poll_plan_is_stale() - a poll is needed, whatever the packet count says. */
bool poll_plan_is_stale(const struct poll_plan *p, nsec_t now);

/** poll_plan_is_idle() - @n_packets, counted now, are those of the last poll; 0: not known. */
bool poll_plan_is_idle(const struct poll_plan *p, uint64_t n_packets);

/**
 * poll_plan_begin() - a poll begins at @now
 *
 * What happens or passes from here on is for the next poll.
 */
void poll_plan_begin(struct poll_plan *p, uint64_t n_packets, nsec_t now);

/**
 * poll_plan_end() - a poll has ended; plans the next comparison
 * @n_peers:	of the engine: its answer grows with them, so it is asked less often for many
 * @within:	the next one is within this time; NSEC_NEVER: no restriction
 */
void poll_plan_end(struct poll_plan *p, size_t n_peers, nsec_t within, nsec_t now);

/** poll_plan_skip() - no poll was needed; plans the next comparison. */
void poll_plan_skip(struct poll_plan *p, nsec_t now);
