/* rate.c - see rate.h. */
#include "base/rate.h"

#include <stdlib.h>

#include "base/containers.h"

_Static_assert((RATELIMIT_SETS & (RATELIMIT_SETS - 1)) == 0, "the set is a mask of the hash");

void ratelimit_init(struct ratelimit *rl, nsec_t each, unsigned burst, uint64_t seed)
{
    *rl = (struct ratelimit){.each = each, .burst = burst, .seed = seed};
}

void ratelimit_deinit(struct ratelimit *rl)
{
    free(rl->entries);
    rl->entries = NULL;
}

static bool has_entries(struct ratelimit *rl)
{
    if (!rl->entries)
        rl->entries =
            calloc((size_t)RATELIMIT_SETS * RATELIMIT_ASSOCIATIVITY, sizeof(*rl->entries));
    return rl->entries != NULL;
}

static uint64_t source_of(const struct ratelimit *rl, const struct ip_addr *src)
{
    struct ip_addr block = ip_addr_block(src);

    return hash_bytes(rl->seed, block.b, sizeof(block.b));
}

/* The entry of @source; if it has none, the one of its set that is nearest to being full. */
static struct ratelimit_entry *entry_of(const struct ratelimit *rl, uint64_t source)
{
    struct ratelimit_entry *set = &rl->entries[source % RATELIMIT_SETS * RATELIMIT_ASSOCIATIVITY];
    struct ratelimit_entry *fullest = set;

    for (size_t i = 0; i < RATELIMIT_ASSOCIATIVITY; i++) {
        if (set[i].source == source)
            return &set[i];
        if (set[i].rate.full_at < fullest->rate.full_at)
            fullest = &set[i];
    }
    return fullest;
}

bool ratelimit_allow(struct ratelimit *rl, const struct ip_addr *src, nsec_t now)
{
    uint64_t source = source_of(rl, src);
    struct ratelimit_entry *entry = has_entries(rl) ? entry_of(rl, source) : NULL;

    if (!entry || (entry->source != source && entry->rate.full_at > now))
        return false;
    if (entry->source != source)
        *entry = (struct ratelimit_entry){.source = source};
    return rate_take(&entry->rate, now, rl->each, rl->burst);
}

bool ratelimit_is_spent(const struct ratelimit *rl, const struct ip_addr *src, nsec_t now)
{
    uint64_t source = source_of(rl, src);
    const struct ratelimit_entry *entry = rl->entries ? entry_of(rl, source) : NULL;

    return entry && entry->source == source && !ip_addr_is_none(src) &&
           rate_is_spent(&entry->rate, now, (nsec_t)(rl->burst - 1) * rl->each);
}

void ratelimit_pay(struct ratelimit *rl, const struct ip_addr *src, nsec_t now)
{
    uint64_t source = source_of(rl, src);
    struct ratelimit_entry *entry = has_entries(rl) ? entry_of(rl, source) : NULL;

    if (!entry || ip_addr_is_none(src))
        return;
    if (entry->source != source)
        *entry = (struct ratelimit_entry){.source = source};
    rate_pay(&entry->rate, now, rl->each);
}
