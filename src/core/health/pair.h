/*
 * pair.h - how a pair of nodes is, from the facts of both ends: its state as one word, and what is
 * found of it. Both follow from one look at the facts.
 *
 * Causes are ordered, and the first one that holds is found alone. Of a pair with a node that is
 * down nothing is found. A way that is cut explains that probes get no answer and that a direct
 * path was lost; that there is no path at all explains the former as well. A pair that is set to
 * relay, or that a relay serves better, has lost nothing.
 *
 * When a machine goes down, others notice it before the hub does. So what could follow from that is
 * found only when both machines were there after the fact was seen; until then the pair waits.
 *
 * Pure: facts in, words out; no clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "crypto/x25519.h"
#include "health/finding.h"
#include "mesh/object/edge_status.h"

struct mesh_edge;

/** The state of an edge as one word. Where several states hold, it is the first in this order. */
enum edge_state {
    EDGE_STATE_OFF,       /* the two nodes must not talk to each other */
    EDGE_STATE_REFUSED,   /* the MeshEdge pins a key that is not the node's */
    EDGE_STATE_FAILING,   /* an agent cannot apply it */
    EDGE_STATE_UNAPPLIED, /* an agent has never applied it */
    EDGE_STATE_SILENT,    /* an agent has stopped to speak to the hub, or its machine is down */
    EDGE_STATE_FELL,      /* its direct path was lost, and it uses a relay now or has no path */
    EDGE_STATE_UNREACHED, /* a probe gets no answer through the tunnel */
    EDGE_STATE_NONE,      /* an agent has no way to the other end */
    EDGE_STATE_STREAM,    /* through the hub in TLS */
    EDGE_STATE_RELAY,
    EDGE_STATE_DIRECT,
    EDGE_STATE_LAN,
    EDGE_STATE_IDLE, /* applied at both ends, and nobody has spoken yet */
    EDGE_STATE_N,
};

/** edge_state_names - "off", "refused", ..., "never-applied", ... as in JSON. */
extern const char *const edge_state_names[];

/** In so many seconds a node whose hub is not reached any more reaches it another way. */
#define PAIR_OTHER_WAY_WITHIN 10

/** A machine that need not be waited for: struct pair_end's @there_at. */
#define PAIR_ALWAYS_THERE INT64_MAX

/** All that is known of one end. Borrowed. */
struct pair_end {
    const char *node;                 /* its name */
    const struct x25519_public *key;  /* the key that the node has now */
    const struct edge_said *said;     /* its agent's part; NULL: none */
    const struct edge_probed *probed; /* its probe's part; NULL: none, or the probe is silent */
    const char *error;                /* why its last pass failed; NULL: it did not */
    int64_t silent_for;               /* time since its agent was heard, s; -1: it never was */
    int64_t said_at;                  /* since when @said is as it is, s since 1970 */
    int64_t probed_at;                /* since when @probed is as it is */
    int64_t there_at;                 /* when its machine was known to be there, s since 1970 */
    uint64_t applied;                 /* the revision that its agent has applied; 0: none yet */
    bool has_agent;                   /* neither a hub nor a stock WireGuard */
    bool tells_applied;               /* its agent reports @applied; older agents do not */
    bool is_down;                     /* its machine is down */
    bool is_away; /* without an agent and without a session: it may be switched off */
};

struct pair_facts {
    const struct mesh_edge *spec; /* the MeshEdge object; NULL: there is none */
    bool wants_relay;             /* the network sends every pair through the hub */
    struct pair_end ends[2];      /* in the order of their names */
};

/** Longest words about a pair, with the zero. */
#define EDGE_WHY_MAX (EDGE_ERROR_MAX + 160)

struct pair_verdict {
    enum edge_state state;
    char why[EDGE_WHY_MAX]; /* a clause that explains it, also why packets take no better path; ""
                               where there is nothing to explain */

    bool is_found;           /* something is found: */
    enum finding_code code;  /* of the pair, or of one way */
    unsigned from;           /* of a way: the end whose packets do not arrive */
    bool waits;              /* ..., if both machines are still there */
    char text[EDGE_WHY_MAX]; /* a clause with what it rests on */
};

/** pair_assess() - how it is. */
void pair_assess(const struct pair_facts *f, struct pair_verdict *ret);

/**
 * pair_since() - since when it is in that state, s since 1970; 0: not known
 * @state:	as pair_assess() has it
 * @at:		by which the ages in @f count, s since 1970
 */
int64_t pair_since(const struct pair_facts *f, enum edge_state state, int64_t at);
