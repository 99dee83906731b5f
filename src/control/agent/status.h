/*
 * status.h - the node's status as JSON, which is a contract.
 *
 * It is that of `weft status --json` and of the agent's socket; status_text.h makes of it what
 * people read. Fields are added, not renamed; what is not known is null.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/hublink/hub_transport.h"
#include "agent/paths/edge/keepalive_probe.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "base/clock.h"
#include "base/err.h"
#include "mesh/render/render.h"

/** What is known of the cluster's API: does it say who is in the network? All zero but @since: it
 * has not answered yet. */
struct status_cluster {
    bool is_heard;  /* it answers */
    nsec_t since;   /* monotonic; so it is since then */
    struct err why; /* why it does not; no words: nothing has failed yet */
};

/** status_cluster_set() - it answers now, or does not, for the reason @why. */
void status_cluster_set(struct status_cluster *c, bool heard, const char *why, nsec_t now);

/** What is told of subnets: those that this node reaches, and those behind it. Borrowed. */
struct status_routes {
    const struct subnet_routes *others; /* behind other nodes */
    const struct node *self;            /* with what the hub admits */
    const struct subnets *asked;        /* what this node asks for */
    int forwards4;                      /* IPv4; as interface_setting() says */
    int forwards6;
    bool masquerades;
    const char *guard_fault; /* why the rules of route_guard_format() are not there; "": they are */
};

/** status_routes_encode() - subnets behind others: [{"route", "node", "used", "why"}]. */
json_t *status_routes_encode(const struct status_routes *in);

/** status_routes_encode_own() - those behind this node: [{"route", "admitted", "masquerade",
 * "why"}]. */
json_t *status_routes_encode_own(const struct status_routes *in);

/** Everything that a status tells of. Borrowed. */
struct status_input {
    const struct render_input *render; /* snapshot and paths */
    const struct observe *seen;
    const struct reach *reach;
    const struct reconcile *made;           /* the interface, and what passes have undone */
    const struct pass_plan *pass;           /* how the last pass went, and when the next one is */
    const struct node_names *names;         /* of the hosts file */
    const struct node_clock *clock;         /* what is wrong with this machine's */
    const char *engine;                     /* "userspace" or "kernel"; NULL: none runs */
    const struct offloads *offloads;        /* of the userspace engine; NULL: not known */
    nsec_t foreign_at;                      /* monotonic; when the last foreign peer was removed */
    const struct status_routes *routes;     /* NULL: not told */
    const struct fabric_report *fabric;     /* of this machine; NULL: none, or not known yet */
    const struct keepalive_plan *keepalive; /* NULL: nothing is measured */
    struct resolver *resolver;              /* answers for the names by DNS; NULL: none */
    const char *copy_why;       /* another machine is this node, too, and what to do; "" or
                                   NULL: none is */
    const struct meter *meter;  /* the jobs that run here; NULL: not told */
    const struct hub_set *hubs; /* all hubs; NULL: not told */
    const struct status_cluster *cluster; /* NULL: hubs say who is in the network */
    bool hub_heard;                       /* the hub's stream of events is open and not silent */
    nsec_t hub_silent_for;                /* as hub_link_silent_for() says, ns */
    nsec_t hub_quiet_max;                 /* as hub_link_quiet_max() says, ns */
    uint64_t hub_store_behind_s;          /* as hub_link_store_behind_s() says */
    const char *stream_why;            /* why packets to the hub go in TLS; NULL: they go by UDP */
    const char *tls_failure;           /* why they do not although UDP fails; NULL: nothing known */
    enum udp_asymmetry_kind asymmetry; /* which way UDP to the hub is broken */
    nsec_t now;                        /* monotonic */
    nsec_t wall;                       /* ns since 1970 */
};

/** status_encode() - the status as JSON: a new reference, NULL for no memory. */
json_t *status_encode(const struct status_input *in);

/** What is told of the paths to one node, for `weft paths NODE`. Borrowed. */
struct status_paths {
    const struct path_driver *paths;
    const struct node *node;       /* that one */
    const struct reach_peer *peer; /* how it is reached */
    uint64_t rate;                 /* what is sent to it is kept to so many bit/s; 0: to none */
    nsec_t now;                    /* monotonic */
};

/** status_paths_encode() - all that was tried to reach it, as JSON, which is a contract, too. */
json_t *status_paths_encode(const struct status_paths *in);
