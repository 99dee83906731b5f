/*
 * run_budget.h - weft run --budget: the job's budget of a day, written into the Network's object
 * before the command starts (mesh/object/budget.h, docs/COST.md).
 *
 * That is an administrator's right, so it takes the hub's socket or an admin token, as `weft apply`
 * does. Every node of the job may say the same: what is there already is not written again.
 */
#pragma once

#include "cmd/admin.h"
#include "mesh/object/budget.h"

struct err;

/** What the options said. Texts are borrowed. */
struct run_budget {
    const char *amount; /* "20", "2TB/day"; NULL: no budget is set */
    struct admin_target target;
    struct budget budget; /* run_budget_check()'s, without its job */
};

/**
 * run_budget_check() - read the options
 *
 * Return: 0, also without them; -EINVAL with words that name the value and what is allowed.
 */
int run_budget_check(struct run_budget *b, struct err *e);

/**
 * run_budget_set() - have the network's object say it; nothing without --budget
 * @job:	its name
 *
 * Return: CMD_OK; or an exit status, after a sentence on standard error.
 */
int run_budget_set(const struct run_budget *b, const char *network, const char *job);
