/*
 * agent_parts.h - what an agent has: its parts, each with a small struct of its own, and the facts
 * that pass between them.
 *
 * Theory of operation. A part is given facts, and returns what it wishes and when it has to be
 * asked again. It knows neither the agent nor its siblings. Five modules carry facts from part to
 * part and do what is wished, each using only those before it: agent_hubs.h (which hubs there are),
 * agent_handshakes.h, agent_pass.h (the interface is made what the snapshot says), agent_poll.h
 * (the engine is asked what it sees, and the hub, the paths and what there is to report are judged
 * by that), agent_core.h (what is due, and the end). Above them are agent_api.h, the node's socket,
 * and agent.c, which starts and ends all of it and hands over what comes from the loop.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/cluster/cluster_watch.h"
#include "agent/hub_set.h"
#include "agent/hublink/job_calls.h"
#include "agent/node_clock.h"
#include "agent/node_copy.h"
#include "agent/node_jobs.h"
#include "agent/node_keepalive.h"
#include "agent/node_measure.h"
#include "agent/node_meter.h"
#include "agent/node_names.h"
#include "agent/paths/edge/path_driver.h"
#include "agent/paths/edge/reach.h"
#include "agent/peer_doubt.h"
#include "agent/reconcile/class_marks.h"
#include "agent/reconcile/forward_rules.h"
#include "agent/reconcile/observe.h"
#include "agent/reconcile/pass_metrics.h"
#include "agent/reconcile/pass_plan.h"
#include "agent/reconcile/poll_plan.h"
#include "agent/reconcile/reconcile.h"
#include "agent/state/snapshot_cache.h"
#include "agent/state/state.h"
#include "agent/status_cluster.h"
#include "mesh/snapshot/snapshot.h"
#include "os/log.h"

struct node_fabric;
struct resolver;

struct agent {
    const struct agent_config *config; /* borrowed from agent_run() */
    uv_loop_t loop;
    struct state state;         /* who this node is; immutable after the start */
    struct snapshot snapshot;   /* the network, as the hub described it last */
    struct snapshot hub_said;   /* with @cluster: what hubs say, of which reports are taken */
    struct node_speeds speeds;  /* of this machine's ciphers; immutable after the start */
    struct node_fabric *fabric; /* owns; finds this machine's fabric; NULL: no memory */

    /* The clocks; immutable. They are functions because a call to the engine or to the kernel may
     * take seconds, and because a test has its own. */
    nsec_t (*clock)(void);      /* monotonic */
    nsec_t (*wall_clock)(void); /* nanoseconds since 1970 */

    /* The parts. Each is written by its own functions alone. */
    struct snapshot_cache cache;
    struct pass_plan pass;
    struct pass_metrics pass_metrics;
    struct poll_plan poll;
    struct reconcile reconcile;
    struct forward_rules rules;
    struct class_marks marks;
    struct hub_set hubs;
    struct cluster_watch *cluster;      /* owns; NULL: hubs say who is in the network */
    struct status_cluster cluster_seen; /* with @cluster: does it answer? */
    struct path_driver *paths;          /* owns */
    struct observe seen;                /* the peers, as of the last poll */
    struct reach reach;                 /* how each is reached, as of the last poll */
    struct peer_doubt doubt;
    struct node_keepalive keepalive;
    struct resolver *resolver; /* owns; NULL: the node was told at its join to have none */
    struct node_names names;
    struct node_measure measure;
    struct node_meter meter;
    struct node_clock time; /* is this machine's right? */
    struct node_copy copy;
    struct job_calls jobs;
    struct node_jobs running;

    /* A fact of both: a poll asks the engine for it, and a pass that fails forgets it. */
    uint16_t listen_port; /* the engine's, host order; 0: not known yet */

    /* Of passes; written by agent_pass.c alone. */
    uint16_t link_mtu; /* inner bytes that the machine's largest link carries; 0: not known */
    uint64_t applied;  /* revision of the last pass that succeeded; 0: none did */
    struct render_path *routes; /* owns: the hub's path and those that were found, by node */
    struct log_limit pass_limit;
    struct log_limit foreign_limit;
    struct log_limit mended_limit;
    char rates_why[ENGINE_WHY_MAX]; /* as it was logged last; "": rates are kept, or none is wanted
                                     */
    nsec_t foreign_at; /* monotonic; when a foreign peer was removed last; 0: none was */

    /* The end; written by agent_core_finish() alone. */
    bool is_ending; /* @end is set, and nothing new is begun */
    enum agent_end end;
    nsec_t ends_at; /* time after which no answer in flight is waited for */
};

/**
 * AGENT_NULL - an agent that has nothing yet
 *
 * For a start: @config and the two clocks have to be set, and what follows in agent.c's order.
 */
#define AGENT_NULL                                                                                 \
    {                                                                                              \
        .cache = {.due_at = NSEC_NEVER}, .pass = PASS_PLAN_NULL, .poll = POLL_PLAN_NULL,           \
        .reconcile = RECONCILE_NULL, .hubs = HUB_SET_NULL, .names = {.due_at = NSEC_NEVER},        \
    }
