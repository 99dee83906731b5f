/*
 * edge_view.h - a network's edges as the hub knows them: both ends' parts, and the state.
 *
 * This joins what agents and probes report (reports.h) with the MeshEdge objects of the model. It
 * does so each time somebody reads the edges, and keeps nothing. What a probe said that is silent,
 * or whose machine is down, is not shown, nor what is said to reach a machine that is down.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "health/pair.h"
#include "hub/model/model.h"

/** A pair of nodes, in byte order of their names. Borrowed. */
struct edge_pair {
    const struct model_node *nodes[2];
};

/** edge_pair_find() - the nodes that "NAME--NAME" names, in the order there; false: not both are.
 */
bool edge_pair_find(struct edge_pair *ret, const struct model_network *net, const char *name);

struct edge_pairs {
    struct edge_pair *items; /* owns; sorted by name, each once */
    size_t n;
    size_t cap;
};

#define EDGE_PAIRS_NULL                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

/** edge_pairs_deinit() - release. */
void edge_pairs_deinit(struct edge_pairs *p);

/**
 * edge_pairs_known() - the pairs that a MeshEdge object or a report names
 * @and_implied: also the pairs that the network's topology implies, where the agent of one node
 *		has applied nothing yet or cannot apply anything
 *
 * Return: 0 or -ENOMEM.
 */
int edge_pairs_known(struct edge_pairs *ret, const struct model_network *net, bool and_implied);

/** edge_view_facts() - all that is known of the pair; lent until something is reported. */
void edge_view_facts(const struct edge_pair *pair, int64_t wall_s, struct pair_facts *ret);

/** What is measured of a pair now; [0]: from the first node to the second. */
struct edge_figures {
    enum edge_state state;
    bool is_alive;          /* packets pass; where they do not, what was measured holds no more */
    uint32_t rtt_us;        /* in the tunnel, of the probe that has the shorter one; 0: none */
    uint32_t direct_rtt_us; /* the median of an agent's pings on the direct path; 0: none */
    uint32_t jitter_us; /* of the same pings, as struct rtt_spread has it; with @direct_rtt_us */
    uint32_t loss_ppm[2];
    bool has_loss[2]; /* it is known */
};

/** edge_view_figures() - those of the facts; the other form looks them up. */
void edge_view_figures_of(const struct pair_facts *f, struct edge_figures *ret);
void edge_view_figures(const struct edge_pair *pair, int64_t wall_s, struct edge_figures *ret);

/** edge_view_status() - the `status` of a MeshEdge: all parts, the hub's too; NULL: none is known.
 */
json_t *edge_view_status(const struct edge_pair *pair, int64_t wall_s);

/** edge_view_object() - the MeshEdge, with its status; a new reference, NULL: no memory. */
json_t *edge_view_object(const struct edge_pair *pair, int64_t wall_s);

/**
 * edge_view_list() - all that are known of a network, in rows:
 * {"edges": [...], "counts": {...}, "leftOut": 0}
 *
 * Edges in trouble come first; the others follow as far as there is room.
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *edge_view_list(const struct model_network *net, int64_t wall_s);

/**
 * edge_view_list_all() - the same with the pairs of which nobody says anything
 *
 * Those come last, but for pairs with a node that is not heard, which are in trouble. There are
 * n * n / 2 of them, so no more are looked at than the list has room for, several times over; the
 * rest is counted in "leftOut" alone.
 */
json_t *edge_view_list_all(const struct model_network *net, int64_t wall_s);
