/*
 * job_blobs.h - the blobs of one job: the index of them, and the changes that lead to it.
 *
 * Each function here writes the index and the queue of changes together, so that the index is what
 * the store will have. All keys are built here, from the names of the network and of the job.
 *
 * A blob of several pieces is received with its first piece last, one blob at a time in a network.
 * Its pieces are put into the slot that the blob is not in now, and the first piece, which names
 * the slot, is what makes them the blob. Whenever the hub dies, the first piece names pieces that
 * are complete (rendezvous/shared/rdzv_record.h).
 *
 * Pure. Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "hub/jobs/blob_index.h"
#include "rendezvous/shared/rdzv_record.h"

struct change_queue;
struct err;
struct rdzv_wire;

/** What a network may have in the store: entries, and bytes of those that are no garbage. */
#define JOB_BLOBS_MAX       (90u << 10)
#define JOB_BLOBS_BYTES_MAX (68u << 20)

struct job_blobs {
    const char *network;        /* pins: its name */
    const char *job;            /* pins: its name */
    struct change_queue *queue; /* pins: the network's */
    struct blob_index index;    /* see there */
};

/** A blob of which not all pieces have come. One in a network. */
struct blob_upload {
    struct job_blobs *to; /* pins; NULL: there is none */
    enum rdzv_key_kind kind;
    struct rdzv_hash hash;
    unsigned next;     /* the piece that comes next */
    unsigned n_pieces; /* of the blob */
    char slot;         /* where they go */
    size_t len;        /* bytes so far */
};

#define BLOB_UPLOAD_NULL {0}

/** job_blobs_init() - none, and no run. All parameters are pinned but @seed, see blob_index_init().
 */
void job_blobs_init(struct job_blobs *b, const char *network, const char *job,
    struct change_queue *queue, struct blob_totals *totals, uint64_t seed);

/** job_blobs_deinit() - forget all of them; the store is not touched. Idempotent. */
void job_blobs_deinit(struct job_blobs *b);

/**
 * job_blobs_put() - a message RDZV_WIRE_PUT: keep a blob, or a piece of one
 * @u:	the network's; written
 * @m:	its run is the current one
 *
 * Without memory the change is lost: it lives in the rendezvous process alone.
 *
 * Return: false when a process may not say that: the piece is not the one that comes next, or the
 * network has more than it may.
 */
bool job_blobs_put(
    struct job_blobs *b, struct blob_upload *u, const struct rdzv_wire *m, nsec_t now);

/** job_blobs_drop() - forget a blob; one that is not there is fine. */
void job_blobs_drop(
    struct job_blobs *b, enum rdzv_key_kind kind, const struct rdzv_hash *hash, nsec_t now);

/** job_blobs_abort() - the rest of the blob will not come: delete the pieces that have. */
void job_blobs_abort(struct blob_upload *u, nsec_t now);

/** job_blobs_sweep() - delete some garbage, as long as few changes wait. */
void job_blobs_sweep(struct job_blobs *b, nsec_t now);

/** job_blobs_may_delete() - do so few changes wait that more may be deleted? */
bool job_blobs_may_delete(const struct change_queue *queue);

/**
 * job_blobs_load() - a record of a blob was found in the store
 * @k:		of @key; the pieces of a blob come in their order
 * @text:	its value
 *
 * A piece that no first piece names is what a hub left behind that died while it wrote the blob:
 * it is deleted.
 *
 * Return: 0; -EINVAL with words: the value cannot be understood; or -ENOMEM with words.
 */
int job_blobs_load(struct job_blobs *b, const struct rdzv_key *k, const char *key, const char *text,
    nsec_t now, struct err *e);
