/*
 * ring.h - bounded lock-free queue of pointers, many producers, one consumer.
 *
 * For handing work from the packet threads to the control thread. Full means
 * full: the producer drops, with a reason, and goes on.
 *
 * Each slot carries a sequence number that says whose turn it is (D. Vyukov's
 * bounded queue): `seq == pos` free for the producer of pos, `seq == pos + 1`
 * filled for the consumer. The producer's release store of seq pairs with the
 * consumer's acquire load, and the other way round.
 *
 * Threads: mpsc_push() any; mpsc_pop() one.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mpsc_slot {
    _Atomic size_t seq; /* whose turn: see above */
    void *item;         /* handed over */
};

struct mpsc_ring {
    struct mpsc_slot *slots; /* owns; immutable after init */
    size_t mask;             /* capacity - 1; immutable after init */
    /* Padding, not _Alignas: a ring inside an object from malloc() must stay aligned. */
    char apart_from_init[64];
    _Atomic size_t head; /* next to fill; any producer */
    char apart_from_head[64];
    size_t tail; /* next to take; consumer only */
};

/** mpsc_init() - @cap: slots, a power of two. 0 or -ENOMEM. */
int mpsc_init(struct mpsc_ring *r, size_t cap);

/** mpsc_deinit() - release the slots; items still inside are the caller's to drain first. */
void mpsc_deinit(struct mpsc_ring *r);

/** mpsc_push() - hand @item over; false when full. */
bool mpsc_push(struct mpsc_ring *r, void *item);

/** mpsc_pop() - the oldest item, NULL when empty. */
void *mpsc_pop(struct mpsc_ring *r);
