/*
 * fitness.h - is a machine fit for work? From what is found of it to a verdict on each of its
 * parts, and from checks in a row to whether it is to be drained, so that its scheduler gives it no
 * new work.
 *
 * Only findings count that are the machine's own and that do not go away by waiting: a peer, a line
 * or a hub that is away drains nobody. Which ones do is said by the table in fitness.c.
 *
 * Theory of operation. A check looks at what is found now. The node counts its checks: after
 * FITNESS_CHECKS that failed, one after the other, it asks to be drained; after as many that
 * passed, to be given back. The hub says yes only while no more than a share of the network's nodes
 * is drained with it.
 *
 * Pure: no I/O, no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "health/finding.h"

/** So many checks in a row have to fail, or to pass. */
#define FITNESS_CHECKS 3

/** Longest reason, with its zero. */
#define FITNESS_REASON_MAX 256

/** Longest list of codes, with its zero: "WEFT-DISK-002,WEFT-NIC-002". */
#define FITNESS_CODES_MAX 160

/** What of a machine is looked at. */
enum fitness_part {
    FITNESS_FABRIC,
    FITNESS_NIC,
    FITNESS_GPU,
    FITNESS_DISK,
    FITNESS_CLOCK,
    FITNESS_OVERLAY,
    FITNESS_PART_N,
};

/** fitness_part_names - "fabric". */
extern const char *const fitness_part_names[];

/** Sorted: the worst is the greatest. */
enum fitness_verdict {
    FITNESS_UNSEEN, /* nothing looks at it in this version */
    FITNESS_OK,
    FITNESS_WARNED, /* something is found that is no reason to drain the machine */
    FITNESS_FAILED,
    FITNESS_VERDICT_N,
};

/** fitness_verdict_names - "not looked at", "ok", "warning", "failed". */
extern const char *const fitness_verdict_names[];

/** A check. */
struct fitness {
    enum fitness_verdict parts[FITNESS_PART_N];
    char texts[FITNESS_PART_N][FINDING_TEXT_MAX]; /* of the worst of each; "": nothing */
    char codes[FITNESS_CODES_MAX];   /* of all that has failed, with commas; "": it has passed */
    char reason[FITNESS_REASON_MAX]; /* the first of them, in words; "": likewise */
};

/** fitness_take() - check @node by @findings, an array as findings_encode() makes its list; what is
 * no such object in it is passed over. */
void fitness_take(struct fitness *ret, const json_t *findings, const char *node);

/** fitness_worst() - the worst of all parts. */
enum fitness_verdict fitness_worst(const struct fitness *f);

/** fitness_counts() - has that code failed a machine? */
bool fitness_counts(const char *code);

/* ---- checks in a row ---------------------------------------------------------------------------
 */

/** What a node keeps from check to check. All zero: none was made. */
struct fitness_count {
    uint32_t n_failed; /* in a row; 0: the last one has passed */
    uint32_t n_passed; /* in a row */
    bool is_reported;  /* the hub was told that it fails, and not that it passes again */
    bool is_hooked;    /* the hook was told to drain the node, and has done so */
};

/** What a node is to do after a check. */
enum fitness_step {
    FITNESS_REST,    /* nothing */
    FITNESS_REPORT,  /* tell the hub that it does not fail any more */
    FITNESS_DRAIN,   /* ask to be drained */
    FITNESS_UNDRAIN, /* have the hook give it back, and then say so */
};

/** fitness_count_check() - one more check. */
void fitness_count_check(struct fitness_count *c, bool has_failed);

/** fitness_step() - what is to be done now? @is_drained: the network says so of this node. */
enum fitness_step fitness_step(const struct fitness_count *c, bool is_drained);

/** fitness_count_encode() - for a file; a new reference, NULL: no memory. */
json_t *fitness_count_encode(const struct fitness_count *c);

/** fitness_count_decode() - from there; false: it is none, and @ret is as it was. */
bool fitness_count_decode(struct fitness_count *ret, const json_t *json);

/* ---- how many at once --------------------------------------------------------------------------
 */

/** fitness_share_allows() - may one more of @n_nodes be drained while @n_drained are, if no more
 * than @percent of them may be at once? */
bool fitness_share_allows(unsigned percent, size_t n_nodes, size_t n_drained);
