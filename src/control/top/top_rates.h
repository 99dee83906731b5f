/*
 * top_rates.h - from sums of bytes that are seen again and again to bytes a second.
 *
 * A sum is of all that one node has sent to another one. An agent's counters are as they are at the
 * moment, so two looks make a rate. What a hub knows grows in steps, since nodes tell it each
 * minute, or each quarter of one where a job runs; a rate is what a step has added, by the time
 * since the step before. So it takes two steps until one is known, and a sum that has made none for
 * a minute and a half stands still.
 *
 * Pure: @now is monotonic.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/** A sum that has not grown for so long does not grow. */
#define TOP_RATES_STILL (90 * NSEC_PER_SEC)

struct top_flow;

struct top_rates {
    struct top_flow **items; /* owns, also what they point to; sorted by name */
    size_t n;
    size_t cap;
    nsec_t now;      /* of the look that is under way */
    unsigned look;   /* its number */
    bool is_stepped; /* sums grow in steps */
};

/** top_rates_deinit() - forget all. */
void top_rates_deinit(struct top_rates *r);

/** top_rates_begin() - a look begins. */
void top_rates_begin(struct top_rates *r, nsec_t now);

/** top_rates_add() - @from has sent @to so many bytes in all; several of one pair are added up. */
void top_rates_add(struct top_rates *r, const char *from, const char *to, uint64_t bytes);

/** top_rates_end() - the look is over: what was not in it is forgotten. */
void top_rates_end(struct top_rates *r);

/** top_rates_take() - a look at the rows of GET /v1/networks/{network}/traffic. */
void top_rates_take(struct top_rates *r, const json_t *rows, nsec_t now);

/** top_rates_take_status() - a look at what the agent of a node counts (GET /v1/status). */
void top_rates_take_status(struct top_rates *r, const json_t *status, nsec_t now);

/** top_rates_find() - bytes/s; NAN: not known. */
double top_rates_find(const struct top_rates *r, const char *from, const char *to);

/** top_rates_of_node() - what it sends to all others, or is sent; NAN: nothing of it is known. */
void top_rates_of_node(
    const struct top_rates *r, const char *node, double *ret_sent, double *ret_received);

/** top_rates_total() - of all; NAN: nothing is known. */
double top_rates_total(const struct top_rates *r);
