/*
 * node_metrics.h - a node's figures for Prometheus: the port where they are asked for, and those of
 * the node's peers.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "mesh/render/render.h"

struct err;
struct metrics;
struct observe;
struct reach;
struct request;
struct response;
struct server;
struct server_config;

/* ---- the port -------------------------------------------------------------------------------- */

/*
 * Where the agent, or the probe, answers GET /metrics (server_listen_metrics()), over plain HTTP
 * or, if the server has a key, in TLS.
 *
 * The word "overlay" stands for the node's overlay address; there only members of the network are
 * answered. At another address everybody is who reaches it. An address may not be there yet, as the
 * overlay's before the interface: the port is tried again until it opens, and that it does not is
 * logged once.
 */

/* The first has Prometheus' list of ports for exporters of WireGuard. */
#define METRICS_PORT_AGENT 9586
#define METRICS_PORT_PROBE 9587

/* Lower ones take a privilege that neither process has. */
#define METRICS_PORT_MIN 1024

/** What --metrics names. All zero: nothing. */
struct metrics_place {
    struct endpoint at; /* of @is_overlay only the port counts; port 0: nowhere */
    bool is_overlay;
    const char *tls_dir; /* that has tls.key and tls.crt, borrowed; NULL: plain HTTP */
};

/**
 * metrics_place_parse() - "ADDRESS", "ADDRESS:PORT", "overlay" or "overlay:PORT"
 * @port:	where the text has none
 *
 * Return: 0; or -EINVAL with words.
 */
int metrics_place_parse(struct metrics_place *ret, const char *text, uint16_t port, struct err *e);

/**
 * metrics_place_server() - server_new(), with the key of the place
 * @config:	identity NULL
 *
 * Key and certificate are made where they are missing, as identity_open() does.
 *
 * Return: 0 or negative errno with words.
 */
int metrics_place_server(struct server **ret, const struct metrics_place *place,
    const struct server_config *config, struct err *e);

struct metrics_port {
    struct server *server;       /* pins: has the rows for API_ACCESS_METRICS */
    struct endpoint at;          /* port 0: nowhere */
    bool is_tls;                 /* it speaks TLS */
    bool is_overlay;             /* only members of the network are answered */
    struct ip_prefix members[2]; /* with @is_overlay: their blocks, v4 and v6 */
    struct ip_addr own;          /* the node's overlay address */
    nsec_t due_at;               /* when it is to be opened; NSEC_NEVER: it is, or is not wanted */
    bool is_open;
    bool has_failed; /* it was logged that it does not open */
};

#define METRICS_PORT_NULL {.due_at = NSEC_NEVER}

/** metrics_port_init() - it is to be opened at once, unless @place is nowhere. @server: pinned. @s:
 * borrowed. */
void metrics_port_init(struct metrics_port *p, const struct metrics_place *place,
    struct server *server, const struct snapshot *s);

/** metrics_port_open() - if it is due. Return: it has just opened. */
bool metrics_port_open(struct metrics_port *p, nsec_t now);

/** metrics_port_admits() - may it be asked from there? If not, @rs has the answer. */
bool metrics_port_admits(
    const struct metrics_port *p, const struct request *rq, struct response *rs);

/** metrics_port_overlay() - the port at which it answers at the overlay address; 0: at none. */
uint16_t metrics_port_overlay(const struct metrics_port *p);

/* ---- peers ----------------------------------------------------------------------------------- */

/** Most peers of which something is told: each is a dozen lines. */
#define NODE_METRICS_PEERS_MAX 2000

/** What is known of the peers. Borrowed. */
struct node_metrics_facts {
    const struct render_input *render;
    const struct observe *seen; /* what the engine says of each peer */
    const struct reach *reach;  /* how each is reached */
    nsec_t now;                 /* monotonic */
    nsec_t wall;                /* ns since 1970 */
};

/**
 * node_metrics_add_peers() - add the METRIC_AGENT_PEER... to @m
 *
 * Of a peer without any handshake there is nothing to tell, unless a person should look at it. One
 * that does not answer has no path, round trip, loss or MTU.
 *
 * Pure.
 */
void node_metrics_add_peers(struct metrics *m, const struct node_metrics_facts *facts);

struct gpu_watch;

/**
 * node_metrics_add_gpus() - add the METRIC_AGENT_GPU... to @m
 * @gpus:	NULL: nothing is known
 * @at:		s since 1970
 *
 * Of a driver that does not answer now nothing is told but faults that it has reported.
 *
 * Pure.
 */
void node_metrics_add_gpus(struct metrics *m, const struct gpu_watch *gpus, int64_t at);
