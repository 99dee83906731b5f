/*
 * budget.h - `spec.budgets` of a Network: what may be moved or spent on a day, by a job or by all.
 *
 * Pure: JSON in, a struct out, and back.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/parse.h"
#include "base/traffic.h"
#include "mesh/object/object_meta.h"

struct fields;

/** Most budgets of a network. */
#define BUDGETS_MAX 16

/** Most that a budget may be, of money or of bytes. */
#define BUDGET_MAX 1e15

/** A budget of a day, UTC. */
struct budget {
    char job[NAME_MAX_LEN + 1]; /* "": all that the network moves */
    double cost;                /* in the price table's currency; 0: it is of bytes */
    uint64_t bytes;             /* 0: it is of money */
    /* A cap that was stored when budgets had some: shown as without effect, and not written again;
     * "": none. */
    char ignored_cap[TRAFFIC_RATE_TEXT_MAX];
};

/** Those of a network. */
struct budgets {
    struct budget items[BUDGETS_MAX];
    unsigned n;
};

/** budgets_decode() - the field "budgets", of which a job has one at most. */
void budgets_decode(struct fields *f, enum object_mode mode, struct budgets *ret);

/** budgets_encode() - a new reference; NULL: there are none, or no memory. */
json_t *budgets_encode(const struct budgets *b);
