/*
 * job_rules.h - the rules of jobs that run with `weft run --isolate`: the hub that serves a
 * network's jobs writes them, follows who comes to a job, and removes them with the job's run.
 *
 * A job has two (mesh/object/rule.h): job-NAME, by which its members reach each other, and nobody
 * else its ports on those of them that are isolated; and jobhub-NAME, likewise for its port on the
 * hubs. Both are in the store, so a hub that is started anew, or takes the jobs over, has them: of
 * the same run it goes on with the members that they name.
 *
 * Threads: the hub's loop.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "hub/model/model.h"

struct job;

/** job_rules_check() - may @member run the job isolated? 0; or -EINVAL or -E2BIG with words. */
int job_rules_check(
    const struct model_network *net, const char *job, const char *member, struct err *e);

/** job_rules_look() - have the network's rules of jobs written and removed as is due; each second,
 * and when somebody has come to a job that is isolated. */
void job_rules_look(const struct model_network *net, nsec_t now);

/** job_rules_tick() - the same for all networks. */
void job_rules_tick(const struct model *model, nsec_t now);
