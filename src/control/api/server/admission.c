/* admission.c - see admission.h. */
#include "admission.h"

#include <stdlib.h>
#include <string.h>

/** A block of addresses from which at least one has entered. */
struct source {
    struct htab_link link; /* in the table, by block */
    struct ip_addr block;  /* see admission_block() */
    unsigned n;            /* how many from it are inside, at least 1 */
};

void admission_init(struct admission *a, unsigned max, unsigned max_by_address, uint64_t seed)
{
    *a = (struct admission){.max = max, .max_by_address = max_by_address};
    htab_init(&a->sources, seed);
}

void admission_deinit(struct admission *a)
{
    struct htab_link *next;
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&a->sources, &cursor, NULL); l; l = next) {
        next = htab_each(&a->sources, &cursor, l);
        free(container_of(l, struct source, link));
    }
    htab_deinit(&a->sources);
    a->n = 0;
}

struct ip_addr admission_block(const struct ip_addr *from)
{
    struct ip_addr block = *from;

    if (!ip_addr_is_v4(from))
        memset(block.b + 8, 0, 8);
    return block;
}

static struct source *find(const struct admission *a, const struct ip_addr *block, uint64_t hash)
{
    for (struct htab_link *l = htab_first(&a->sources, hash); l; l = htab_next(l, hash)) {
        struct source *src = container_of(l, struct source, link);

        if (ip_addr_equal(&src->block, block))
            return src;
    }
    return NULL;
}

static uint64_t hash_of(const struct admission *a, const struct ip_addr *block)
{
    return hash_bytes(a->sources.seed, block->b, sizeof(block->b));
}

bool admission_enter(struct admission *a, const struct ip_addr *from)
{
    struct ip_addr block = admission_block(from);
    uint64_t hash = hash_of(a, &block);
    struct source *src;

    if (a->n >= a->max)
        return false;
    if (!ip_addr_is_none(from)) {
        src = find(a, &block, hash);
        if (src && src->n >= a->max_by_address)
            return false;
        if (!src) {
            src = calloc(1, sizeof(*src));
            if (!src)
                return false;
            src->block = block;
            if (htab_add(&a->sources, &src->link, hash) != 0) {
                free(src);
                return false;
            }
        }
        src->n++;
    }
    a->n++;
    return true;
}

void admission_leave(struct admission *a, const struct ip_addr *from)
{
    struct ip_addr block = admission_block(from);
    struct source *src = ip_addr_is_none(from) ? NULL : find(a, &block, hash_of(a, &block));

    a->n--;
    if (src && --src->n == 0) {
        htab_remove(&a->sources, &src->link);
        free(src);
    }
}
