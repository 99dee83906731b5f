/*
 * rdzv_blob.h - a blob on its way to the disk and back, with a checksum in front. Pure.
 *
 *      0      1              9
 *     +------+--------------+-----------------
 *     | 0xb5 | checksum, LE | the plain blob
 *     +------+--------------+-----------------
 *
 * The checksum finds what a disk or a careless hand has done to a record, not what somebody has
 * done on purpose, who could make another one. Hubs before it have written plain blobs, whose first
 * byte is 1, 2 or 3: no single bit makes one of the other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct writer;

/** Whose it is: the checksum of one does not fit the other. */
enum rdzv_blob_of {
    RDZV_BLOB_OF_STORE,
    RDZV_BLOB_OF_TREE,
};

/** Bytes in front of a plain blob. */
#define RDZV_BLOB_HEAD 9u

/**
 * rdzv_blob_new() - room for a blob whose plain one has @plain_len bytes
 * @ret:	where those go
 *
 * Return: gives it, free(); @plain_len + RDZV_BLOB_HEAD bytes. NULL: no memory.
 */
uint8_t *rdzv_blob_new(size_t plain_len, struct writer *ret);

/** rdzv_blob_seal() - the plain one is complete; @len: of all. */
void rdzv_blob_seal(enum rdzv_blob_of of, uint8_t *blob, size_t len);

/**
 * rdzv_blob_open() - the plain blob in one
 * @ret, @ret_len:	borrowed from @p
 *
 * Return: 0, or -EINVAL with words.
 */
int rdzv_blob_open(enum rdzv_blob_of of, const void *p, size_t len, const uint8_t **ret,
    size_t *ret_len, struct err *e);
