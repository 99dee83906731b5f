/*
 * agent_internal.h - the agent's parts: agent.c, agent_look.c, agent_door.c,
 * agent_jobs.c, agent_keepalive.c, agent_measure.c, agent_names.c,
 * agent_routes.c.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/finder.h"
#include "agent/hub_link.h"
#include "agent/hub_path.h"
#include "agent/hub_ways.h"
#include "agent/keepalive_probe.h"
#include "agent/hub_transport.h"
#include "agent/observe.h"
#include "agent/reach.h"
#include "agent/reconcile.h"
#include "agent/save_plan.h"
#include "agent/state.h"
#include "agent/status_routes.h"
#include "api/server.h"
#include "base/list.h"
#include "os/log.h"
#include "net/link_watch.h"
#include "wire/member_proof.h"

/* When something is to be done at last; NSEC_NEVER when there is nothing. */
struct agent_deadlines {
    nsec_t reconcile; /* the next pass */
    nsec_t observe;   /* ask the engine */
    nsec_t save;      /* write the snapshot */
    nsec_t names;     /* write the hosts file */
};

struct name_check;
struct measure_host;

struct agent {
    const struct agent_config *config; /* borrowed from agent_run() */
    uv_loop_t loop;
    struct state state;        /* who this node is */
    struct snapshot snapshot;  /* what the hub last said */
    struct node_speeds speeds; /* of this machine, measured at the start */
    struct save_plan saving;   /* of the snapshot */
    bool cache_is_damaged;     /* snapshot.json does not parse, and is left alone */
    int lock_fd;               /* owns; -1: none */

    struct reconcile reconcile;
    nsec_t clamped;                /* when the rules of mss_clamp.h were last put; 0: never */
    bool cannot_clamp;             /* and that was said */
    nsec_t guarded;                /* when the rules of route_guard.h were last put; 0: never */
    struct subnets guarded_routes; /* for these */
    bool was_way;                  /* they were put, and not removed, for this node was a way */
    bool is_unguarded;             /* there are none of those rules */
    struct err guard_fault;        /* why they could not be put; no words: they could */
    uint16_t link_mtu; /* inner bytes that the machine's largest link carries; 0: not known */
    nsec_t retry;      /* how long after a pass that failed the next one comes */
    nsec_t held_until; /* no pass before, whatever happens: the engine cannot be had */
    struct err fault;  /* why the last pass failed; no words: it did not */
    struct hub_ways hub_ways;
    struct hub_path hub_path;
    bool greets_hub; /* it has another endpoint: begin a handshake once the engine knows it */
    bool hub_moved;  /* and none has come about since */
    struct hub_transport transport;
    struct render_path hub_route; /* where the hub is for WireGuard: by one of the two */
    uint16_t listen_port;         /* the engine's; 0: not known yet */
    nsec_t no_session;            /* since when there is none with the hub; 0: there is one */
    struct observe seen;
    nsec_t looked;      /* when the engine was looked at last; 0: never */
    uint64_t n_packets; /* that had passed through the interface by then */
    bool is_stirred;    /* something has happened since then */
    struct reach reach;
    struct finder *finder; /* owns */
    struct keepalive_probe keepalive;
    bool keepalive_is_damaged;  /* keepalive.json does not parse, and is left alone */
    struct render_path *routes; /* owns: the hub's path and those that were found, sorted by node */

    struct member_proof_signer signer; /* with this node's key, for the hub */
    struct hub_link *hub;              /* owns */
    struct server *server;             /* owns; the node's own socket */
    struct name_check *names;          /* owns; NULL: no thread could be had, or none is needed */
    json_t *names_left_out;            /* owns; as the status has it; NULL: not known yet */
    struct measure_host *measure;      /* owns; NULL: no measuring service is offered */
    char measure_path[PATH_MAX];       /* its unix socket */
    struct link_watch link;
    uv_poll_t link_poll; /* of link.fd; initialised while that is open */
    uv_timer_t timer;    /* the earliest of the deadlines */
    uv_signal_t signals[2];
    struct list job_calls; /* of agent_jobs.c, oldest first */
    struct agent_deadlines due;

    bool is_ending; /* @end is set, and nothing new is begun */
    enum agent_end end;
    nsec_t end_by;      /* no waiting for answers in flight after this */
    nsec_t reported;    /* when the hub was last told; 0: never */
    bool paths_changed; /* since then */
    bool self_changed;  /* since then: where this node may be reached */
    struct log_limit reconcile_limit;
    struct log_limit doubt_limit;
    struct log_limit save_limit;
    struct log_limit names_limit;
};

/** agent__render_input() - snapshot and paths as they are now; borrowed. */
struct render_input agent__render_input(struct agent *a);

/** agent__schedule() - have @deadline at @at or earlier, and the timer run for it. */
void agent__schedule(struct agent *a, nsec_t *deadline, nsec_t at);

/** agent__reconcile() - one pass now; plans the next. */
void agent__reconcile(struct agent *a);

/** agent__look() - observe the engine, judge the hub and the paths, report if due. */
void agent__look(struct agent *a);

/** agent__start_keepalive() - with what an earlier run has measured. */
void agent__start_keepalive(struct agent *a);

/** agent__look_at_keepalive() - @has_session: with the hub. */
void agent__look_at_keepalive(struct agent *a, bool has_session, nsec_t now);

/** agent__keepalive() - what the way to the hub needs, as far as it is known; s. */
uint16_t agent__keepalive(const struct agent *a);

/** agent__glance() - the same, if there may be anything new to be seen. */
void agent__glance(struct agent *a);

/** agent__stir() - something has happened: look at @at, or earlier. */
void agent__stir(struct agent *a, nsec_t at);

/** agent__hub_answers() - by UDP at @from, while it is silent. */
void agent__hub_answers(struct agent *a, const struct endpoint *from);

/** agent__hub_forgot() - the hub was started anew: what it relays has to be shown to it again. */
void agent__hub_forgot(struct agent *a, nsec_t now);

/** agent__hub_api() - where the hub's API is on the overlay; port 0 when there is no hub. */
struct endpoint agent__hub_api(const struct agent *a);

/** agent__open_door() - the node's own socket. 0 or negative errno with words. */
int agent__open_door(struct agent *a, struct err *e);

/**
 * agent__jobs() and the others - a job's calls to the hub, for commands of this machine
 *
 * Handlers of agent_door.c's routes; the answer is the hub's.
 */
void agent__jobs(void *ctx, const struct request *rq, struct response *rs);
void agent__job_get(void *ctx, const struct request *rq, struct response *rs);
void agent__job_join(void *ctx, const struct request *rq, struct response *rs);
void agent__job_end(void *ctx, const struct request *rq, struct response *rs);

/** agent__name_nodes() - have the nodes' names in the hosts file; plans the next look. */
void agent__name_nodes(struct agent *a);

/** agent__forget_names() - take them out again. 0 or negative errno with words. */
int agent__forget_names(const struct agent *a, struct err *e);

/** agent__start_measuring() - offer the measuring service; a node may live without it. */
void agent__start_measuring(struct agent *a);

/** agent__tell_members() - who may ask it. */
void agent__tell_members(struct agent *a);

/** agent__stop_measuring() - idempotent. */
void agent__stop_measuring(struct agent *a);

/**
 * agent__take_down() - the interface and the names, not what has been joined
 * @names:	why the names could not be taken away; code 0: they were
 *
 * Return: 0 or negative errno with words.
 */
int agent__take_down(struct agent *a, struct err *names, struct err *e);

/**
 * agent__renew_engine() - the data plane's process by the program that is installed now
 *
 * Return: 0; ENGINE_E_UNSUPPORTED with words: there is no process; or negative errno with words.
 */
int agent__renew_engine(struct agent *a, struct err *e);

/** agent__guard_routes() - forward to the subnets behind this node, and to nothing else. */
void agent__guard_routes(struct agent *a, nsec_t now);

/** agent__status_routes() - borrowed. */
struct status_routes agent__status_routes(const struct agent *a);

/** agent__finish() - begin to end. */
void agent__finish(struct agent *a, enum agent_end end);
