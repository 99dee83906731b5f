/*
 * path_report.h - what a node tells others so that they find paths to it.
 *
 * `status.candidates` and `status.paths` of a Node (docs/API.md), as the
 * `struct path_side` that path/ works with. Reported by the node's agent,
 * delivered to those it may talk to. A node that reports nothing runs no agent
 * of ours: a stock WireGuard.
 */
#pragma once

#include <jansson.h>

struct err;
struct path_side;

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
