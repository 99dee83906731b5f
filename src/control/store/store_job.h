/*
 * store_job.h - one request to a store, and its answer.
 *
 * store.c makes a job and fills in the request; nobody changes that part afterwards. A back end
 * fills in the answer. Between the two the job is in the queue of whoever has it.
 *
 * Threads: whoever has the job.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "store/store.h"

/** What a job asks for. */
enum store_job_kind {
    STORE_JOB_COMMIT,  /* all of @ops, or none */
    STORE_JOB_GET,     /* the item at @key */
    STORE_JOB_LIST,    /* a page of the items whose keys start with @key */
    STORE_JOB_CHANGES, /* what the log holds of such keys, from the revision @first on */
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
    struct store_op *ops;   /* COMMIT: owns the array, and each key and value */
    size_t n_ops;           /* COMMIT: at least 1 */
    char *key;              /* owns; see enum store_job_kind */
    char *from;             /* LIST: owns; begin behind this key; NULL: with the first */
    enum store_order order; /* LIST */
    size_t limit;           /* LIST: most items; at least 1 */
    uint64_t first;         /* CHANGES: the first revision wanted */
    size_t bytes;           /* of keys and values in @ops */

    /* For store.c and store_watch.c alone. */
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

/** store_job_free() - NULL is fine. Always NULL. */
struct store_job *store_job_free(struct store_job *job);

/** store_job_set_ops() - the request is a copy of these operations. 0 or -ENOMEM. */
int store_job_set_ops(struct store_job *job, const struct store_op *ops, size_t n_ops);

/**
 * store_job_add() - add an item that was read to the answer
 * @item:	copied
 *
 * Return: 0; 1 when the page of a LIST is full already, then @item is left out and has_more is set;
 * or -ENOMEM.
 */
int store_job_add(struct store_job *job, const struct store_item *item);

/** store_job_undo() - empty the answer, to do the job once more. */
void store_job_undo(struct store_job *job);
