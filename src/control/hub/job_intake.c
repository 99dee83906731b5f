/*
 * job_intake.c - what a rendezvous process says, and what of it the hub does.
 *
 * The process reads what strangers send, so it may be theirs: nothing that it says is trusted.
 * It names jobs by numbers that the hub gave to jobs of this network; every key is built here. How
 * much it may keep is counted here. What it says of a run that is over is late, and ignored.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "hub/jobs_internal.h"
#include "rendezvous/rdzv_quota.h"
#include "os/clock.h"

/* Longest reason of a process, as the log shows it. */
#define WHY_MAX 200

static const char *key_of(
    const struct job *job, const struct rdzv_wire *m, char buf[static RDZV_KEY_MAX])
{
    return rdzv_key_of_blob(buf, m->kind, job->network->name, job->name, &m->hash);
}

/* ---- blobs ---------------------------------------------------------------------------------- */

/* Of what has been written of it, nothing is left. */
void jobs__forget_partial(struct jobs_network *n)
{
    struct jobs_partial *p = &n->partial;
    char first[RDZV_KEY_MAX];

    if (!p->job)
        return;
    (void)rdzv_key_of_blob(first, p->kind, n->name, p->job->name, &p->hash);
    jobs__delete_pieces(n, first, p->slot, 1, p->next);
    p->job = NULL;
}

void jobs__take_no_more(struct jobs_network *n)
{
    jobs__forget_partial(n);
    n->commit.n_syncs = 0;
}

/* The blob is complete: the first piece, and what was there before goes. */
static bool take_first(struct job *job, const struct rdzv_wire *m, char slot, size_t len)
{
    struct jobs_network *n = job->network;
    struct jobs_item *old = jobs__find_item(job, m->kind, &m->hash);
    struct jobs_item item = {.hash = m->hash,
        .run = job->record.run,
        .len = (uint32_t)len,
        .n_pieces = m->n_pieces,
        .kind = m->kind,
        .slot = slot};
    struct rdzv_head head = {.run = item.run, .slot = slot, .n_pieces = m->n_pieces};
    char old_slot = old ? old->slot : RDZV_SLOT_NONE;
    unsigned old_pieces = old ? old->n_pieces : 1;
    size_t old_len = old && jobs__is_current(job, old) ? old->len : 0;
    char first[RDZV_KEY_MAX];
    char *text;

    if ((!old && n->n_items >= JOBS__ITEMS_MAX) || n->n_bytes - old_len + len > JOBS__BYTES_MAX)
        return false;
    text = rdzv_head_encode(&head, m->data, m->len);
    (void)key_of(job, m, first);
    /* Without memory for it the change is in the answers only. */
    if (!text || jobs__set_item(job, &item) != 0 || jobs__put(n, first, text) != 0)
        return true;
    jobs__delete_pieces(n, first, old_slot, 1, old_pieces);
    return true;
}

/* The blob begins: into the slot that it is not in now. */
static void begin_partial(struct job *job, const struct rdzv_wire *m)
{
    const struct jobs_item *old = jobs__find_item(job, m->kind, &m->hash);

    job->network->partial = (struct jobs_partial){.job = job,
        .kind = m->kind,
        .hash = m->hash,
        .next = 1,
        .n_pieces = m->n_pieces,
        .slot = old && old->slot == RDZV_SLOT_A ? RDZV_SLOT_B : RDZV_SLOT_A};
}

/* Does the piece come behind those that were there? */
static bool fits(const struct jobs_partial *p, const struct job *job, const struct rdzv_wire *m)
{
    bool is_last = m->piece == 0 && p->next == p->n_pieces;

    return p->job == job && p->kind == m->kind && p->n_pieces == m->n_pieces &&
           memcmp(&p->hash, &m->hash, sizeof(p->hash)) == 0 && (is_last || m->piece == p->next);
}

static bool take_piece(struct job *job, const struct rdzv_wire *m)
{
    struct jobs_network *n = job->network;
    struct jobs_partial *p = &n->partial;
    char first[RDZV_KEY_MAX];
    char key[RDZV_KEY_MAX];
    char slot;

    if (m->piece == 1)
        begin_partial(job, m);
    if (!fits(p, job, m) || (m->len != RDZV_CHUNK && m->piece != m->n_pieces - 1) || m->len == 0)
        return false;
    p->len += m->len;
    if (m->piece == 0) {
        slot = p->slot;
        p->job = NULL;
        return take_first(job, m, slot, p->len);
    }
    (void)rdzv_key_of_piece(key, key_of(job, m, first), p->slot, m->piece);
    (void)jobs__put(n, key, rdzv_piece_encode(m->data, m->len));
    p->next++;
    return true;
}

static bool take_put(struct job *job, const struct rdzv_wire *m)
{
    if (m->n_pieces == 1)
        return !job->network->partial.job && take_first(job, m, RDZV_SLOT_NONE, m->len);
    return take_piece(job, m);
}

static void take_drop(struct job *job, const struct rdzv_wire *m)
{
    struct jobs_item *item = jobs__find_item(job, m->kind, &m->hash);
    char first[RDZV_KEY_MAX];

    if (!item)
        return;
    (void)jobs__put(job->network, key_of(job, m, first), NULL);
    jobs__delete_pieces(job->network, first, item->slot, 1, item->n_pieces);
    jobs__remove_item(job, item);
}

/* What a process says in words, as people may see it. */
static void read_words(char *buf, size_t cap, const struct rdzv_wire *m)
{
    size_t len = m->len < cap - 1 ? m->len : cap - 1;

    for (size_t i = 0; i < len; i++)
        buf[i] = m->data[i] >= ' ' && m->data[i] < 0x7f ? (char)m->data[i] : '?';
    buf[len] = '\0';
}

/* ---- facts ---------------------------------------------------------------------------------- */

static void take_facts(struct job *job, const struct rdzv_wire *m)
{
    nsec_t now = clock_now();

    job->n_connections = m->n_connections;
    job->n_members = m->n_members;
    job->member = m->address;
    job->n_refused = m->n_refused < INT64_MAX ? m->n_refused : 0;
    read_words(job->last_limit, sizeof(job->last_limit), m);
    job->n_keys = m->n_keys < JOBS__ITEMS_MAX ? m->n_keys : JOBS__ITEMS_MAX;
    job->n_bytes = m->n_bytes < JOBS__BYTES_MAX ? m->n_bytes : JOBS__BYTES_MAX;
    if (m->quiet_ms < (uint64_t)(now / NSEC_PER_MSEC))
        job->heard = nsec_max(job->heard, now - (nsec_t)m->quiet_ms * NSEC_PER_MSEC);
}

static void take_damaged(struct job *job, const struct rdzv_wire *m)
{
    char key[RDZV_KEY_MAX];
    char why[WHY_MAX + 1];

    read_words(why, sizeof(why), m);
    jobs__set_aside(job->network->jobs, key_of(job, m, key), why);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool take_of_job(struct job *job, const struct rdzv_wire *m)
{
    if (m->type == RDZV_WIRE_PUT)
        return take_put(job, m);
    if (m->type == RDZV_WIRE_DROP)
        take_drop(job, m);
    else if (m->type == RDZV_WIRE_FACTS)
        take_facts(job, m);
    else
        take_damaged(job, m);
    return true;
}

bool jobs__take(struct jobs_network *n, const struct rdzv_wire *m)
{
    struct job *job;

    /* Between the pieces of a blob nothing else is said. */
    if (n->partial.job && m->type != RDZV_WIRE_PUT)
        return false;
    switch (m->type) {
    case RDZV_WIRE_PUT:
    case RDZV_WIRE_DROP:
    case RDZV_WIRE_FACTS:
    case RDZV_WIRE_DAMAGED:
        job = jobs__find_number(n, m->job);
        /* The process cannot know yet that the job, or its run, is over. */
        if (!job || job->record.run != m->run) {
            jobs__forget_partial(n);
            return true;
        }
        return job->is_told && take_of_job(job, m);
    case RDZV_WIRE_SYNC:
        jobs__sync(n, m->seq);
        return true;
    case RDZV_WIRE_COUNTS:
        n->counts = *m;
        return true;
    case RDZV_WIRE_NONE:
    case RDZV_WIRE_NETWORK:
    case RDZV_WIRE_JOB:
    case RDZV_WIRE_MEMBER:
    case RDZV_WIRE_NO_MEMBER:
    case RDZV_WIRE_LOAD:
    case RDZV_WIRE_LISTENER:
    case RDZV_WIRE_CLEAR:
    case RDZV_WIRE_FORGET:
    case RDZV_WIRE_SAVED:
    case RDZV_WIRE_END:
    case RDZV_WIRE_N:
        break;
    }
    return false;
}
