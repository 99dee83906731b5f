/*
 * store_now.h - ask the store and wait for the answer: for programs that start or end, and for
 * tests.
 *
 * While a call waits, the answers of other requests are dispatched too. Do not use it from inside a
 * callback, or from a loop that serves others.
 */
#pragma once

#include "store/store.h"

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

/**
 * store_now_commit() - as store_commit(), and wait for its answer
 * @ret_revision:	of the commit; NULL if not wanted
 * @ret_failed:		see struct store_answer; NULL if not wanted
 *
 * Return: as @done is told by store_commit(), or what store_commit() returns.
 */
int store_now_commit(struct store *s, const struct store_op *ops, size_t n_ops, nsec_t now,
    uint64_t *ret_revision, size_t *ret_failed, struct err *e);
