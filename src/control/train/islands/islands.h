/*
 * islands.h - which nodes of a network share a fast fabric, and how that is known.
 *
 * Theory of operation. A label (the node's `island`) is what a person says; it decides. Without
 * one, nodes are together when they report the same kind of fabric and a key that only machines of
 * one place have: a placement group, a block of physical hosts, a subnet prefix that an operator
 * has set. A key that others elsewhere may have too (the default prefix of InfiniBand, a zone)
 * counts only together with a short measured round trip. Nodes without a fabric are together when
 * they reach each other on one private network with a short round trip.
 *
 * What the mesh measures goes over the ordinary network. So a round trip verifies that machines are
 * near each other, and that a private network is one; a fabric of its own stays "found" until
 * something has gone over it.
 *
 * Pure: facts in, groups out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/parse.h"
#include "mesh/object/node_status.h"

struct str;

#define ISLANDS_EVIDENCE_MAX 160 /* bytes of a sentence, with its zero */

/** A node, as it is known. */
struct islands_node {
    char name[NAME_MAX_LEN + 1];
    char label[NAME_MAX_LEN + 1]; /* its `island`; "": none */
    bool has_fabric;              /* it has reported its fabric */
    struct fabric_report fabric;
};

/** What was measured between two nodes, by their indices. */
struct islands_pair {
    size_t a;
    size_t b;
    double rtt_ms;
    bool is_lan; /* the packets go over one private network */
};

/** How sure it is that the nodes of an island share its fabric. */
enum islands_state {
    ISLANDS_FOUND,        /* they say so, and nothing has been measured that decides it */
    ISLANDS_VERIFIED,     /* the packets that were measured went over it */
    ISLANDS_CONTRADICTED, /* some of them are too far from each other */
};

struct island {
    char name[2 * NAME_MAX_LEN];       /* the label, or "efa-" and the name of its first node */
    char kind[FABRIC_REPORT_TEXT_MAX]; /* of the fabric; "mixed" where a label joins several */
    bool is_declared;                  /* by a label */
    bool asked_together;               /* some machine was asked to be placed near the others */
    enum islands_state state;
    double max_rtt_ms; /* of the measured pairs inside */
    size_t n_pairs;    /* measured, inside */
    size_t n_nodes;
    char evidence[ISLANDS_EVIDENCE_MAX]; /* why these nodes are together */
};

/** The islands of a network. */
struct islands {
    struct islands_node *nodes; /* owns; the node itself is the first */
    size_t n_nodes;
    struct islands_pair *pairs; /* owns; what was measured between them */
    size_t n_pairs;
    struct island *items; /* owns; those of two nodes or more, in order of their first nodes */
    size_t n;
    size_t *of; /* owns; for each node the index of its island; SIZE_MAX: it is alone */
};

#define ISLANDS_NULL {0}

/**
 * islands_find() - put the nodes together that an agent's status tells of
 * @ret:	to be released with islands_deinit()
 * @status:	of GET /v1/status; what one node has measured: round trips between two others are
 * not in it
 * @measured:	what `weft bench --json` or `weft preflight --json` has printed; NULL: nothing.
 * Pairs that are not well formed, and nodes that are not in @status, are passed over; what the node
 * itself has measured is newer, and counts
 *
 * Return: 0 or -ENOMEM.
 */
int islands_find(struct islands *ret, const json_t *status, const json_t *measured);

/** islands_deinit() - idempotent. */
void islands_deinit(struct islands *s);

/** islands_encode() - `weft islands --json`; a new reference, NULL: no memory. */
json_t *islands_encode(const struct islands *s);

/** islands_format() - append a table for people. @json: of islands_encode(). */
void islands_format(struct str *out, const json_t *json);
