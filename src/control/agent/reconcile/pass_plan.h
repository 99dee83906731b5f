/*
 * pass_plan.h - when the next pass of reconcile.h and the next poll of the engine are due, and how
 * passes went. Pure: times, counts and results in; deadlines and samples out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct metrics;

/* ---- the next pass --------------------------------------------------------------------------- */

/*
 * When the next pass of reconcile.h is due, and why the last one failed.
 *
 * A pass runs when somebody asks for one, and each ten seconds anyway, because the interface may
 * have been changed by hand. A pass that failed is repeated, at first after a quarter of a second
 * and then later and later. While no engine can be had, or not its port, no pass runs before its
 * time, whoever asks: the attempt to make the interface causes link events, which ask for another
 * pass. After any other pass that failed, and after one that undid what somebody else had done,
 * there is a pause (PASS_PLAN_PAUSE), so that an agent and a program that fight over the interface
 * do it slowly.
 *
 * Pure: times and results in, a deadline out.
 */

/** Longest time between two passes. */
#define PASS_PLAN_PERIOD (10 * NSEC_PER_SEC)

/** No pass in this time after one that failed, or that has undone something. */
#define PASS_PLAN_PAUSE (NSEC_PER_SEC / 5)

struct pass_plan {
    nsec_t due_at;     /* time of the next pass; NSEC_NEVER: none is planned */
    nsec_t held_until; /* no pass before that time; 0: no restriction */
    nsec_t retry_for;  /* wait after the next pass that fails; 0: the first wait */
    unsigned n_failed; /* passes that have failed, one after the other, until now */
    struct err fault;  /* why the last pass failed; without words: it did not */
};

#define PASS_PLAN_NULL {.due_at = NSEC_NEVER}

/** pass_plan_request() - have a pass at @at or earlier, but not before @p->held_until. */
void pass_plan_request(struct pass_plan *p, nsec_t at);

/**
 * pass_plan_on_success() - a pass has succeeded at @now; plans the next
 * @has_mended:	it has undone what somebody else had done to the interface
 */
void pass_plan_on_success(struct pass_plan *p, bool has_mended, nsec_t now);

/**
 * pass_plan_on_failure() - a pass has failed at @now; plans the next
 * @why:	in words; copied
 * @may_hurry:	whoever asks for a pass has it before that time
 * @random:	any number, another one each time
 */
void pass_plan_on_failure(
    struct pass_plan *p, const struct err *why, bool may_hurry, uint32_t random, nsec_t now);

/* ---- the next poll --------------------------------------------------------------------------- */

/*
 * When the agent asks its engine about the peers.
 *
 * A poll asks for the facts of every peer, which is most of what an idle node costs. So once a
 * second the agent only compares the interface's packet count with that of the last poll, and polls
 * if it has changed, if something has happened since, or if the last poll is ten seconds old.
 *
 * Pure: times and counts in, a deadline out.
 */

struct poll_plan {
    nsec_t due_at;      /* time of the next comparison; NSEC_NEVER: none is planned */
    nsec_t polled_at;   /* time of the last poll; 0: never */
    uint64_t n_packets; /* that had passed through the interface by then; 0: not known */
    bool has_changes;   /* something has happened since then */
};

#define POLL_PLAN_NULL {.due_at = NSEC_NEVER}

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

/* ---- metrics of passes ----------------------------------------------------------------------- */

/*
 * How long passes of reconcile.h take, and what they find: for Prometheus.
 *
 * A histogram for each result of a pass, in the bounds that the help of the metric has.
 *
 * Pure: durations and results in, samples out.
 */

/** What a pass came to. */
enum pass_result {
    PASS_RESULT_UNCHANGED, /* all was as it should be, and nothing was written */
    PASS_RESULT_CHANGED,
    PASS_RESULT_FAILED,
    PASS_RESULT_N,
};

/** Upper bounds of the histogram; what is longer is counted in the last of the buckets. */
#define PASS_METRICS_BOUNDS 12

struct pass_metrics {
    uint64_t n[PASS_RESULT_N][PASS_METRICS_BOUNDS + 1]; /* passes, by the bound that they keep */
    nsec_t sum[PASS_RESULT_N];                          /* of their durations */
};

/** pass_metrics_add() - a pass has taken so long. */
void pass_metrics_add(struct pass_metrics *m, enum pass_result result, nsec_t duration);

/**
 * pass_metrics_add_samples() - add all of it to @m
 * @n_failed:	passes that have failed, one after the other, until now
 * @n_foreign:	peers that were removed and that no agent of this node had added
 */
void pass_metrics_add_samples(
    const struct pass_metrics *pm, unsigned n_failed, uint64_t n_foreign, struct metrics *m);
