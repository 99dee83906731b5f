/*
 * agent_hubs.h - the hubs of an agent: hub_set.h is told what it has to know, and what it wishes
 * reaches the paths, the jobs and the polls.
 *
 * Threads: the loop's.
 */
#pragma once

#include "agent/hub_set.h"
#include "base/clock.h"
#include "base/addr.h"

struct agent;
struct err;

/** agent_hubs_see() - what hub_set.h asks for, as it is at @now. Refers to @a. */
struct hub_set_facts agent_hubs_see(struct agent *a, nsec_t now);

/** agent_hubs_use_home() - what goes through a hub goes through @a->hubs.home from now on. */
void agent_hubs_use_home(struct agent *a, nsec_t now);

/** agent_hubs_find() - a job_calls_find_fn. @ctx: the agent. */
struct hub_link *agent_hubs_find(void *ctx, const char *name);

/**
 * agent_hubs_take() - use the hubs of the snapshot; part of each pass, and of the start
 *
 * Return: 0 or negative errno with words.
 */
int agent_hubs_take(struct agent *a, struct err *e);

/** agent_hubs_api() - where the hub's API is on the overlay; port 0: there is no hub. */
struct endpoint agent_hubs_api(const struct agent *a);
