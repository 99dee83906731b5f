/*
 * edge_parts.h - what one writer says of all its edges, by the other end's name; and what it says
 * anew.
 *
 * Theory of operation. A writer reports what has changed: for each peer a part, or that there is
 * nothing to say of it any more. A report belongs to a run of the writer and has a number in it.
 * One that is the next, or the last one again (its answer was lost), is taken in; any other leaves
 * a gap, and the writer is asked to begin anew. It then says all, in as many reports as that takes:
 * the first begins, the last ends, and what none of them named is forgotten at the end. Until then
 * what was there before stays.
 *
 * Pure: no clock, no I/O.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/object/edge_status.h"

struct err;

/** Most edges that one writer's parts are kept of. */
#define EDGE_PARTS_MAX 16384

/** What one writer says of one edge. On the heap, with its name behind it. */
struct edge_part {
    union {
        struct edge_said said;     /* EDGE_OWNER_AGENT */
        struct edge_probed probed; /* EDGE_OWNER_PROBE */
    };
    bool is_old;  /* kept: not named since the writer began anew */
    bool is_gone; /* in a report: there is nothing to say of it any more */
    char peer[];  /* the other end's name */
};

struct edge_parts {
    struct edge_part **items; /* owns, also what they point to; sorted by peer in byte order */
    size_t n;
    size_t cap;
    enum edge_owner owner;
};

#define EDGE_PARTS_NULL                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

/** edge_parts_deinit() - release all; idempotent. */
void edge_parts_deinit(struct edge_parts *p);

/** edge_parts_find() - lends; NULL: nothing is said of that peer. */
struct edge_part *edge_parts_find(const struct edge_parts *p, const char *peer);

/**
 * edge_parts_put() - replace, or add, one part
 * @part:	taken, also on failure
 *
 * Return: 0; -ENOSPC: EDGE_PARTS_MAX are kept; -ENOMEM.
 */
int edge_parts_put(struct edge_parts *p, struct edge_part *part);

/** edge_parts_remove() - forget what is said of that peer, if anything is. */
void edge_parts_remove(struct edge_parts *p, const char *peer);

/** edge_parts_begin() - the writer begins anew: what is kept is old. */
void edge_parts_begin(struct edge_parts *p);

/** edge_parts_end() - the writer has said all: forget what is old. */
void edge_parts_end(struct edge_parts *p);

/**
 * edge_parts_decode() - {"PEER": {...}, "GONE": null}
 * @ret:	EDGE_PARTS_NULL but for its owner; untouched on failure
 * @json:	borrowed; NULL: none
 * @at:		s since 1970: the time by which ages count
 *
 * Return: 0; -EINVAL with words; -ENOMEM.
 */
int edge_parts_decode(struct edge_parts *ret, const json_t *json, int64_t at, struct err *e);

/** edge_part_encode() - one part as JSON, by the clock @at; a new reference, NULL: no memory. */
json_t *edge_part_encode(const struct edge_part *part, enum edge_owner owner, int64_t at);

/**
 * edge_parts_encode() - as many as have room in @max bytes of text, those in trouble first
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *edge_parts_encode(const struct edge_parts *p, size_t max, int64_t at);

/* ---- which report follows which ------------------------------------------------------------- */

/** Where a writer's reports have come to. */
struct edge_sequence {
    uint64_t run;  /* of the writer, random; 0: none has been heard */
    uint64_t last; /* number of the last one that was taken in */
};

/** What becomes of a report. */
enum edge_turn {
    EDGE_TURN_TAKE,  /* it follows, or begins anew */
    EDGE_TURN_AGAIN, /* something between was lost: the writer has to begin anew */
};

/** edge_sequence_judge() - the report number @n of @run has come; @begins: it begins anew. */
enum edge_turn edge_sequence_judge(struct edge_sequence *s, uint64_t run, uint64_t n, bool begins);
