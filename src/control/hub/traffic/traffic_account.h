/*
 * traffic_account.h - what all nodes of a network have moved on one day, priced for its budgets, as
 * it grows.
 *
 * Theory of operation. traffic_edges.h makes rows of a whole day; here each flow that has grown is
 * taken by itself. Claims are kept by their sender, because what one sender's bytes cost depends on
 * claims about that sender only. A sender about whom a claim has grown is settled and priced anew
 * when it is asked what was spent, and nobody else is, but who has claims about a node that bears
 * out other things than before. If what prices depend on has changed, all are.
 *
 * Sums of a flow only grow, and of two the greater one counts; so a flow may be taken twice, from
 * several hubs' records, and in any order.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/htab.h"
#include "base/list.h"
#include "cost/price.h"
#include "hub/traffic/traffic_disputes.h"
#include "mesh/object/budget.h"
#include "mesh/object/traffic.h"

/** Most claims that are kept, about 50 MB: two of each flow that a hub has in memory. What has no
 * room is not counted for budgets. */
#define TRAFFIC_ACCOUNT_CLAIMS_MAX 1000000

struct traffic_account {
    int32_t day;
    struct htab names;     /* of struct account_name; it owns them */
    struct list senders;   /* of struct account_name: those about whom there are claims */
    struct list unsettled; /* of struct account_name: whose claims have grown since they were */
    size_t n_claims;
    uint64_t n_left_out; /* claims that had no room */
    struct traffic_disputes disputes;
};

/** What was moved for one budget. */
struct traffic_spent {
    struct price_sum all;    /* with what only one end can tell of */
    struct price_sum agreed; /* what both ends bear out */
    struct price_sum own;    /* of one sender: what it alone tells that it has sent */
};

/** By what it is priced. Borrowed. */
struct traffic_prices {
    const struct price_facts *facts;
    const struct budgets *budgets;
    const struct traffic_facts *ends; /* of nodes that have told nothing */
    nsec_t now;
};

/** traffic_account_init() - nothing was moved on @day. @seed: random, unknown to strangers. */
void traffic_account_init(struct traffic_account *a, int32_t day, uint64_t seed);

/** traffic_account_deinit() - forget it all; idempotent. */
void traffic_account_deinit(struct traffic_account *a);

/** traffic_account_take() - @node says that of @f; both are borrowed. */
void traffic_account_take(
    struct traffic_account *a, const char *node, const struct traffic_flow *f);

/** traffic_account_forget_prices() - something that prices or budgets depend on has changed. */
void traffic_account_forget_prices(struct traffic_account *a);

/**
 * traffic_account_price() - what was moved, for each of the budgets
 * @by:	its prices and budgets the same as in the last call, or traffic_account_forget_prices() was
 *	called
 * @ret:	of each budget
 *
 * Return: 0, or -ENOMEM.
 */
int traffic_account_price(struct traffic_account *a, const struct traffic_prices *by,
    struct traffic_spent ret[static BUDGETS_MAX]);

/** traffic_account_own() - what @node alone tells that it has sent for budget number @k. */
struct price_sum traffic_account_own(const struct traffic_account *a, const char *node, unsigned k);
