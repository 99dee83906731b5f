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
#include "train/preflight.h"

struct err;

/** Most members that are surveyed together: a pair costs more than a kilobyte here. */
#define SURVEY_NODES_MAX 256

/** Who, and how much. */
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

    /* Told now and then, with a clause; NULL: nobody listens. */
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

void survey_deinit(struct survey *s);

/**
 * survey_open() - find the members' services, and their facts
 * @names, @addresses:	@n of them, 1 to SURVEY_NODES_MAX; copied
 *
 * Return: 0, also when members could not be had; negative errno with words when
 * nothing can be done at all (no service on this machine, somebody else measures).
 */
int survey_open(struct survey *s, const struct survey_plan *plan, const char *const names[],
    const struct ip_addr addresses[], size_t n, struct err *e);

/** survey_run() - names, light, throughput, and doubtful pairs again. 0 or -ENOMEM. */
int survey_run(struct survey *s, const struct survey_plan *plan);

/** survey_input() - what was found, as preflight_judge() takes it; borrowed. */
struct preflight_input survey_input(const struct survey *s);

/**
 * survey_ask_bulk() - throughput of some pairs at the same time
 * @asked:	by pair: to be measured; at most one pair of each member
 * @orders:	by pair: BULK, without its peer
 * @ret:	by pair: set where @asked, and @measured then says whether there was an answer
 */
void survey_ask_bulk(struct survey *s, const bool *asked, const struct order *orders,
    struct bulk *ret, bool *measured);
