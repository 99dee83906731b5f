/*
 * queue_sched.h - which of a tx worker's queues is read next.
 *
 * Queues that have much are read in turn, a share of a batch from each. One
 * that was empty and now has something goes before them, once: so a ping, or a
 * short message, waits for one batch and not for every stream's. When it has
 * more than its share, it is read in turn with the others. (RFC 8290 section 4.2
 * makes the same difference between new and old flows.)
 *
 * Queues that fill a batch from empty again and again could keep the others
 * out. So when they have had a batch to themselves, the next one goes by turn
 * alone.
 *
 * No I/O: what is ready, and what was found empty, is told.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** A bit for each queue. */
#define QUEUE_SCHED_MAX 64

struct queue_sched {
    uint64_t ready;   /* queues that may have frames */
    uint64_t fresh;   /* of them, those that were empty until now */
    uint64_t left;    /* of those ready when the batch began, the ones not asked yet */
    unsigned at;      /* where the turn is */
    bool is_turn_due; /* fresh ones have gone first, and nobody by turn since */
    bool may_jump;    /* fresh ones go first in this batch */
};

/** queue_sched_on_ready() - the queues in @mask have frames, whatever was known of them. */
void queue_sched_on_ready(struct queue_sched *s, uint64_t mask);

/** queue_sched_on_empty() - @queue was read until it had no more. */
void queue_sched_on_empty(struct queue_sched *s, unsigned queue);

/** queue_sched_begin() - a batch begins. Each ready queue is asked once in it. Returns how many. */
unsigned queue_sched_begin(struct queue_sched *s);

/** queue_sched_next() - the queue to read now, or -1: all of them were asked. */
int queue_sched_next(struct queue_sched *s);
