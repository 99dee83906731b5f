/*
 * status_jobs.h - the jobs in a node's status, for people: who is in them, and what NCCL took.
 *
 * A part of status_text.h's table.
 */
#pragma once

#include <jansson.h>

struct str;

/** status_jobs_format() - nothing where none runs. @jobs: the status's. Appends to @out. */
void status_jobs_format(const json_t *jobs, struct str *out);
