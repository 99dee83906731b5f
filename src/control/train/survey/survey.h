/*
 * survey.h - measures the pairs of a network's members, and gathers their facts.
 *
 * Drives the members' measuring services from this machine: facts of all at
 * once; then light measurements in rounds, so that loss and RTT are those of a
 * quiet network; then throughput in rounds; and what looks bad once more, alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/coordinator.h"
#include "train/preflight/preflight.h"

struct err;

/** Most members that are surveyed together: a pair costs more than a kilobyte here. */
#define SURVEY_NODES_MAX 256

/** Which members are measured, and how much. */
struct survey_plan {
    const char *purpose;     /* "preflight", "bench"; for who finds the members busy */
    struct ip_addr own;      /* the overlay address of this machine */
    const char *socket_path; /* of its own measuring service; NULL: by address, too (tests) */
    const char *interface;   /* the overlay's; NULL: as routed */
    uint16_t port;           /* PROBE_PORT */
    uint32_t pings;          /* of a train */
    uint32_t ms;             /* of a transfer; 0: none */
    uint32_t streams;        /* of the second transfer */
    uint64_t bytes;          /* of a transfer, at most */
    bool force;              /* measure throughput although a job runs */

    /* Called now and then with words for what is being done; NULL: nobody wants to know. */
    void (*progress)(void *ctx, const char *what);
    void *ctx;
};

struct survey {
    struct preflight_node *nodes; /* owns */
    size_t n_nodes;
    struct preflight_pair *pairs; /* owns; all, by rounds_index() */
    size_t n_pairs;
    bool is_live; /* something uses the network already */
    bool skipped_bulk;
    struct coordinator coordinator;
};

#define SURVEY_NULL                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

/** survey_deinit() - end the session with all members; idempotent, safe on SURVEY_NULL. */
void survey_deinit(struct survey *s);

/**
 * survey_open() - begin a session with all members, and ask for their facts
 * @s:		SURVEY_NULL
 * @names, @addresses:	@n of them, 1 to SURVEY_NODES_MAX; copied
 *
 * Return: 0, also when some members do not take part; negative errno with words when nothing can be
 * measured at all: there is no service on this machine, or somebody else measures.
 */
int survey_open(struct survey *s, const struct survey_plan *plan, const char *const names[],
    const struct ip_addr addresses[], size_t n, struct err *e);

/**
 * survey_run() - after survey_open(): names, all pairs without load, throughput, and doubtful pairs
 * again
 *
 * Return: 0 or -ENOMEM.
 */
int survey_run(struct survey *s, const struct survey_plan *plan);

/** survey_input() - what was found, in the form that preflight_judge() takes; borrows from @s. */
struct preflight_input survey_input(const struct survey *s);

/**
 * survey_ask_bulk() - measure the throughput of some pairs at the same time
 * @asked:	by pair: is it to be measured? At most one pair of each member
 * @orders:	by pair: BULK, without its peer
 * @ret:	by pair: the result, set where there was an answer
 * @measured:	by pair: set where @asked: was there an answer?
 */
void survey_ask_bulk(struct survey *s, const bool *asked, const struct order *orders,
    struct bulk *ret, bool *measured);
