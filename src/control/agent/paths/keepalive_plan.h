/*
 * keepalive_plan.h - when the idle time of the way to the hub is measured, and what follows.
 *
 * Theory of operation. path/keepalive.h measures once. Here is when: as soon as
 * there is a session with the hub by UDP, again when this node is seen at another
 * address (another NAT), and each day, since a NAT's settings change without
 * anybody telling. What was measured holds until something else was, or until the
 * address changes; then, and at first, it is NETWORK_KEEPALIVE_UNKNOWN. While it
 * is measured again and a mapping turns out to live shorter than was thought, the
 * interval goes down at once, and up only at the end.
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

/** No two measurements begin closer together than this, but for the first after a start. */
#define KEEPALIVE_PLAN_GAP (600 * NSEC_PER_SEC)

/** And so often at least. */
#define KEEPALIVE_PLAN_PERIOD (24 * 3600 * NSEC_PER_SEC)

/** Room for a sentence, with its zero. */
#define KEEPALIVE_TEXT_MAX 240

/** What a measurement has shown, as it is kept on disk. */
struct keepalive_known {
    struct keepalive_bounds bounds; /* KEEPALIVE_UNKNOWN: nothing */
    struct ip_addr outside;         /* at which address the hub saw this node then */
    nsec_t measured_at;             /* since 1970; 0: never */
};

#define KEEPALIVE_KNOWN_NULL                                                                       \
    {                                                                                              \
        .bounds = {.dies = NSEC_NEVER }                                                            \
    }

/** What the agent sees. */
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
    struct keepalive_view view; /* the last one */
    struct ip_addr learned;     /* the spare mapping's address; none: not learned yet */
    nsec_t begun;               /* when a measurement last was; 0: never */
};

/** keepalive_plan_init() - @known: from an earlier run. */
void keepalive_plan_init(struct keepalive_plan *p, const struct keepalive_known *known);

/** keepalive_plan_look() - at least every few seconds: begin or end a measurement. */
void keepalive_plan_look(struct keepalive_plan *p, const struct keepalive_view *view);

/** keepalive_plan_on_learned() - as keepalive_on_learned(); @mapped: where the hub sees it. */
void keepalive_plan_on_learned(struct keepalive_plan *p, const struct endpoint *mapped, nsec_t now);

/**
 * keepalive_plan_finish() - after anything that may have ended a measurement
 *
 * Return: one has ended with a result, which is in @p->known now, to be kept and told.
 */
bool keepalive_plan_finish(struct keepalive_plan *p, nsec_t wall);

/** keepalive_plan_interval() - what the way to the hub needs, as far as is known; whole seconds. */
nsec_t keepalive_plan_interval(const struct keepalive_plan *p);

/** keepalive_plan_is_known() - it comes from a measurement. */
bool keepalive_plan_is_known(const struct keepalive_plan *p);

/**
 * keepalive_plan_describe() - what was measured, a clause
 *
 * "the NAT forgets a silent UDP mapping after about 28 s"
 */
void keepalive_plan_describe(const struct keepalive_plan *p, char buf[static KEEPALIVE_TEXT_MAX]);

/** keepalive_plan_why() - why nothing is known, a clause. */
const char *keepalive_plan_why(const struct keepalive_plan *p);
