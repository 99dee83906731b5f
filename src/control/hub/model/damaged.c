/* damaged.c - see damaged.h. */
#include "damaged.h"

#include <string.h>

#include "base/containers.h"

bool damaged_add(struct keys *damaged, const char *key, uint64_t revision, const struct err *why)
{
    size_t n = damaged->n;
    struct keyed *k = keys_open(damaged, key, sizeof(struct damaged_record));

    if (k) {
        container_of(k, struct damaged_record, keyed)->why = *why;
        container_of(k, struct damaged_record, keyed)->revision = revision;
    }
    return !k || damaged->n > n;
}

bool damaged_remove(struct keys *damaged, const char *key)
{
    struct keyed *k = keys_find(damaged, key);

    if (k)
        keys_free(damaged, k);
    return k;
}

const struct damaged_record *damaged_find(const struct keys *damaged, const char *key)
{
    struct keyed *k = keys_find(damaged, key);

    return k ? container_of(k, struct damaged_record, keyed) : NULL;
}

const struct damaged_record *damaged_find_below(const struct keys *damaged, const char *prefix)
{
    size_t i = keys_lower(damaged, prefix);

    if (i == damaged->n || strncmp(damaged->items[i]->key, prefix, strlen(prefix)) != 0)
        return NULL;
    return container_of(damaged->items[i], struct damaged_record, keyed);
}
