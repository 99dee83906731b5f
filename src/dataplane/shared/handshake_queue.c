/* handshake_queue.c - see handshake_queue.h. */
#include "shared/handshake_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Under load from this part of one worker's slots on, and for so long after. */
#define LOAD_PART   8
#define LOAD_MEMORY NSEC_PER_SEC

/* What part of one worker's slots all messages without a proof may have. */
#define UNPROVEN_PART 2

int handshake_slots_init(struct handshake_slots *s, const struct handshake_queue *q)
{
    *s = (struct handshake_slots){
        .msgs = calloc(q->per_worker, sizeof(*s->msgs)), .n = q->per_worker};
    return s->msgs ? 0 : -ENOMEM;
}

int handshake_queue_init(struct handshake_queue *q, unsigned n_workers, unsigned per_worker)
{
    size_t cap = HANDSHAKES_PER_WORKER;

    q->per_worker = per_worker;
    while (cap < (size_t)n_workers * per_worker)
        cap *= 2;
    return mpsc_init(&q->ring, cap);
}

bool handshake_queue_push(struct handshake_queue *q, struct handshake_slots *slots,
    const struct handshake_to *to, bool is_proven, const struct udp_path *path, const uint8_t *msg,
    size_t len)
{
    struct handshake_msg *slot = &slots->msgs[slots->next];

    /* Acquire: control has finished reading the slot. */
    if (atomic_load_explicit(&slot->is_busy, memory_order_acquire) ||
        (!is_proven && atomic_load(&q->n) >= q->per_worker / UNPROVEN_PART))
        return false;
    slot->is_proven = is_proven;
    slot->device = to->device;
    slot->is_to_next = to->is_next;
    slot->path = *path;
    slot->len = (uint16_t)len;
    memcpy(slot->msg, msg, len);
    atomic_store_explicit(&slot->is_busy, true, memory_order_relaxed);
    slots->next = (slots->next + 1) % slots->n;
    atomic_fetch_add(&q->n, 1);
    if (mpsc_push(&q->ring, slot))
        return true;
    handshake_queue_done(q, slot);
    return false;
}

void handshake_queue_done(struct handshake_queue *q, struct handshake_msg *m)
{
    atomic_fetch_sub(&q->n, 1);
    /* Release: the worker may overwrite it. */
    atomic_store_explicit(&m->is_busy, false, memory_order_release);
}

bool handshake_queue_note_load(struct handshake_queue *q, nsec_t now)
{
    if (atomic_load(&q->n) >= q->per_worker / LOAD_PART)
        atomic_store(&q->loaded_until, now + LOAD_MEMORY);
    return handshake_queue_is_loaded(q, now);
}
