/*
 * thread.h - threads: named, woken, and kept out of what changes.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Threads with a name, and the gate between data and control.
 *
 * The gate is a readers-writer lock cut into one part per reader thread, so
 * that readers share no cache line:
 *
 *   - A data thread enters its own part once per batch, and may then use
 *     everything that control publishes (tries, index table, sessions).
 *   - Control closes the gate, which waits until every data thread is outside,
 *     changes what cannot be changed with one atomic store, and opens it.
 *   - Closing and opening it without doing anything in between is a grace
 *     period: what was unlinked before has no user any more and may be freed.
 *
 * Each part prefers its writer, so that a busy reader cannot starve control.
 */

/** Most data threads behind one gate. */
#define GATE_READERS_MAX 64

/** One reader's part, alone on its cache lines. */
struct gate_part {
    _Alignas(128) pthread_rwlock_t lock; /* read: the owner thread; write: control */
};

struct gate {
    struct gate_part *parts; /* owns; immutable after init */
    unsigned n;              /* parts; immutable after init */
};

/** gate_init() - for @n_readers threads, numbered from 0. 0 or -ENOMEM. */
int gate_init(struct gate *g, unsigned n_readers);

/** gate_deinit() - when no reader is left. */
void gate_deinit(struct gate *g);

/** gate_enter(), gate_leave() - reader @i goes in and out; once per batch, never nested. */
void gate_enter(struct gate *g, unsigned i);
void gate_leave(struct gate *g, unsigned i);

/**
 * gate_close() - wait until no reader is inside, and keep them out; one closer at a time
 * gate_open() - let them in again
 */
void gate_close(struct gate *g);
void gate_open(struct gate *g);

/** Most CPUs of a machine: those of the C library's sets (CPU_SETSIZE). */
#define CPULIST_MAX 1024

/** A set of CPUs; see cpulist_parse(). */
struct cpulist {
    unsigned short cpu[CPULIST_MAX]; /* ascending */
    unsigned n;                      /* 0: no restriction */
};

struct err;

/** cpulist_parse() - "0,2-5" as taskset(1) has it. 0 or -EINVAL with words. */
int cpulist_parse(struct cpulist *ret, const char *text, struct err *e);

/** cpulist_allowed() - the CPUs that this process may run on. */
void cpulist_allowed(struct cpulist *ret);

#define CPULIST_TEXT_MAX 256

/** cpulist_format() - "0,2-5" into @buf, cut short with "..." when it is too long; returns @buf. */
const char *cpulist_format(const struct cpulist *l, char buf[static CPULIST_TEXT_MAX]);

/**
 * cpulist_confine() - the calling thread, and those that it starts, run only there
 *
 * Return: 0, or -EINVAL with words that name a CPU that is not allowed, and those that are.
 */
int cpulist_confine(const struct cpulist *l, struct err *e);

/**
 * thread_start() - a thread with all signals blocked
 * @name:	at most 15 bytes are shown by ps and top
 * @cpu:	run only there; -1: wherever the process may
 *
 * Return: 0 or negative errno.
 */
int thread_start(pthread_t *ret, const char *name, int cpu, void *(*fn)(void *), void *arg);

/*
 * A thread that does not preempt whoever woke it (SCHED_BATCH)
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

/*
 * Wake a thread that sleeps in poll() or epoll_wait(), by an eventfd.
 *
 * The sleeper waits for the descriptor to be readable; any number of signals before it looks are
 * one. It clears the descriptor before it looks for the work, so that later work wakes it again.
 */

/** wakeup_open() - a descriptor that is not readable yet, non-blocking. Or negative errno. */
int wakeup_open(void);

/** wakeup_signal() - make it readable. Any thread; never blocks. */
void wakeup_signal(int fd);

/** wakeup_clear() - make it unreadable. Was it readable? */
bool wakeup_clear(int fd);
