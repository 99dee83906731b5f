/*
 * blob_index.h - which blobs of a job are in the hub's store.
 *
 * What a blob is, and under which keys it lies, is in rendezvous/shared/rdzv_record.h. The index
 * says what the store has, or will have once all changes on their way are done; the bytes are in
 * the store alone. A blob that does not belong to the job's current run is garbage: it is deleted
 * little by little, by job_blobs.c.
 *
 * Pure. Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/htab.h"
#include "rendezvous/shared/rdzv_record.h"

/** Sums over the indexes of all jobs of a network. Only blob_index.c writes them. */
struct blob_totals {
    size_t n_entries; /* garbage too */
    size_t n_garbage; /* of them */
    size_t n_bytes;   /* of the blobs that are not garbage */
};

/** A blob in the store. */
struct blob_entry {
    struct htab_link link; /* in its index */
    struct rdzv_hash hash; /* what it is called */
    uint32_t run;          /* that it belongs to; 0: a hub wrote it that marked no run */
    uint32_t len;          /* bytes; about, if it was loaded from the store */
    uint16_t n_pieces;     /* at least 1 */
    uint8_t kind;          /* enum rdzv_key_kind: ENTRY or NODE */
    char slot;             /* of its other pieces: RDZV_SLOT_... */
};

struct blob_index {
    struct htab entries;        /* owns struct blob_entry */
    struct blob_totals *totals; /* pins: the network's */
    uint32_t run;               /* blobs of this run are current; 0: none is */
    bool takes_unmarked;        /* those that belong to no run are current as well */
    size_t n_garbage;           /* entries that are not current */
    size_t sweep_cursor;        /* where the search for garbage goes on */
};

/**
 * blob_index_init() - empty; every blob of it will be garbage until blob_index_set_run()
 * @totals:	pinned
 * @seed:	random, unknown to strangers
 */
void blob_index_init(struct blob_index *index, struct blob_totals *totals, uint64_t seed);

/** blob_index_deinit() - forget all entries; the store is not touched. Idempotent. */
void blob_index_deinit(struct blob_index *index);

/** blob_index_find() - lends until the index changes; NULL: it is not in the store. */
struct blob_entry *blob_index_find(
    const struct blob_index *index, enum rdzv_key_kind kind, const struct rdzv_hash *hash);

/** blob_index_is_current() - does it belong to the current run? Otherwise it is garbage. */
bool blob_index_is_current(const struct blob_index *index, const struct blob_entry *entry);

/**
 * blob_index_set() - the blob is, or will be, in the store
 * @entry:	borrowed; @kind and @hash are its name, @link is not read
 *
 * An entry of the same name is overwritten.
 *
 * Return: 0 or -ENOMEM.
 */
int blob_index_set(struct blob_index *index, const struct blob_entry *entry);

/** blob_index_remove() - it is not, or will not be, in the store. @entry is freed. */
void blob_index_remove(struct blob_index *index, struct blob_entry *entry);

/**
 * blob_index_set_run() - from now on these blobs are current, and all others garbage
 * @run:		0: none is current
 * @takes_unmarked:	blobs that belong to no run are current as well
 */
void blob_index_set_run(struct blob_index *index, uint32_t run, bool takes_unmarked);

/**
 * blob_index_next() - walk the entries, a few at a time
 * @cursor:	0 at first; advanced. Valid as long as no entry is added
 *
 * Return: the first of some entries that hang together by link.next; NULL at the end.
 */
struct htab_link *blob_index_next(const struct blob_index *index, size_t *cursor);
