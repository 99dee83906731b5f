/*
 * linear.h - is a history of requests to one register linearizable?
 *
 * The check is the search of Wing and Gong ("Testing and verifying concurrent objects", 1993) with
 * Lowe's memory of what was looked at ("Testing for linearizability", 2017), key by key, as
 * Porcupine has it. A key of a store is a register with compare-and-put. Each write has a value of
 * its own, so a commit that names a revision is one that names a value.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/** What a request has turned out to be. */
enum linear_kind {
    LINEAR_READ,    /* has seen @value */
    LINEAR_SWAP,    /* @expect became @value */
    LINEAR_REFUSED, /* the register was not @expect */
    LINEAR_UNKNOWN, /* a LINEAR_SWAP or nothing, at any time after its call */
};

/** A request to one register, whose first value is 0. */
struct linear_op {
    enum linear_kind kind;
    unsigned key;
    unsigned expect;
    unsigned value;
    nsec_t called_at;   /* any clock that all of a history have in common */
    nsec_t answered_at; /* NSEC_NEVER: never */
};

/** Most requests of one register. */
#define LINEAR_OPS_MAX 63

/** linear_check() - is there an order of @n requests that explains what they were answered? */
bool linear_check(const struct linear_op *ops, size_t n);

/** linear_print() - a history, a line each request, as cmocka prints errors. */
void linear_print(const struct linear_op *ops, size_t n);
