/*
 * store_backend.h - what store.c and the back ends share.
 *
 * A question is a job. store.c checks and copies what is asked, hands the job to
 * the back end, gets it back with its answer, keeps the leases and tells the
 * watches. A back end only reads and writes, on whatever thread it likes; it
 * hands the jobs back in the order in which it was given them. It never sees a
 * key or value out of bounds.
 *
 *     store.c        the interface
 *     store_job.c    jobs: made, filled, freed, counted
 *     store_watch.c  watches
 */
#pragma once

#include <pthread.h>

#include "base/err.h"
#include "base/list.h"
#include "store/lease.h"
#include "store/store.h"

/** What a job asks. */
enum store_job_kind {
    STORE_JOB_COMMIT,
    STORE_JOB_GET,
    STORE_JOB_LIST,
    STORE_JOB_CHANGES, /* of the log, for a watch that begins in the past */
    STORE_JOB_COPY,
};

/** Items that own their texts. */
struct store_items {
    struct store_item *items; /* owns the array, and each key and value */
    size_t n;                 /* how many */
    size_t cap;               /* room in the array */
    size_t bytes;             /* of values */
};

struct store_job {
    struct list link; /* in whoever's queue it is */
    enum store_job_kind kind;

    /* The question; not changed once it is handed over. */
    struct store_op *ops; /* owns the array, and each key and value */
    size_t n_ops;
    char *key;              /* owns: GET's key, LIST's and CHANGES' prefix, COPY's path */
    char *from;             /* owns: LIST's place; NULL: none */
    enum store_order order; /* LIST's */
    size_t limit;           /* LIST's, at least 1 */
    uint64_t first;         /* CHANGES: from this revision on, all that there are */
    size_t bytes;           /* that wait to be written */

    /* Who asks; store.c's alone. */
    nsec_t now; /* from which a commit's leases count */
    store_done_fn done;
    void *ctx;                 /* pins: for @done */
    struct store_watch *watch; /* CHANGES: pins; NULL: it was closed */

    /* The answer; the back end's until it is handed back. */
    int r;                    /* STORE_E_COMPACTED only for CHANGES */
    struct err e;             /* the words */
    uint64_t revision;        /* see struct store_answer */
    size_t failed;            /* likewise */
    bool has_more;            /* likewise */
    bool *took_effect;        /* owns; by operation: it changed something */
    struct store_items items; /* what was read */
};

/** What a back end does. */
struct store_ops {
    /* After all jobs were done, however long that takes. */
    void (*free)(struct store *s);

    /* Do it, now or later, and then store__finish(). Never blocks. */
    void (*submit)(struct store *s, struct store_job *job);

    /* Called by store_dispatch() before anything else; NULL: there is nothing to do. */
    void (*turn)(struct store *s);
};

struct store {
    const struct store_ops *ops; /* of the back end */
    uint64_t revision;           /* of the last change that watches were told */
    struct list watches;         /* of struct store_watch */
    struct leases leases;        /* of the keys that have one */
    size_t n_pending;            /* questions without an answer */
    size_t bytes_pending;        /* that they want to write */
    bool dispatching;            /* a closed watch is freed at the end of it */
    int wake_fd;                 /* owns: see os/wakeup.h */
    pthread_mutex_t lock;        /* guards @finished */
    struct list finished;        /* of struct store_job */
};

/** store__init() - the common part of an empty store. 0 or negative errno with words. */
int store__init(struct store *s, const struct store_ops *ops, struct err *e);

/** store__deinit() - release the common part, with the answers that nobody took. */
void store__deinit(struct store *s);

/** store__finish() - the job's answer is there. Any thread. */
void store__finish(struct store *s, struct store_job *job);

/** store__wake() - have store_dispatch() called again. Any thread. */
void store__wake(struct store *s);

/* ---- store_job.c ---- */

/** store_job_new() - empty; NULL: no memory. */
struct store_job *store_job_new(enum store_job_kind kind);

/** store_job_free() - always NULL. NULL is fine. */
struct store_job *store_job_free(struct store_job *job);

/** store_job_set_ops() - copy the operations. 0 or -ENOMEM. */
int store_job_set_ops(struct store_job *job, const struct store_op *ops, size_t n_ops);

/**
 * store_job_add() - one more item was read; copied
 *
 * Return: 0; 1: the page is full, and this item is not in it; or -ENOMEM.
 */
int store_job_add(struct store_job *job, const struct store_item *item);

/** store_job_undo() - forget the answer, to begin again. */
void store_job_undo(struct store_job *job);

/* ---- store_watch.c ---- */

/** store_watch__tell() - @item has changed: to all watches that have its prefix. */
void store_watch__tell(struct store *s, const struct store_item *item);

/** store_watch__catch_up() - the job of a watch that began in the past has its answer. */
void store_watch__catch_up(struct store_job *job);

/** store_watch__bury() - free what was closed while watches were told. */
void store_watch__bury(struct store *s);

/* ---- store.c, for store_watch.c ---- */

/** store__check_key() - 0, or -EINVAL with words. */
int store__check_key(const char *key, size_t min, struct err *e);

/** store__ask() - count the job and hand it over. @job is taken. 0 or -EAGAIN with words. */
int store__ask(struct store *s, struct store_job *job, struct err *e);

/* ---- the back ends ---- */

/** memory_open(), sqlite_open() - @where: what follows the URL's colon. With the leases inside. */
int memory_open(struct store **ret, const char *where, nsec_t now, struct err *e);
int sqlite_open(struct store **ret, const char *where, nsec_t now, struct err *e);

/** memory_run() - do the job at once, on a store of memory.c, without handing it back. */
void memory_run(struct store *s, struct store_job *job);
