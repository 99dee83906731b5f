/*
 * ledger.h - bytes and money by edge, by job and by day: what `weft cost` shows.
 *
 * Pure: rows in, JSON and text out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cost/price.h"

struct err;
struct str;

/** One line. */
struct ledger_line {
    char *name;     /* owns; a job, a day, or "FROM\nTO" */
    unsigned paths; /* bits 1 << enum path_kind: those that were used */
    struct price_sum sum;
};

/** Lines in the order of their names. */
struct ledger_part {
    struct ledger_line *lines; /* owns */
    size_t n;
    size_t cap;
};

struct ledger {
    struct ledger_part edges; /* by direction */
    struct ledger_part jobs;  /* "": of no job */
    struct ledger_part days;
    struct price_sum total;
};

#define LEDGER_NULL                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

/** ledger_deinit() - idempotent. */
void ledger_deinit(struct ledger *l);

/** What went one way between two nodes on a day. Borrowed. */
struct ledger_row {
    const char *day;
    const char *from;
    const char *to;  /* "": several nodes */
    const char *job; /* "": none */
    enum path_kind path;
    bool is_alone; /* it is the word of one end only */
    uint64_t bytes;
};

/** ledger_add() - 0 or -ENOMEM. */
int ledger_add(struct ledger *l, const struct price_facts *facts, const struct ledger_row *row);

/**
 * ledger_read() - add what a hub answers to GET /v1/networks/{network}/traffic
 * @prices:	NULL: there are none
 * @answer:	borrowed
 *
 * Return: 0; -EINVAL with words; or -ENOMEM.
 */
int ledger_read(struct ledger *l, const struct prices *prices, const json_t *answer, struct err *e);

/**
 * ledger_encode() - {"since", "until", "currency", "total", "edges", "jobs", "days", "leftOut",
 * "disputes"}
 * @answer:	that was read
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *ledger_encode(const struct ledger *l, const struct prices *prices, const json_t *answer);

/** ledger_format() - what ledger_encode() has made, for people; appends to @out. */
void ledger_format(struct str *out, const json_t *ledger);
