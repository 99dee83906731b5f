/*
 * prices.h - what bytes, ports and GPUs cost, from a table that the user edits.
 *
 * JSON, see docs/PLAN.md; all amounts are in one currency. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/parse.h"
#include "mesh/object/object_meta.h"

/** Most islands, and most links, of a table. */
#define PRICES_ISLANDS_MAX 64
#define PRICES_LINKS_MAX   64

#define PRICES_NAME_MAX 64 /* bytes of a name, with its zero */

/** What an island's provider takes. GB are 10^9 bytes. */
struct prices_island {
    char name[NAME_MAX_LEN + 1]; /* the island's name in the plan; "": of all that are not named */
    double egress;               /* per GB that leaves the provider; NAN: it is not said */
    double nat;                  /* per GB through its NAT gateway */
    double nat_hour;             /* of that gateway, per hour */
    double cross_zone; /* per GB between two zones of it, that is inside the island; NAN likewise */
    unsigned zones;    /* zones that its nodes are in; 1: nothing passes between zones */
    double gpu_hour;   /* per GPU and hour */
};

/** A dedicated line that may be ordered between islands. */
struct prices_line {
    char name[PRICES_NAME_MAX]; /* such as "Direct Connect 10G" */
    double month;               /* ports and cross-connects of both ends, per month */
    double gb;                  /* per GB that passes it */
    double bps;                 /* bits per second */
};

/** A price table. */
struct prices {
    char currency[8];
    struct prices_island islands[PRICES_ISLANDS_MAX];
    size_t n_islands;
    struct prices_line lines[PRICES_LINKS_MAX];
    size_t n_lines;
    char one_place[PRICES_NAME_MAX]; /* where all GPUs could be had; "": nowhere */
    double one_place_gpu_hour;       /* per GPU and hour there */
};

/** prices_default() - a table with list prices of 2025; the plan says that it is taken. */
void prices_default(struct prices *ret);

/**
 * prices_decode() - read a table
 * @mode:	whether unknown fields are refused
 * @ret:	untouched on failure
 *
 * Return: 0, or -EINVAL with words that name the field: it is unknown, missing, negative, above
 * 10^9, or given twice.
 */
int prices_decode(struct prices *ret, const json_t *json, enum object_mode mode, struct err *e);

/** prices_encode() - as prices_decode() takes it; a new reference, NULL: no memory. */
json_t *prices_encode(const struct prices *p);

/** prices_find() - the row of exactly that name, borrowed; NULL: there is none. @p: NULL: no table.
 */
const struct prices_island *prices_find(const struct prices *p, const char *name);

/** prices_of() - the row of that island, or the one for all others, or one that says nothing;
 * borrowed. @p: NULL: no table. */
const struct prices_island *prices_of(const struct prices *p, const char *island);

/** prices_per_gb() - what a GB costs that leaves this island for another one, as far as it is said.
 */
double prices_per_gb(const struct prices *p, const char *island);

/**
 * prices_break_even() - GB a month from which on a line is cheaper than the internet
 * @per_gb:	what a GB costs without it
 *
 * Return: INFINITY when a GB on the line costs as much or more.
 */
double prices_break_even(const struct prices_line *l, double per_gb);
