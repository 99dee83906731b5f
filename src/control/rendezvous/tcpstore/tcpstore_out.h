/*
 * tcpstore_out.h - the answers to a client that have not been sent. Sans-I/O.
 *
 * A list of pieces. A few bytes are copied into a piece; for many, a piece has a reference to the
 * store's buffer (rdzv_buf.h), so that a value which is sent to a hundred clients takes memory
 * once. The memory of the pieces themselves counts in the job's quota.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "base/list.h"
#include "rendezvous/shared/rdzv_buf.h"

/** The output of one client. */
struct tcpstore_out {
    struct rdzv_quota *quota; /* pins; NULL until the first piece */
    struct list pieces;       /* owns struct tcpstore_out_piece; to be sent in this order */
    size_t len;               /* bytes that have not been sent */
    size_t cost;              /* what they cost, without what is shared */
};

/** tcpstore_out_init() - empty. */
void tcpstore_out_init(struct tcpstore_out *out);

/** tcpstore_out_clear() - drop all of it. Idempotent. */
void tcpstore_out_clear(struct tcpstore_out *out);

/**
 * tcpstore_out_add() - append a copy of @len bytes
 * @quota:	of the job: pinned, always the same
 *
 * Return: false: over a limit, or no memory; a part of the bytes may have been appended.
 */
bool tcpstore_out_add(
    struct tcpstore_out *out, struct rdzv_quota *quota, const void *p, size_t len);

/** tcpstore_out_share() - append the first @len bytes of @s, by reference unless they are few. The
 * same. */
bool tcpstore_out_share(
    struct tcpstore_out *out, struct rdzv_quota *quota, struct rdzv_buf *s, size_t len);

/** tcpstore_out_peek() - the first pieces to be sent, at most @max. Returns how many. */
size_t tcpstore_out_peek(const struct tcpstore_out *out, struct iovec *iov, size_t max);

/** tcpstore_out_sent() - the first @len bytes of it have been sent. */
void tcpstore_out_sent(struct tcpstore_out *out, size_t len);
