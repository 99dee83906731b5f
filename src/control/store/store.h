/*
 * store.h - where a hub keeps its objects: one interface, several back ends.
 *
 * memory.c is for tests, sqlite.c the embedded default. The shape is that of
 * etcd v3, the least common of the back ends: flat keys, one revision counter
 * for the whole store, transactions of compare-and-put, watches that start at
 * a revision, leases.
 *
 * Nothing here waits. What has to be read or written is accepted, and its
 * answer comes later: the owner waits until store_fd() is readable, and calls
 * store_dispatch(), which tells the watches of changes and calls whoever asked.
 * Start and end of a program may wait; store_wait() and store_now.h are for them.
 *
 * What a back end promises, be it a thread with a file, or a client of etcd or
 * of Kubernetes:
 *
 *   order      answers come in the order of the questions. A commit is seen by
 *              every question that was accepted after it, and its keys are
 *              compared and written in that order.
 *   durable    a commit that is answered with 0 is on the disk (of most members).
 *              A change is told to watches only then, and before its answer is.
 *   compare    each operation names the revision that its key has to be at. That
 *              is how two hubs, or two requests of one, do not overwrite each
 *              other's: who sees STORE_E_CONFLICT decides anew.
 *   unknown    an answer can be lost when the change was made (STORE_E_UNKNOWN).
 *              If it was made, the watches are told of it all the same, sooner or
 *              later. SQLite always knows.
 *   bounded    what waits is bounded (STORE_PENDING_MAX); above that nothing is
 *              accepted: -EAGAIN, at once.
 *   watches    each change behind the watch's revision, in order, each once.
 *              Changes that others made come the same way.
 *   leases     the store remembers how long each key's lease is; when it ends is
 *              for the owner to act on (store_ended()), so a back end need not
 *              have clocks.
 *
 * Theory of operation. Every commit that changes something raises the revision
 * by one; each key remembers the revision that last wrote it, and that number
 * is what a compare-and-put compares. The changes of the last commits are kept
 * as a log of bounded length, for watches that begin in the past. One that asks
 * for a revision the log no longer holds is told so, and lists again.
 *
 * Time is an argument. A lease counts from when the store saw its key written,
 * kept or, after a restart, read; so neither a clock that jumps nor a hub that
 * was away ends one early.
 *
 * Values are JSON text; the store does not look inside.
 *
 * Threads: the owner's loop only, callbacks too. Nothing is called back from
 * inside the call that asks.
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

/** Questions that wait for their answer, and bytes of what they want to write: no more at once. */
#define STORE_PENDING_MAX       4096
#define STORE_PENDING_BYTES_MAX (64u << 20)

/** Items and bytes of values in one page of a list; the first item is always in it. */
#define STORE_PAGE_MAX       2048
#define STORE_PAGE_BYTES_MAX (1u << 20)

/* Outcomes. */
#define STORE_E_ABSENT    1 /* no such key */
#define STORE_E_CONFLICT  2 /* a key was not at the revision that the operation expects */
#define STORE_E_COMPACTED 3 /* the log no longer holds that revision: list again */
#define STORE_E_NO_FILES  4 /* the store is not kept in files */
#define STORE_E_UNKNOWN   5 /* a commit's answer was lost: nobody knows whether it was done */

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

/** What has become of a question. Everything is borrowed, for the length of the callback. */
struct store_answer {
    int r;                          /* 0, STORE_E_*, or negative errno; see the question */
    const struct err *e;            /* the words, when @r is not 0 */
    uint64_t revision;              /* a commit's; else the one at which the answer was true */
    size_t failed;                  /* STORE_E_CONFLICT: the operation that did not pass */
    const struct store_item *items; /* what was read */
    size_t n_items;
    bool has_more; /* of a list: there are more behind the last */
};

typedef void (*store_done_fn)(void *ctx, const struct store_answer *answer);

/**
 * A change. Every store call is allowed, closing this watch too. @item is NULL when the log no
 * longer holds what comes next: the watch will tell nothing more; close it and list again.
 */
typedef void (*store_change_fn)(void *ctx, const struct store_item *item);

/**
 * store_free() - close; watches must be closed before. NULL is fine. Always NULL.
 *
 * What was accepted is still done, which may wait for the disk; nobody is called.
 */
struct store *store_free(struct store *s);

/** store_freep() - for _cleanup_(). */
void store_freep(struct store **s);

/** store_fd() - readable while answers wait for store_dispatch(). */
int store_fd(const struct store *s);

/**
 * store_dispatch() - tell watches and askers what has come; some of it, if it is much
 *
 * Not from inside a callback. What is left makes store_fd() readable again.
 */
void store_dispatch(struct store *s);

/** store_wait() - wait for all answers, and dispatch them, also those that they led to. */
void store_wait(struct store *s);

/** store_pending() - questions that are not answered yet. */
size_t store_pending(const struct store *s);

/**
 * store_get() - read one key
 * @done:	called with one item, or with STORE_E_ABSENT, or negative errno with words
 *
 * Return: 0: accepted; or negative errno with words, and @done is not called.
 */
int store_get(struct store *s, const char *key, store_done_fn done, void *ctx, struct err *e);

/** Which way a list goes. */
enum store_order {
    STORE_ASCENDING,
    STORE_DESCENDING,
};

/** A page of a list. */
struct store_range {
    const char *prefix; /* keys that start with it; "": all */
    const char *from;   /* the key to go on behind; NULL: from the first (descending: the last) */
    enum store_order order; /* of the keys' bytes */
    size_t limit;           /* items; 0, or more than STORE_PAGE_MAX: that many */
};

/**
 * store_list() - read keys in order, a page at a time
 * @done:	called with the items, or with negative errno with words
 *
 * A page holds less than its limit when values are long; has_more says whether that was all.
 *
 * Return: 0: accepted; or negative errno with words, and @done is not called.
 */
int store_list(
    struct store *s, const struct store_range *range, store_done_fn done, void *ctx, struct err *e);

/**
 * store_commit() - all of the operations, or none
 * @ops:	@n_ops (1 to STORE_OPS_MAX) of them, each key at most once; copied
 * @now:	monotonic time, from which leases count
 * @done:	called with 0 when the change is on the disk and all watches were told; with
 *		STORE_E_CONFLICT or negative errno with words (-ENOSPC for a full disk) when nothing
 *		was done; with STORE_E_UNKNOWN. NULL: nobody wants to know
 *
 * Return: 0: accepted; or negative errno with words, and @done is not called: -EINVAL for a key or
 * value out of bounds, -EAGAIN when too much waits already.
 */
int store_commit(struct store *s, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e);

/** store_keep() - begin the lease of @key anew. 0, or STORE_E_ABSENT (also: it has no lease). */
int store_keep(struct store *s, const char *key, nsec_t now, struct err *e);

/** store_due() - when the next lease ends; NSEC_NEVER if there is none. */
nsec_t store_due(struct store *s);

/**
 * store_ended() - the keys whose lease has ended, in byte order
 * @ret:	room for @cap texts, borrowed until the next store_dispatch()
 *
 * They stay until their owner deletes them, in a commit of its own, with what has to go or to be
 * told with them.
 *
 * Return: how many, at most @cap.
 */
size_t store_ended(struct store *s, nsec_t now, const char **ret, size_t cap);

/** store_revision() - of the last change that watches were told. */
uint64_t store_revision(const struct store *s);

/**
 * store_watch() - follow the keys that start with @prefix
 * @from:	first revision wanted: what a list was true at, plus one
 * @fn:		called by store_dispatch(), for each change
 *
 * Return: 0 or negative errno with words.
 */
int store_watch(struct store *s, const char *prefix, uint64_t from, store_change_fn fn, void *ctx,
    struct store_watch **ret, struct err *e);

/** store_watch_close() - no further call; NULL is fine. Always NULL. */
struct store_watch *store_watch_close(struct store_watch *w);

/**
 * store_copy() - all of it, as it is when its turn comes, into a new file at @path, 0600
 * @done:	called with 0 when it is on the disk; STORE_E_NO_FILES or negative errno, with words
 *
 * Return: 0: accepted; or negative errno with words, and @done is not called.
 */
int store_copy(struct store *s, const char *path, store_done_fn done, void *ctx, struct err *e);
