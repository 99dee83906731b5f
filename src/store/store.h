/*
 * store.h - where a hub keeps its objects: one interface, several back ends.
 *
 * memory.c is for tests, sqlite.c the embedded default. The shape is that of
 * etcd v3, the least common of the back ends: flat keys, one revision counter
 * for the whole store, transactions of compare-and-put, watches that start at
 * a revision, leases.
 *
 * Theory of operation. Every commit that changes something raises the revision
 * by one; each key remembers the revision that last wrote it, and that number
 * is what a compare-and-put compares. The changes of the last commits are kept
 * as a log of bounded length. A watch is a position in that log: store_poll()
 * hands each change behind the position to the watcher, in order, each once.
 * A watcher that asks for a revision the log no longer holds is told so and
 * lists again.
 *
 * Time is an argument. A lease counts from when the store saw its key written,
 * kept or, after a restart, read; so neither a clock that jumps nor a hub that
 * was away ends one early.
 *
 * Values are JSON text; the store does not look inside.
 *
 * Threads: the owner's loop only. Calls block for as long as the disk takes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct store;
struct store_watch;

/** Longest key, bytes. */
#define STORE_KEY_MAX 255

/** Longest value, bytes. */
#define STORE_VALUE_MAX (64u << 10)

/** Most operations in one commit. */
#define STORE_OPS_MAX 4096

/** Changes that the log keeps for watches, about; the last commit is always whole. */
#define STORE_LOG_MAX 8192

/* Outcomes. */
#define STORE_E_ABSENT    1 /* no such key */
#define STORE_E_CONFLICT  2 /* a key was not at the revision that the operation expects */
#define STORE_E_COMPACTED 3 /* the log no longer holds that revision: list again */
#define STORE_E_NO_FILES  4 /* the store is not kept in files */

/** A key's value and when it was written. Texts are borrowed, for the length of the callback. */
struct store_item {
    const char *key;
    const char *value;    /* zero-terminated; NULL in a change that deleted the key */
    size_t value_len;     /* without the zero */
    uint64_t revision;    /* that wrote (or deleted) it */
    uint32_t ttl_seconds; /* of its lease; 0: none */
};

/** What an operation of a commit does. */
enum store_op_kind {
    STORE_OP_PUT,    /* write the value */
    STORE_OP_DELETE, /* remove the key; fine when it is absent */
    STORE_OP_CHECK,  /* only compare */
};

/** Expectations beside a revision's number. */
#define STORE_EXPECT_ABSENT 0          /* the key must not exist */
#define STORE_EXPECT_ANY    UINT64_MAX /* no matter */

struct store_op {
    enum store_op_kind kind;
    const char *key;      /* borrows */
    const char *value;    /* borrows; for PUT */
    uint64_t expect;      /* the key's revision, or one of the above */
    uint32_t ttl_seconds; /* of a lease, for PUT; 0: for ever */
    bool is_untold;       /* watches are not told of it, and the log does not keep it */
};

/** A key with its value. Called during the read: no store call inside. */
typedef int (*store_item_fn)(void *ctx, const struct store_item *item);

/**
 * A change. Called by store_poll(): other store calls but store_poll() are allowed, closing this
 * watch too. @item is NULL when the log no longer holds what comes next: the watch will tell
 * nothing more; close it and list again.
 */
typedef void (*store_change_fn)(void *ctx, const struct store_item *item);

/** store_free() - close; watches must be closed before. NULL is fine. Always NULL. */
struct store *store_free(struct store *s);

/** store_freep() - for _cleanup_(). */
void store_freep(struct store **s);

/**
 * store_get() - read one key
 * @fn:	called once if the key exists; what it returns is returned
 *
 * Return: @fn's result; STORE_E_ABSENT; or negative errno with words.
 */
int store_get(struct store *s, const char *key, store_item_fn fn, void *ctx, struct err *e);

/**
 * store_list() - read all keys that start with @prefix, in byte order
 * @fn:			called for each; a non-zero result ends the list and is returned
 * @ret_revision:	the revision at which the list was true; NULL if not wanted
 *
 * Return: 0, @fn's result, or negative errno with words.
 */
int store_list(struct store *s, const char *prefix, store_item_fn fn, void *ctx,
    uint64_t *ret_revision, struct err *e);

/** Which way store_walk() goes. */
enum store_order {
    STORE_ASCENDING,
    STORE_DESCENDING,
};

/**
 * store_walk() - read keys that start with @prefix, from a place on, either way
 * @from:	the key to go on behind; NULL: from the first (the last, when descending)
 * @fn:		called for each; a non-zero result ends the walk and is returned
 *
 * What is behind the end costs nothing, so a long list is read in pages.
 *
 * Return: 0, @fn's result, or negative errno with words.
 */
int store_walk(struct store *s, const char *prefix, const char *from, enum store_order order,
    store_item_fn fn, void *ctx, struct err *e);

/**
 * store_commit() - all of the operations, or none
 * @ops:		@n_ops (1 to STORE_OPS_MAX) of them, each key at most once
 * @now:		monotonic time, from which leases count
 * @ret_revision:	the commit's revision (unchanged keys keep theirs); NULL if not wanted
 * @ret_failed:		index of an operation whose expectation failed; NULL if not wanted
 *
 * When it returns 0 the change is on the disk.
 *
 * Return: 0; STORE_E_CONFLICT with nothing done; or negative errno with words and
 * nothing done: -EINVAL for a key or value out of bounds, -ENOSPC for a full disk.
 */
int store_commit(struct store *s, const struct store_op *ops, size_t n_ops, nsec_t now,
    uint64_t *ret_revision, size_t *ret_failed, struct err *e);

/** store_keep() - begin the lease of @key anew. 0, or STORE_E_ABSENT (also: it has no lease). */
int store_keep(struct store *s, const char *key, nsec_t now, struct err *e);

/** store_due() - when the next lease ends; NSEC_NEVER if there is none. */
nsec_t store_due(struct store *s);

/**
 * store_ended() - the keys whose lease has ended, in byte order
 * @ret:	room for @cap texts, borrowed until the next commit
 *
 * They stay until their owner deletes them, in a commit of its own, with what has to go or to be
 * told with them.
 *
 * Return: how many, at most @cap.
 */
size_t store_ended(struct store *s, nsec_t now, const char **ret, size_t cap);

/** store_revision() - of the last commit that changed something. */
uint64_t store_revision(const struct store *s);

/**
 * store_watch() - follow the keys that start with @prefix
 * @from:	first revision wanted: what store_list() returned, plus one
 * @fn:		called by store_poll(), for each change
 *
 * Return: 0; STORE_E_COMPACTED; or negative errno with words.
 */
int store_watch(struct store *s, const char *prefix, uint64_t from, store_change_fn fn, void *ctx,
    struct store_watch **ret, struct err *e);

/** store_watch_close() - no further call; NULL is fine. Always NULL. */
struct store_watch *store_watch_close(struct store_watch *w);

/**
 * store_poll() - hand out the changes that no watcher has seen yet
 *
 * A local store has something to hand out after a commit or store_expire(); the
 * owner calls it then. Changes that the watchers commit meanwhile are handed out
 * too before it returns.
 *
 * Return: 0 or negative errno with words.
 */
int store_poll(struct store *s, struct err *e);

/**
 * store_copy() - all of it, as it is now, into a new file at @path, 0600
 *
 * Return: 0 when it is on the disk; STORE_E_NO_FILES or negative errno, with words.
 */
int store_copy(struct store *s, const char *path, struct err *e);

/** store_check_url() - could store_open() know it? 0, or -EINVAL with words. Nothing is opened. */
int store_check_url(const char *url, struct err *e);

/**
 * store_open() - by URL: "sqlite:PATH" or "memory:"
 * @now:	monotonic time, from which the leases found inside count
 *
 * Return: 0; -EINVAL for an URL of no known kind; else as the back end's open.
 */
int store_open(struct store **ret, const char *url, nsec_t now, struct err *e);
