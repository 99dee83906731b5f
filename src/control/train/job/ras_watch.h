/*
 * ras_watch.h - asks NCCL's RAS how the ranks of a job are (health/ras_status.h).
 *
 * Theory of operation. The RAS of any process answers for the whole job, and asks all others for
 * it. So every node asks once, and who finds that it runs the lowest rank goes on to ask each five
 * seconds; the others ask now and then, in case that one is gone. Several jobs of one user may
 * share the port, so an answer counts only if a process of this command is in it. An NCCL that does
 * not answer in JSON is asked no more for a while.
 *
 * Nothing here waits: what has come is taken in at the next look.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "health/ras_status.h"

/** Where NCCL listens, if NCCL_RAS_ADDR does not say otherwise. */
#define RAS_WATCH_ADDRESS "localhost:28028"

struct ras_watch {
    struct endpoint at[2]; /* @n_at: where it is asked, by turns until one answers */
    unsigned n_at;
    unsigned turn;
    int fd;                /* owns; -1: nothing is being asked */
    bool is_sent;          /* the question is */
    char *answer;          /* owns; RAS_ANSWER_MAX + 1 bytes; NULL: nothing is being asked */
    size_t len;            /* of what has come */
    nsec_t asked_at;       /* this time */
    nsec_t next_at;        /* NSEC_NEVER: it is not asked */
    nsec_t still_since;    /* at each answer since then as much had started; 0: there was none */
    uint64_t n_started;    /* so much */
    nsec_t answered_at;    /* 0: never, or not by this job */
    struct ras_ranks said; /* then */
};

#define RAS_WATCH_NULL                                                                             \
    {                                                                                              \
        .fd = -1, .next_at = NSEC_NEVER                                                            \
    }

/** ras_watch_begin() - ask from now on, @w being RAS_WATCH_NULL; @address: NCCL_RAS_ADDR of the
 * job, NULL: it has none. Only "localhost" may stand there for an address. */
void ras_watch_begin(struct ras_watch *w, const char *address, nsec_t now);

/** ras_watch_look() - each second: ask if it is time, and take in what has come. */
void ras_watch_look(struct ras_watch *w, ras_own_fn is_own, const void *arg, nsec_t now);

/** ras_watch_add() - what it has said lately; untouched: nothing. */
void ras_watch_add(struct ras_ranks *ret, const struct ras_watch *w, nsec_t now);

/** ras_watch_end() - ask no more; idempotent. */
void ras_watch_end(struct ras_watch *w);
