/*
 * spending_account.h - the accounts (traffic_account.h) of the networks that have budgets, kept up
 * to date.
 *
 * A network's records of today are read from the store once. From then on its account grows by what
 * nodes tell this hub (traffic_book_news()); and where there are other hubs, by their records, of
 * which those that were written since are taken each minute.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "cost/price.h"
#include "hub/traffic/traffic_account.h"
#include "mesh/object/budget.h"

struct model;
struct model_network;
struct traffic_book;
struct spending_account;

/** How often it is looked for what other hubs have written. */
#define SPENDING_OTHERS_EACH (60 * NSEC_PER_SEC)

struct spending_accounts {
    struct model *model;       /* pins, like the next two */
    struct traffic_book *book; /* what is read */
    /* Of networks without a table of their own; NULL: they have none. */
    const struct prices *prices;
    uint64_t seed;   /* random, of their tables */
    struct list all; /* of struct spending_account */
    uint64_t n_made; /* since the start */
};

/** spending_accounts_init() - there is none. @prices: of networks without a table of their own;
 * NULL: their budgets of money stand still. @seed: random, unknown to strangers. */
void spending_accounts_init(struct spending_accounts *s, struct model *model,
    struct traffic_book *book, const struct prices *prices, uint64_t seed);

/** spending_accounts_deinit() - forget them; idempotent. Reads that are on their way must have been
 * answered, or never are. */
void spending_accounts_deinit(struct spending_accounts *s);

/** spending_accounts_follow() - each second: take what nodes have told, and drop the accounts of
 * networks that are gone or have no budget any more. */
void spending_accounts_follow(struct spending_accounts *s);

/** spending_account_of() - lends the account of @net for @today, empty at first; NULL: no memory.
 */
struct spending_account *spending_account_of(
    struct spending_accounts *s, const struct model_network *net, int32_t today);

/** spending_account_read() - begin to read its records, if it is time for that. */
void spending_account_read(struct spending_account *a, nsec_t now);

/** spending_account_is_whole() - is everything known that was written until its last read? */
bool spending_account_is_whole(const struct spending_account *a);

/** spending_account_take_read() - has a read ended since the last call? */
bool spending_account_take_read(struct spending_account *a);

/**
 * spending_account_price() - what was moved, for each budget of @net, which is the account's
 *
 * Return: 0, or -ENOMEM.
 */
int spending_account_price(struct spending_account *a, const struct model_network *net, nsec_t now,
    struct traffic_spent ret[static BUDGETS_MAX]);

/** spending_account_own() - what @node alone tells that it has sent for budget number @k. */
struct price_sum spending_account_own(
    const struct spending_account *a, const char *node, unsigned k);

/** spending_account_dispute() - traffic_disputes_due() of its day. */
const struct traffic_dispute *spending_account_dispute(struct spending_account *a, nsec_t now);
