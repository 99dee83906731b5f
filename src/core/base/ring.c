/* ring.c - see ring.h. */
#include "ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int mpsc_init(struct mpsc_ring *r, size_t cap)
{
    assert(cap > 0 && (cap & (cap - 1)) == 0);
    r->slots = calloc(cap, sizeof(*r->slots));
    if (!r->slots)
        return -ENOMEM;
    r->mask = cap - 1;
    for (size_t i = 0; i < cap; i++)
        atomic_init(&r->slots[i].seq, i);
    atomic_init(&r->head, 0);
    r->tail = 0;
    return 0;
}

void mpsc_deinit(struct mpsc_ring *r)
{
    free(r->slots);
    r->slots = NULL;
}

bool mpsc_push(struct mpsc_ring *r, void *item)
{
    size_t pos = atomic_load_explicit(&r->head, memory_order_relaxed);

    for (;;) {
        struct mpsc_slot *slot = &r->slots[pos & r->mask];
        size_t seq = atomic_load_explicit(&slot->seq, memory_order_acquire);

        if (seq == pos) {
            if (atomic_compare_exchange_weak_explicit(
                    &r->head, &pos, pos + 1, memory_order_relaxed, memory_order_relaxed)) {
                slot->item = item;
                atomic_store_explicit(&slot->seq, pos + 1, memory_order_release);
                return true;
            }
        } else if ((ptrdiff_t)(seq - pos) < 0) {
            return false;
        } else {
            pos = atomic_load_explicit(&r->head, memory_order_relaxed);
        }
    }
}

void *mpsc_pop(struct mpsc_ring *r)
{
    struct mpsc_slot *slot = &r->slots[r->tail & r->mask];
    void *item;

    if (atomic_load_explicit(&slot->seq, memory_order_acquire) != r->tail + 1)
        return NULL;
    item = slot->item;
    atomic_store_explicit(&slot->seq, r->tail + r->mask + 1, memory_order_release);
    r->tail++;
    return item;
}
