/* job.c - see job.h. */
#include "job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "hub/jobs/change_queue.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/jobs.h"
#include "net/socket/tcp.h"
#include "os/file.h"
#include "rendezvous/shared/rdzv_wire.h"

/* ---- the index of a job's blobs -------------------------------------------------------------- */

static uint64_t hash_of(
    const struct blob_index *index, enum rdzv_key_kind kind, const struct rdzv_hash *hash)
{
    return hash_bytes(index->entries.seed + kind, hash, sizeof(*hash));
}

/* Lends until the index changes; NULL: it is not in the store. */
static struct blob_entry *blob_index_find(
    const struct blob_index *index, enum rdzv_key_kind kind, const struct rdzv_hash *hash)
{
    uint64_t h = hash_of(index, kind, hash);

    for (struct htab_link *l = htab_first(&index->entries, h); l; l = htab_next(l, h)) {
        struct blob_entry *entry = container_of(l, struct blob_entry, link);

        if (entry->kind == kind && memcmp(&entry->hash, hash, sizeof(*hash)) == 0)
            return entry;
    }
    return NULL;
}

bool blob_index_is_current(const struct blob_index *index, const struct blob_entry *entry)
{
    if (index->run == 0)
        return false;
    return entry->run == index->run || (entry->run == 0 && index->takes_unmarked);
}

/* @sign: 1 when the entry comes, -1 when it goes. */
static void count(struct blob_index *index, const struct blob_entry *entry, int sign)
{
    struct blob_totals *totals = index->totals;

    totals->n_entries += (size_t)sign;
    if (blob_index_is_current(index, entry)) {
        totals->n_bytes += (size_t)sign * entry->len;
    } else {
        totals->n_garbage += (size_t)sign;
        index->n_garbage += (size_t)sign;
    }
}

/*
 * The blob is, or will be, in the store
 * @entry:	borrowed; @kind and @hash are its name, @link is not read
 *
 * An entry of the same name is overwritten.
 *
 * Return: 0 or -ENOMEM.
 */
static int blob_index_set(struct blob_index *index, const struct blob_entry *entry)
{
    struct blob_entry *mine = blob_index_find(index, entry->kind, &entry->hash);

    if (mine) {
        count(index, mine, -1);
    } else {
        mine = calloc(1, sizeof(*mine));
        if (!mine || htab_add(&index->entries, &mine->link,
                         hash_of(index, entry->kind, &entry->hash)) != 0) {
            free(mine);
            return -ENOMEM;
        }
        mine->hash = entry->hash;
        mine->kind = entry->kind;
    }
    mine->run = entry->run;
    mine->len = entry->len;
    mine->n_pieces = entry->n_pieces;
    mine->slot = entry->slot;
    count(index, mine, 1);
    return 0;
}

/* It is not, or will not be, in the store. @entry is freed. */
static void blob_index_remove(struct blob_index *index, struct blob_entry *entry)
{
    count(index, entry, -1);
    htab_remove(&index->entries, &entry->link);
    free(entry);
}

/* @sign: as in count(); of all entries. */
static void count_all(struct blob_index *index, int sign)
{
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&index->entries, &cursor, NULL); l;
         l = htab_each(&index->entries, &cursor, l))
        count(index, container_of(l, struct blob_entry, link), sign);
}

void blob_index_set_run(struct blob_index *index, uint32_t run, bool takes_unmarked)
{
    count_all(index, -1);
    index->run = run;
    index->takes_unmarked = takes_unmarked;
    count_all(index, 1);
    index->sweep_cursor = 0;
}

/* ---- a job's listening sockets --------------------------------------------------------------- */

#define BACKLOG 1024

/* What a machine sends to an address of its own never comes in by the interface that has it. */
#define LOOPBACK "lo"

void job_ports_init(struct job_ports *p)
{
    p->n_failures = 0;
    for (unsigned i = 0; i < JOB_PORTS_MAX; i++)
        p->fds[i] = -1;
}

static int open_one(int *ret, const char *interface, const struct endpoint *at, struct err *e)
{
    _cleanup_(closep) int fd = -1;
    int r = tcp_listener_open(&fd, at, interface, false, e);

    if (r != 0)
        return r;
    if (listen(fd, BACKLOG) < 0)
        return err_set(e, -errno, "a port cannot be served: %s", strerror(errno));
    *ret = TAKE_FD(fd);
    return 0;
}

int job_ports_open(struct job_ports *p, const char *interface, bool has_own,
    const struct endpoint *at, unsigned n, struct err *e)
{
    int r = 0;

    for (unsigned i = 0; i < 2 * n; i++) {
        bool is_own = i >= n;
        int *fd = &p->fds[is_own ? JOB_PORTS_OVERLAY + i - n : i];
        int each = 0;

        if (*fd < 0 && (!is_own || has_own))
            each = open_one(fd, is_own ? LOOPBACK : interface, &at[i % n], e);
        r = each != 0 ? each : r;
    }
    p->n_failures = r != 0 ? p->n_failures + 1 : 0;
    return r;
}

void job_ports_close(struct job_ports *p)
{
    /* Closed at once: another network may want the address in this same turn of the loop. */
    for (unsigned i = 0; i < JOB_PORTS_MAX; i++)
        closep(&p->fds[i]);
}

/* ---- a job's blobs: the index and the changes together --------------------------------------- */

/* Garbage is deleted only while fewer changes than this wait. */
#define SWEEP_MAX 256

void job_blobs_init(struct job_blobs *b, const char *network, const char *job,
    struct change_queue *queue, struct blob_totals *totals, uint64_t seed)
{
    *b = (struct job_blobs){
        .network = network, .job = job, .queue = queue, .index = {.totals = totals}};
    htab_init(&b->index.entries, seed);
}

void job_blobs_deinit(struct job_blobs *b)
{
    struct htab *entries = &b->index.entries;
    struct htab_link *next;
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(entries, &cursor, NULL); l; l = next) {
        next = htab_each(entries, &cursor, l);
        blob_index_remove(&b->index, container_of(l, struct blob_entry, link));
    }
    htab_deinit(entries);
}

static const char *key_of(const struct job_blobs *b, enum rdzv_key_kind kind,
    const struct rdzv_hash *hash, char buf[static RDZV_KEY_MAX])
{
    return rdzv_key_of_blob(buf, kind, b->network, b->job, hash);
}

/* ---- what a process wants kept -------------------------------------------------------------- */

/* Of the blob at @first, in @slot, from @from to before @to. */
static void delete_pieces(
    struct change_queue *q, const char *first, char slot, unsigned from, unsigned to, nsec_t now)
{
    char key[RDZV_KEY_MAX];

    /* Without memory for the change the piece stays; it is garbage that the next start finds. */
    for (unsigned i = from; i < to; i++)
        (void)change_queue_put(q, rdzv_key_of_piece(key, first, slot, i), NULL, now);
}

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
    text = rdzv_piece_encode(&head, m->data, m->len);
    if (!text || blob_index_set(&b->index, &entry) != 0) {
        free(text);
        return true;
    }
    if (change_queue_put(b->queue, key_of(b, m->kind, &m->hash, first), text, now) == 0)
        delete_pieces(b->queue, first, old_slot, 1, old_pieces, now);
    return true;
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

    /* A blob of several pieces begins. */
    if (m->piece == 1) {
        const struct blob_entry *old = blob_index_find(&b->index, m->kind, &m->hash);

        *u = (struct blob_upload){.to = b,
            .kind = m->kind,
            .hash = m->hash,
            .next = 1,
            .n_pieces = m->n_pieces,
            .slot = old && old->slot == RDZV_SLOT_A ? RDZV_SLOT_B : RDZV_SLOT_A};
    }
    if (!is_next(u, b, m) || (m->len != RDZV_CHUNK && m->piece != m->n_pieces - 1) || m->len == 0)
        return false;
    u->len += m->len;
    if (m->piece == 0) {
        u->to = NULL;
        return put_first(b, m, u->slot, u->len, now);
    }
    (void)rdzv_key_of_piece(key, key_of(b, m->kind, &m->hash, first), u->slot, m->piece);
    (void)change_queue_put(b->queue, key, rdzv_piece_encode(NULL, m->data, m->len), now);
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
    delete_pieces(b->queue, first, entry->slot, 1, entry->n_pieces, now);
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
    delete_pieces(u->to->queue, first, u->slot, 1, u->next, now);
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
        struct htab_link *l = htab_each(&b->index.entries, &b->index.sweep_cursor, NULL);
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

/* ---- how a job is ---------------------------------------------------------------------------- */

bool job_exists(const struct job *job)
{
    return !job->is_forgotten && !job->is_unsaved;
}

bool job_is_default(const struct job *job)
{
    return strcmp(job->name, JOBS_DEFAULT) == 0;
}

bool job_is_busy(const struct job *job, const struct ip_addr *who)
{
    const struct job_facts *facts = &job->facts;

    return facts->n_members > 1 ||
           (facts->n_members == 1 && (!who || !ip_addr_equal(&facts->member, who)));
}

bool job_is_over(const struct job *job, nsec_t now)
{
    return job->record.ended || (now - job->heard_at > JOBS_QUIET && !job_is_busy(job, NULL));
}

bool job_is_run(const struct job *job, const char *run)
{
    char name[NAME_MAX_LEN + 16];

    (void)snprintf(name, sizeof(name), "%s.%u", job->name, job->record.run);
    return strcmp(name, run) == 0;
}

void job_set_run(struct job *job, uint32_t run)
{
    job->record.run = run;
    job->record.ended = false;
    job->record.has_heads = true;
    job->is_forgotten = false;
    blob_index_set_run(&job->blobs.index, run, false);
}

void job_read_words(char *buf, size_t cap, const struct rdzv_wire *m)
{
    size_t len = m->len < cap - 1 ? m->len : cap - 1;

    for (size_t i = 0; i < len; i++)
        buf[i] = m->data[i] >= ' ' && m->data[i] < 0x7f ? (char)m->data[i] : '?';
    buf[len] = '\0';
}

void job_forget_facts(struct job *job)
{
    job->facts.n_connections = 0;
    job->facts.n_members = 0;
    job->facts.n_keys = 0;
    job->facts.n_bytes = 0;
}
