/*
 * preflight_internal.h - what the files of the judgement call in each other.
 *
 * preflight.c calls preflight_node.c, which judges single members, and preflight_pair.c, which
 * judges pairs. All of them add to the list of findings in preflight_report.c.
 */
#pragma once

#include "train/preflight/preflight.h"

/**
 * preflight__find() - add a finding
 * @a, @b:	indices of the members that it is about, or PREFLIGHT_NOBODY
 *
 * Return: the finding, lent until the next call, for preflight__say() and preflight__fix(). It is
 * never NULL: when memory runs out, the report remembers that in @failed.
 */
struct preflight_finding *preflight__find(struct preflight_report *r, enum preflight_fault fault,
    enum preflight_level level, size_t a, size_t b);

/** preflight__say() - set the text of a finding: what was seen. */
void preflight__say(struct preflight_finding *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** preflight__fix() - set the advice of a finding: what would mend it. */
void preflight__fix(struct preflight_finding *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** preflight__judge_pair() - judge everything about two members except their throughput. */
void preflight__judge_pair(
    struct preflight_report *r, const struct preflight_input *in, const struct preflight_pair *p);

/**
 * preflight__judge_rate() - judge the throughput between two members
 * @median:	of all pairs, in bits per second
 */
void preflight__judge_rate(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, uint64_t median);

/** preflight__judge_node() - judge everything about one member except its versions of software. */
void preflight__judge_node(
    struct preflight_report *r, const struct preflight_input *in, size_t node);

/** preflight__judge_versions() - do the members' versions of software agree? */
void preflight__judge_versions(struct preflight_report *r, const struct preflight_input *in);
