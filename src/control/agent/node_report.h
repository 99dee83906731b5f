/*
 * node_report.h - what this node reports to the hub, and when: PUT /v1/status.
 *
 * A report is due each minute. It is due five seconds after the last one when the path to a peer
 * has changed, or something else is found to be wrong. It is due a fifth of a second after the last
 * one when this node's own addresses have changed, because peers wait for that, or when one report
 * could not hold everything.
 *
 * A report holds what differs from what the hub has (monitor/edge_report.h). An older hub replaces
 * all it has by each report, so it gets as much of everything as fits into one.
 *
 * Pure: facts and times in, JSON out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "health/finding.h"
#include "monitor/edge_report.h"
#include "path/keepalive.h"

struct machine_watch;

struct node_report {
    nsec_t sent_at;     /* time of the last report; 0: none, or one is due at once */
    bool edges_changed; /* since then: the path to a peer, which edges can be applied, or what is
                           found */
    bool self_changed;  /* since then: the addresses at which this node can be reached */
    bool is_old_hub;    /* the hub is an older one: each report has to hold everything */
    struct edge_report edges;
    json_t *found_reported; /* owns a reference; the findings of the last report; NULL: none was */
    uint64_t traffic_reported; /* number of the last flow that the hub took (meter.h) */
    uint64_t traffic_sent;     /* and of the last in the report being sent; 0: none is in it */
    uint64_t daily_reported;   /* the same of the samples of node_daily.h */
    uint64_t daily_sent;
    json_t
        *node_reported; /* owns a reference; what was reported of the node; NULL: to be reported */
};

/** The facts from which a report is made. Borrowed. */
struct node_report_facts {
    const struct snapshot *snapshot;
    const struct observe *seen;           /* what the engine has seen of each peer */
    const struct reach *reach;            /* how each peer is reached */
    const struct path_side *self;         /* where this node may be reached */
    const struct subnets *routes;         /* subnets that this node asks to be the way to */
    const struct node_speeds *speeds;     /* of this machine's ciphers */
    const struct fabric_report *fabric;   /* NULL: none worth telling, or not known yet */
    const struct relay_line_report *line; /* NULL: it does not relay, or nothing is known of it */
    const struct meter *meter;            /* NULL: the hub is not told what moves */
    const char *rates_why;                /* why rates are not kept; "": they are, or none wanted */
    const char *hostname;                 /* of this machine; NULL: not to be told */
    const struct findings *findings;      /* NULL: nothing is known to be wrong */
    const json_t *machine;                /* on which this agent runs; NULL: not to be told */
    const struct machine_watch *counts;   /* what its kernel counts; NULL: not read yet */
    uint16_t metrics_port; /* where Prometheus asks, at the overlay address; 0: nowhere there */
    const struct node_daily *daily;     /* what lines carry; NULL: not to be told */
    const struct uplink_report *uplink; /* what is known of the uplink; NULL: not to be told */
    const struct keepalive_bounds *nat; /* what was measured of the NAT; NULL: nothing yet */
    bool is_natted;                     /* there is one between this node and the hub */
    enum engine_kind engine;            /* AUTO: none runs */
    uint64_t applied;                   /* revision of the last pass that succeeded; 0: none did */
    const char *fault;                  /* why the last pass failed; "": it did not */
    nsec_t now;                         /* monotonic */
    int64_t wall_s;                     /* since 1970 */
};

/** node_report_init() - nothing was reported yet. @run: a random number, not 0. */
void node_report_init(struct node_report *nr, uint64_t run);

/** node_report_deinit() - idempotent. */
void node_report_deinit(struct node_report *nr);

/** node_report_on_hub() - the hub answers again and may be another one: report everything anew. */
void node_report_on_hub(struct node_report *nr);

/** node_report_on_findings() - what is found may be something else than what was reported. */
void node_report_on_findings(struct node_report *nr, const struct node_report_facts *facts);

/** node_report_has_changes() - is there something that is not reported yet? */
bool node_report_has_changes(const struct node_report *nr);

/** node_report_within() - how soon to call node_report_is_due() again, ns; NSEC_NEVER: no limit. */
nsec_t node_report_within(const struct node_report *nr);

/** node_report_is_due() - is a report due at @now? */
bool node_report_is_due(const struct node_report *nr, nsec_t now);

/**
 * node_report_encode() - the body of the next report
 *
 * Its content counts as being sent until node_report_on_result().
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *node_report_encode(struct node_report *nr, const struct node_report_facts *facts);

/**
 * node_report_parts() - this node's part of each of its edges, as its MeshEdge shows it
 * @asked_for:	gives {"PEER": true}, of whom a MeshEdge says something
 *
 * Return: {"PEER": {...}}, a new reference as the other one; NULL, and the other one too: no
 * memory.
 */
json_t *node_report_parts(const struct node_report_facts *facts, json_t **asked_for);

/** node_report_on_sent() - a report was sent at @now. */
void node_report_on_sent(struct node_report *nr, nsec_t now);

/** node_report_on_result() - the result of the report that was sent is known. */
void node_report_on_result(struct node_report *nr, enum edge_report_result result);

/**
 * node_report_hostname() - is this a host name that other nodes may have in their hosts file?
 * @host:	as gethostname() has it; made lower case
 * @self:	the node's name
 *
 * Programs of this machine announce themselves by its host name. A name with a domain is not for
 * others to have in their hosts file, and the node's own name is told already.
 *
 * Return: true if it is to be told.
 */
bool node_report_hostname(char *host, const char *self);
