/*
 * agent_core.h - what an agent has, and what it does when: passes, polls, deadlines, its end.
 *
 * Theory of operation. An agent has parts, each with a small struct of its own. A part is given
 * facts, and returns what is to be done and when it has to be asked again. It knows neither the
 * agent nor its siblings. agent_core.c carries facts from part to part, in a pass (the interface,
 * its rates and its packet filter are made what the snapshot says) and in a poll (the engine is
 * asked what it sees, the hubs and the paths are evaluated by that, what was moved is counted, and
 * what is wrong is found, and the hubs get reports). Above it are agent_api.c, the node's socket,
 * with status.c, which tells of all of it, and agent.c, which starts and ends all of it and hands
 * over what comes from the loop.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/hub_set.h"
#include "agent/meter.h"
#include "agent/node_daily.h"
#include "agent/node_jobs.h"
#include "agent/node_keepalive.h"
#include "agent/node_machine.h"
#include "agent/node_measure.h"
#include "agent/node_metrics.h"
#include "agent/node_names.h"
#include "agent/node_uplink.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/filter_rules.h"
#include "agent/reconcile/observe.h"
#include "agent/reconcile/pass_plan.h"
#include "agent/reconcile/reconcile.h"
#include "agent/state/snapshot_cache.h"
#include "agent/state/state.h"
#include "agent/status.h"
#include "base/clock.h"
#include "health/finding.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"
#include "net/tun/offload.h"
#include "os/log.h"

struct cluster_writer;
struct server;

struct agent {
    const struct agent_config *config; /* borrowed from agent_run() */
    uv_loop_t loop;
    struct state state;         /* who this node is; immutable after the start */
    struct snapshot snapshot;   /* the network, as the hub described it last */
    struct snapshot hub_said;   /* with @cluster: what hubs say, of which reports are taken */
    bool knows_members;         /* since the start a hub or the cluster has said who they are */
    struct node_speeds speeds;  /* of this machine's ciphers; immutable after the start */
    struct node_fabric *fabric; /* owns; finds this machine's fabric; NULL: no memory */
    struct node_watch *watch;   /* owns; reads what its kernel counts; NULL: no memory */
    struct node_gpus *gpus;     /* owns; asks how its GPUs are; NULL: it is not to, or no memory */

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
    struct cluster_writer *edge_parts;  /* owns; NULL: the hub writes them */
    struct path_driver *paths;          /* owns */
    struct observe seen;                /* the peers, as of the last poll */
    struct reach reach;                 /* how each is reached, as of the last poll */
    struct findings findings;           /* what is wrong, as of the last poll */
    struct peer_suspects suspects;
    struct node_keepalive keepalive;
    struct resolver *resolver; /* owns; NULL: the node was told at its join to have none */
    struct node_names names;
    struct node_measure measure;
    struct node_daily daily;
    struct node_uplink uplink;
    struct node_meter meter;
    struct metrics_port metrics; /* where Prometheus asks */
    struct node_clock time;      /* is this machine's right? */
    struct node_copy copy;
    struct job_calls jobs;
    struct node_jobs running;

    struct offloads offloads; /* of the userspace engine, as it last said; read if @has_offloads */
    bool has_offloads;
    nsec_t begun_at; /* monotonic; this agent's start */

    /* A fact of both: a poll asks the engine for it, and a pass that fails forgets it. */
    uint16_t listen_port; /* the engine's, host order; 0: not known yet */

    /* Of passes; written by agent_core_pass() alone. */
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
        .metrics = METRICS_PORT_NULL,                                                              \
    }

/** Delay of what follows an event, so that a burst of events has one consequence. */
#define AGENT_CORE_SOON (5 * NSEC_PER_MSEC)

/** agent_core_find_link() - a job_calls_find_fn. @ctx: the agent. */
struct hub_link *agent_core_find_link(void *ctx, const char *name);

/*
 * What the agent does when one of its parts tells it something (agent.c). The ctx that the owner
 * sets is the agent; of what hubs say it is the hub then, as hub_set.h has it.
 */
extern const struct hub_link_listener agent_hub_listener;
extern const struct path_driver_listener agent_path_listener;
extern const struct cluster_listener agent_cluster_listener;

/** agent_on_keepalive() - a keepalive_fn. @ctx: the agent. */
void agent_on_keepalive(void *ctx, bool is_measured, bool is_other);

/** agent_core_take_hubs() - use the hubs of the snapshot; part of each pass, and of the start. 0 or
 * negative errno with words. */
int agent_core_take_hubs(struct agent *a, struct err *e);

/** agent_core_on_hub_forgot() - the hub was started anew and has to see a handshake of each edge
 * that it relays. */
void agent_core_on_hub_forgot(struct agent *a, nsec_t now);

/** agent_core_render_input() - snapshot and paths as they are now; borrowed until the next call. */
struct render_input agent_core_render_input(struct agent *a);

/** agent_core_see_offloads() - ask the engine which of its offloads are on. */
void agent_core_see_offloads(struct agent *a);

/** agent_core_status_input() - what is known at @now, of which a status is made, and what is found;
 * borrows @render, and all of @a until it changes. */
struct status_input agent_core_status_input(
    struct agent *a, const struct render_input *render, nsec_t now);

/** agent_core_pass() - make a pass now, and plan the next. */
void agent_core_pass(struct agent *a);

/** agent_core_poll() - poll now, and plan the next. */
void agent_core_poll(struct agent *a);

/** agent_core_due() - the earliest deadline of all parts; NSEC_NEVER: there is none. */
nsec_t agent_core_due(const struct agent *a);

/** agent_core_run() - do what is due at @now. */
void agent_core_run(struct agent *a, nsec_t now);

/**
 * agent_core_take_down() - remove the interface and the names, not what has been joined
 * @names:	why the names could not be taken away; code 0: they were
 *
 * Return: 0 or negative errno with words.
 */
int agent_core_take_down(struct agent *a, struct err *names, struct err *e);

/**
 * agent_core_renew_engine() - replace the data plane's process by the program that is installed now
 *
 * Return: 0; ENGINE_E_UNSUPPORTED with words: there is no process; or negative errno with words.
 */
int agent_core_renew_engine(struct agent *a, struct err *e);

/** agent_core_finish() - begin to end. The first call decides how; later ones change nothing. */
void agent_core_finish(struct agent *a, enum agent_end end);

/**
 * agent_api_open() - listen on the node's own socket, where `weft status`, `weft run` and `weft
 * leave` ask; and soon, where it is wanted, at the port for Prometheus (agent_api.c)
 * @ret:	gives; also after a failure, if it is not NULL then
 * @a:		pinned
 *
 * Return: 0 or negative errno with words.
 */
int agent_api_open(struct server **ret, struct agent *a, struct err *e);
