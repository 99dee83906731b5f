/*
 * job_json.h - a job as the API shows it (docs/API.md).
 *
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct job;

/** job_json() - gives a reference. @epoch: of this life of the hub. NULL: no memory. */
json_t *job_json(const struct job *job, uint64_t epoch);
