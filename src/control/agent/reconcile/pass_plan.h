/*
 * pass_plan.h - when the next pass of reconcile.h is due, and why the last one failed.
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
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

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

#define PASS_PLAN_NULL                                                                             \
    {                                                                                              \
        .due_at = NSEC_NEVER                                                                       \
    }

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
