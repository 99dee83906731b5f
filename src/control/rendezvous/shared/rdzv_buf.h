/*
 * rdzv_buf.h - bytes that a store and the answers to many clients share. Sans-I/O.
 *
 * Theory of operation. A buffer is counted by reference: a store's entry has a reference while it
 * is the key's value, and each output has one until it is sent. A buffer only grows at its end, and
 * readers remember the length that it had. So a value is appended to in place, whether it is shared
 * or not; when there is no room left, it is copied into a buffer twice as large. It counts in the
 * quota once, with all its room, until the last reference is dropped.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rendezvous/shared/rdzv_quota.h"

/** A buffer. */
struct rdzv_buf {
    unsigned refs;            /* references to it */
    struct rdzv_quota *quota; /* pins */
    size_t len;               /* bytes in it */
    size_t cap;               /* room */
    uint8_t b[];              /* @cap of them */
};

/**
 * rdzv_buf_new() - an empty buffer with room for @cap bytes, and one reference
 * @quota:	pinned; has to have room for it
 *
 * Return: gives it; NULL: no room, or no memory.
 */
struct rdzv_buf *rdzv_buf_new(struct rdzv_quota *quota, size_t cap);

/** rdzv_buf_load() - the same, but the quota may be exceeded. */
struct rdzv_buf *rdzv_buf_load(struct rdzv_quota *quota, size_t cap);

/** rdzv_buf_ref() - add a reference. Returns @s. NULL is fine. */
struct rdzv_buf *rdzv_buf_ref(struct rdzv_buf *s);

/** rdzv_buf_unref() - drop a reference; the last one frees it. NULL is fine. Always NULL. */
struct rdzv_buf *rdzv_buf_unref(struct rdzv_buf *s);

/** rdzv_buf_add() - append @len bytes, for which there is room. */
void rdzv_buf_add(struct rdzv_buf *s, const void *p, size_t len);

/**
 * rdzv_buf_grow() - make room for @len bytes more
 * @s:	the caller's reference, which passes to the result; may be NULL
 * @max:	most room that is made
 *
 * The room is doubled, so that n appends of one byte copy about n bytes in all.
 *
 * Return: @s or another; NULL: no room or no memory, and @s is as it was.
 */
struct rdzv_buf *rdzv_buf_grow(
    struct rdzv_buf *s, struct rdzv_quota *quota, size_t len, size_t max);
