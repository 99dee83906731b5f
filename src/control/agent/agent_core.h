/*
 * agent_core.h - what an agent does when: its deadlines, its end, and a data plane that is
 * replaced.
 *
 * On top of agent_pass.h and agent_poll.h. agent_parts.h says how an agent is made.
 *
 * Threads: the loop's.
 */
#pragma once

#include "agent/agent.h"
#include "base/clock.h"

struct agent;
struct err;

/** Delay of what follows an event, so that a burst of events has one consequence. */
#define AGENT_CORE_SOON (5 * NSEC_PER_MSEC)

/** agent_core_due() - the earliest deadline of all parts; NSEC_NEVER: there is none. */
nsec_t agent_core_due(const struct agent *a);

/** agent_core_run() - do what is due at @now. */
void agent_core_run(struct agent *a, nsec_t now);

/**
 * agent_core_take_down() - remove the interface and the names, not what has been joined
 * @names:	why the names could not be taken away; code 0: they were
 *
 * Return: 0 or negative errno with words.
 */
int agent_core_take_down(struct agent *a, struct err *names, struct err *e);

/**
 * agent_core_renew_engine() - replace the data plane's process by the program that is installed now
 *
 * Return: 0; ENGINE_E_UNSUPPORTED with words: there is no process; or negative errno with words.
 */
int agent_core_renew_engine(struct agent *a, struct err *e);

/** agent_core_finish() - begin to end. The first call decides how; later ones change nothing. */
void agent_core_finish(struct agent *a, enum agent_end end);
