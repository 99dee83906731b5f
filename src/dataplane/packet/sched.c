/* sched.c - see sched.h. */
#include "packet/sched.h"

/* Bytes that a queue may send in its turn. */
#define CLASS_SCHED_QUANTUM 16384

static uint64_t bit(unsigned queue)
{
    return UINT64_C(1) << queue;
}

void sched_queues_on_ready(struct sched_queues *q, uint64_t mask)
{
    q->fresh |= mask & ~q->ready;
    q->ready |= mask;
}

void sched_queues_on_empty(struct sched_queues *q, unsigned queue)
{
    q->ready &= ~bit(queue);
    q->fresh &= ~bit(queue);
}

/* ---- queues and classes under a rate ---- */

/* Of what is sent, a lower class that waits gets one part of so many. */
#define LOWER_SHARE 16

/* Least bytes of a turn: a full packet. */
#define GRANT_MIN 1536

/* A queue may owe one frame of 64 KiB, and what went before it. */
#define CREDIT_MIN (-2 * 65536)

/* Queues of one class: every TRAFFIC_CLASS_N-th bit. */
#define CLASS_BITS UINT64_C(0x1111111111111111)

_Static_assert(TRAFFIC_CLASS_N == 4, "CLASS_BITS");

/* The queues of a class. */
static uint64_t queues_of(const struct class_sched *s, unsigned class)
{
    if (!s->has_classes)
        return class == TRAFFIC_CLASS_NORMAL ? ~UINT64_C(0) : 0;
    return CLASS_BITS << class;
}

void class_sched_init(struct class_sched *s)
{
    *s = (struct class_sched){.until = NSEC_NEVER};
    for (unsigned i = 0; i < CLASS_SCHED_MAX; i++)
        s->credit[i] = CLASS_SCHED_QUANTUM;
}

/* Takes back those whose peers may be sent to by now. */
static void take_back(struct class_sched *s, nsec_t now)
{
    nsec_t until = NSEC_NEVER;

    if (s->until > now)
        return;
    for (uint64_t left = s->aside; left; left &= left - 1) {
        unsigned queue = (unsigned)__builtin_ctzll(left);

        if (s->due[queue] <= now)
            s->aside &= ~bit(queue);
        else
            until = nsec_min(until, s->due[queue]);
    }
    s->until = until;
}

/* The class whose turn it is, of those with a queue in @mask, which is not empty. */
static unsigned choose_class(const struct class_sched *s, uint64_t mask)
{
    unsigned first = TRAFFIC_CLASS_N;

    for (unsigned class = 0; class < TRAFFIC_CLASS_N; class ++) {
        if (!(mask & queues_of(s, class)))
            continue;
        if (s->owed[class] >= CLASS_SCHED_QUANTUM)
            return class;
        if (first == TRAFFIC_CLASS_N)
            first = class;
    }
    return first;
}

/* A turn's bytes for @queue: its peer's part, shared by the queues of @mask that are for that peer.
 */
static int32_t grant(const struct class_sched *s, unsigned queue, uint64_t mask)
{
    int32_t n = 0;

    for (uint64_t left = mask; left; left &= left - 1)
        n += s->peer[__builtin_ctzll(left)] == s->peer[queue];
    return CLASS_SCHED_QUANTUM / n > GRANT_MIN ? CLASS_SCHED_QUANTUM / n : GRANT_MIN;
}

/* The next queue of @mask, all of one class, by turn; each turn that passes adds to a credit. */
static unsigned class_sched_by_turn(struct class_sched *s, unsigned class, uint64_t mask)
{
    for (;;) {
        uint64_t behind = mask & ~UINT64_C(0) << s->at[class];
        unsigned queue = (unsigned)__builtin_ctzll(behind ? behind : mask);
        uint64_t idle = behind ? 0 : ~s->queues.ready & queues_of(s, class);

        /* Queues of the class that have nothing to send begin with a whole part when they have. */
        for (; idle; idle &= idle - 1)
            s->credit[__builtin_ctzll(idle)] = CLASS_SCHED_QUANTUM;
        s->at[class] = (uint8_t)queue;
        if (s->credit[queue] > 0)
            return queue;
        s->credit[queue] += grant(s, queue, mask);
        s->at[class] = (uint8_t)((queue + 1) % CLASS_SCHED_MAX);
    }
}

int class_sched_next(struct class_sched *s, unsigned closed, nsec_t now)
{
    uint64_t mask, fresh;
    unsigned class;

    take_back(s, now);
    mask = s->queues.ready & ~s->aside;
    for (class = 0; class < TRAFFIC_CLASS_N; class ++) {
        if (closed & 1u << class)
            mask &= ~queues_of(s, class);
    }
    if (!mask)
        return -1;
    class = choose_class(s, mask);
    mask &= queues_of(s, class);
    for (fresh = s->queues.fresh & mask; fresh; fresh &= fresh - 1) {
        unsigned queue = (unsigned)__builtin_ctzll(fresh);

        if (s->credit[queue] > 0)
            return (int)queue;
        s->queues.fresh &= ~bit(queue);
    }
    return (int)class_sched_by_turn(s, class, mask);
}

/* What @class has sent: those below it that wait are owed their share, and what it was owed is
 * paid. */
static void settle(struct class_sched *s, unsigned class, uint32_t n_bytes)
{
    uint64_t waiting = s->queues.ready & ~s->aside;

    s->owed[class] -= s->owed[class] < n_bytes ? s->owed[class] : n_bytes;
    for (unsigned lower = class + 1; lower < TRAFFIC_CLASS_N; lower++) {
        if (waiting & queues_of(s, lower))
            s->owed[lower] += n_bytes / LOWER_SHARE;
        else
            s->owed[lower] = 0;
    }
}

void class_sched_on_sent(struct class_sched *s, unsigned queue, uint32_t n_bytes, const void *peer)
{
    s->peer[queue] = peer;
    s->credit[queue] -= (int32_t)n_bytes;
    if (s->credit[queue] < CREDIT_MIN)
        s->credit[queue] = CREDIT_MIN;
    settle(s, class_sched_class(s, queue), n_bytes);
}

void class_sched_set_aside(struct class_sched *s, unsigned queue, const void *peer, nsec_t due)
{
    s->peer[queue] = peer;
    s->due[queue] = due;
    s->aside |= bit(queue);
    s->until = nsec_min(s->until, due);
}

/* ---- queues without a rate ---- */

unsigned queue_sched_begin(struct queue_sched *s)
{
    s->left = s->queues.ready;
    s->may_jump = !s->is_turn_due;
    return (unsigned)__builtin_popcountll(s->queues.ready);
}

int queue_sched_next(struct queue_sched *s)
{
    uint64_t first = s->may_jump ? s->left & s->queues.fresh : 0;
    uint64_t behind = s->left & ~UINT64_C(0) << s->at;
    unsigned queue;

    if (!s->left) {
        s->is_turn_due = false;
        return -1;
    }
    if (first) {
        queue = (unsigned)__builtin_ctzll(first);
    } else {
        queue = (unsigned)__builtin_ctzll(behind ? behind : s->left);
        s->at = (queue + 1) % QUEUE_SCHED_MAX;
    }
    s->is_turn_due = first != 0;
    s->left &= ~bit(queue);
    s->queues.fresh &= ~bit(queue);
    return (int)queue;
}

/* ---- the rate itself ---- */

/* At TRAFFIC_RATE_MIN a run of 64 KiB is 5.2 s, so this never overflows for what one call sends. */
#define BYTES_MAX (UINT64_C(1) << 24)

void pace_set(struct pace *p, uint64_t bits_per_s)
{
    atomic_store_explicit(&p->at, 0, memory_order_relaxed);
    atomic_store_explicit(&p->bits_per_s, bits_per_s, memory_order_relaxed);
}

nsec_t pace_due(const struct pace *p, nsec_t now)
{
    if (pace_rate(p) == 0)
        return now;
    return atomic_load_explicit(&p->at, memory_order_relaxed);
}

void pace_take(struct pace *p, uint64_t n_bytes, nsec_t now)
{
    uint64_t rate = pace_rate(p);
    nsec_t at = atomic_load_explicit(&p->at, memory_order_relaxed);
    nsec_t next;

    if (rate == 0)
        return;
    if (n_bytes > BYTES_MAX)
        n_bytes = BYTES_MAX;
    do {
        next =
            nsec_max(at, now - PACE_BURST) + (nsec_t)(n_bytes * 8 * (uint64_t)NSEC_PER_SEC / rate);
    } while (!atomic_compare_exchange_weak_explicit(
        &p->at, &at, next, memory_order_relaxed, memory_order_relaxed));
}
