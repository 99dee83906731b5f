/*
 * survey.h - measures the pairs of a network's members, and gathers the members' facts.
 *
 * A survey gives orders to the members' measuring services from this machine. First it asks all
 * members for their facts. Then it measures reachability, loss and RTT of the pairs in rounds,
 * before there is any load, then throughput in rounds, and then, at a part of that rate, loss. At
 * the end it measures those pairs that look bad once more, one after the other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/coordinator.h"
#include "train/preflight/preflight.h"

struct matrix;
struct member;
struct rounds_pair;

/** How the members are reached, and how much is measured. All pointers are borrowed. */
struct survey_plan {
    const char *purpose; /* "preflight" or "bench", told to others who find the members busy; or
                            SESSION_IN_BACKGROUND */
    struct coordinator_hooks reach; /* the members, and how orders are proven to them */
    uint32_t pings;                 /* in a train */
    uint32_t ms;        /* least duration of a transfer; 0: throughput is not measured */
    uint32_t streams;   /* of the transfers with several streams; 1: there are none */
    uint64_t bytes;     /* most bytes of a transfer */
    uint32_t datagrams; /* of a test of loss; 0: it is not made */
    bool force;         /* measure throughput even if the network is in use */
    bool alone;         /* measure throughput of one pair at a time, where they share a line */

    /* Called at the beginning of each step with words for it; NULL: not wanted. */
    void (*progress)(const char *what);
};

/** A survey and what it has found. */
struct survey {
    struct preflight_node *nodes; /* owns; in the order given to survey_open() */
    size_t n_nodes;
    struct preflight_pair *pairs; /* owns; all pairs, by rounds_index() */
    size_t n_pairs;
    bool is_live; /* a member had a job, or traffic as of a job, when it was asked for its facts */
    bool skipped_bulk; /* neither throughput nor loss was measured, because of @is_live */
    struct coordinator coordinator; /* owns; the connections to the members, in the same order */
};

#define SURVEY_NULL                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

/** survey_deinit() - end the session with all members; idempotent, safe on SURVEY_NULL. */
void survey_deinit(struct survey *s);

/**
 * survey_open() - begin a session with all members, and ask for their facts
 * @s:		SURVEY_NULL; survey_deinit() is due also after a failure
 * @members:	@n of them, at least 1; copied. Each pair takes more than a kilobyte here
 *
 * Return: 0, also when some other members do not take part; or negative errno with words:
 * -EAGAIN	the service of this machine does not answer, or measures for somebody else
 * -ENOMEM	no memory
 */
int survey_open(struct survey *s, const struct survey_plan *plan, const struct member *members,
    size_t n, struct err *e);

/**
 * survey_run() - measure; call it after survey_open()
 *
 * Checks how names resolve, measures all pairs without load, then their throughput and their loss,
 * and then the pairs that look bad once more. Blocks until all of that is done.
 *
 * Return: 0 or -ENOMEM.
 */
int survey_run(struct survey *s, const struct survey_plan *plan);

/**
 * survey_matrix() - what was measured, as the matrix that a plan is made of
 * @ret:	untouched on failure; released by matrix_deinit()
 *
 * Return: 0 or -ENOMEM.
 */
int survey_matrix(const struct survey *s, struct matrix *ret);

/** survey_bulk_order() - to measure that pair's throughput, for long enough for its round trip. */
struct order survey_bulk_order(const struct survey_plan *plan, const struct preflight_pair *p,
    uint32_t streams, enum order_direction way);

/**
 * survey_loss_order() - to count how many datagrams are lost in a direction of a pair
 * @from_b:	from its second member to its first
 *
 * At half of the rate that was measured there, or at a moderate one where none was.
 */
struct order survey_loss_order(const struct survey *s, const struct survey_plan *plan,
    const struct preflight_pair *p, bool from_b);

/** survey_rounds() - in how many rounds throughput is measured. */
size_t survey_rounds(const struct survey *s, const struct survey_plan *plan);

/**
 * survey_round() - the pairs whose throughput is measured at the same time
 * @round:	below survey_rounds()
 * @ret:	room for half as many as there are members, and for one
 *
 * Return: the number of pairs.
 */
size_t survey_round(
    const struct survey *s, const struct survey_plan *plan, size_t round, struct rounds_pair *ret);

/**
 * survey_ask_bulk() - measure the throughput of some pairs at the same time
 * @orders:	by pair: a BULK order, whose peer is set here; ORDER_NONE: it is not measured
 * @ret:	by pair: the result; set only where @measured is true
 * @measured:	by pair: set to whether there is a result
 *
 * Each member may be in one pair that is measured at most.
 */
void survey_ask_bulk(
    struct survey *s, const struct order *orders, struct bulk *ret, bool *measured);

/**
 * survey_ask_bursts() - the same with bursts, of pairs whose both members know of them
 * @orders:	by pair: a BURST order, whose peer is set here; ORDER_NONE: it is not measured
 * @from_b:	from the second member of each pair to its first
 */
void survey_ask_bursts(
    struct survey *s, const struct order *orders, bool from_b, struct burst *ret, bool *measured);
