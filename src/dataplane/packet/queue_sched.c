/* queue_sched.c - see queue_sched.h. */
#include "packet/queue_sched.h"

static uint64_t bit(unsigned queue)
{
    return UINT64_C(1) << queue;
}

void queue_sched_on_ready(struct queue_sched *s, uint64_t mask)
{
    s->fresh |= mask & ~s->ready;
    s->ready |= mask;
}

void queue_sched_on_empty(struct queue_sched *s, unsigned queue)
{
    s->ready &= ~bit(queue);
    s->fresh &= ~bit(queue);
}

unsigned queue_sched_begin(struct queue_sched *s)
{
    s->left = s->ready;
    s->may_jump = !s->is_turn_due;
    return (unsigned)__builtin_popcountll(s->ready);
}

/* The next one of @mask by turn. */
static unsigned by_turn(struct queue_sched *s, uint64_t mask)
{
    uint64_t behind = mask & ~UINT64_C(0) << s->at;
    unsigned queue = (unsigned)__builtin_ctzll(behind ? behind : mask);

    s->at = (queue + 1) % QUEUE_SCHED_MAX;
    return queue;
}

int queue_sched_next(struct queue_sched *s)
{
    uint64_t first = s->may_jump ? s->left & s->fresh : 0;
    unsigned queue;

    if (!s->left) {
        s->is_turn_due = false;
        return -1;
    }
    queue = first ? (unsigned)__builtin_ctzll(first) : by_turn(s, s->left);
    s->is_turn_due = first != 0;
    s->left &= ~bit(queue);
    s->fresh &= ~bit(queue);
    return (int)queue;
}
