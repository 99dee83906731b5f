/*
 * edge_parts.h - the parts of one writer for all its edges, by the other end's name; and how a
 * report changes them.
 *
 * Theory of operation. A writer reports what has changed: for each peer either a new part, or null
 * when the part is gone. A report belongs to a run of the writer and has a number in that run. A
 * report is taken in if it is the next one, or the last one again because its answer was lost. With
 * any other number a report is missing between, and the writer is asked to begin anew. It then
 * reports all its parts, in as many reports as needed. The first of them is marked as the begin and
 * the last one as the end. At the end, the parts of peers that none of them named are removed;
 * until then they stay.
 *
 * Pure: no clock, no I/O.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/object/edge_status.h"

/** The part of one writer for one edge. On the heap; the peer's name is its last member. */
struct edge_part {
    union {
        struct edge_said said;     /* EDGE_OWNER_AGENT */
        struct edge_probed probed; /* EDGE_OWNER_PROBE */
    };
    bool is_old;  /* in what is kept: not reported since the writer began anew */
    bool is_gone; /* in a report: the part is to be removed */
    char peer[];  /* the other end's name */
};

struct edge_parts {
    struct edge_part **items; /* owns, also what they point to; sorted by peer in byte order */
    size_t n;
    size_t cap;
    enum edge_owner owner;
};

/** edge_parts_deinit() - release all. */
void edge_parts_deinit(struct edge_parts *p);

/** edge_parts_find() - lends the part for @peer; NULL: there is none. */
struct edge_part *edge_parts_find(const struct edge_parts *p, const char *peer);

/**
 * edge_parts_put() - replace, or add, one part
 * @part:	taken, also on failure
 *
 * Return: 0; -ENOSPC: EDGE_PARTS_MAX are kept; -ENOMEM.
 */
int edge_parts_put(struct edge_parts *p, struct edge_part *part);

/** edge_parts_remove() - remove the part for @peer, if there is one. */
void edge_parts_remove(struct edge_parts *p, const char *peer);

/** edge_parts_begin() - the writer begins anew: mark all parts as old. */
void edge_parts_begin(struct edge_parts *p);

/** edge_parts_end() - the writer has reported all its parts: remove those that are still old. */
void edge_parts_end(struct edge_parts *p);

/**
 * edge_parts_decode() - {"PEER": {...}, "GONE": null}
 * @ret:	all zero but for its owner; untouched on failure
 * @json:	borrowed; NULL: none
 * @at:		s since 1970: the time by which ages count
 *
 * Return: 0; -EINVAL with words; -ENOMEM.
 */
int edge_parts_decode(struct edge_parts *ret, const json_t *json, int64_t at, struct err *e);

/** edge_part_encode() - one part as JSON, by the clock @at; a new reference, NULL: no memory. */
json_t *edge_part_encode(const struct edge_part *part, enum edge_owner owner, int64_t at);

/**
 * edge_parts_encode() - as many parts as fit into @max bytes of JSON text, those in trouble first
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *edge_parts_encode(const struct edge_parts *p, size_t max, int64_t at);

/* ---- which report follows which ------------------------------------------------------------- */

/** Which report of a writer was taken in last. */
struct edge_sequence {
    uint64_t run;  /* of the writer, random; 0: none has been heard */
    uint64_t last; /* number of the last one that was taken in */
};

/** What becomes of a report. */
enum edge_turn {
    EDGE_TURN_TAKE,  /* it follows, or begins anew */
    EDGE_TURN_AGAIN, /* something between was lost: the writer has to begin anew */
};

/** edge_sequence_assess() - the report number @n of @run has come; @begins: it begins anew. */
enum edge_turn edge_sequence_assess(struct edge_sequence *s, uint64_t run, uint64_t n, bool begins);
