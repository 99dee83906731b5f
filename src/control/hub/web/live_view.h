/*
 * live_view.h - a network as the page shows it, in rows (live_rows.h).
 *
 *     net        {"name", "cidr4", "nodes": how many, "events": number of the last one,
 *                "jobsElsewhere": another hub serves its jobs, "leftOut": nodes without a row}
 *     names      the nodes that are in the matrix, by name
 *     n/NAME     a node
 *     m/NAME     that node's pairs with those that follow it in "names"; see below
 *     j/NAME     a job
 *     f/CODE/SUBJECT   a finding
 *
 * A network of 200 nodes has 19,900 pairs, so theirs are short: a row of the matrix is a text with
 * a pair between each two commas, "" where nothing is known of it. It begins with a letter for its
 * state, 'a' for the first of enum edge_state; then there is what is known, each a capital letter
 * and a number with the digits 0-9a-z:
 *
 *     R  round trip in the tunnel, us, of the end that has the shorter one
 *     P  path, enum path_kind, where the state is none of a path
 *     X  lost of what the first end sends, parts in a million; Y: of what the second one sends;
 *        without it that is not known
 *     G  bytes/s that the job's connections carry from the first to the second; H: and back
 *
 * Nothing that is dead has a number, and nothing in a row grows old by itself: times are since
 * 1970.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/clock.h"

struct edge_events;
struct findings;
struct live_rows;
struct model_network;

/** Nodes of the matrix: the first ones by name. And nodes that have a row of their own. */
#define LIVE_MATRIX_MAX 256
#define LIVE_NODES_MAX  2000

/** Findings that have a row, the gravest. */
#define LIVE_FINDINGS_MAX 500

/** What is known elsewhere; each gives a reference, or NULL. */
struct live_sources {
    void *ctx;                                                                /* pins */
    json_t *(*nodes)(void *ctx, const struct model_network *net, nsec_t now); /* as the API says */
    json_t *(*jobs)(void *ctx, const struct model_network *net); /* NULL: another hub serves them */
    const struct findings *(*findings)(void *ctx, const struct model_network *net); /* lends */
    const struct edge_events *events;                                               /* pins */
};

/** live_view_make() - all rows of @net, between live_rows_begin() and live_rows_end(). */
void live_view_make(struct live_rows *rows, const struct live_sources *sources,
    const struct model_network *net, nsec_t now, int64_t wall_s);
