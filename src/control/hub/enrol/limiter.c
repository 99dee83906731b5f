/* limiter.c - see limiter.h. */
#include "limiter.h"

#include <stdlib.h>

#include "api/server/admission.h"
#include "base/rate.h"

struct limited {
    struct htab_link link; /* in the table */
    struct list age;       /* in by_age */
    struct ip_addr block;  /* see admission_block() */
    struct rate failures;
};

void limiter_init(struct limiter *l, uint64_t seed)
{
    htab_init(&l->sources, seed);
    list_init(&l->by_age);
}

static void forget(struct limiter *l, struct limited *src)
{
    htab_remove(&l->sources, &src->link);
    list_remove(&src->age);
    free(src);
}

void limiter_deinit(struct limiter *l)
{
    struct limited *src;
    struct limited *tmp;

    list_foreach_safe(src, tmp, &l->by_age, age)
        forget(l, src);
    htab_deinit(&l->sources);
}

static struct limited *find(const struct limiter *l, const struct ip_addr *from)
{
    struct ip_addr block = admission_block(from);
    uint64_t hash = hash_bytes(l->sources.seed, block.b, sizeof(block.b));

    for (struct htab_link *k = htab_first(&l->sources, hash); k; k = htab_next(k, hash)) {
        struct limited *src = container_of(k, struct limited, link);

        if (ip_addr_equal(&src->block, &block))
            return src;
    }
    return NULL;
}

bool limiter_allows(const struct limiter *l, const struct ip_addr *from, nsec_t now)
{
    const struct limited *src = ip_addr_is_none(from) ? NULL : find(l, from);

    return !src || !rate_is_spent(&src->failures, now, (LIMITER_BURST - 1) * LIMITER_EACH);
}

static struct limited *add(struct limiter *l, const struct ip_addr *from)
{
    struct limited *oldest = list_first(&l->by_age, struct limited, age);
    struct limited *src = calloc(1, sizeof(*src));

    if (!src)
        return NULL;
    if (oldest && l->sources.n >= LIMITER_SOURCES_MAX)
        forget(l, oldest);
    src->block = admission_block(from);
    list_init(&src->age);
    if (htab_add(&l->sources, &src->link,
            hash_bytes(l->sources.seed, src->block.b, sizeof(src->block.b))) != 0) {
        free(src);
        return NULL;
    }
    return src;
}

void limiter_failed(struct limiter *l, const struct ip_addr *from, nsec_t now)
{
    struct limited *src;

    if (ip_addr_is_none(from))
        return;
    src = find(l, from);
    if (!src)
        src = add(l, from);
    /* Without memory nobody is limited; a secret of 32 bytes is not guessed anyway. */
    if (!src)
        return;
    rate_pay(&src->failures, now, LIMITER_EACH);
    list_remove(&src->age);
    list_add_tail(&l->by_age, &src->age);
}
