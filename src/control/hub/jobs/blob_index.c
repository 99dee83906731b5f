/* blob_index.c - see blob_index.h. */
#include "blob_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(
    const struct blob_index *index, enum rdzv_key_kind kind, const struct rdzv_hash *hash)
{
    return hash_bytes(index->entries.seed + kind, hash, sizeof(*hash));
}

void blob_index_init(struct blob_index *index, struct blob_totals *totals, uint64_t seed)
{
    *index = (struct blob_index){.totals = totals};
    htab_init(&index->entries, seed);
}

struct blob_entry *blob_index_find(
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

int blob_index_set(struct blob_index *index, const struct blob_entry *entry)
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

void blob_index_remove(struct blob_index *index, struct blob_entry *entry)
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

struct htab_link *blob_index_next(const struct blob_index *index, size_t *cursor)
{
    return htab_each(&index->entries, cursor, NULL);
}

void blob_index_deinit(struct blob_index *index)
{
    struct htab_link *next;
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&index->entries, &cursor, NULL); l; l = next) {
        next = htab_each(&index->entries, &cursor, l);
        blob_index_remove(index, container_of(l, struct blob_entry, link));
    }
    htab_deinit(&index->entries);
}
