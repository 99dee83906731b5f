/*
 * store.h - where a hub keeps its objects: one interface, several back ends.
 *
 * The shape is that of etcd v3, the least common of the back ends: flat keys, one revision counter
 * for the whole store, transactions of compare-and-put, watches that start at a revision, leases.
 * store_open.h opens a store by its URL; store_backend.h says what a back end is.
 *
 * Nothing here waits. What has to be read or written is accepted, and its answer comes later: the
 * owner waits until store_fd() is readable, and calls store_dispatch(), which tells the watches of
 * changes and calls whoever asked. A program may wait while it starts or ends: store_wait() and
 * store_now_get() and its like are for that.
 *
 * What every back end promises, be it a thread with a file, or a client of etcd or of Kubernetes:
 *
 *   order      Answers come in the order of the requests. A commit is seen by every request that
 *              was accepted after it, and commits compare and write their keys in that order.
 *   durable    A commit that is answered with 0 is on the disk (of most members). Watches are told
 *              of a change only then, and before its answer is given.
 *   compare    Each operation names the revision that its key has to be at. So two hubs, or two
 *              requests of one hub, do not overwrite each other's changes: the later one is told
 *              STORE_E_CONFLICT, reads again, and decides again.
 *   unknown    An answer can be lost although the change was made (STORE_E_UNKNOWN). If it was
 *              made, the watches are still told of it later. This cannot happen with SQLite.
 *   bounded    There is a bound on what waits for an answer (STORE_PENDING_MAX). Above it nothing
 *              is accepted: -EAGAIN, at once.
 *   watches    A watch is told of each change after its revision, in order, once. Changes that
 *              others made come the same way.
 *   leases     The store remembers how long the lease of each key is. Its owner deletes the keys
 *              whose lease has ended (store_ended()), so a back end needs no clock.
 *
 * Theory of operation. Every commit that changes something raises the revision; commits that went
 * to the disk together, and have no key in common, may share one. Each key remembers the revision
 * that last wrote it, and that number is what a compare-and-put compares. The changes of the last
 * commits are kept as a log of bounded length, for watches that begin in the past. One that asks
 * for a revision that the log no longer holds is told so, and lists again.
 *
 * Time is an argument. A lease counts from when the store saw its key written, kept or, after a
 * restart, read; so neither a clock that jumps nor a hub that was away ends one early.
 *
 * Values are JSON text; the store does not look inside.
 *
 * Threads: the owner's loop only, callbacks too. Nothing is called back from inside the call that
 * asks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct store;
struct store_watch;

/** Longest key, bytes. */
#define STORE_KEY_MAX 255

/** Longest value, bytes. */
#define STORE_VALUE_MAX (64u << 10)

/** Most operations in one commit. */
#define STORE_OPS_MAX 4096

/** About how many changes the log keeps for watches; it always holds the last commit completely. */
#define STORE_LOG_MAX 8192

/** About how many deletions are kept for store_deleted(). */
#define STORE_DELETED_MAX 65536

/** Requests that may wait for their answer at once, and bytes of keys and values in them. */
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

/** A key, its value and the revision that wrote it. Texts are borrowed during the callback. */
struct store_item {
    const char *key;
    const char *value;    /* zero-terminated; NULL in a change that deleted the key */
    size_t value_len;     /* without the zero */
    uint64_t revision;    /* the revision that wrote (or deleted) it */
    uint32_t ttl_seconds; /* of its lease; 0: none */
};

/** What an operation of a commit does. */
enum store_op_kind {
    STORE_OP_PUT,    /* write the value */
    STORE_OP_DELETE, /* remove the key; fine when it is absent */
    STORE_OP_CHECK,  /* only compare */
};

/** What an operation may expect instead of a revision. */
#define STORE_EXPECT_ABSENT 0          /* the key must not exist */
#define STORE_EXPECT_ANY    UINT64_MAX /* the key may exist or not, at any revision */

struct store_op {
    enum store_op_kind kind;
    const char *key;      /* borrows */
    const char *value;    /* borrows; for PUT */
    uint64_t expect;      /* the key's revision, or one of the above */
    uint32_t ttl_seconds; /* of a lease, for PUT; 0: for ever */
    bool is_unwatched;    /* watches are not told of it, and the log does not keep it */
};

/** The answer to a request. Everything in it is borrowed during the callback. */
struct store_answer {
    int r;               /* 0, STORE_E_*, or negative errno; see the request */
    const struct err *e; /* the words, when @r is not 0 */
    uint64_t revision;   /* of the commit; for a read, the revision at which it was true */
    size_t failed;       /* STORE_E_CONFLICT: the operation that did not pass */
    const struct store_item *items; /* what was read */
    size_t n_items;
    bool has_more;  /* of a list: there are items behind the last one */
    uint64_t since; /* of store_deleted(): the first revision of which no deletion is missing */
};

/** A request is answered. Every store call but store_dispatch() and store_wait() is allowed. */
typedef void (*store_done_fn)(void *ctx, const struct store_answer *answer);

/**
 * A key has changed. The same calls are allowed as in store_done_fn, and the watch may be closed.
 * @item is NULL when the log no longer holds the next change. Then the watch is told nothing more:
 * close it and list again.
 */
typedef void (*store_change_fn)(void *ctx, const struct store_item *item);

/**
 * store_free() - close; watches must be closed before.
 *
 * Accepted requests are still done, so this may wait for the disk; no callback is called.
 */
struct store *store_free(struct store *s);

/** store_fd() - readable while answers wait for store_dispatch(). */
int store_fd(const struct store *s);

/**
 * store_dispatch() - tell watches what has changed, and answer requests
 *
 * One call handles a limited number of answers; when there are more, store_fd() stays readable. Do
 * not call it from inside a callback.
 */
void store_dispatch(struct store *s);

/** store_wait() - dispatch until nothing is pending, requests of callbacks included. */
void store_wait(struct store *s);

/** store_pending() - how many requests are not answered yet. */
size_t store_pending(const struct store *s);

/**
 * store_get() - read one key
 * @done:	called with one item, or with STORE_E_ABSENT, or negative errno with words
 *
 * Return: 0: accepted; or negative errno with words, and @done is not called.
 */
int store_get(struct store *s, const char *key, store_done_fn done, void *ctx, struct err *e);

/** A page of a list. */
struct store_range {
    const char *prefix; /* keys that start with it; "": all */
    const char *from;   /* begin behind this key; NULL: with the first (descending: the last) */
    bool is_down;       /* in descending order of the keys' bytes; else ascending */
    size_t limit;       /* items; 0, or more than STORE_PAGE_MAX: that many */
};

/**
 * store_list() - read keys in order, a page at a time
 * @done:	called with the items, or with negative errno with words
 *
 * A page holds less than its limit when values are long; has_more says whether there is more.
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

/**
 * store_deleted() - which keys were deleted lately: when, the oldest first
 * @done:	called with items without values, and with @since; or with negative errno and words
 *
 * What was written again later is told as well.
 *
 * Return: 0: accepted; or negative errno with words, and @done is not called.
 */
int store_deleted(struct store *s, store_done_fn done, void *ctx, struct err *e);

/** store_keep() - begin the lease of @key anew. 0, or STORE_E_ABSENT if it has no lease. */
int store_keep(struct store *s, const char *key, nsec_t now, struct err *e);

/** store_due() - when the next lease ends; NSEC_NEVER if there is none. */
nsec_t store_due(struct store *s);

/**
 * store_ended() - the keys whose lease has ended, in byte order
 * @ret:	room for @cap texts, borrowed until the next store_dispatch()
 *
 * The keys stay until their owner deletes them, in a commit of its own.
 *
 * Return: how many, at most @cap.
 */
size_t store_ended(struct store *s, nsec_t now, const char **ret, size_t cap);

/** store_is_shared() - may several hubs have this store at once? */
bool store_is_shared(const struct store *s);

/** store_revision() - the revision of the last change that watches were told of. */
uint64_t store_revision(const struct store *s);

/** How far a store that is kept elsewhere is behind. */
struct store_lag {
    nsec_t behind_for;  /* since it was last known that watches are told of all; 0: they are */
    uint64_t n_relists; /* times that changes were lost, and all keys were read instead */
};

/** People are told of a store that is further behind. */
#define STORE_LAG_MAX (10 * NSEC_PER_SEC)

/** store_lag() - a few seconds are usual for a store whose keys do not change. */
struct store_lag store_lag(const struct store *s, nsec_t now);

/** Whether the store takes what is to be written. */
struct store_refusal {
    nsec_t since;          /* time of the first commit that it did not take; 0: it takes them */
    nsec_t at;             /* time of the last one */
    uint64_t n;            /* commits that it did not take, since it was opened */
    const struct err *why; /* the words for the last one */
};

/** A store that has refused a commit is trusted again once it takes one so long after that: where
 * a disk is full, small commits may find room between large ones. */
#define STORE_REFUSAL_HOLD (20 * NSEC_PER_SEC)

/**
 * store_refusal() - commits that failed by the store itself: a full disk, servers that are away
 *
 * Conflicts are not counted, and neither is what store_commit() does not accept.
 */
struct store_refusal store_refusal(const struct store *s);

/**
 * store_watch() - follow the keys that start with @prefix
 * @from:	first revision wanted; after a list, the revision of its answer plus one
 * @fn:		called by store_dispatch(), for each change
 *
 * Return: 0 or negative errno with words.
 */
int store_watch(struct store *s, const char *prefix, uint64_t from, store_change_fn fn, void *ctx,
    struct store_watch **ret, struct err *e);

/** store_watch_close() - no further call; NULL is fine. Always NULL. */
struct store_watch *store_watch_close(struct store_watch *w);

/**
 * store_copy() - a copy of all of the store into a new file at @path, mode 0600
 *
 * It holds what was accepted before this call.
 * @done:	called with 0 when it is on the disk; STORE_E_NO_FILES or negative errno, with words
 *
 * Return: 0: accepted; or negative errno with words, and @done is not called.
 */
int store_copy(struct store *s, const char *path, store_done_fn done, void *ctx, struct err *e);

/* ---- asking, and waiting for the answer ------------------------------------------------------ */

/*
 * For programs that start or end, and for tests.
 *
 * While a call waits, the answers of other requests are dispatched too. Do not use it from inside a
 * callback, or from a loop that serves others.
 */

/** Called for each item. A non-zero result ends the list, and the call returns it. */
typedef int (*store_item_fn)(void *ctx, const struct store_item *item);

/**
 * store_now_get() - read one key
 * @fn:	called once if the key exists; what it returns is returned
 *
 * Return: @fn's result; STORE_E_ABSENT; or negative errno with words.
 */
int store_now_get(struct store *s, const char *key, store_item_fn fn, void *ctx, struct err *e);

/**
 * store_now_list() - read all keys that start with @prefix, in order
 * @ret_revision:	the revision at which the last page was true; NULL if not wanted
 *
 * Return: 0, @fn's result, or negative errno with words.
 */
int store_now_list(struct store *s, const char *prefix, store_item_fn fn, void *ctx,
    uint64_t *ret_revision, struct err *e);
