/*
 * sample_top.h - what `weft top` shows, from a sample of answers in test/corpus/top.
 */
#pragma once

#include <jansson.h>

#include "top/top_model.h"

/**
 * sample_top_make() - the model of a sample
 * @json:	{"network", "nodes", "edges", "jobs", "findings", "status", "traffic"}: as they are
 *		answered, but for traffic: looks at the rows, a minute apart for a hub, and three
 *		seconds for an agent
 */
void sample_top_make(struct top_model *ret, const json_t *json);

/** sample_top_read() - the same of test/corpus/top/@name. */
void sample_top_read(struct top_model *ret, const char *name);
