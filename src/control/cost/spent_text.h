/*
 * spent_text.h - how much of a budget is spent, in words.
 *
 * Pure.
 */
#pragma once

#include <jansson.h>

struct str;

/** spent_format() - appends "1.90 GB of 2.00 GB a day (95.0 %), near its end" and, when nodes are
 * slowed, "; at most 50Mbit a node now". @line: of spent_encode_one(), of which what is missing or
 * wrong is taken for 0. */
void spent_format(struct str *out, const json_t *line);
