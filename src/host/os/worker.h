/*
 * worker.h - a thread beside a loop, the jobs on their way to it, and those on their way back.
 *
 * Theory of operation. A job is a struct that the caller has made, with a struct list in it, by
 * which it is handed over; it belongs to whoever has it, so what is inside needs no lock. The owner
 * puts jobs in, the thread takes them in that order, and what it finishes the owner collects in the
 * order of finishing. Each way has an eventfd that is readable for as long as something waits, so
 * that either side can wait for other descriptors as well, and nothing is lost by looking late.
 *
 * A worker that is given a job function does one job after the other. A thread that has more to
 * wait for than jobs (sockets, timers) brings its own loop, in which it takes jobs, or only
 * finishes some that the owner has never put in, or neither and is merely woken and ended.
 *
 * What becomes of jobs at the end: the one that is under way is finished. Those that were not begun
 * are dropped, unless the worker's own loop goes on taking until there are none; and so are those
 * that were not collected.
 *
 * Threads: the functions below say whose they are, the owner's or the worker's.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/containers.h"

struct worker;

struct worker_config {
    const char *name; /* of the thread, at most 15 bytes */
    unsigned max;     /* most jobs that wait to be taken; 0: the owner has a bound of its own */

    /* Before the thread, on the owner's: what the loop needs, as worker_fd() in a set of events. 0,
     * or negative errno with which it does not start. NULL: no need. */
    int (*prepare)(struct worker *w, void *ctx);

    /* One of both, on the thread: one job, which is finished when it returns; or the loop, which
     * returns when the worker is ending. */
    void (*job)(struct list *job);
    void (*loop)(struct worker *w, void *ctx);

    void (*drop)(struct list *job); /* releases a job that nobody takes any more; NULL: no need */
    void (*release)(void *ctx);     /* nobody uses @ctx any more; NULL: no need */
    void *ctx;                      /* pinned until then */
};

/* ---- the owner's ----------------------------------------------------------------------------- */

/**
 * worker_start() - start the thread
 * @ret:	set before the thread runs, so the loop may find it there; NULL on failure
 *
 * Return: 0 or negative errno; then @ctx is not released.
 */
int worker_start(struct worker **ret, const struct worker_config *config);

/** worker_put() - @job is taken; false: too many wait, and it stays the caller's. */
bool worker_put(struct worker *w, struct list *job);

/** worker_wake() - have worker_wait() return, and worker_fd() be readable. Any thread. */
void worker_wake(struct worker *w);

/** worker_collect() - gives the job that was finished first; NULL: there is none. */
struct list *worker_collect(struct worker *w);

/** worker_wait_done() - until there is something to collect; false: @until has come before. */
bool worker_wait_done(const struct worker *w, nsec_t until);

/** worker_done_fd() - readable while there is something to collect. */
int worker_done_fd(const struct worker *w);

/** worker_stop() - end it, and wait for the thread. */
struct worker *worker_stop(struct worker *w);

/** worker_leave() - the same without waiting: the thread releases all when it comes to its end. */
struct worker *worker_leave(struct worker *w);

/* ---- the worker's ---------------------------------------------------------------------------- */

/** worker_is_ending() - is the loop to return? Once true, it stays so. */
bool worker_is_ending(const struct worker *w);

/** worker_fd() - readable while jobs wait, once the worker is ending, or until worker_peek() or
 * worker_wait() have looked after it was woken. */
int worker_fd(const struct worker *w);

/** worker_wait() - until there are jobs, it is woken, or is ending; at most until @until. */
void worker_wait(struct worker *w, nsec_t until);

/** worker_peek() - the job that is next; it stays where it is. NULL: there is none. */
struct list *worker_peek(struct worker *w);

/** worker_take() - gives the job that is next; NULL: there is none. */
struct list *worker_take(struct worker *w);

/** worker_finish() - @job, taken, is for the owner to collect. */
void worker_finish(struct worker *w, struct list *job);
