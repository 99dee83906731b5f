/*
 * bench_history.h - what earlier benchmarks found: a line of JSON each, in the state directory.
 */
#pragma once

#include <jansson.h>

struct err;
struct str;

/** Most bytes of the file; when it would be longer, its older half is dropped. */
#define BENCH_HISTORY_MAX (1u << 20)

/** bench_history_add() - append one summary. 0 or negative errno with words. */
int bench_history_add(const char *state_dir, const json_t *summary, struct err *e);

/**
 * bench_history_format() - append a line for each run, newest last
 *
 * A line of the file that does not parse is counted, and stays in the file.
 *
 * Return: 0 or negative errno with words.
 */
int bench_history_format(const char *state_dir, struct str *out, struct err *e);

/**
 * bench_history_encode() - the same as JSON: {"runs": [...]}
 * @ret:	gives a reference
 *
 * Return: 0 or negative errno with words.
 */
int bench_history_encode(const char *state_dir, json_t **ret, struct err *e);
