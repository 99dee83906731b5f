/*
 * agent_poll.h - a poll: the engine is asked what it sees, and by that the hubs and the paths are
 * judged, what was moved is counted, and the hubs are told.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

struct agent;

/** agent_poll_run() - poll now, and plan the next. */
void agent_poll_run(struct agent *a);

/** agent_poll_if_changed() - the same, unless nothing has happened since the last one. */
void agent_poll_if_changed(struct agent *a, nsec_t now);

/** agent_poll_run_hubs() - what is due with the hubs between polls: hub_set_due() has come. */
void agent_poll_run_hubs(struct agent *a, nsec_t now);

/** agent_poll_end_job() - a command of that job has ended: count what it has moved, and report. */
void agent_poll_end_job(struct agent *a, const char *job, int32_t pid);
