/*
 * preflight_internal.h - the parts of the judgement. From the bottom up: preflight_report.c (the
 * list of findings), preflight_node.c and preflight_pair.c, preflight.c.
 */
#pragma once

#include "train/preflight/preflight.h"

/**
 * preflight__find() - add a finding
 * @a, @b:	indices of the members that it is about; PREFLIGHT_NOBODY
 *
 * Return: lends it until the next call, for preflight__say() and preflight__fix(); never NULL:
 * without memory the report remembers that it failed.
 */
struct preflight_finding *preflight__find(struct preflight_report *r, enum preflight_fault fault,
    enum preflight_level level, size_t a, size_t b);

/** preflight__say() - set the text of a finding: what was seen. */
void preflight__say(struct preflight_finding *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** preflight__fix() - set what would mend it. */
void preflight__fix(struct preflight_finding *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** preflight__judge_pair() - everything about two members but how fast they are. */
void preflight__judge_pair(
    struct preflight_report *r, const struct preflight_input *in, const struct preflight_pair *p);

/** preflight__judge_rate() - how fast they are, compared with @median bits per second. */
void preflight__judge_rate(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, uint64_t median);

/** preflight__judge_node() - everything about one member. */
void preflight__judge_node(
    struct preflight_report *r, const struct preflight_input *in, size_t node);

/** preflight__judge_versions() - do the members' versions of software agree? */
void preflight__judge_versions(struct preflight_report *r, const struct preflight_input *in);
