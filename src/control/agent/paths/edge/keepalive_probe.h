/*
 * keepalive_probe.h - measures how long an idle UDP mapping towards the hub lives.
 *
 * It carries out keepalive_plan.h with two sockets: a spare one, which is new for
 * each trial, and a second one that asks the hub to answer at the spare one's
 * mapping. Neither carries anything else, so no path is at risk, and a measurement
 * costs a few dozen packets a day.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "agent/paths/edge/keepalive_plan.h"
#include "base/rng.h"
#include "wire/stun.h"

struct stun_socket;

/** Who is told; called from the loop. */
struct keepalive_listener {
    void (*on_result)(void *ctx);   /* a measurement has ended: plan.known is new */
    void (*on_interval)(void *ctx); /* keepalive_plan_interval() is another one */
    void *ctx;                      /* pinned */
};

struct keepalive_probe {
    struct keepalive_plan plan;
    struct keepalive_listener listener;
    uv_loop_t *loop; /* pins */
    uv_timer_t timer;
    bool has_timer;
    struct rng rng;             /* the kernel's */
    struct stun_socket *spare;  /* owns; NULL: none */
    struct stun_socket *second; /* owns; NULL: none */
    struct stun_transaction id; /* of the question that waits for its answer */
    nsec_t interval;            /* as it was last told */
};

/** keepalive_probe_init() - asks nothing yet. @known: the result of an earlier run; @loop: pinned.
 */
void keepalive_probe_init(struct keepalive_probe *p, uv_loop_t *loop,
    const struct keepalive_known *known, const struct keepalive_listener *listener);

/** keepalive_probe_stop() - its handles close in the loop's next turns. Idempotent. */
void keepalive_probe_stop(struct keepalive_probe *p);

/**
 * keepalive_probe_look() - as keepalive_plan_look(), and begin what is due
 * @view:	borrowed; its spread is ignored and drawn here
 * @n_nodes:	nodes of the network: so many may be behind the same NAT, and ask the same hub
 */
void keepalive_probe_look(
    struct keepalive_probe *p, const struct keepalive_view *view, size_t n_nodes);
