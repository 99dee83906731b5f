/*
 * blob_reader.h - reads a job's blobs out of the hub's store, as messages for a rendezvous process.
 *
 * A few blobs are read at once. Each that is complete, or cannot be read, waits in the order in
 * which that was known until its owner takes it with blob_reader_take().
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "hub/jobs/blob_index.h"
#include "rendezvous/shared/rdzv_record.h"
#include "rendezvous/shared/rdzv_wire.h"

struct blob_reader;
struct job;
struct store;

/** A blob that was read. */
struct blob_read {
    struct list link;           /* the reader's */
    struct blob_reader *reader; /* the reader's */
    struct rdzv_wire m;         /* RDZV_WIRE_LOAD, without bytes: the job, its run, the name */
    struct blob_entry entry;    /* of the index, as it was; in no index */
    char first[RDZV_KEY_MAX];   /* the key of its first piece */
    unsigned piece;             /* that comes next */
    struct str messages;        /* of the pieces so far */
    int r;                      /* 0; or of the first piece that cannot be read: STORE_E_ABSENT,
                                   -EINVAL: it cannot be understood, -EIO: the store is away, ... */
    struct err e;               /* its words */
    char bad[RDZV_KEY_MAX];     /* its key */
};

/** blob_reader_new() - nothing is read yet. @store: pinned. NULL: no memory. */
struct blob_reader *blob_reader_new(struct store *store);

/**
 * blob_reader_free() - what is not taken is forgotten
 *
 * Answers of the store may come later still; they are ignored. NULL is fine. Always NULL.
 */
struct blob_reader *blob_reader_free(struct blob_reader *reader);

/**
 * blob_reader_add() - have a blob read
 * @entry:	one of @job's index
 *
 * Return: false: neither memory nor the store has room for it now.
 */
bool blob_reader_add(
    struct blob_reader *reader, const struct job *job, const struct blob_entry *entry);

/** blob_reader_count() - blobs that were added and not taken. */
unsigned blob_reader_count(const struct blob_reader *reader);

/** blob_reader_bytes() - the bytes of those blobs. */
size_t blob_reader_bytes(const struct blob_reader *reader);

/** blob_reader_has_some() - is there one to be taken? */
bool blob_reader_has_some(const struct blob_reader *reader);

/** blob_reader_take() - the next one that was read; gives it: blob_read_free(). NULL: none. */
struct blob_read *blob_reader_take(struct blob_reader *reader);

/** blob_read_free() - NULL is fine. Always NULL. */
struct blob_read *blob_read_free(struct blob_read *read);
