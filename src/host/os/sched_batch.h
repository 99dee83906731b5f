/*
 * sched_batch.h - a thread that does not preempt whoever woke it (SCHED_BATCH)
 *
 * A program that sends a packet wakes the thread that carries it on. The
 * scheduler then often stops the program in the midst of its call, a moment before
 * it would have waited for the answer anyway. That is a switch too many, and on the
 * crowded run queue what the thread wakes in turn is sent to another processor,
 * asleep and with cold caches. A thread of the batch policy preempts nobody when it
 * wakes (sched(7), SCHED_BATCH), so it runs when the sender sleeps: some microseconds
 * later, and the answer is back earlier.
 *
 * Where a program computes on every processor, though, such a thread waits out that
 * program's slice, some milliseconds. So the effect is measured: the kernel
 * reports how long the thread had to wait for a processor. When that is long the thread
 * becomes an ordinary one again, for a longer time after each trial that fails. It also is
 * an ordinary one while its turns come more often than once a millisecond, because queues
 * would then overflow while it waits.
 *
 * Threads: all of it but @n_begun belongs to the thread itself.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct sched_batch {
    int fd;                   /* owns: the thread's schedstat; -1: not readable here, so never on */
    bool is_on;               /* the thread's policy is SCHED_BATCH */
    bool is_rare;             /* turns were rare at the last look */
    unsigned turn;            /* since the last look at pace and wait */
    nsec_t looked;            /* when that was */
    uint64_t waited, n_runs;  /* as last read: nanoseconds runnable but not running; times run */
    unsigned rest;            /* turns without the policy that are left */
    unsigned next_rest;       /* turns, after the next trial that fails */
    _Atomic uint64_t n_begun; /* times that it got the policy; any thread may read it */
};

/** sched_batch_begin() - for the calling thread, an ordinary one still; @b is all zero. */
void sched_batch_begin(struct sched_batch *b);

/** sched_batch_end() - the calling thread becomes an ordinary one again. */
void sched_batch_end(struct sched_batch *b);

/**
 * sched_batch_turn() - once in each turn of the thread's loop
 * @may:	the thread has little to do, and waits for others more than they wait for it
 */
void sched_batch_turn(struct sched_batch *b, bool may, nsec_t now);
