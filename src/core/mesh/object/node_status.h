/*
 * node_status.h - what a node reports of itself: its candidates and paths, its fabric, and how the
 * line is by which it relays for others.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uplink/uplink.h"

struct err;
struct path_relay_notice;
struct path_side;
struct relay_line_report;

/*
 * What a node tells others so that they find paths to it.
 *
 * `status.candidates` and `status.paths` of a Node (docs/API.md), as the
 * `struct path_side` that path/ works with. Reported by the node's agent,
 * delivered to those it may talk to. A node that reports nothing runs no agent
 * of ours: a stock WireGuard.
 */

/**
 * path_report_decode() - the two parts of a status
 * @candidates:	an array
 * @facts:	an object; NULL: none
 * @where:	for the words
 *
 * What this version does not know is passed over, and so is a candidate that can
 * be nobody's address: a node may be newer than this one.
 *
 * Return: 0 or -EINVAL with words.
 */
int path_report_decode(struct path_side *ret, const json_t *candidates, const json_t *facts,
    const char *where, struct err *e);

/** path_report_encode_candidates() - a new reference, NULL for no memory. */
json_t *path_report_encode_candidates(const struct path_side *side);

/** path_report_encode_facts() - all but the candidates; the same. */
json_t *path_report_encode_facts(const struct path_side *side);

/*
 * `status.fabric` of a Node: the fast fabric that its agent has found, and what
 * tells with whom the node shares it.
 *
 * Pure: JSON in, a struct out, and back.
 */

#define FABRIC_REPORT_TEXT_MAX 64  /* bytes of a text, with its zero */
#define FABRIC_KEY_MAX         128 /* bytes of a key, with its zero */
#define FABRIC_KEYS_MAX        4
#define FABRIC_GPUS_MAX        1024

/** A text that nodes have in common which may share a fabric, such as "aws-group/use1-az4/train".
 */
struct fabric_key {
    char text[FABRIC_KEY_MAX];
    bool is_exact; /* false: others elsewhere may have it, too, so nearness has to be measured */
};

struct fabric_report {
    char kind[FABRIC_REPORT_TEXT_MAX];    /* "efa", "infiniband"; others from newer nodes */
    char machine[FABRIC_REPORT_TEXT_MAX]; /* its type, as its cloud calls it; "": not known */
    char gpu[FABRIC_REPORT_TEXT_MAX];     /* model; "": none, or not known */
    unsigned n_gpus;
    unsigned gbit;       /* of all active ports together, Gbit/s; 0: not known */
    bool asked_together; /* the machine was asked to be placed near the others of its group */
    struct fabric_key keys[FABRIC_KEYS_MAX];
    size_t n_keys;
};

/**
 * fabric_report_decode() - check the field and take it in
 * @ret:	untouched on failure
 * @where:	what it is of, for the words
 *
 * Fields and keys of a newer node are passed over.
 *
 * Return: 0, or -EINVAL with words that name the field and what is allowed.
 */
int fabric_report_decode(
    struct fabric_report *ret, const json_t *json, const char *where, struct err *e);

/** fabric_report_encode() - a new reference, NULL: no memory. */
json_t *fabric_report_encode(const struct fabric_report *r);

/*
 * `status.relayLine` of a Node: how its line is, where it relays for others (relay/line.h). Other
 * nodes are told of it what is in the notice.
 */

/**
 * relay_line_decode() - check the field and take it in; what is left out is zero
 * @ret:	untouched on failure
 * @where:	what it is of, for the words
 *
 * Return: 0, or -EINVAL with words.
 */
int relay_line_decode(
    struct relay_line_report *ret, const json_t *json, const char *where, struct err *e);

/** relay_line_encode() - a new reference, NULL: no memory. */
json_t *relay_line_encode(const struct relay_line_report *r);

/*
 * `status.uplink` of a Node: what its agent has found of the uplink, and how fast it sends.
 */

/** Where the rate is from at which a node sends all. */
enum uplink_from {
    UPLINK_FROM_NOBODY, /* there is none: it sends as fast as it can */
    UPLINK_FROM_TYPED,  /* its object has it */
    UPLINK_FROM_FOUND,  /* what was found of its uplink */
    UPLINK_FROM_N,
};

/** uplink_from_names - "nobody", "typed", "found". */
extern const char *const uplink_from_names[];

struct uplink_report {
    bool is_said; /* else all is zero */
    enum uplink_state state;
    uint64_t bits_per_s; /* what it carries; FAST: at least; 0: not known */
    int64_t at_s;        /* when that was measured last, s since 1970; 0: never */
    uint64_t rate;       /* bit/s at which it sends all; 0: as fast as it can */
    enum uplink_from from;
};

/** uplink_report_decode() - check the field and take it in; words that this version does not know
 * are UPLINK_UNKNOWN and UPLINK_FROM_NOBODY. Else as relay_line_decode(). */
int uplink_report_decode(
    struct uplink_report *ret, const json_t *json, const char *where, struct err *e);

/** uplink_report_encode() - a new reference; NULL: nothing is said, or no memory. */
json_t *uplink_report_encode(const struct uplink_report *r);

/** uplink_report_equal() - do both say the same? */
bool uplink_report_equal(const struct uplink_report *a, const struct uplink_report *b);

/** relay_notice_encode() - of it what other nodes are told; NULL: that is nothing, or no memory. */
json_t *relay_notice_encode(const struct path_relay_notice *notice);
