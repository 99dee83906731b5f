/*
 * traffic_read.h - reads what went over a network's edges, day by day, from the store.
 *
 * All hubs' records are read, so any hub answers for all. What nodes have told other hubs in the
 * last minute may be missing.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cost/ledger.h"
#include "mesh/object/traffic.h"
#include "store/keys.h"

struct model_network;
struct traffic_book;

/* ---- from what nodes say they have moved on a day to what went each way of each edge --------- */

/*
 * Theory of operation. Both ends count what went from A to B: A what it has sent, B what it has
 * received. The two differ a little, by what was lost on the way (it was sent, and is paid for) and
 * by what one end has not told yet. Members are not trusted, so an end's word counts only as far as
 * the other end's bears it out: the greater of the two, but no more than a tenth above the lesser.
 * What one end says beyond that is not counted, and where it is much it is a dispute. The same
 * holds for each job of the edge, and what no job is counted for was moved for none. The path is as
 * the sender says, whose provider asks for the money.
 *
 * Some ends never tell anything: a stock WireGuard, a hub, a node that was removed before it did.
 * There the other end's word is all there is, and the row says so. Of a member that tells, but has
 * not told of that day yet, the row says this.
 *
 * A node whose edges are too many for a sum each has one sum for all others (TRAFFIC_OTHERS). What
 * its peers say of it is borne out by that sum as well.
 *
 * Pure.
 */

/** Most disputes of one day that are told. */
#define TRAFFIC_DISPUTES_MAX 256

/** What one node says of one day. */
struct traffic_node {
    struct keyed keyed;     /* its name */
    struct traffic traffic; /* owns */
    uint64_t others[2];     /* traffic_edges_make()'s: what it has not told apart */
};

/** The ends of an edge contradict each other. */
struct traffic_dispute {
    const char *from; /* borrowed, as of a row */
    const char *to;
    const char *job;   /* that they differ about; "": all that went that way */
    uint64_t sent;     /* bytes, as the sender says */
    uint64_t received; /* as the receiver says */
    uint64_t counted;
};

/** What is settled. */
struct traffic_edges {
    struct traffic_row *rows; /* owns; in the order of from, to, job and path; their texts are
                                 borrowed from the struct traffic_node */
    size_t n;
    struct traffic_dispute disputes[TRAFFIC_DISPUTES_MAX];
    size_t n_disputes; /* of @disputes */
};

/**
 * traffic_edges_make() - settle all that the nodes say of one day
 * @ret:	its rows are for free(); borrows from @nodes
 * @nodes:	of struct traffic_node
 * @net:	has the members, some of whom may have told nothing; NULL: there are none any more
 *
 * Return: 0 or -ENOMEM.
 */
int traffic_edges_make(
    struct traffic_edges *ret, const struct keys *nodes, const struct model_network *net);

/** "both", "one", "waiting", as in JSON. */
extern const char *const traffic_word_names[TRAFFIC_WORD_N];

/* ---- reading day by day from the store ------------------------------------------------------- */

/** Who reads, and what. */
struct traffic_reader {
    char network[NAME_MAX_LEN + 1];
    int32_t since; /* the first day, and the last one */
    int32_t until;
    /* What one day comes to, borrowed; in the order of days, each at most once. */
    void (*on_day)(void *ctx, int32_t day, const struct traffic_edges *edges);
    /* The end: 0, or negative errno with words. */
    void (*on_end)(void *ctx, int r, const struct err *e);
    void *ctx; /* pinned until then */
};

/**
 * traffic_read() - what this hub was told is written first, and then read with the rest
 *
 * Return: 0: accepted, and on_end is called once, later; or negative errno with words.
 */
int traffic_read(
    struct traffic_book *b, const struct traffic_reader *reader, nsec_t now, struct err *e);

/** traffic_read_nodes() - what prices depend on, as struct price_facts has it; a new reference.
 * @net: NULL: it is gone. */
json_t *traffic_read_nodes(const struct model_network *net);
