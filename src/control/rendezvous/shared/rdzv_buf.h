/*
 * rdzv_buf.h - bytes that a store and the answers to many clients hold together. Sans-I/O.
 *
 * Theory of operation. A buffer is counted: the store's entry holds it for as long as it is the
 * key's value, and each output for as long as it has not been read. It only grows at its end, where
 * no reader looks who took it before, so a value is appended to in place, shared or not; when there
 * is no room left in it, it is copied into one twice as large. It counts in the quota once, with
 * all its room, until the last one lets go of it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rendezvous/shared/rdzv_quota.h"

struct rdzv_buf {
    unsigned refs;            /* who holds it */
    struct rdzv_quota *quota; /* pins */
    size_t len;               /* bytes in it */
    size_t cap;               /* room */
    uint8_t b[];              /* @cap of them */
};

/**
 * rdzv_buf_new() - empty, with room for @cap bytes, held by the caller
 * @quota:	pinned; asked for room
 *
 * Return: gives it; NULL: no room, or no memory.
 */
struct rdzv_buf *rdzv_buf_new(struct rdzv_quota *quota, size_t cap);

/** rdzv_buf_load() - the same without asking for room, which it takes nevertheless. */
struct rdzv_buf *rdzv_buf_load(struct rdzv_quota *quota, size_t cap);

/** rdzv_buf_ref() - one more holds it; returns it. NULL is fine. */
struct rdzv_buf *rdzv_buf_ref(struct rdzv_buf *s);

/** rdzv_buf_unref() - one less; NULL is fine. Always NULL. */
struct rdzv_buf *rdzv_buf_unref(struct rdzv_buf *s);

/** rdzv_buf_add() - @len bytes at the end, for which there is room in it. */
void rdzv_buf_add(struct rdzv_buf *s, const void *p, size_t len);

/**
 * rdzv_buf_grow() - room for @len bytes more
 * @s:	the caller's reference, which goes over to what comes back; may be NULL
 * @max:	more room than that is never made
 *
 * Doubles, so that n appends of a byte cost n bytes of copying, about.
 *
 * Return: @s or another; NULL: no room or no memory, and @s is as it was.
 */
struct rdzv_buf *rdzv_buf_grow(
    struct rdzv_buf *s, struct rdzv_quota *quota, size_t len, size_t max);
