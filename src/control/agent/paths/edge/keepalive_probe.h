/*
 * keepalive_probe.h - measures how long an idle UDP mapping towards the hub lives, and says which
 * keepalive interval follows.
 *
 * Theory of operation. path/keepalive.h makes one measurement. The plan begins one
 * as soon as there is a session with the hub by UDP, again when the hub sees this
 * node at another address (so it is behind another NAT), and once a day, since a
 * NAT's settings may change without notice. A result holds until the next one, or
 * until the address changes. Before the first, and after such a change, the
 * interval is NETWORK_KEEPALIVE_UNKNOWN. When a measurement finds that a mapping
 * lives shorter than was thought, the interval is lowered at once; it is raised
 * only at the end of a measurement.
 *
 * The plan is pure: views and times in; actions of the machine, an interval and words out. The
 * probe carries it out with two sockets: a spare one, which is new for each trial, and a second one
 * that asks the hub to answer at the spare one's mapping. Neither carries anything else, so no path
 * is at risk, and a measurement costs a few dozen packets a day.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/secret.h"
#include "path/keepalive.h"
#include "wire/stun.h"

/** Bytes of a clause of keepalive_plan_describe(), with its zero. */
#define KEEPALIVE_TEXT_MAX 240

/** The result of a measurement, as it is kept on disk. */
struct keepalive_known {
    struct keepalive_bounds bounds; /* KEEPALIVE_UNKNOWN: nothing */
    struct ip_addr outside;         /* at which address the hub saw this node then */
    nsec_t measured_at;             /* since 1970; 0: never */
};

#define KEEPALIVE_KNOWN_NULL {.bounds = KEEPALIVE_UNKNOWN}

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
    struct ip_addr learned;     /* the spare mapping's address, as it was told last */
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

/* ---- the probe ------------------------------------------------------------------------------- */

/**
 * keepalive_fn - called from the loop
 * @is_measured:	a measurement has ended: plan.known is new
 * @is_other:	keepalive_plan_interval() is another one
 */
typedef void (*keepalive_fn)(void *ctx, bool is_measured, bool is_other);

struct keepalive_probe {
    struct keepalive_plan plan;
    keepalive_fn fn;
    void *ctx;       /* pinned; for @fn */
    uv_loop_t *loop; /* pins */
    uv_timer_t timer;
    bool has_timer;
    struct rng rng;              /* the kernel's */
    struct stun_socket *spare;   /* owns; NULL: none */
    struct stun_socket *second;  /* owns; NULL: none */
    struct stun_transaction id;  /* of the question that waits for its answer */
    struct stun_transaction own; /* of that which the second socket asks for itself */
    nsec_t interval;             /* as it was last told */
};

/** keepalive_probe_init() - asks nothing yet. @known: the result of an earlier run; @loop: pinned.
 */
void keepalive_probe_init(struct keepalive_probe *p, uv_loop_t *loop,
    const struct keepalive_known *known, keepalive_fn fn, void *ctx);

/** keepalive_probe_stop() - its handles close in the loop's next turns. Idempotent. */
void keepalive_probe_stop(struct keepalive_probe *p);

/**
 * keepalive_probe_look() - as keepalive_plan_look(), and begin what is due
 * @view:	borrowed; its spread is ignored and drawn here
 * @n_nodes:	nodes of the network: so many may be behind the same NAT, and ask the same hub
 */
void keepalive_probe_look(
    struct keepalive_probe *p, const struct keepalive_view *view, size_t n_nodes);
