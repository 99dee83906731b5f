/*
 * edge_report.h - what a report says of edges: what differs from what the hub has.
 *
 * Agents and probes report alike (docs/EDGES.md, "Reports as differences"). Of each edge it is kept
 * what was said last, and whether the hub is known to have it. When the answer to a report is lost,
 * its content is said again. When the hub lacks a report, everything is said anew.
 *
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"

/** What is kept of an edge. The struct in which a writer describes one begins with it. */
struct edge_report_head {
    char peer[NAME_MAX_LEN + 1];
    /* The rest is edge_report.c's. */
    bool is_sent;  /* in the report that has no answer yet */
    bool is_known; /* to the hub */
    bool is_gone;  /* what was said is that the edge is no more */
};

/** How a writer describes edges. */
struct edge_report_kind {
    size_t size; /* of its struct */
    bool (*is_same)(const void *a, const void *b);
    json_t *(*encode)(const void *edge, const void *ctx);
};

/** What becomes of a report. */
enum edge_report_result {
    EDGE_REPORT_TAKEN,
    EDGE_REPORT_OLD,   /* it is an older hub, which does not know such reports */
    EDGE_REPORT_AGAIN, /* the hub lacks one before this: begin anew */
    EDGE_REPORT_LOST,  /* it did not take it, or its answer was lost */
};

struct edge_report {
    const struct edge_report_kind *kind;
    uint64_t run;    /* random, not 0: of this run of the writer */
    uint64_t number; /* of the last report that the hub took */
    bool begins;     /* the next one begins anew */
    bool is_anew;    /* everything is being reported anew, and the hub has not taken all of it */
    bool ends;       /* the one that is on its way is the last of those */
    bool has_more;   /* the last one could not hold everything */
    void *items;     /* owns; sorted by peer; what was said last */
    size_t n;
};

/** edge_report_forget() - nothing counts as said. */
void edge_report_forget(struct edge_report *er);

/** edge_report_begin() - everything is to be said anew. */
void edge_report_begin(struct edge_report *er);

/**
 * edge_report_make() - what the next report says of edges
 * @seen:	@n, all that there are, sorted by peer
 * @max:	most edges in it
 * @ctx:	for encode()
 *
 * It counts as being on its way until edge_report_on_result().
 *
 * Return: a new object; NULL: no memory.
 */
json_t *edge_report_make(
    struct edge_report *er, const void *seen, size_t n, size_t max, const void *ctx);

/** edge_report_sign() - add to a report which of the writer's it is. */
void edge_report_sign(const struct edge_report *er, json_t *body);

/** edge_report_on_result() - the report has an answer, or none. */
void edge_report_on_result(struct edge_report *er, enum edge_report_result result);
