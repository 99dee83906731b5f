/*
 * rdzv_blob.h - a blob on its way to the disk and back, with a checksum in front. Pure.
 *
 *      0      1              9
 *     +------+--------------+-----------------
 *     | 0xb5 | checksum, LE | the plain blob
 *     +------+--------------+-----------------
 *
 * The checksum finds accidental damage to a record. It does not find deliberate changes: their
 * author could compute another checksum. Older hubs wrote plain blobs, whose first byte is 1, 2 or
 * 3; no single wrong bit makes 0xb5 of one of these.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rendezvous/shared/rdzv_record.h"

struct err;
struct writer;

/** Whose blob it is: the checksums of the two kinds differ. */
enum rdzv_blob_of {
    RDZV_BLOB_OF_STORE,
    RDZV_BLOB_OF_TREE,
};

/** Bytes in front of a plain blob. */
#define RDZV_BLOB_HEAD 9u

/**
 * rdzv_blob_new() - room for a blob with @plain_len plain bytes
 * @ret:	writes the plain bytes
 *
 * Return: gives it, free(); @plain_len + RDZV_BLOB_HEAD bytes. NULL: no memory.
 */
uint8_t *rdzv_blob_new(size_t plain_len, struct writer *ret);

/** rdzv_blob_seal() - all plain bytes are written: set the checksum. @len: of the whole blob. */
void rdzv_blob_seal(enum rdzv_blob_of of, uint8_t *blob, size_t len);

/**
 * rdzv_blob_open() - check a blob, and find its plain bytes
 * @ret, @ret_len:	borrowed from @p
 *
 * Return: 0, or -EINVAL with words.
 */
int rdzv_blob_open(enum rdzv_blob_of of, const void *p, size_t len, const uint8_t **ret,
    size_t *ret_len, struct err *e);

/**
 * Where a TCPStore and an etcd tree say what has to be saved.
 *
 * They tell it as blobs, each under a name that no other of its kind in the job has. The calls come
 * while a request is handled, or while changes are flushed. They may not call back.
 */
struct rdzv_saver {
    void *ctx; /* pinned: handed to the calls */

    /* A TCPStore has something for tcpstore_server_flush() again. */
    void (*unsaved)(void *ctx);

    /* The blob called @name is now the @len bytes at @p. @before: how many it had; 0: it is new. */
    void (*put)(void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len,
        const void *p, size_t len, size_t before);

    /* The blob called @name is gone; it had @before bytes. */
    void (*drop)(
        void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before);
};

/** Ignores all calls: for a store that is released, whose blobs stay saved. */
extern const struct rdzv_saver rdzv_saver_none;
