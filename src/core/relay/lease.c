/* lease.c - see router_internal.h. */
#include "relay/router_internal.h"

#include <assert.h>
#include <stdlib.h>

#define CHUNK_LEASES 512

struct lease_chunk {
    struct lease_chunk *next; /* owns */
    struct lease leases[CHUNK_LEASES];
};

void lease_table_init(struct lease_table *t, uint64_t seed, unsigned max)
{
    *t = (struct lease_table){.max = max};
    htab_init(&t->by_key, seed);
    htab_init(&t->pairs, seed);
    list_init(&t->pending);
    list_init(&t->established);
    list_init(&t->free);
}

void lease_table_deinit(struct lease_table *t)
{
    struct htab_link *link = NULL;
    struct lease_pair *before = NULL;
    size_t cursor = 0;

    /* The walk reads the link of the last one to get to the next, so that is freed a step after
     * it. */
    while ((link = htab_each(&t->pairs, &cursor, link))) {
        free(before);
        before = container_of(link, struct lease_pair, by_ids);
    }
    free(before);
    htab_deinit(&t->pairs);
    while (t->chunks) {
        struct lease_chunk *next = t->chunks->next;

        free(t->chunks);
        t->chunks = next;
    }
    htab_deinit(&t->by_key);
    lease_table_init(t, t->by_key.seed, t->max);
}

static uint64_t key_hash(
    const struct lease_table *t, const struct lease_party *from, uint32_t index)
{
    return hash_u64(t->by_key.seed, (uint64_t)from->id << 32 | index);
}

/* Whether or not its time is over. */
static struct lease *find_any(
    const struct lease_table *t, const struct lease_party *from, uint32_t index)
{
    uint64_t hash = key_hash(t, from, index);

    for (struct htab_link *l = htab_first(&t->by_key, hash); l; l = htab_next(l, hash)) {
        struct lease *lease = container_of(l, struct lease, by_key);

        if (lease->from == from && lease->index == index)
            return lease;
    }
    return NULL;
}

struct lease *lease_find(
    const struct lease_table *t, const struct lease_party *from, uint32_t index, nsec_t now)
{
    struct lease *l = find_any(t, from, index);

    return l && now < l->until ? l : NULL;
}

/* ---- pairs ---- */

static uint64_t pair_hash(
    const struct lease_table *t, const struct lease_party *low, const struct lease_party *high)
{
    return hash_u64(t->pairs.seed, (uint64_t)high->id << 32 | low->id);
}

/* That of the two, made if there is none; NULL: no memory. */
static struct lease_pair *open_pair(
    struct lease_table *t, struct lease_party *a, struct lease_party *b)
{
    struct lease_party *low = a->id < b->id ? a : b;
    struct lease_party *high = low == a ? b : a;
    uint64_t hash = pair_hash(t, low, high);
    struct lease_pair *pair;

    for (struct htab_link *l = htab_first(&t->pairs, hash); l; l = htab_next(l, hash)) {
        pair = container_of(l, struct lease_pair, by_ids);
        if (pair->parties[0] == low && pair->parties[1] == high)
            return pair;
    }
    pair = calloc(1, sizeof(*pair));
    if (!pair)
        return NULL;
    if (htab_add(&t->pairs, &pair->by_ids, hash) != 0) {
        free(pair);
        return NULL;
    }
    pair->parties[0] = low;
    pair->parties[1] = high;
    return pair;
}

/* One lease fewer. */
static void leave_pair(struct lease_table *t, struct lease_pair *pair)
{
    if (--pair->n_leases > 0)
        return;
    htab_remove(&t->pairs, &pair->by_ids);
    free(pair);
}

/* ---- leases ---- */

/* One from the store, which gets another chunk when it is empty. */
static struct lease *take_free(struct lease_table *t)
{
    struct lease *l = list_first(&t->free, struct lease, by_age);
    struct lease_chunk *chunk;

    if (l || t->cap >= t->max)
        return l;
    chunk = calloc(1, sizeof(*chunk));
    if (!chunk)
        return NULL;
    chunk->next = t->chunks;
    t->chunks = chunk;
    for (unsigned i = 0; i < CHUNK_LEASES && t->cap < t->max; i++, t->cap++)
        list_add_tail(&t->free, &chunk->leases[i].by_age);
    return &chunk->leases[0];
}

/* Back into the store. */
static void remove_lease(struct lease_table *t, struct lease *l)
{
    assert(l->state != LEASE_STATE_FREE);
    htab_remove(&t->by_key, &l->by_key);
    list_remove(&l->by_age);
    list_remove(&l->by_sender);
    list_remove(&l->by_receiver);
    l->owner->n_owned--;
    leave_pair(t, l->pair);
    l->state = LEASE_STATE_FREE;
    t->n--;
    /* First, so that the memory that is in the caches is the next to be used. */
    list_add(&t->free, &l->by_age);
}

struct lease *lease_add(struct lease_table *t, struct lease_party *from, struct lease_party *to,
    struct lease_party *owner, uint32_t index, enum lease_state state, nsec_t until, nsec_t now)
{
    struct lease *old = find_any(t, from, index);
    struct lease_pair *pair;
    struct lease *l;

    assert(owner == from || owner == to);
    if (old) {
        assert(now >= old->until);
        remove_lease(t, old);
    }
    l = take_free(t);
    pair = l ? open_pair(t, from, to) : NULL;
    if (!pair)
        return NULL;
    pair->n_leases++;
    if (htab_add(&t->by_key, &l->by_key, key_hash(t, from, index)) != 0) {
        leave_pair(t, pair);
        return NULL;
    }
    l->pair = pair;
    l->from = from;
    l->to = to;
    l->owner = owner;
    l->index = index;
    l->state = state;
    l->until = until;
    list_remove(&l->by_age);
    list_add_tail(state == LEASE_STATE_PENDING ? &t->pending : &t->established, &l->by_age);
    list_add_tail(&from->sends, &l->by_sender);
    list_add_tail(&to->receives, &l->by_receiver);
    owner->n_owned++;
    t->n++;
    return l;
}

void lease_establish(struct lease_table *t, struct lease *l, nsec_t until)
{
    assert(l->state == LEASE_STATE_PENDING);
    l->state = LEASE_STATE_ESTABLISHED;
    l->until = until;
    list_remove(&l->by_age);
    list_add_tail(&t->established, &l->by_age);
}

void lease_remove_all(struct lease_table *t, struct lease_party *party)
{
    struct lease *l;

    while ((l = list_first(&party->sends, struct lease, by_sender)))
        remove_lease(t, l);
    while ((l = list_first(&party->receives, struct lease, by_receiver)))
        remove_lease(t, l);
}

static void remove_from_to(
    struct lease_table *t, struct lease_party *from, const struct lease_party *to)
{
    struct lease *l;
    struct lease *tmp;

    list_foreach_safe(l, tmp, &from->sends, by_sender) {
        if (l->to == to)
            remove_lease(t, l);
    }
}

void lease_remove_between(struct lease_table *t, struct lease_party *a, struct lease_party *b)
{
    remove_from_to(t, a, b);
    remove_from_to(t, b, a);
}

static unsigned expire_list(struct lease_table *t, struct list *ages, nsec_t now, unsigned max)
{
    unsigned n = 0;
    struct lease *l;

    while (n < max && (l = list_first(ages, struct lease, by_age)) && now >= l->until) {
        remove_lease(t, l);
        n++;
    }
    return n;
}

void lease_expire(struct lease_table *t, nsec_t now, unsigned max)
{
    unsigned n = expire_list(t, &t->pending, now, max);

    (void)expire_list(t, &t->established, now, max - n);
}
