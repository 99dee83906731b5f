/*
 * spent.h - how much of a budget (mesh/object/budget.h) is spent.
 *
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "cost/price.h"
#include "mesh/object/budget.h"

/** The share from which on people are told that a budget comes to its end. */
#define SPENT_NEAR 0.8

enum spent_level {
    SPENT_LOW,
    SPENT_NEAR_END, /* SPENT_NEAR or more */
    SPENT_ALL,
};

/** What is known of one budget. */
struct spent {
    struct budget budget; /* of which job, and how much it is */
    double share;         /* of the budget; 1: all of it */
    struct price_sum sum;
    enum spent_level level;
};

/** The budgets of one network, of one day. */
struct spent_list {
    struct spent items[BUDGETS_MAX];
    unsigned n;
};

/** spent_judge() - how much of @budget @sum is. */
struct spent spent_judge(const struct budget *budget, const struct price_sum *sum);

/** spent_find() - lends the one of that job, NULL: there is none. */
const struct spent *spent_find(const struct spent_list *list, const char *job);

/** spent_encode() - [spent_encode_one()]; a new reference. */
json_t *spent_encode(const struct spent_list *list);

/** spent_encode_one() - {"job", "level", "share", "bytes", "oneEndBytes", "cost", "unpricedBytes",
 * "bytesPerDay" or "costPerDay", "capBitsPerSecond", "ignoredCap"}; a new reference. */
json_t *spent_encode_one(const struct spent *s);
