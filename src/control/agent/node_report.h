/*
 * node_report.h - what this node reports to the hub, and when: PUT /v1/status.
 *
 * A report is due each minute; five seconds after the last one when the way to a peer has changed;
 * and a fifth of a second after the last one when this node may be reached elsewhere, because peers
 * wait for that.
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

struct node_report {
    nsec_t sent_at;     /* time of the last report; 0: none, or one is due at once */
    bool edges_changed; /* the way to a peer has changed since then */
    bool self_changed;  /* since then, this node may be reached elsewhere */
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
    nsec_t now;                       /* monotonic */
};

/** node_report_on_hub() - the hub answers again: a report is due at once. */
void node_report_on_hub(struct node_report *nr);

/** node_report_on_self() - this node may be reached elsewhere. */
void node_report_on_self(struct node_report *nr);

/** node_report_on_edges() - the way to some peer has changed. */
void node_report_on_edges(struct node_report *nr);

/** node_report_has_news() - has something changed that is not reported yet? */
bool node_report_has_news(const struct node_report *nr);

/** node_report_within() - time after which it has to be asked again, ns; NSEC_NEVER: whenever. */
nsec_t node_report_within(const struct node_report *nr);

/** node_report_is_due() - is a report due at @now? */
bool node_report_is_due(const struct node_report *nr, nsec_t now);

/** node_report_on_sent() - a report was sent at @now. */
void node_report_on_sent(struct node_report *nr, nsec_t now);

/** node_report_encode() - the report's body; a new reference, NULL: no memory. */
json_t *node_report_encode(const struct node_report_facts *facts);

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
