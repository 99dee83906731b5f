/*
 * store_now.h - a commit that is waited for, as tests make them.
 */
#pragma once

#include "store/store.h"

/**
 * store_now_commit() - as store_commit(), and wait for its answer
 * @ret_revision:	of the commit; NULL if not wanted
 * @ret_failed:		see struct store_answer; NULL if not wanted
 *
 * Return: as @done is told by store_commit(), or what store_commit() returns.
 */
int store_now_commit(struct store *s, const struct store_op *ops, size_t n_ops, nsec_t now,
    uint64_t *ret_revision, size_t *ret_failed, struct err *e);
