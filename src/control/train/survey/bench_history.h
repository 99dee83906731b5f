/*
 * bench_history.h - summaries of earlier benchmarks, in a file of the state directory: one line of
 * JSON for each.
 */
#pragma once

#include <jansson.h>

struct err;
struct str;

/** When the file has this many bytes, its older half is dropped before a line is added. */
#define BENCH_HISTORY_MAX (1u << 20)

/**
 * bench_history_add() - append one summary to the file
 * @summary:	from bench_summarise(); borrowed
 *
 * Return: 0 or negative errno with words.
 */
int bench_history_add(const char *state_dir, const json_t *summary, struct err *e);

/**
 * bench_history_format() - append a line for each run to @out, the newest last
 *
 * A line of the file that is no JSON object is left out, and stays in the file.
 *
 * Return: 0 or negative errno with words.
 */
int bench_history_format(const char *state_dir, struct str *out, struct err *e);

/**
 * bench_history_encode() - the same runs as JSON: {"runs": [...]}
 * @ret:	gives a reference
 *
 * Return: 0 or negative errno with words.
 */
int bench_history_encode(const char *state_dir, json_t **ret, struct err *e);
