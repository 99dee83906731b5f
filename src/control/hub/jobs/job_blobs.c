/* job_blobs.c - see job_blobs.h. */
#include "job_blobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/jobs/change_queue.h"
#include "rendezvous/shared/rdzv_wire.h"

/* Garbage is deleted only while fewer changes than this wait. */
#define SWEEP_MAX 256

void job_blobs_init(struct job_blobs *b, const char *network, const char *job,
    struct change_queue *queue, struct blob_totals *totals, uint64_t seed)
{
    *b = (struct job_blobs){.network = network, .job = job, .queue = queue};
    blob_index_init(&b->index, totals, seed);
}

void job_blobs_deinit(struct job_blobs *b)
{
    blob_index_deinit(&b->index);
}

static const char *key_of(const struct job_blobs *b, enum rdzv_key_kind kind,
    const struct rdzv_hash *hash, char buf[static RDZV_KEY_MAX])
{
    return rdzv_key_of_blob(buf, kind, b->network, b->job, hash);
}

/* ---- what a process wants kept -------------------------------------------------------------- */

/* Store the first piece, which makes the blob complete. Pieces of its former value are deleted. */
static bool put_first(
    struct job_blobs *b, const struct rdzv_wire *m, char slot, size_t len, nsec_t now)
{
    const struct blob_totals *totals = b->index.totals;
    const struct blob_entry *old = blob_index_find(&b->index, m->kind, &m->hash);
    struct blob_entry entry = {.hash = m->hash,
        .run = b->index.run,
        .len = (uint32_t)len,
        .n_pieces = m->n_pieces,
        .kind = m->kind,
        .slot = slot};
    struct rdzv_head head = {.run = entry.run, .slot = slot, .n_pieces = m->n_pieces};
    char old_slot = old ? old->slot : RDZV_SLOT_NONE;
    unsigned old_pieces = old ? old->n_pieces : 1;
    size_t old_len = old && blob_index_is_current(&b->index, old) ? old->len : 0;
    char first[RDZV_KEY_MAX];
    char *text;

    if ((!old && totals->n_entries >= JOB_BLOBS_MAX) ||
        totals->n_bytes - old_len + len > JOB_BLOBS_BYTES_MAX)
        return false;
    text = rdzv_head_encode(&head, m->data, m->len);
    if (!text || blob_index_set(&b->index, &entry) != 0) {
        free(text);
        return true;
    }
    if (change_queue_put(b->queue, key_of(b, m->kind, &m->hash, first), text, now) == 0)
        change_queue_delete_pieces(b->queue, first, old_slot, 1, old_pieces, now);
    return true;
}

/* A blob of several pieces begins. */
static void begin_upload(struct job_blobs *b, struct blob_upload *u, const struct rdzv_wire *m)
{
    const struct blob_entry *old = blob_index_find(&b->index, m->kind, &m->hash);

    *u = (struct blob_upload){.to = b,
        .kind = m->kind,
        .hash = m->hash,
        .next = 1,
        .n_pieces = m->n_pieces,
        .slot = old && old->slot == RDZV_SLOT_A ? RDZV_SLOT_B : RDZV_SLOT_A};
}

/* Is it the piece that comes next? */
static bool is_next(
    const struct blob_upload *u, const struct job_blobs *b, const struct rdzv_wire *m)
{
    bool is_last = m->piece == 0 && u->next == u->n_pieces;

    return u->to == b && u->kind == m->kind && u->n_pieces == m->n_pieces &&
           memcmp(&u->hash, &m->hash, sizeof(u->hash)) == 0 && (is_last || m->piece == u->next);
}

static bool put_piece(
    struct job_blobs *b, struct blob_upload *u, const struct rdzv_wire *m, nsec_t now)
{
    char first[RDZV_KEY_MAX];
    char key[RDZV_KEY_MAX];

    if (m->piece == 1)
        begin_upload(b, u, m);
    if (!is_next(u, b, m) || (m->len != RDZV_CHUNK && m->piece != m->n_pieces - 1) || m->len == 0)
        return false;
    u->len += m->len;
    if (m->piece == 0) {
        u->to = NULL;
        return put_first(b, m, u->slot, u->len, now);
    }
    (void)rdzv_key_of_piece(key, key_of(b, m->kind, &m->hash, first), u->slot, m->piece);
    (void)change_queue_put(b->queue, key, rdzv_piece_encode(m->data, m->len), now);
    u->next++;
    return true;
}

bool job_blobs_put(
    struct job_blobs *b, struct blob_upload *u, const struct rdzv_wire *m, nsec_t now)
{
    if (m->n_pieces == 1)
        return !u->to && put_first(b, m, RDZV_SLOT_NONE, m->len, now);
    return put_piece(b, u, m, now);
}

static void delete_blob(struct job_blobs *b, struct blob_entry *entry, nsec_t now)
{
    char first[RDZV_KEY_MAX];

    (void)change_queue_put(b->queue, key_of(b, entry->kind, &entry->hash, first), NULL, now);
    change_queue_delete_pieces(b->queue, first, entry->slot, 1, entry->n_pieces, now);
    blob_index_remove(&b->index, entry);
}

void job_blobs_drop(
    struct job_blobs *b, enum rdzv_key_kind kind, const struct rdzv_hash *hash, nsec_t now)
{
    struct blob_entry *entry = blob_index_find(&b->index, kind, hash);

    if (entry)
        delete_blob(b, entry, now);
}

void job_blobs_abort(struct blob_upload *u, nsec_t now)
{
    char first[RDZV_KEY_MAX];

    if (!u->to)
        return;
    (void)key_of(u->to, u->kind, &u->hash, first);
    change_queue_delete_pieces(u->to->queue, first, u->slot, 1, u->next, now);
    u->to = NULL;
}

/* ---- garbage -------------------------------------------------------------------------------- */

bool job_blobs_may_delete(const struct change_queue *queue)
{
    return queue->by_key.n < SWEEP_MAX;
}

void job_blobs_sweep(struct job_blobs *b, nsec_t now)
{
    while (b->index.n_garbage > 0 && job_blobs_may_delete(b->queue)) {
        struct htab_link *l = blob_index_next(&b->index, &b->index.sweep_cursor);
        struct htab_link *next;

        if (!l)
            b->index.sweep_cursor = 0;
        for (; l; l = next) {
            struct blob_entry *entry = container_of(l, struct blob_entry, link);

            next = l->next;
            if (!blob_index_is_current(&b->index, entry))
                delete_blob(b, entry, now);
        }
    }
}

/* ---- loading -------------------------------------------------------------------------------- */

static int load_first(
    struct job_blobs *b, const struct rdzv_key *k, const char *text, struct err *e)
{
    struct blob_entry entry = {.hash = k->hash, .kind = (uint8_t)k->kind};
    struct rdzv_head head;
    size_t at;
    int r = rdzv_head_parse(&head, &at, text, e);

    if (r != 0)
        return r;
    entry.run = head.run;
    entry.slot = head.slot;
    entry.n_pieces = (uint16_t)(head.n_pieces ? head.n_pieces : 1);
    /* The bytes are in base64. */
    entry.len = (uint32_t)((strlen(text) - at) / 4 * 3 + (entry.n_pieces - 1U) * RDZV_CHUNK);
    return blob_index_set(&b->index, &entry) == 0
               ? 0
               : err_set(e, -ENOMEM, "no memory for a rendezvous");
}

int job_blobs_load(struct job_blobs *b, const struct rdzv_key *k, const char *key, const char *text,
    nsec_t now, struct err *e)
{
    struct blob_entry *entry;

    if (k->piece == 0)
        return load_first(b, k, text, e);
    entry = blob_index_find(&b->index, k->kind, &k->hash);
    /* Hubs from before the runs did not say how many pieces there are. */
    if (entry && entry->slot == k->slot && k->slot == RDZV_SLOT_OLD && k->piece == entry->n_pieces)
        entry->n_pieces++;
    else if (!entry || entry->slot != k->slot || k->piece >= entry->n_pieces)
        (void)change_queue_put(b->queue, key, NULL, now);
    return 0;
}
