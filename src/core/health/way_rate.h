/*
 * way_rate.h - that the way from one node to another carries much less than in its last hour, as a
 * finding.
 *
 * What a line carries is known where a job under `weft run` uses it: bytes by the time in which
 * something was to be sent (job_health.h). A pair without such traffic has no rate, and a line that
 * nobody waits for is not looked at.
 *
 * Pure: no I/O, no clock.
 */
#pragma once

#include <stdint.h>

struct findings;
struct job_slow_line;

/** A line has to hold up a job for so long, s: a finding of the job comes first. */
#define WAY_RATE_AFTER_S 10

/**
 * way_rate_find() - find WAY_SLOW of what @job sends on @line
 * @f:		between findings_look() and findings_done()
 * @at:		s since 1970
 */
void way_rate_find(
    struct findings *f, const char *job, const struct job_slow_line *line, int64_t at);
