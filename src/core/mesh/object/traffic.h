/*
 * traffic.h - what one node has exchanged with the others on one day: bytes by peer, path and job.
 *
 * A node counts, a hub keeps (docs/COST.md). Both have the sums of a day and not what was added to
 * them, so a report that comes twice changes nothing, and two copies of a day are one again when
 * the greater of each two sums is taken.
 *
 * Theory of operation. A sum only grows as long as one meter counts. A node that has lost its state
 * begins a new meter, whose number is random; so a day holds the sums of each meter by itself, and
 * what the node has moved is the sum over them.
 *
 * Pure: JSON in, a struct out, and back.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "path/path.h"

/** Flows of one day that have a sum of their own; further ones of a meter share TRAFFIC_OTHERS. */
#define TRAFFIC_FLOWS_MAX 256

/** Days that a node keeps while no hub has taken them, with today. */
#define TRAFFIC_DAYS_KEPT 8

/** Most bytes of one sum, 2^53: more are not exact as a number in JSON. */
#define TRAFFIC_BYTES_MAX (UINT64_C(1) << 53)

/** Room for a day as text, "2026-11-23", with its zero. */
#define TRAFFIC_DAY_TEXT_MAX 16

/** The days that are taken: the years 1970 to 9999. */
#define TRAFFIC_DAY_MAX 2932896

/** The sums of one meter for one peer, one path and one job. */
struct traffic_flow {
    uint64_t meter;
    char *peer;      /* owns; a node's name; "": of all that have no sum of their own */
    const char *job; /* in the memory of @peer; "": none */
    enum path_kind path;
    bool is_changed;   /* the owner's mark */
    uint64_t sent;     /* bytes of WireGuard's messages to the peer */
    uint64_t received; /* and from it */
    uint64_t seq;      /* the owner's: the later it has changed, the greater */
};

/** A day's sums, in the order of meter, peer, job and path. */
struct traffic {
    int32_t day;                /* since 1970-01-01, UTC */
    struct traffic_flow *flows; /* owns */
    size_t n;
    size_t cap;
};

#define TRAFFIC_NULL                                                                               \
    {                                                                                              \
        0                                                                                          \
    }

/** traffic_deinit() - forget the sums. */
void traffic_deinit(struct traffic *t);

/** traffic_day() - the day of a time, s since 1970. */
int32_t traffic_day(int64_t wall_s);

/** traffic_day_format() - "2026-11-23". Returns @buf. */
const char *traffic_day_format(int32_t day, char buf[static TRAFFIC_DAY_TEXT_MAX]);

/** traffic_day_parse() - 0; or -EINVAL with words: it is no date from 1970 to 9999. */
int traffic_day_parse(int32_t *ret, const char *text, struct err *e);

/**
 * traffic_at() - lends the flow, which is made with sums of 0 if it is not there
 *
 * Once a meter has TRAFFIC_FLOWS_MAX flows, a new one is counted as the peer "" without a job.
 *
 * Return: NULL: no memory.
 */
struct traffic_flow *traffic_at(
    struct traffic *t, uint64_t meter, const char *peer, const char *job, enum path_kind path);

/** traffic_add() - more bytes have moved; a sum stops at TRAFFIC_BYTES_MAX. */
void traffic_add(struct traffic_flow *flow, uint64_t sent, uint64_t received);

/** traffic_total() - @a + @b, of several flows; stops at INT64_MAX, the most that JSON takes. */
uint64_t traffic_total(uint64_t a, uint64_t b);

/** traffic_merge_flow() - one flow of traffic_merge(). 0; 1: it was left out; or -ENOMEM. */
int traffic_merge_flow(struct traffic *t, const struct traffic_flow *f, size_t max);

/**
 * traffic_merge() - of each two sums the greater one
 * @max:	flows that @t may have; what would exceed that is left out
 *
 * Return: flows that were left out; or -ENOMEM, and then a part was merged.
 */
int traffic_merge(struct traffic *t, const struct traffic *from, size_t max);

/**
 * traffic_decode() - {"day": "2026-11-23", "meter": 17, "flows": [{"peer", "path", "job", "sent",
 * "received"}]}; a flow that has its own "meter" is of that one
 * @ret:	untouched on failure, else for traffic_deinit()
 * @where:	what it is of, for the words
 *
 * Return: 0; -EINVAL with words; or -ENOMEM.
 */
int traffic_decode(struct traffic *ret, const json_t *json, const char *where, struct err *e);

/** traffic_encode() - all of it, each flow with its meter; a new reference, NULL: no memory. */
json_t *traffic_encode(const struct traffic *t);
