/*
 * node.h - how a node is: what is found of it, from what the hub knows.
 *
 * Causes are ordered. Of a node that is down nothing else is found, since all else follows from
 * that. Whether it is down is not said by its agent's silence alone: what the hub sends it has to
 * be unacknowledged, or there is no session with it any more, and no probe that still reports
 * reaches it.
 *
 * Pure: facts in, findings out; no clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "health/finding.h"

/** An agent that was not heard for so many seconds is silent. It reports each minute. */
#define EDGE_SILENT_AFTER 90

/** What the hub has sent a node, and what was not acknowledged for so many seconds more, says that
 * the node is lost: TCP has sent it again five times by then. */
#define NODE_LOST_AFTER 6

/** Whose packets come, and who has acknowledged nothing, for so long: the way to it is cut. A
 * machine that comes back is heard before its TCP is. */
#define NODE_DEAF_AFTER 10

/** Who has acknowledged nothing for so long, and of whom nothing comes, hears nothing of the hub if
 * others reach it. In less than that a node whose UDP is blocked comes in TLS. */
#define NODE_APART_AFTER 12

/** Has the node a WireGuard session with the hub? */
enum node_session {
    NODE_SESSION_UNKNOWN, /* another hub may have it, or there is no data half */
    NODE_SESSION_NONE,
    NODE_SESSION_LIVE,
};

/** All that is known of a node. Borrowed. */
struct node_facts {
    const char *name;
    const char *reached_by; /* a node whose probe reaches it, and still reports; NULL: none */
    const char *error;      /* why its agent's last pass failed; NULL: it did not */
    const char *copies;     /* why it is known that several machines run as it; "": one does */
    const char *unfit;      /* why its machine fails its health check, as it says; NULL: not said */
    const char *drained;    /* why it is drained; NULL: it is not */
    const char *hook;       /* why its scheduler does not know of that; NULL: it does */
    unsigned n_failed;      /* checks in a row that have failed, with @unfit */
    int64_t silent_for;     /* time since its agent was heard, s; -1: it never was */
    int64_t lost_for;       /* for how long what it is sent is not acknowledged, s; 0: it is */
    int64_t unapplied_for;  /* how long it is known to have applied nothing, s; -1: it has */
    int64_t probe_for;      /* time since its probe was heard, s; -1: it has none */
    int64_t there_for;      /* time since its machine was known to be there, s; -1: not known */
    int64_t keepalive_s;    /* hello to the hub this often; 0: never; only where it is set */
    int64_t nat_forgets_s;  /* its NAT forgets what is silent for so long; 0: not known, no NAT, or
                               the keepalive is as it was measured */
    uint32_t probe_every;   /* its probe reports at least each so many s; 0: it does not say */
    int64_t sending_for; /* packets of it have come for so long, s, while it acknowledged nothing;
                            -1: none have */
    enum node_session session;
    bool has_agent; /* neither a hub nor a stock WireGuard */
};

/** node_is_down() - is its machine down, or cut off from everybody? */
bool node_is_down(const struct node_facts *f);

/** node_is_deaf() - does it send, while it gets nothing of what the hub sends? */
bool node_is_deaf(const struct node_facts *f);

/** node_is_apart() - do it and the hub hear nothing of each other, while another node reaches it?
 */
bool node_is_apart(const struct node_facts *f);

/** node_is_silent() - is its agent silent, though it is not down? */
bool node_is_silent(const struct node_facts *f);

/** node_is_forgotten() - does a NAT that forgets after @forgets_s (0: not known) forget a node
 * which says hello each @keepalive_s (0: never)? */
bool node_is_forgotten(int64_t forgets_s, int64_t keepalive_s);

/** node_probe_limit() - a probe that reports each @every s is silent after so many, s. */
int64_t node_probe_limit(uint32_t every);

/** node_find() - add to @set all that is found of the node; the caller has begun the look. Returns
 * true if it is anything. */
bool node_find(const struct node_facts *f, struct findings *set, int64_t at);

/** node_find_way() - add to @set what is found of the way from the hub to the node, @subject. */
void node_find_way(
    const struct node_facts *f, struct findings *set, const char *subject, int64_t at);
