/*
 * plan.h - which part of a training job goes where, how often its islands meet, and what that
 * costs.
 *
 * Tensor, pipeline, sequence, expert and data parallelism stay inside islands, of which each trains
 * a replica of the model. Between islands the plan says whether they can average their gradients in
 * each step, and if not, how many steps must lie between two exchanges (DiLoCo). It is made from
 * what was measured, and every assumption is written down in it. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "mesh/object/prices.h"
#include "plan/matrix.h"
#include "plan/model.h"
#include "plan/sync.h"

struct str;

/** Steps between two exchanges up to which DiLoCo was found to lose little (arXiv:2311.08105,
 * section 4, "Communication frequency"). */
#define PLAN_INTERVAL_GOOD 500

/** Layers of a fragment of Streaming DiLoCo (arXiv:2501.18512). */
#define PLAN_FRAGMENT_LAYERS 3

/** How all nodes average something. */
enum plan_kind {
    PLAN_RING,         /* one ring of all nodes */
    PLAN_TREE,         /* one tree of all nodes */
    PLAN_HIERARCHICAL, /* inside each island, between their leaders, and back */
    PLAN_KIND_N,
};

/** "ring", "tree" and "hierarchical". */
extern const char *const plan_kind_names[];

/** In what form islands exchange what they have learned. */
enum plan_form {
    PLAN_FP32,
    PLAN_BF16,
    PLAN_INT8, /* a scale for each 256 weights (Dettmers et al., arXiv:2110.02861, section 2) */
    PLAN_TOPK, /* the largest, as int8, with error feedback (Lin et al., arXiv:1712.01887) */
    PLAN_FORM_N,
};

/** "fp32", "bf16", "int8" and "topk". */
extern const char *const plan_form_names[];

/** Most sizes whose synchronisations are timed. */
#define PLAN_SYNCS_MAX 16

/** What is asked for. Pointers are borrowed. */
struct plan_options {
    struct model model;          /* 0 in it: guessed by model_guess() */
    const struct model_gpu *gpu; /* of all nodes */
    unsigned gpus;               /* of each node */
    double share;                /* most of the time that communication may take, 0 to 1 */
    double efficiency;           /* share of the GPUs' operations that a real job reaches */
    double fabric_bps;           /* between two nodes of an island; 0: as measured */
    enum sync_transport transport;
    const struct prices *prices;
    bool prices_given;                 /* they are the user's own */
    double sync_bytes[PLAN_SYNCS_MAX]; /* sizes of vectors whose synchronisations are timed, too */
    size_t n_syncs;
};

/** An island and what the plan has for it. */
struct plan_island {
    char name[NAME_MAX_LEN + 1];
    size_t first; /* its nodes are members[first] to members[first + n - 1], in its ring's order */
    size_t n;
    size_t leader; /* the node that talks to other islands */
    unsigned data; /* replicas that it trains */
};

/** Exchanging between islands every so many steps, in one form. */
struct plan_exchange {
    double bytes;    /* that each leader sends */
    double seconds;  /* of one exchange */
    double interval; /* least number of steps between two; INFINITY: never */
    double share;    /* of the time, with that interval */
    bool pays;       /* it is faster than fp32 by more than the compressing takes */
};

/** A vector of a size that was asked for, in each way and each form. All in seconds, INFINITY where
 * some link of it was not measured. */
struct plan_sync {
    double kinds[PLAN_KIND_N];    /* averaged by all nodes */
    double exchange[PLAN_FORM_N]; /* between islands after a pause, when it has as many bytes in
                                     fp32 */
};

/** Bytes between two leaders. */
struct plan_edge {
    size_t from; /* node */
    size_t to;
    double bytes_per_day;
    double money_per_day;
};

/** A line that could be ordered. */
struct plan_line {
    double break_even_gb;   /* GB a month from which on it is cheaper */
    double money_per_month; /* with the bytes of this plan */
};

/** How the model is cut inside the islands. */
struct plan_inside {
    struct model_cut cut;
    struct model_memory memory;
    struct model_waits waits;
    double work; /* seconds of computing of a step */
    double step; /* seconds of a step inside the islands */
    bool fits;   /* the memory of a GPU is enough; else @cut is the smallest that was found */
};

/** A plan. */
struct plan {
    const struct matrix *matrix; /* borrowed */
    struct plan_options opt;     /* with what was guessed */

    struct plan_inside inside;
    bool lacks_batch; /* a step has fewer sequences than there must be replicas; then it does not
                         fit either */

    struct plan_island *islands; /* owns */
    size_t n_islands;
    size_t *members; /* owns; all nodes, island by island */
    size_t *ring;    /* owns; all nodes in the order of one ring */
    size_t *parent;  /* owns; of one tree of all nodes: index of the parent node */
    size_t *leaders; /* owns; the islands' leaders in the order of their ring */

    double average_s[PLAN_KIND_N];     /* seconds of averaging the gradients in each step; INFINITY:
                                          some link of it was not measured */
    double average_share[PLAN_KIND_N]; /* of a step, when all that can be hidden behind the backward
                                          pass is */
    enum plan_kind best;               /* the fastest of these */
    bool is_synchronous;               /* all nodes may average their gradients in each step */
    size_t slow[2]; /* the slowest link between islands, by its nodes; valid with islands */
    struct plan_exchange exchange[PLAN_FORM_N];
    enum plan_form form;                    /* that which is advised */
    double fragments;                       /* Streaming DiLoCo: how many */
    double fragment_s;                      /* seconds to exchange one */
    double fragment_steps;                  /* steps behind which one is hidden */
    struct plan_sync syncs[PLAN_SYNCS_MAX]; /* as many as opt.n_syncs */
    double stream_interval; /* least steps between two exchanges of the same fragment */

    struct plan_edge *edges; /* owns; between the leaders, as the plan advises */
    size_t n_edges;
    double steps_per_day;
    double traffic_money;   /* per day */
    double gpu_money;       /* per day */
    double flat_money;      /* per day, were the gradients averaged in each step by one ring */
    double zone_bytes;      /* per day, between zones inside islands */
    double zone_money;      /* for them */
    double nat_money;       /* per day, of NAT gateways that are there, whatever passes them */
    double one_place_money; /* per day, for as many tokens in one place; 0: no such place */
    struct plan_line lines[PRICES_LINKS_MAX];
};

#define PLAN_NULL {0}

/** plan_deinit() - release what it owns; idempotent, safe on PLAN_NULL. */
void plan_deinit(struct plan *p);

/**
 * plan_make() - make a plan
 * @ret:	untouched on failure; release with plan_deinit()
 * @m:		every node has an island; borrowed as long as the plan
 *
 * Return: 0; -ENOMEM; or -EINVAL with words: two islands have no measured link between them.
 */
int plan_make(
    struct plan *ret, const struct matrix *m, const struct plan_options *opt, struct err *e);

/** plan_is_good() - does the model fit, and is there an interval at which islands can exchange? */
bool plan_is_good(const struct plan *p);

/** plan_encode() - as JSON: a new reference; NULL for no memory. */
json_t *plan_encode(const struct plan *p);

/** plan_format() - append the plan in words to @out, which remembers a failure. */
void plan_format(const struct plan *p, struct str *out);
