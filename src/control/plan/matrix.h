/*
 * matrix.h - what was measured between all pairs of a job's nodes, and who shares an island.
 *
 * The input of a plan. It is read from what `weft bench --json` or `weft preflight --json` has
 * printed. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/parse.h"

/** Most nodes of a plan. */
#define MATRIX_NODES_MAX 256

/** Nodes without a declared island share one when their round trip takes no longer, seconds. */
#define MATRIX_ISLAND_RTT 0.002

/** One machine. */
struct matrix_node {
    char name[NAME_MAX_LEN + 1];
    char island[NAME_MAX_LEN + 1]; /* "": nobody has said, and it has not been looked for yet */
};

/** One direction between two nodes. All zero: it was not measured. */
struct matrix_link {
    double rtt;      /* seconds, median on an idle link */
    double one_bps;  /* bits per second of one TCP connection */
    double many_bps; /* bits per second of several TCP connections together */
    double both_bps; /* the same while as many send the other way; 0: not measured */
    bool restarts;   /* after a pause TCP begins again with a small window, or that is not known */
    double kept;     /* share of its window that a loss leaves the sender; 1: BBR */
};

/** All of them. */
struct matrix {
    struct matrix_node *nodes; /* owns; @n of them */
    size_t n;
    struct matrix_link *links; /* owns; @n times @n; that from a to b is matrix_link(m, a, b) */
};

#define MATRIX_NULL {0}

/** matrix_deinit() - release both lists; idempotent, safe on MATRIX_NULL. */
void matrix_deinit(struct matrix *m);

/** matrix_new() - @n nodes without names, and nothing measured. Return: 0 or -ENOMEM. */
int matrix_new(struct matrix *ret, size_t n);

/**
 * matrix_decode() - read the output of `weft bench --json` or `weft preflight --json`
 * @ret:	untouched on failure
 *
 * Return: 0; -ENOMEM; or -EINVAL with words: it is neither of these, it names a node twice or a
 * node that is not listed, a value is out of bounds, or there are fewer than two nodes or more than
 * MATRIX_NODES_MAX.
 */
int matrix_decode(struct matrix *ret, const json_t *json, struct err *e);

/** matrix_link() - what was measured from node @from to node @to; borrowed. */
const struct matrix_link *matrix_link(const struct matrix *m, size_t from, size_t to);

/** matrix_is_measured() - are the round trip and a rate of both directions known? */
bool matrix_is_measured(const struct matrix *m, size_t a, size_t b);

/**
 * matrix_pick() - keep some of the nodes
 * @names:	"a,b,c"; they keep the order of @m
 *
 * Return: 0; -ENOMEM; or -EINVAL with words: a name is no node of the matrix or stands there twice,
 * or there are fewer than two.
 */
int matrix_pick(struct matrix *m, const char *names, struct err *e);

/**
 * matrix_replace() - take over what another matrix has measured
 *
 * Pairs that were not measured there stay as they are in @m.
 *
 * Return: 0, or -EINVAL with words: @next has a node that @m has not.
 */
int matrix_replace(struct matrix *m, const struct matrix *next, struct err *e);

/**
 * matrix_declare() - take a node's island from what an agent says of it
 * @json:	an object with "name" and "island"; anything else, or an unknown name, changes
 * nothing
 */
void matrix_declare(struct matrix *m, const json_t *json);

/**
 * matrix_set_islands() - declare islands
 * @text:	"a,b/c,d": a and b are one island, c and d another
 *
 * An island is called like its first node. Nodes that are not in @text keep what they have.
 *
 * Return: 0, or -EINVAL with words: a name is no node of the matrix, or stands there twice.
 */
int matrix_set_islands(struct matrix *m, const char *text, struct err *e);

/**
 * matrix_find_islands() - find an island for each node that has none
 *
 * Two such nodes share one when a chain of such nodes leads from one to the other, in which each
 * round trip takes at most MATRIX_ISLAND_RTT. It is called like the first of them.
 *
 * Return: how many nodes had none.
 */
size_t matrix_find_islands(struct matrix *m);
