/* damaged.c - see damaged.h. */
#include "damaged.h"

#include <stdlib.h>
#include <string.h>

static struct damaged_record *record_of(struct keyed *k)
{
    return k ? container_of(k, struct damaged_record, keyed) : NULL;
}

static void record_free(struct damaged_record *r)
{
    free(r->keyed.key);
    free(r);
}

void damaged_deinit(struct damaged *d)
{
    for (size_t i = 0; i < d->records.n; i++)
        record_free(record_of(d->records.items[i]));
    keys_deinit(&d->records);
}

bool damaged_add(struct damaged *d, const char *key, uint64_t revision, const struct err *why)
{
    struct damaged_record *r = record_of(keys_find(&d->records, key));

    if (r) {
        r->why = *why;
        r->revision = revision;
        return false;
    }
    r = calloc(1, sizeof(*r));
    if (!r)
        return true;
    r->why = *why;
    r->revision = revision;
    r->keyed.key = strdup(key);
    if (!r->keyed.key || keys_add(&d->records, &r->keyed) != 0)
        record_free(r);
    return true;
}

bool damaged_remove(struct damaged *d, const char *key)
{
    struct damaged_record *r = record_of(keys_find(&d->records, key));

    if (!r)
        return false;
    keys_remove(&d->records, &r->keyed);
    record_free(r);
    return true;
}

const struct damaged_record *damaged_find(const struct damaged *d, const char *key)
{
    return record_of(keys_find(&d->records, key));
}

const struct damaged_record *damaged_find_below(const struct damaged *d, const char *prefix)
{
    size_t i = keys_lower(&d->records, prefix);

    if (i == d->records.n || strncmp(d->records.items[i]->key, prefix, strlen(prefix)) != 0)
        return NULL;
    return damaged_at(d, i);
}
