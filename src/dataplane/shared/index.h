/*
 * index.h - receiver indices: 32-bit names of handshakes and keypairs.
 *
 * Theory of operation. We choose the indices, so the table needs no hashing: an
 * index is drawn at random until its low bits name a free slot, and is found
 * by those bits. At most half of the slots are used, so drawing ends soon. A
 * table twice the size has one low bit more, so everything still fits when it
 * grows. Readers load the table, then the slot's keypair, then compare
 * the whole index; the smaller table that it replaces is freed after a grace period of the gate.
 *
 * A slot is taken by a handshake, which has no keypair yet, and inherited by
 * the keypair that comes of it.
 *
 * Threads: index_find() and index_is_used() inside the gate; everything else
 * under the port's lock. The release store of a pointer in take, publish and
 * grow pairs with the acquire loads in these two.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "noise/keypair.h"

struct rng;

struct index_slot {
    _Atomic(struct keypair *) keypair; /* pins: what data messages are opened with; NULL: none */
    _Atomic(struct peer *) peer; /* pins: who has the slot; NULL: free. Changes under the lock */
    _Atomic uint32_t index;      /* whole; valid while there is a peer. Changes under the lock */
};

/** One size of the table; immutable but for its slots. */
struct index_array {
    size_t mask;             /* slots - 1 */
    struct index_array *old; /* owns: the one before, until index_reclaim() */
    struct index_slot slots[];
};

struct index_table {
    _Atomic(struct index_array *) array; /* owns */
    size_t n;                            /* slots in use; under the lock */
};

/** index_init() - 0 or -ENOMEM. */
int index_init(struct index_table *t);

/** index_deinit() - release. */
void index_deinit(struct index_table *t);

/** index_take() - a new random index for @peer's handshake. 0 or -ENOMEM. */
int index_take(struct index_table *t, struct peer *peer, const struct rng *rng, uint32_t *ret);

/** index_publish() - data messages with @kp's local index, taken before, are for @kp now. */
void index_publish(struct index_table *t, struct keypair *kp);

/** index_release() - the index names nothing any more. Readers may still hold its keypair. */
void index_release(struct index_table *t, uint32_t index);

/** index_peer() - whose handshake or keypair it is; NULL: nobody's. Under the lock. */
struct peer *index_peer(const struct index_table *t, uint32_t index);

/** index_reclaim() - free what index_take() has outgrown; after a grace period. */
void index_reclaim(struct index_table *t);

/** index_is_used() - is there a handshake or a keypair with this index at the moment? */
static inline bool index_is_used(const struct index_table *t, uint32_t index)
{
    struct index_array *a = atomic_load_explicit(&t->array, memory_order_acquire);
    struct index_slot *s = &a->slots[index & a->mask];

    return atomic_load_explicit(&s->peer, memory_order_acquire) &&
           atomic_load_explicit(&s->index, memory_order_relaxed) == index;
}

/** index_find() - the keypair that data messages with this index are for, or NULL. */
static inline struct keypair *index_find(const struct index_table *t, uint32_t index)
{
    struct index_array *a = atomic_load_explicit(&t->array, memory_order_acquire);
    struct keypair *kp =
        atomic_load_explicit(&a->slots[index & a->mask].keypair, memory_order_acquire);

    return kp && kp->local_index == index ? kp : NULL;
}
