/* turns.c - see turns.h. */
#include "dataplane/turns.h"

static uint64_t bit(unsigned queue)
{
    return UINT64_C(1) << queue;
}

void turns_on_ready(struct turns *t, uint64_t mask)
{
    t->fresh |= mask & ~t->ready;
    t->ready |= mask;
}

void turns_on_empty(struct turns *t, unsigned queue)
{
    t->ready &= ~bit(queue);
    t->fresh &= ~bit(queue);
}

unsigned turns_begin(struct turns *t)
{
    t->left = t->ready;
    t->may_jump = !t->is_turn_due;
    return (unsigned)__builtin_popcountll(t->ready);
}

/* The next one of @mask by turn. */
static unsigned by_turn(struct turns *t, uint64_t mask)
{
    uint64_t behind = mask & ~UINT64_C(0) << t->at;
    unsigned queue = (unsigned)__builtin_ctzll(behind ? behind : mask);

    t->at = (queue + 1) % TURNS_QUEUES_MAX;
    return queue;
}

int turns_next(struct turns *t)
{
    uint64_t first = t->may_jump ? t->left & t->fresh : 0;
    unsigned queue;

    if (!t->left) {
        t->is_turn_due = false;
        return -1;
    }
    queue = first ? (unsigned)__builtin_ctzll(first) : by_turn(t, t->left);
    t->is_turn_due = first != 0;
    t->left &= ~bit(queue);
    t->fresh &= ~bit(queue);
    return (int)queue;
}
