/* htab.c - see htab.h. */
#include "htab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HTAB_BITS_MIN 4
#define HTAB_BITS_MAX 28

static struct htab_link **bucket_of(const struct htab *t, uint64_t hash)
{
    return &t->buckets[hash >> (64 - t->bits)];
}

void htab_init(struct htab *t, uint64_t seed)
{
    *t = (struct htab){.seed = seed};
}

void htab_deinit(struct htab *t)
{
    free(t->buckets);
    t->buckets = NULL;
    t->n = 0;
    t->bits = 0;
}

static void grow(struct htab *t)
{
    struct htab bigger = {.n = t->n, .bits = t->bits + 1, .seed = t->seed};

    if (bigger.bits > HTAB_BITS_MAX)
        return;
    bigger.buckets = calloc((size_t)1 << bigger.bits, sizeof(*bigger.buckets));
    if (!bigger.buckets)
        return;
    for (size_t i = 0; i < (size_t)1 << t->bits; i++) {
        struct htab_link *next;

        for (struct htab_link *l = t->buckets[i]; l; l = next) {
            struct htab_link **b = bucket_of(&bigger, l->hash);

            next = l->next;
            l->next = *b;
            *b = l;
        }
    }
    free(t->buckets);
    *t = bigger;
}

int htab_add(struct htab *t, struct htab_link *link, uint64_t hash)
{
    struct htab_link **b;

    if (!t->buckets) {
        t->buckets = calloc((size_t)1 << HTAB_BITS_MIN, sizeof(*t->buckets));
        if (!t->buckets)
            return -ENOMEM;
        t->bits = HTAB_BITS_MIN;
    }
    if (t->n >= (size_t)1 << t->bits)
        grow(t);
    b = bucket_of(t, hash);
    link->hash = hash;
    link->next = *b;
    *b = link;
    t->n++;
    return 0;
}

void htab_remove(struct htab *t, struct htab_link *link)
{
    for (struct htab_link **p = bucket_of(t, link->hash); *p; p = &(*p)->next) {
        if (*p == link) {
            *p = link->next;
            t->n--;
            return;
        }
    }
}

static struct htab_link *find_in_chain(struct htab_link *l, uint64_t hash)
{
    while (l && l->hash != hash)
        l = l->next;
    return l;
}

struct htab_link *htab_first(const struct htab *t, uint64_t hash)
{
    return t->buckets ? find_in_chain(*bucket_of(t, hash), hash) : NULL;
}

struct htab_link *htab_next(const struct htab_link *link, uint64_t hash)
{
    return find_in_chain(link->next, hash);
}

struct htab_link *htab_each(const struct htab *t, size_t *cursor, const struct htab_link *link)
{
    if (link && link->next)
        return link->next;
    while (t->buckets && *cursor < (size_t)1 << t->bits) {
        struct htab_link *l = t->buckets[(*cursor)++];

        if (l)
            return l;
    }
    return NULL;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

uint64_t hash_bytes(uint64_t seed, const void *p, size_t len)
{
    const uint8_t *b = p;
    uint64_t h = seed ^ 0x2d358dccaa6c78a5u;

    for (size_t left = len;;) {
        uint64_t v = 0;

        memcpy(&v, b, left < sizeof(v) ? left : sizeof(v));
        h = fold(h ^ v, seed ^ 0x8bb84b93962eacc9u);
        if (left <= sizeof(v))
            break;
        left -= sizeof(v);
        b += sizeof(v);
    }
    return fold(h ^ len, 0x4b33a62ed433d4a3u ^ seed);
}

uint64_t hash_u64(uint64_t seed, uint64_t v)
{
    return hash_bytes(seed, &v, sizeof(v));
}
