/*
 * price.h - what bytes between two nodes cost, by a price table (mesh/object/prices.h).
 *
 * The sender's provider is who asks for money. Inside an island, and on a LAN path, a byte costs
 * what the sender's row says of crossing a zone; on every other path what it says of leaving the
 * provider, with its NAT gateway. What is relayed the hub sends once more, at the price of the
 * hub's row. What a row does not say has no price, and is told apart: it is not taken for free.
 *
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "mesh/object/prices.h"
#include "path/path.h"

/** By what prices are found. Borrowed. */
struct price_facts {
    const struct prices *prices; /* NULL: there are none */
    const json_t *islands;       /* {"NODE": "ISLAND"}, as they were declared; NULL: none were */
    const char *hub;             /* the hub that relays; NULL: not known */
    const json_t *hubs;          /* ["HUB"], with all others; NULL: there is no other */
};

/** Bytes and money. */
struct price_sum {
    uint64_t bytes;
    uint64_t alone;    /* of them, those that only one end tells of; the caller's */
    uint64_t unpriced; /* of them, or of what the hub sent on, those without a price */
    double money;      /* of the others, in the table's currency */
};

/** price_sum_add() - @more into @sum; bytes stop as traffic_total() does. */
void price_sum_add(struct price_sum *sum, const struct price_sum *more);

/**
 * price_add() - @bytes went from @from to @to
 * @to:		"": to several nodes
 */
void price_add(struct price_sum *sum, const struct price_facts *facts, const char *from,
    const char *to, enum path_kind path, uint64_t bytes);
