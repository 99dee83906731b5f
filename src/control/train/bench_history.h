/*
 * bench_history.h - what earlier benchmarks found: a line of JSON each, in the state directory.
 */
#pragma once

#include <jansson.h>

struct err;
struct str;

/** Most bytes of the file; then its older half is dropped. */
#define BENCH_HISTORY_MAX (1u << 20)

/** bench_history_add() - append one summary. 0 or negative errno with words. */
int bench_history_add(const char *state_dir, const json_t *summary, struct err *e);

/**
 * bench_history_format() - all of them, newest last; appended to @out
 *
 * A line that does not parse is counted, and left as it is. 0 or negative errno with words.
 */
int bench_history_format(const char *state_dir, struct str *out, struct err *e);

/** bench_history_encode() - the same as {"runs": [...]}. 0 or negative errno with words. */
int bench_history_encode(const char *state_dir, json_t **ret, struct err *e);
