/*
 * preflight_internal.h - the parts of the judgement: preflight.c, preflight_pair.c,
 * preflight_node.c.
 */
#pragma once

#include "train/preflight.h"

/** preflight__find() - add a finding; its text is set with preflight__say(). Lends, never NULL. */
struct preflight_finding *preflight__find(struct preflight_report *r, enum preflight_fault fault,
    enum preflight_level level, size_t a, size_t b);

/** preflight__say() - what was seen, and what would mend it. */
void preflight__say(struct preflight_finding *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
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

/** preflight__judge_versions() - do they agree? */
void preflight__judge_versions(struct preflight_report *r, const struct preflight_input *in);
