/*
 * status.h - the node's status: as JSON, which is a contract, and as a table.
 *
 * The JSON is that of `weft status --json` and of the agent's socket; the table
 * is made from it. Fields are added, not renamed; what is not known is null.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/hublink/udp_asymmetry.h"
#include "agent/paths/edge/keepalive_plan.h"
#include "agent/paths/edge/path_driver.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "base/clock.h"
#include "mesh/render/render.h"

struct hub_set;
struct meter;
struct offloads;
struct status_cluster;
struct status_routes;
struct str;

/** Everything that a status tells of. Borrowed. */
struct status_input {
    const struct render_input *render; /* snapshot and paths */
    const struct observe *seen;
    const struct reach *reach;
    const char *interface;
    const char *engine;              /* "userspace" or "kernel"; NULL: none runs */
    const struct offloads *offloads; /* of the userspace engine; NULL: not known */
    const char *fault;               /* why the interface is not as it should be; "": it is */
    unsigned n_failed;               /* passes that have failed one after the other until now */
    nsec_t retry_at;                 /* monotonic; when the next one is, if the last has failed */
    uint64_t n_foreign;              /* peers that somebody else had added, and that were removed */
    struct x25519_public foreign;    /* the last of these */
    nsec_t foreign_at;               /* monotonic; when that was */
    const char *rates_why;           /* why rates are not kept; "" or NULL: they are, or none is
                                        wanted */
    const char *engine_why;          /* why that engine; "": it was asked for */
    const struct status_routes *routes;     /* NULL: not told */
    const struct fabric_report *fabric;     /* of this machine; NULL: none, or not known yet */
    const struct keepalive_plan *keepalive; /* NULL: nothing is measured */
    const json_t *names_left_out; /* of the hosts file: [{"name", "node", "why"}]; NULL: none */
    const struct meter *meter;    /* the jobs that run here; NULL: not told */
    const struct hub_set *hubs;   /* all hubs; NULL: not told */
    const struct status_cluster *cluster; /* NULL: hubs say who is in the network */
    bool hub_heard;                       /* the hub's stream of events is open and not silent */
    nsec_t hub_silent_for;                /* as hub_link_silent_for() says, ns */
    nsec_t hub_quiet_max;                 /* as hub_link_quiet_max() says, ns */
    const char *stream_why;            /* why packets to the hub go in TLS; NULL: they go by UDP */
    enum udp_asymmetry_kind asymmetry; /* which way UDP to the hub is broken */
    nsec_t now;                        /* monotonic */
    nsec_t wall;                       /* ns since 1970 */
};

/** status_encode() - the status as JSON: a new reference, NULL for no memory. */
json_t *status_encode(const struct status_input *in);

/**
 * status_encode_paths() - all that was tried to reach one node: `weft paths NODE`
 * @peer:	how it is reached
 *
 * Return: a new reference, NULL for no memory.
 */
json_t *status_encode_paths(const struct status_input *in, const struct path_driver *paths,
    const struct node *node, const struct reach_peer *peer);

/** status_format_paths() - what status_encode_paths() made, for people; appends to @out. */
void status_format_paths(const json_t *paths, struct str *out);

/**
 * status_format() - the status as a table for people
 * @status:	as status_encode() made it, perhaps in another version of this program
 * @out:	appended to
 */
void status_format(const json_t *status, struct str *out);
