/*
 * keepalive_plan.h - when it is measured how long an idle UDP mapping lives, and the keepalive
 * interval that follows.
 *
 * Theory of operation. path/keepalive.h makes one measurement. This plan begins one
 * as soon as there is a session with the hub by UDP, again when the hub sees this
 * node at another address (so it is behind another NAT), and once a day, since a
 * NAT's settings may change without notice. A result holds until the next one, or
 * until the address changes. Before the first, and after such a change, the
 * interval is NETWORK_KEEPALIVE_UNKNOWN. When a measurement finds that a mapping
 * lives shorter than was thought, the interval is lowered at once; it is raised
 * only at the end of a measurement.
 *
 * Pure: views and times in; actions of the machine, an interval and words out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "path/keepalive.h"

struct render_input;

/** Least time between the beginnings of two measurements. */
#define KEEPALIVE_PLAN_GAP (600 * NSEC_PER_SEC)

/** Most time between two measurements. */
#define KEEPALIVE_PLAN_PERIOD (24 * 3600 * NSEC_PER_SEC)

/** Bytes of a clause of keepalive_plan_describe(), with its zero. */
#define KEEPALIVE_TEXT_MAX 240

/** The result of a measurement, as it is kept on disk. */
struct keepalive_known {
    struct keepalive_bounds bounds; /* KEEPALIVE_UNKNOWN: nothing */
    struct ip_addr outside;         /* at which address the hub saw this node then */
    nsec_t measured_at;             /* since 1970; 0: never */
};

#define KEEPALIVE_KNOWN_NULL                                                                       \
    {                                                                                              \
        .bounds = {.dies = NSEC_NEVER }                                                            \
    }

/** What the agent knows when it calls keepalive_plan_look(). */
struct keepalive_view {
    struct endpoint hub;    /* where it is asked; none: there is no session with it by UDP */
    struct ip_addr outside; /* at which address it sees this node; none: not known */
    bool is_natted;
    nsec_t spread; /* random: see keepalive_start() */
    nsec_t now;
    nsec_t wall; /* since 1970 */
};

struct keepalive_plan {
    struct keepalive machine;
    struct keepalive_known known;
    struct keepalive_view view; /* of the last keepalive_plan_look() */
    struct ip_addr learned;     /* the spare mapping's address; none: not learned yet */
    nsec_t begun_at;            /* the last measurement; 0: never */
};

/** keepalive_plan_init() - @known: the result of an earlier run, KEEPALIVE_KNOWN_NULL: none. */
void keepalive_plan_init(struct keepalive_plan *p, const struct keepalive_known *known);

/** keepalive_plan_look() - begin or end a measurement; to be called every few seconds. */
void keepalive_plan_look(struct keepalive_plan *p, const struct keepalive_view *view);

/** keepalive_plan_on_learned() - the hub sees the spare mapping at @mapped. */
void keepalive_plan_on_learned(struct keepalive_plan *p, const struct endpoint *mapped, nsec_t now);

/**
 * keepalive_plan_finish() - after anything that may have ended a measurement
 *
 * Return: one has ended with a result, which is in @p->known now, to be kept and told.
 */
bool keepalive_plan_finish(struct keepalive_plan *p, nsec_t wall);

/** keepalive_plan_interval() - ns between two keepalives to the hub, in whole seconds. */
nsec_t keepalive_plan_interval(const struct keepalive_plan *p);

/** keepalive_plan_is_known() - the interval comes from a measurement. */
bool keepalive_plan_is_known(const struct keepalive_plan *p);

/**
 * keepalive_plan_describe() - what was measured, a clause
 *
 * "the NAT forgets a silent UDP mapping after about 28 s"
 */
void keepalive_plan_describe(const struct keepalive_plan *p, char buf[static KEEPALIVE_TEXT_MAX]);

/** keepalive_plan_why() - a clause that says why there is no result yet. */
const char *keepalive_plan_why(const struct keepalive_plan *p);
