/* rate.c - see rate.h. */
#include "base/rate.h"

#include <stdlib.h>

#include "base/containers.h"

_Static_assert((RATELIMIT_SETS & (RATELIMIT_SETS - 1)) == 0, "the set is a mask of the hash");

void ratelimit_init(struct ratelimit *rl, uint64_t seed)
{
    *rl = (struct ratelimit){.seed = seed};
}

void ratelimit_deinit(struct ratelimit *rl)
{
    free(rl->entries);
    rl->entries = NULL;
}

/* The v4 address, or the upper half of the v6 one, under the table's seed. */
static uint64_t source_of(const struct ratelimit *rl, const struct ip_addr *src)
{
    size_t len = ip_addr_is_v4(src) ? sizeof(src->b) : sizeof(src->b) / 2;

    return hash_bytes(rl->seed, src->b, len);
}

/* The entry of @source, or one whose bucket is full and so may be taken over; NULL if none. */
static struct ratelimit_entry *entry_of(struct ratelimit *rl, uint64_t source, nsec_t now)
{
    struct ratelimit_entry *set = &rl->entries[source % RATELIMIT_SETS * RATELIMIT_ASSOCIATIVITY];
    struct ratelimit_entry *idle = NULL;

    for (size_t i = 0; i < RATELIMIT_ASSOCIATIVITY; i++) {
        if (set[i].source == source)
            return &set[i];
        if (set[i].rate.full_at <= now)
            idle = &set[i];
    }
    if (idle)
        *idle = (struct ratelimit_entry){.source = source};
    return idle;
}

bool ratelimit_allow(struct ratelimit *rl, const struct ip_addr *src, nsec_t now)
{
    struct ratelimit_entry *entry;

    if (!rl->entries)
        rl->entries =
            calloc((size_t)RATELIMIT_SETS * RATELIMIT_ASSOCIATIVITY, sizeof(*rl->entries));
    if (!rl->entries)
        return false;
    entry = entry_of(rl, source_of(rl, src), now);
    return entry && rate_take(&entry->rate, now, RATELIMIT_COST, RATELIMIT_BURST);
}
