/*
 * store_backend.h - what a back end of the store is: a table of functions, and a struct store that
 * it embeds.
 *
 * The files of this folder in layers, the lowest layer first. A file calls only files above it in
 * this list:
 *
 *     store.h          the interface: what callers ask, and what every store promises
 *     store_job.h      one request and its answer
 *     store_backend.h  this file: requests go to a back end, answers come back
 *     memory.h         the back end that keeps everything in memory only
 *     store_watch.h    who is told of changes
 *     store.c          the interface, upon all of these
 *
 * The other back ends are in backends/, with store_open.h, which finds the one that a URL names.
 *
 * Theory of operation. store.c checks and copies what is asked for into a job, and hands it to
 * submit(). The back end does the job whenever and on whatever thread it likes, fills in the
 * answer, and hands the job back with store__finish(), in the order in which it was given the jobs.
 * store_dispatch() then tells the watches, updates the leases and calls whoever asked. So a back
 * end only reads and writes: it never sees a key or a value out of bounds, calls no callback, and
 * needs no clock.
 */
#pragma once

#include <pthread.h>

#include "store/lease.h"
#include "store/store_job.h"

/** What a back end does. */
struct store_ops {
    /*
     * Close the store, after all jobs are done, however long that takes. Jobs that are handed back
     * during this call are freed by store__deinit().
     */
    void (*free)(struct store *s);

    /* Take @job, do it now or later, and then store__finish() it. Never waits. */
    void (*submit)(struct store *s, struct store_job *job);

    /* Called at the beginning of each store_dispatch(), on the owner's loop. NULL: not needed. */
    void (*turn)(struct store *s);
};

/** The part that all stores have. A back end embeds it in its own struct. */
struct store {
    const struct store_ops *ops; /* the back end's table */
    uint64_t revision;           /* of the last change that watches were told */
    struct list watches;         /* of struct store_watch; store_watch.c's */
    struct leases leases;        /* of the keys that have one */
    size_t n_pending;            /* requests that are not answered yet */
    size_t bytes_pending;        /* of keys and values that those want to write */
    nsec_t refused_since;        /* see store_refusal() */
    nsec_t refused_at;           /* likewise */
    uint64_t n_refused;          /* likewise */
    struct err refusal;          /* likewise */
    bool is_shared;              /* several hubs may have it; set by the back end */
    bool is_dispatching;         /* inside store_dispatch() */
    _Atomic nsec_t current_at;   /* when the back end last knew that it tells of all; 0: always */
    _Atomic uint64_t n_relists;  /* see store_lag() */
    int wake_fd;                 /* owns; readable when store_dispatch() has to be called */
    pthread_mutex_t lock;        /* guards @finished */
    struct list finished;        /* of struct store_job: done, and not dispatched yet */
};

/* ---- for back ends ---- */

/**
 * store__init() - the common part of an empty store
 *
 * A back end that opens a store with something in it sets the revision, and the lease of each key
 * that has one, afterwards.
 *
 * Return: 0; or negative errno with words, and store__deinit() is still to be called.
 */
int store__init(struct store *s, const struct store_ops *ops, struct err *e);

/** store__deinit() - release the common part, with the jobs that were not dispatched. */
void store__deinit(struct store *s);

/** store__finish() - hand @job back, whose answer is filled in. Any thread. */
void store__finish(struct store *s, struct store_job *job);

/**
 * store__add_pending() - count a job that the back end made itself and will store__finish()
 *
 * Then store_wait() waits for the job. A back end that hands over other hubs' changes from its own
 * thread does not call this, and sets @is_unasked in the job.
 *
 * Such a job tells of a change that nobody here has asked for, or whose answer was lost. It is a
 * COMMIT with @ops, @took_effect, @asked_at and @revision set, and no @done. Call it on the owner's
 * loop.
 */
void store__add_pending(struct store *s, const struct store_job *job);

/** store__set_current() - at @now nothing has changed elsewhere that is not told of, or about to
 * be. Any thread. */
void store__set_current(struct store *s, nsec_t now);

/** store__count_relist() - changes were lost, and all keys have been read. Any thread. */
void store__count_relist(struct store *s);

/** store__wake() - have store_dispatch() called again, and so turn(). Any thread. */
void store__wake(struct store *s);

/* ---- for store.c and store_watch.c ---- */

/** store__check_key() - is @key at least @min bytes long, and a key? 0, or -EINVAL with words. */
int store__check_key(const char *key, size_t min, struct err *e);

/**
 * store__submit() - count @job as pending, and hand it to the back end
 * @job:	taken
 *
 * Return: 0; or -EAGAIN with words when too much is pending, and @job is freed.
 */
int store__submit(struct store *s, struct store_job *job, struct err *e);

/** store__next_finished() - gives the job that was handed back first; NULL: there is none. */
struct store_job *store__next_finished(struct store *s);
