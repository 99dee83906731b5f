/*
 * save_plan.h - when the snapshot is written to the disk.
 *
 * Soon after a change, for a restart without the hub begins with what is there.
 * But others decide how often there is one, and each is a write of all of it:
 * so there are five seconds between two writes, and half a minute before one
 * that only has news of where nodes may be reached, which ages anyway. What is
 * not written yet when the agent ends is written then.
 *
 * Pure: no clock.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

#define SAVE_PLAN_DELAY       (1 * NSEC_PER_SEC)
#define SAVE_PLAN_EACH        (5 * NSEC_PER_SEC)
#define SAVE_PLAN_STATUS_EACH (30 * NSEC_PER_SEC)

struct save_plan {
    nsec_t saved_at; /* time of the last write; 0: none */
};

/** save_plan_due() - when to write at the latest; @is_status: only a node's status has changed. */
static inline nsec_t save_plan_due(const struct save_plan *p, bool is_status, nsec_t now)
{
    nsec_t each = is_status ? SAVE_PLAN_STATUS_EACH : SAVE_PLAN_EACH;
    nsec_t next = p->saved_at == 0 ? 0 : p->saved_at + each;

    return nsec_max(now + SAVE_PLAN_DELAY, next);
}
