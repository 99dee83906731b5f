/* keys.c - see keys.h. */
#include "keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void keys_deinit(struct keys *k)
{
    free(k->items);
    *k = (struct keys)KEYS_NULL;
}

size_t keys_lower(const struct keys *k, const char *key)
{
    size_t lo = 0;
    size_t hi = k->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (strcmp(k->items[mid]->key, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void *keys_find(const struct keys *k, const char *key)
{
    size_t i = keys_lower(k, key);

    return i < k->n && strcmp(k->items[i]->key, key) == 0 ? k->items[i] : NULL;
}

int keys_add(struct keys *k, struct keyed *item)
{
    size_t i = keys_lower(k, item->key);

    if (k->n == k->cap) {
        size_t cap = k->cap ? 2 * k->cap : 16;
        struct keyed **items = realloc(k->items, cap * sizeof(struct keyed *));

        if (!items)
            return -ENOMEM;
        k->items = items;
        k->cap = cap;
    }
    memmove(k->items + i + 1, k->items + i, (k->n - i) * sizeof(struct keyed *));
    k->items[i] = item;
    k->n++;
    return 0;
}

void keys_remove(struct keys *k, const struct keyed *item)
{
    size_t i = keys_lower(k, item->key);

    if (i >= k->n || k->items[i] != item)
        return;
    k->n--;
    memmove(k->items + i, k->items + i + 1, (k->n - i) * sizeof(struct keyed *));
}

void *keys_open(struct keys *k, const char *key, size_t size)
{
    struct keyed *item = keys_find(k, key);

    if (item)
        return item;
    item = calloc(1, size);
    if (!item)
        return NULL;
    item->key = strdup(key);
    if (!item->key || keys_add(k, item) != 0) {
        free(item->key);
        free(item);
        return NULL;
    }
    return item;
}

void keys_free(struct keys *k, struct keyed *item)
{
    keys_remove(k, item);
    free(item->key);
    free(item);
}

void keys_free_all(struct keys *k)
{
    while (k->n > 0)
        keys_free(k, k->items[k->n - 1]);
    keys_deinit(k);
}
