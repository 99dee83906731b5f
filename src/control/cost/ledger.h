/*
 * ledger.h - bytes and money by edge, by job and by day: what `weft cost` shows.
 *
 * Pure: rows in, JSON and text out.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "mesh/object/network.h"
#include "mesh/object/prices.h"
#include "path/path.h"

struct str;

/* ---- what bytes between two nodes cost, by a price table (mesh/object/prices.h) -------------- */

/*
 * The sender's provider is who asks for money. Inside an island, and on a LAN path, a byte costs
 * what the sender's row says of crossing a zone; on every other path what it says of leaving the
 * provider, with its NAT gateway. What is relayed the hub sends once more, at the price of the
 * hub's row. What a row does not say has no price, and is told apart: it is not taken for free.
 */

/** Who bears a row out. */
enum traffic_word {
    TRAFFIC_WORD_BOTH,    /* both ends */
    TRAFFIC_WORD_ONE,     /* one, and the other one never tells */
    TRAFFIC_WORD_WAITING, /* one, and the other one has not told of that day yet */
    TRAFFIC_WORD_N,
};

/** What went from one node to another one, by one path and for one job. */
struct traffic_row {
    const char *from; /* borrowed, like @to and @job */
    const char *to;   /* "": nodes that had no sum of their own */
    const char *job;  /* "": none */
    enum path_kind path;
    enum traffic_word word;
    uint64_t bytes;
};

/** By what prices are found. Borrowed. */
struct price_facts {
    const struct prices *prices; /* NULL: there are none */
    const json_t *nodes;         /* {"islands": {"NODE": "ISLAND"}, as they were declared, "hubs":
                                    ["HUB"], the first of which relays}; none need be there */
};

/** Bytes and money. */
struct price_sum {
    uint64_t bytes;
    uint64_t alone;    /* of them, those that only one end tells of */
    uint64_t unpriced; /* of them, those without the sender's price, or the hub's if it sent on */
    double money;      /* by the prices that there are, in the table's currency */
};

/** price_add() - what @row says went that way, whose job does not matter; bytes stop as
 * traffic_total() does. */
void price_add(
    struct price_sum *sum, const struct price_facts *facts, const struct traffic_row *row);

/* ---- the ledger ------------------------------------------------------------------------------ */

/**
 * ledger_make() - what a hub answers to GET /v1/networks/{network}/traffic, with money
 * @prices:	NULL: those that the answer has, if it has some
 * @answer:	borrowed
 *
 * Return: {"network", "since", "until", "currency", "total", "edges", "jobs", "days", "leftOut",
 * "disputes", "budgets"}, a new reference; NULL with words.
 */
json_t *ledger_make(const struct prices *prices, const json_t *answer, struct err *e);

/** ledger_format() - what ledger_make() has made, for people; appends to @out. */
void ledger_format(struct str *out, const json_t *ledger);

/* ---- how much of a budget (mesh/object/network.h) is spent ------------------------------------
 */

enum spent_level {
    SPENT_LOW,
    SPENT_NEAR_END, /* SPENT_NEAR or more */
    SPENT_ALL,
};

/** What is known of one budget. */
struct spent {
    struct budget budget; /* of which job, and how much it is */
    struct price_sum sum;
    double share; /* of the budget; 1: all of it */
    enum spent_level level;
};

/** The budgets of one network, of one day. */
struct spent_list {
    struct spent items[BUDGETS_MAX];
    unsigned n;
};

/** spent_measure() - set the share and the level, by the budget and the sum. */
void spent_measure(struct spent *s);

/** spent_find() - lends the one of that job, NULL: there is none. */
const struct spent *spent_find(const struct spent_list *list, const char *job);

/** spent_encode() - [spent_encode_one()]; a new reference. */
json_t *spent_encode(const struct spent_list *list);

/** spent_encode_one() - {"job", "level", "share", "bytes", "oneEndBytes", "cost", "unpricedBytes",
 * "bytesPerDay" or "costPerDay", "capBitsPerSecond", "ignoredCap"}; a new reference. */
json_t *spent_encode_one(const struct spent *s);

/** spent_format() - appends "1.90 GB of 2.00 GB a day (95.0 %), near its end" and, of a budget that
 * still says a cap, "; its cap of 50Mbit has no effect". @line: of spent_encode_one(), of which
 * what is missing or wrong is taken for 0. */
void spent_format(struct str *out, const json_t *line);

/** spent_format_all() - appends "budget of job NAME: " or "budget of the network: ", and that, a
 * line for each of @lines. */
void spent_format_all(struct str *out, const json_t *lines);
