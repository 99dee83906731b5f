/* blob_index.c - what of a job is in the hub's store; see jobs_internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hub/jobs_internal.h"

static uint64_t hash_of(
    const struct job *job, enum rdzv_key_kind kind, const struct rdzv_hash *hash)
{
    return hash_bytes(job->items.seed + kind, hash, sizeof(*hash));
}

struct jobs_item *jobs__find_item(
    const struct job *job, enum rdzv_key_kind kind, const struct rdzv_hash *hash)
{
    uint64_t h = hash_of(job, kind, hash);

    for (struct htab_link *l = htab_first(&job->items, h); l; l = htab_next(l, h)) {
        struct jobs_item *item = container_of(l, struct jobs_item, link);

        if (item->kind == kind && memcmp(&item->hash, hash, sizeof(*hash)) == 0)
            return item;
    }
    return NULL;
}

bool jobs__is_current(const struct job *job, const struct jobs_item *item)
{
    if (job->is_forgotten)
        return false;
    return item->run == job->record.run || (item->run == 0 && !job->record.has_heads);
}

/* @sign: 1 when it comes, -1 when it goes. */
static void count(struct job *job, const struct jobs_item *item, int sign)
{
    struct jobs_network *n = job->network;

    n->n_items += (size_t)sign;
    if (jobs__is_current(job, item)) {
        n->n_bytes += (size_t)sign * item->len;
    } else {
        n->n_garbage += (size_t)sign;
        job->n_garbage += (size_t)sign;
    }
}

int jobs__set_item(struct job *job, const struct jobs_item *item)
{
    struct jobs_item *it = jobs__find_item(job, item->kind, &item->hash);

    if (it) {
        count(job, it, -1);
    } else {
        it = calloc(1, sizeof(*it));
        if (!it || htab_add(&job->items, &it->link, hash_of(job, item->kind, &item->hash)) != 0) {
            free(it);
            return -ENOMEM;
        }
        it->hash = item->hash;
        it->kind = item->kind;
    }
    it->run = item->run;
    it->len = item->len;
    it->n_pieces = item->n_pieces;
    it->slot = item->slot;
    count(job, it, 1);
    return 0;
}

void jobs__remove_item(struct job *job, struct jobs_item *item)
{
    count(job, item, -1);
    htab_remove(&job->items, &item->link);
    free(item);
}

/* @sign: as in count(); of all items. */
static void count_all(struct job *job, int sign)
{
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&job->items, &cursor, NULL); l;
         l = htab_each(&job->items, &cursor, l))
        count(job, container_of(l, struct jobs_item, link), sign);
}

void jobs__begin_run(struct job *job, uint32_t run)
{
    count_all(job, -1);
    job->record.run = run;
    job->record.ended = false;
    job->record.has_heads = true;
    job->is_forgotten = false;
    count_all(job, 1);
    job->cursor = 0;
}

void jobs__end_runs(struct job *job)
{
    count_all(job, -1);
    job->is_forgotten = true;
    count_all(job, 1);
    job->cursor = 0;
}

void jobs__forget_items(struct job *job)
{
    struct htab_link *next;
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&job->items, &cursor, NULL); l; l = next) {
        next = htab_each(&job->items, &cursor, l);
        jobs__remove_item(job, container_of(l, struct jobs_item, link));
    }
    htab_deinit(&job->items);
}
