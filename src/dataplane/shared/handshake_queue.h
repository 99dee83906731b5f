/*
 * handshake_queue.h - handshake messages on their way from the rx workers to the control thread.
 *
 * Theory of operation. Each rx worker has slots of its own, which it fills in turn, so it never
 * allocates and never waits; the queue carries pointers to them, and the control thread gives each
 * slot back when it is done with the message. The queue has room for the slots of all workers. Half
 * of it at most is for messages whose senders have not proved their address, so that strangers
 * cannot keep honest peers out.
 *
 * The queue also says when the port is under load: from an eighth of one worker's slots on, and for
 * a second after, as in the Linux kernel. Under load the control thread answers with cookies, and
 * the workers check them. Who is answered with a cookie tries again five seconds later, so a hub,
 * whose members may all renew their keys in the same second, has many slots.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/containers.h"
#include "net/socket/udp_batch.h"
#include "wire/wg.h"

/** Slots of one rx worker, unless the port's options say another number. */
#define HANDSHAKES_PER_WORKER 512

/** Whose mac1 a handshake message carries. */
struct handshake_to {
    struct device *device; /* NULL: nobody's, or it is a cookie reply, which has none */
    bool is_next;          /* it is that of the device's next key */
};

/** A slot with a message. */
struct handshake_msg {
    struct device *device; /* pins: whose mac1 it carries; NULL for a cookie reply */
    bool is_to_next;       /* it is that of the device's next key */
    struct udp_path path;  /* where it came from */
    uint16_t len;          /* bytes in msg */
    bool is_proven;        /* under load: its mac2 shows that the sender is where it says */
    _Atomic bool is_busy;  /* set by the worker, cleared by handshake_queue_done() */
    uint8_t msg[sizeof(struct wg_initiation)];
};

/** The slots of one rx worker; only that worker touches them, but for the messages that wait. */
struct handshake_slots {
    struct handshake_msg *msgs; /* owns @n */
    unsigned n;
    unsigned next; /* the slot to be used next */
};

struct handshake_queue {
    unsigned per_worker;         /* slots of one rx worker; immutable after start */
    struct mpsc_ring ring;       /* of struct handshake_msg; rx workers to control */
    _Atomic unsigned n;          /* messages that wait, or are being handled */
    _Atomic nsec_t loaded_until; /* monotonic: under load until then; control writes it */
};

/** handshake_slots_init() - those of one rx worker of @q. 0 or -ENOMEM. */
int handshake_slots_init(struct handshake_slots *s, const struct handshake_queue *q);

/** handshake_queue_init() - with room for the slots of @n_workers, @per_worker each; of messages
 * without a proof half of @per_worker may wait in all. 0 or -ENOMEM. */
int handshake_queue_init(struct handshake_queue *q, unsigned n_workers, unsigned per_worker);

/**
 * handshake_queue_push() - copy a message into the worker's next slot and queue it
 * @slots:	the calling worker's
 * @to:		its device is pinned while it waits
 * @is_proven:	under load: its mac2 shows that the sender is where it says
 * @path:	where it came from
 * @msg:	@len bytes: a message of one of the handshake's types
 *
 * Threads: the rx worker that @slots belongs to.
 *
 * Return: false when there is no room for a message like it.
 */
bool handshake_queue_push(struct handshake_queue *q, struct handshake_slots *slots,
    const struct handshake_to *to, bool is_proven, const struct udp_path *path, const uint8_t *msg,
    size_t len);

/** handshake_queue_done() - give the slot of a popped message back to its worker. Under the port's
 * lock. */
void handshake_queue_done(struct handshake_queue *q, struct handshake_msg *m);

/** handshake_queue_note_load() - look how many wait, and say whether the port is under load. Under
 * the port's lock. */
bool handshake_queue_note_load(struct handshake_queue *q, nsec_t now);

/** handshake_queue_is_loaded() - is the port under load? Any thread. */
static inline bool handshake_queue_is_loaded(const struct handshake_queue *q, nsec_t now)
{
    return now < atomic_load(&q->loaded_until);
}
