/*
 * env_fabric.h - the part of a plan that follows from the machine's fabric, and what is said of
 * variables of NCCL's that the person has set and no rule is about.
 */
#pragma once

#include <stdbool.h>

#include "train/job/env.h"

/** env_fabric_applies() - does the job use the fabric's profile? It does inside one island. */
bool env_fabric_applies(const struct env_facts *facts);

/** env_fabric_owns() - is the variable one of the profile's, and the profile applies? */
bool env_fabric_owns(const struct env_facts *facts, const char *name);

/** env_fabric_add() - append the profile's variables to the plan, if the profile applies. */
void env_fabric_add(
    struct env_plan *plan, const struct env_facts *facts, env_lookup_fn lookup, void *ctx);

/** env_fabric_judge() - append those of facts->theirs that do nothing or break the job. */
void env_fabric_judge(struct env_plan *plan, const struct env_facts *facts);
