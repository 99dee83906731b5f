/*
 * node_report.h - what this node reports to the hub, and when: PUT /v1/status.
 *
 * A report is due each minute; five seconds after the last one when the way to a peer has changed;
 * and a fifth of a second after the last one when this node may be reached elsewhere, because peers
 * wait for that, or when there is more to say than one report holds.
 *
 * Theory of operation. A report says what is different from what the hub has. For each edge there
 * is a struct told_edge: what was said of it last, and whether the hub is known to have it. What is
 * in a report whose answer is lost is said again. The hub asks for all anew when it lacks a report
 * (docs/EDGES.md); an older hub takes each report for all that there is, and is told so much of it
 * as has room.
 *
 * Pure: facts and times in, JSON out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "mesh/object/object.h"

struct observe;
struct path_side;
struct reach;
struct snapshot;
struct subnets;

struct told_edge;

/** What becomes of a report. */
enum node_report_result {
    NODE_REPORT_TAKEN,
    NODE_REPORT_WHOLE, /* by an older hub, to which each report is all that there is */
    NODE_REPORT_AGAIN, /* the hub lacks one before this: all has to be said anew */
    NODE_REPORT_LOST,  /* it is not known whether the hub has it */
};

struct node_report {
    nsec_t sent_at;     /* time of the last report; 0: none, or one is due at once */
    bool edges_changed; /* since then, the way to a peer, or what could be applied */
    bool self_changed;  /* since then, where this node may be reached */
    bool has_more;      /* one report did not hold all */

    uint64_t run;           /* of this agent, another one each time; not 0 */
    uint64_t number;        /* of the last report that the hub took */
    bool begins;            /* the next report has to begin anew */
    bool is_anew;           /* all is being said anew, and not all of it has been taken */
    bool ends;              /* the report on its way has the last of it */
    bool is_old_hub;        /* each report has to be all that there is */
    struct told_edge *told; /* owns; sorted by node */
    size_t n_told;
    json_t *node_told; /* owns a reference; what was said of the node; NULL: to be said */
};

/** What a report tells of. Borrowed. */
struct node_report_facts {
    const struct snapshot *snapshot;
    const struct observe *seen;       /* what the engine has seen of each peer */
    const struct reach *reach;        /* how each peer is reached */
    const struct path_side *self;     /* where this node may be reached */
    const struct subnets *routes;     /* subnets that this node asks to be the way to */
    const struct node_speeds *speeds; /* of this machine's ciphers */
    const char *hostname;             /* of this machine; NULL: not to be told */
    enum engine_kind engine;          /* AUTO: none runs */
    uint64_t applied;                 /* revision of the last pass that succeeded; 0: none did */
    const char *fault;                /* why the last pass failed; "": it did not */
    nsec_t now;                       /* monotonic */
};

/** node_report_init() - nothing was told. @run: another one than ever before; not 0. */
void node_report_init(struct node_report *nr, uint64_t run);

/** node_report_deinit() - idempotent. */
void node_report_deinit(struct node_report *nr);

/** node_report_on_hub() - the hub answers again, and may be another one: all is said anew. */
void node_report_on_hub(struct node_report *nr);

/** node_report_on_self() - this node may be reached elsewhere. */
void node_report_on_self(struct node_report *nr);

/** node_report_on_edges() - the way to some peer has changed, or what could be applied. */
void node_report_on_edges(struct node_report *nr);

/** node_report_has_news() - is there something that is not reported yet? */
bool node_report_has_news(const struct node_report *nr);

/** node_report_within() - time after which it has to be asked again, ns; NSEC_NEVER: whenever. */
nsec_t node_report_within(const struct node_report *nr);

/** node_report_is_due() - is a report due at @now? */
bool node_report_is_due(const struct node_report *nr, nsec_t now);

/**
 * node_report_encode() - the body of the next report
 *
 * What it says counts as on its way until node_report_on_result().
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *node_report_encode(struct node_report *nr, const struct node_report_facts *facts);

/** node_report_on_sent() - a report was sent at @now. */
void node_report_on_sent(struct node_report *nr, nsec_t now);

/** node_report_on_result() - what has become of the one on its way. */
void node_report_on_result(struct node_report *nr, enum node_report_result result);

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
