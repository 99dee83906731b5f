/*
 * store_internal.h - what store.c and the back ends share.
 *
 * store.c checks every argument, keeps the leases and moves the watches; a back
 * end only reads and writes. It never sees a key or value out of bounds.
 */
#pragma once

#include "base/list.h"
#include "store/lease.h"
#include "store/store.h"

/** What a back end does. Arguments and results as in store.h unless said. */
struct store_ops {
    void (*free)(struct store *s);
    int (*get)(struct store *s, const char *key, store_item_fn fn, void *ctx, struct err *e);
    int (*list)(struct store *s, const char *prefix, store_item_fn fn, void *ctx, struct err *e);

    int (*walk)(struct store *s, const char *prefix, const char *from, enum store_order order,
        store_item_fn fn, void *ctx, struct err *e);

    /* As store_copy(); NULL: it is not kept in files. */
    int (*copy)(struct store *s, const char *path, struct err *e);

    /* Raises s->revision when something changed. */
    int (*commit)(struct store *s, const struct store_op *ops, size_t n_ops, size_t *ret_failed,
        struct err *e);

    /* Calls @fn for each change of the revisions from @from to @to with the prefix, in order. */
    int (*changes)(struct store *s, const char *prefix, uint64_t from, uint64_t to,
        store_item_fn fn, void *ctx, struct err *e);
};

struct store {
    const struct store_ops *ops; /* of the back end */
    uint64_t revision;           /* of the last commit that changed something */
    uint64_t log_first;          /* the oldest revision that the log holds completely */
    struct list watches;         /* of struct store_watch */
    struct leases leases;        /* of the keys that have one */
    bool polling;                /* store_poll() is running: a closed watch is freed at its end */
};

/** store__init() - the common part of an empty store. */
void store__init(struct store *s, const struct store_ops *ops);

/** store__deinit() - release the common part. */
void store__deinit(struct store *s);

/** memory_open(), sqlite_open() - the back ends; @where: what follows the URL's colon. */
int memory_open(struct store **ret, const char *where, struct err *e);
int sqlite_open(struct store **ret, const char *where, struct err *e);
