/* index.c - see index.h. */
#include "shared/index.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secret.h"

#define INDEX_SLOTS_MIN 64

static struct index_array *array_new(size_t n_slots)
{
    struct index_array *a = calloc(1, sizeof(*a) + n_slots * sizeof(a->slots[0]));

    if (a)
        a->mask = n_slots - 1;
    return a;
}

/* Under the lock nobody else stores it, so the order of the load does not matter. */
static struct index_array *array_of(const struct index_table *t)
{
    return atomic_load_explicit(&t->array, memory_order_relaxed);
}

/* Likewise: the peer that has the slot. */
static struct peer *peer_of(const struct index_slot *s)
{
    return atomic_load_explicit(&s->peer, memory_order_relaxed);
}

int index_init(struct index_table *t)
{
    struct index_array *a = array_new(INDEX_SLOTS_MIN);

    t->n = 0;
    atomic_init(&t->array, a);
    return a ? 0 : -ENOMEM;
}

void index_deinit(struct index_table *t)
{
    if (!array_of(t))
        return;
    index_reclaim(t);
    free(array_of(t));
    atomic_store_explicit(&t->array, NULL, memory_order_relaxed);
}

static int grow(struct index_table *t)
{
    struct index_array *from = array_of(t);
    struct index_array *to = array_new((from->mask + 1) * 2);

    if (!to)
        return -ENOMEM;
    for (size_t i = 0; i <= from->mask; i++) {
        const struct index_slot *s = &from->slots[i];
        uint32_t index = atomic_load_explicit(&s->index, memory_order_relaxed);
        struct index_slot *d = &to->slots[index & to->mask];
        struct peer *peer = peer_of(s);

        if (!peer)
            continue;
        atomic_store_explicit(&d->index, index, memory_order_relaxed);
        atomic_store_explicit(&d->peer, peer, memory_order_relaxed);
        atomic_store_explicit(&d->keypair, atomic_load_explicit(&s->keypair, memory_order_relaxed),
            memory_order_relaxed);
    }
    to->old = from;
    atomic_store_explicit(&t->array, to, memory_order_release);
    return 0;
}

int index_take(struct index_table *t, struct peer *peer, const struct rng *rng, uint32_t *ret)
{
    struct index_slot *s;
    struct index_array *a;
    uint32_t index;

    if (t->n * 2 > array_of(t)->mask) {
        int r = grow(t);

        if (r < 0)
            return r;
    }
    a = array_of(t);
    do {
        index = rng_u32(rng);
        s = &a->slots[index & a->mask];
    } while (peer_of(s));
    atomic_store_explicit(&s->index, index, memory_order_relaxed);
    atomic_store_explicit(&s->peer, peer, memory_order_release);
    t->n++;
    *ret = index;
    return 0;
}

static struct index_slot *find_slot(const struct index_table *t, uint32_t index)
{
    struct index_array *a = array_of(t);
    struct index_slot *s = &a->slots[index & a->mask];

    return peer_of(s) && atomic_load_explicit(&s->index, memory_order_relaxed) == index ? s : NULL;
}

void index_publish(struct index_table *t, struct keypair *kp)
{
    struct index_slot *s = find_slot(t, kp->local_index);

    if (s)
        atomic_store_explicit(&s->keypair, kp, memory_order_release);
}

void index_release(struct index_table *t, uint32_t index)
{
    struct index_slot *s = find_slot(t, index);

    if (!s)
        return;
    atomic_store_explicit(&s->keypair, NULL, memory_order_relaxed);
    atomic_store_explicit(&s->peer, NULL, memory_order_relaxed);
    t->n--;
}

struct peer *index_peer(const struct index_table *t, uint32_t index)
{
    const struct index_slot *s = find_slot(t, index);

    return s ? peer_of(s) : NULL;
}

void index_reclaim(struct index_table *t)
{
    struct index_array *a = array_of(t);

    while (a && a->old) {
        struct index_array *old = a->old;

        a->old = old->old;
        free(old);
    }
}
