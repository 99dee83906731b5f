/*
 * tcpstore.h - the requests of PyTorch's TCPStore, and the parts of its answers.
 *
 * The protocol has no version and no length around a request: its fields follow
 * each other, and only who knows the operation knows where it ends. All numbers
 * are little-endian. Two dialects are spoken (docs/wire/rendezvous.md): the
 * *classic* one, whose first byte is an operation, and the *validated* one,
 * where a connection begins with VALIDATE and a magic number and all operations
 * are numbered one higher. They cannot be confused: what is the magic number in
 * one would be the length of a key in the other, beyond any that is allowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

/** Longest key, longest value, most keys in a request, longest request; bytes. */
#define TCPSTORE_KEY_MAX     8192u
#define TCPSTORE_VALUE_MAX   (8u << 20)
#define TCPSTORE_COUNT_MAX   16384u
#define TCPSTORE_REQUEST_MAX (2 * TCPSTORE_VALUE_MAX + (64u << 10))

/* Outcomes. */
#define TCPSTORE_E_MORE 1 /* not all of it has come */
#define TCPSTORE_E_BAD  2 /* nothing of the protocol, or over a bound */

enum tcpstore_dialect {
    TCPSTORE_UNKNOWN,   /* too few bytes have come */
    TCPSTORE_CLASSIC,   /* first byte is an operation */
    TCPSTORE_VALIDATED, /* zero, magic number, then operations */
};

enum tcpstore_op {
    TCPSTORE_SET,
    TCPSTORE_COMPARE_SET,
    TCPSTORE_GET,
    TCPSTORE_ADD,
    TCPSTORE_CHECK,
    TCPSTORE_WAIT,
    TCPSTORE_NUM_KEYS,
    TCPSTORE_WATCH_KEY, /* classic only */
    TCPSTORE_DELETE_KEY,
    TCPSTORE_APPEND,
    TCPSTORE_MULTI_GET,
    TCPSTORE_MULTI_SET,
    TCPSTORE_CANCEL_WAIT, /* from here on validated only */
    TCPSTORE_PING,
    TCPSTORE_QUEUE_PUSH,
    TCPSTORE_QUEUE_POP,
    TCPSTORE_QUEUE_LEN,
    TCPSTORE_LIST,
    TCPSTORE_BARRIER,
    TCPSTORE_OP_N,
};

/** One byte of an answer. */
enum tcpstore_word {
    TCPSTORE_READY = 0,
    TCPSTORE_NOT_READY = 1,
    TCPSTORE_STOP_WAITING = 0,
    TCPSTORE_WAIT_CANCELED = 1,
    TCPSTORE_KEY_UPDATED = 0,
    TCPSTORE_KEY_CREATED = 1,
    TCPSTORE_KEY_DELETED = 2,
    TCPSTORE_KEY_WATCHED = 3,
};

/** A run of bytes in the buffer that was decoded; borrowed. */
struct tcpstore_bytes {
    const uint8_t *p;
    size_t len;
};

static inline bool tcpstore_bytes_equal(struct tcpstore_bytes a, struct tcpstore_bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/** A request; what an operation does not have is zero. */
struct tcpstore_request {
    enum tcpstore_op op;
    struct tcpstore_bytes key;
    struct tcpstore_bytes value;   /* of COMPARE_SET: what is expected */
    struct tcpstore_bytes desired; /* of COMPARE_SET */
    int64_t amount;                /* of ADD; of BARRIER: how many are to come */
    uint32_t nonce;                /* of PING */
    uint64_t count;                /* of keys, or keys with values, in @items */
    struct reader items;           /* complete and within bounds: tcpstore_next() */
};

/** tcpstore_dialect() - what the first @len bytes of a connection speak. */
enum tcpstore_dialect tcpstore_dialect(const void *p, size_t len);

/** Bytes in front of the first request of a validated connection. */
#define TCPSTORE_HELLO_SIZE 5

/**
 * tcpstore_decode() - the request at the start of @len bytes
 * @dialect:	not TCPSTORE_UNKNOWN
 * @ret_used:	bytes of it; with TCPSTORE_E_MORE so many must have come before it is of use to
 *		ask again, more than @len
 *
 * Return: 0; TCPSTORE_E_MORE; TCPSTORE_E_BAD.
 */
int tcpstore_decode(struct tcpstore_request *ret, enum tcpstore_dialect dialect, const void *p,
    size_t len, size_t *ret_used);

/** tcpstore_next() - the next key of CHECK, WAIT, MULTI_GET and MULTI_SET; or a value behind it. */
struct tcpstore_bytes tcpstore_next(struct reader *items);
