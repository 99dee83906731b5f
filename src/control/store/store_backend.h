/*
 * store_backend.h - what a back end of the store is: a table of functions, and a struct store that
 * it embeds.
 *
 * The back end in memory is below. The others are in backends/, with store_open.h, which finds the
 * one that a URL names.
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
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/containers.h"
#include "base/err.h"
#include "os/worker.h"
#include "store/keys.h"
#include "store/store.h"

/* ---- opening the back ends of backends/ ------------------------------------------------------ */

/**
 * store_open_fn - the store of one back end; waits for the disk, five seconds at most for etcd, and
 * ten for Kubernetes
 * @ret:	gives it; store_free()
 * @where:	what follows the scheme in the URL; SQLite makes a new file where there is none
 * @now:	monotonic time, from which the leases found inside count
 *
 * Return: 0; -EINVAL with words for what is no path, URL or kubeconfig, or a prefix of etcd's that
 * holds something else; of SQLite -EUCLEAN with words when the file is not sound or not ours, and
 * -EBUSY when another process has it; or another negative errno with words.
 */
typedef int store_open_fn(struct store **ret, const char *where, nsec_t now, struct err *e);
store_open_fn sqlite_open, etcd_open, etcd_open_tls, kubernetes_open;

/** store_check_fn - is @where what such a store asks for? 0, or -EINVAL with words. Opens nothing.
 */
typedef int store_check_fn(const char *where, struct err *e);
store_check_fn etcd_check, etcd_check_tls;

/* ---- one request to a store, and its answer -------------------------------------------------- */

/*
 * store.c makes a job and fills in the request; nobody changes that part afterwards. A back end
 * fills in the answer. Between the two the job is in the queue of whoever has it.
 *
 * Threads: whoever has the job.
 */

/** What a job asks for. */
enum store_job_kind {
    STORE_JOB_COMMIT,  /* all of @ops, or none */
    STORE_JOB_GET,     /* the item at @key */
    STORE_JOB_LIST,    /* a page of the items whose keys start with @key */
    STORE_JOB_CHANGES, /* what the log holds of such keys, from the revision @first on */
    STORE_JOB_DELETED, /* the deletions of all keys, as far back as there are any; sets @first */
    STORE_JOB_COPY,    /* all of the store, into a new file at @key */
};

/** Items that own their texts. */
struct store_items {
    struct store_item *items; /* owns the array, and each key and value */
    size_t n;                 /* how many */
    size_t cap;               /* room in the array */
    size_t bytes;             /* of all values */
};

struct store_job {
    struct list link; /* in the queue of whoever has the job */
    enum store_job_kind kind;

    /* The request; a back end reads it only. */
    struct store_op *ops; /* COMMIT: owns the array, and each key and value */
    size_t n_ops;         /* COMMIT: at least 1 */
    char *key;            /* owns; see enum store_job_kind */
    char *from;           /* LIST: owns; begin behind this key; NULL: with the first */
    bool is_down;         /* LIST: in descending order */
    size_t limit;         /* LIST: most items; at least 1 */
    uint64_t first;       /* CHANGES: the first revision wanted; DELETED: the answer's */
    size_t bytes;         /* of keys and values in @ops */

    /* For store.c alone. */
    nsec_t asked_at;           /* COMMIT: time from which its leases count */
    store_done_fn done;        /* NULL: nobody wants to know */
    void *ctx;                 /* pins: for @done */
    struct store_watch *watch; /* CHANGES: pins; NULL: it was closed */
    bool is_unasked;           /* COMMIT: nobody asked for it, so it was not counted as pending */

    /* The answer; a back end's until it hands the job back. */
    int r;                    /* 0; STORE_E_...; negative errno */
    struct err e;             /* the words, when @r is not 0 */
    uint64_t revision;        /* of the commit; else the one at which the answer was true */
    size_t failed;            /* COMMIT with STORE_E_CONFLICT: index of the operation */
    bool has_more;            /* LIST: there are items behind the last */
    bool *took_effect;        /* COMMIT: owns; by operation: it changed something */
    struct store_items items; /* what was read; the changes of CHANGES, in order */
};

/** store_job_new() - with an empty request and answer; NULL: no memory. */
struct store_job *store_job_new(enum store_job_kind kind);

/** store_job_free() - release it. */
struct store_job *store_job_free(struct store_job *job);

/** store_job_set_ops() - the request is a copy of these operations. 0 or -ENOMEM. */
int store_job_set_ops(struct store_job *job, const struct store_op *ops, size_t n_ops);

/**
 * store_job_add() - add an item that was read to the answer
 * @item:	copied; left out of a DELETED if it has a value
 *
 * Return: 0; 1 when the page of a LIST is full already, then @item is left out and has_more is set;
 * or -ENOMEM.
 */
int store_job_add(struct store_job *job, const struct store_item *item);

/** store_job_undo() - empty the answer, to do the job once more. */
void store_job_undo(struct store_job *job);

/* ---- the last changes, of a back end that keeps them in memory ------------------------------- */

struct store_log {
    struct list changes; /* owns; the oldest first */
    size_t n;            /* how many */
    size_t bytes;        /* of their values */
    uint64_t first;      /* the oldest revision that it holds completely */
};

/** store_log_init() - an empty one. */
void store_log_init(struct store_log *l, uint64_t first);

/** store_log_forget() - all of it: from the revision @first on it is complete again. */
void store_log_forget(struct store_log *l, uint64_t first);

/** store_log_add() - @op has taken effect. 0 or -ENOMEM. */
int store_log_add(struct store_log *l, const struct store_op *op, uint64_t revision);

/** store_log_trim() - forget whole revisions from the front until there are STORE_LOG_MAX changes
 * and @bytes_max at most; the revision @newest stays. */
void store_log_trim(struct store_log *l, uint64_t newest, size_t bytes_max);

/** store_log_read() - do a job that reads the changes from @first on. Its result. */
int store_log_read(const struct store_log *l, struct store_job *job);

/* ---- a store --------------------------------------------------------------------------------- */

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
    struct list watches;         /* of struct store_watch; store.c's */
    struct keys leases;          /* owns: of the keys that have one; see store__set_lease() */
    struct heap by_end;          /* pins the same structs, ordered by when they end */
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
    struct worker *worker;       /* owns: a back end's, which does the jobs; NULL: it has none */
    int wake_fd;                 /* owns; readable when store_dispatch() has to be called */
    pthread_mutex_t lock;        /* guards @finished */
    struct list finished;        /* of struct store_job: done, and not dispatched yet */
};

/* ---- for back ends --------------------------------------------------------------------------- */

/**
 * store__init() - the common part of an empty store
 *
 * A back end that opens a store with something in it sets the revision, and the lease of each key
 * that has one, afterwards.
 *
 * Return: 0; or negative errno with words, and store__deinit() is still to be called.
 */
int store__init(struct store *s, const struct store_ops *ops, struct err *e);

/** store__deinit() - release the common part, with the jobs that were not dispatched. Once. */
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

/**
 * store__set_lease() - @key's lease begins at @now
 * @ttl_seconds:	0: the key has no lease any more
 *
 * The store keeps the length of the lease with each key. The time at which a lease ends is known
 * only here, in memory and in monotonic time. A restart begins every lease anew, so a key may stay
 * too long, but is never deleted too early.
 *
 * Return: 0 or -ENOMEM.
 */
int store__set_lease(struct store *s, const char *key, uint32_t ttl_seconds, nsec_t now);

/** store__set_current() - at @now nothing has changed elsewhere that is not told of, or about to
 * be. Any thread. */
void store__set_current(struct store *s, nsec_t now);

/** store__count_relist() - changes were lost, and all keys have been read. Any thread. */
void store__count_relist(struct store *s);

/** store__wake() - have store_dispatch() called again, and so turn(). Any thread. */
void store__wake(struct store *s);

/* ---- for store.c ----------------------------------------------------------------------------- */

/** store__check_key() - is @key at least @min bytes long, and a key? 0, or -EINVAL with words. */
int store__check_key(const char *key, size_t min, struct err *e);

/**
 * store__submit() - count @job as pending, and hand it to the back end
 * @job:	taken
 *
 * Return: 0; or -EAGAIN with words when too much is pending, and @job is freed.
 */
int store__submit(struct store *s, struct store_job *job, struct err *e);

/* ---- what the worker of a back end does next ------------------------------------------------- */

/*
 * A back end that has to wait, for a disk or a server, has a worker (os/worker.h). A job comes from
 * the owner's loop and is never waited for there. The worker takes what is next: one job, or
 * several commits that are made at once. What it does with them, and what it does meanwhile, is the
 * back end's own. It goes on until no job is left, however long that takes.
 */

/** Which commits may be taken together. */
struct store_queue_limits {
    size_t ops_max;   /* operations in all of them */
    size_t bytes_max; /* of their keys and values */
    bool is_apart;    /* no two of them name the same key */

    /* May this commit, which is within the limits, be taken together with others? NULL: all may. */
    bool (*can_share)(const struct store_job *job);
};

/**
 * store_queue_start() - start the worker, called "store"
 * @loop:	returns once store_queue_take() says that no more jobs will come
 *
 * Return: 0; or negative errno with words.
 */
int store_queue_start(
    struct worker **ret, void (*loop)(struct worker *w, void *ctx), void *ctx, struct err *e);

/** store_queue_submit() - the submit() of a back end with such a worker: s->worker. */
void store_queue_submit(struct store *s, struct store_job *job);

/**
 * store_queue_take() - the jobs that are done next: one, or several that may be taken together
 * @ret:	empty; gives them, in their order
 * @ret_ends:	no further job will come
 *
 * A job that is above the limits, or may not be taken together with others, is taken alone.
 *
 * Return: false: there are none.
 */
bool store_queue_take(
    struct worker *w, const struct store_queue_limits *limits, struct list *ret, bool *ret_ends);

/* ---- the store in memory, which loses everything when the process ends ----------------------- */

/*
 * It is for tests, and it is the reference for what a store does. Each job is done at once, inside
 * submit().
 */

/**
 * memory_open() - an empty store
 * @ret:	gives it; store_free()
 * @where:	must be ""
 * @now:	not used: a new store has no leases
 *
 * Return: 0 or negative errno with words.
 */
int memory_open(struct store **ret, const char *where, nsec_t now, struct err *e);

/*
 * For a back end that keeps its items in a store of this kind, and for tests. These calls bypass
 * store.h, and so they tell no watch and begin no lease.
 */

/** memory_run() - do @job on a store of memory_open(), without store__finish(). */
void memory_run(struct store *s, struct store_job *job);

/** memory_revision() - of the last commit that changed something. */
uint64_t memory_revision(const struct store *s);

/** memory_revision_of() - that has written @key; 0: it is not there. */
uint64_t memory_revision_of(struct store *s, const char *key);

/** memory_walk() - all items, which stay as they are meanwhile. 0; or what @fn returned. */
int memory_walk(struct store *s, store_item_fn fn, void *ctx);

/** memory_restore() - add one item with its own revision, and do not log it. 0 or -ENOMEM. */
int memory_restore(struct store *s, const struct store_item *item);

/** memory_set_revision() - set the store's revision; its log begins behind it. */
void memory_set_revision(struct store *s, uint64_t revision);
