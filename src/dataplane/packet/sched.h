/*
 * sched.h - what is sent next, and how fast: classes, queues and rates.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/traffic.h"

/** What is known of a tx worker's queues; a bit for each. */
struct sched_queues {
    uint64_t ready; /* queues that may have frames */
    uint64_t fresh; /* of them, those that were empty until now */
};

/** sched_queues_on_ready() - the queues in @mask have frames, whatever was known of them. */
void sched_queues_on_ready(struct sched_queues *q, uint64_t mask);

/** sched_queues_on_empty() - @queue was read until it had no more. */
void sched_queues_on_empty(struct sched_queues *q, unsigned queue);

/*
 * Which of a tx worker's queues is read next while the interface has a rate.
 *
 * Without a rate what waits is sent as fast as it is read, and the turns of queue_sched are enough.
 * With one there is always a choice, and this makes it:
 *
 *   - between classes: a higher one goes first. So that none is kept out for good, a lower one that
 *     has something gets a sixteenth of what is sent above it.
 *   - between queues of a class, which are its flows: turns by bytes (deficit round robin,
 * Shreedhar and Varghese 1995). Flows to one peer share that peer's part, so a peer with many flows
 * gets no more than one with a single flow (as CAKE does by host, Hoeiland-Joergensen et al. 2018).
 *   - a queue that was empty and has not had its part goes before the others once (RFC 8290 section
 *     4.2), so a short message waits for no bulk flow.
 *
 * A queue whose peer has a rate of its own may be set aside until that peer may be sent to.
 *
 * The class of a queue is its number modulo the number of classes: see net/tun/tun.h.
 *
 * No I/O; what is ready, and what was found empty, is told. Threads: one.
 */

/** A bit for each queue. */
#define CLASS_SCHED_MAX 64

struct class_sched {
    bool has_classes; /* queues are of classes; else all are TRAFFIC_CLASS_NORMAL */
    struct sched_queues queues;
    uint64_t aside; /* of those that are ready, those that wait for their peer's rate */
    nsec_t until;   /* the first of @aside may be read again; NSEC_NEVER: none waits */
    uint8_t at[TRAFFIC_CLASS_N];       /* where the turn of each class is, in the queues of it */
    uint64_t owed[TRAFFIC_CLASS_N];    /* bytes that a class may send before those above it */
    int32_t credit[CLASS_SCHED_MAX];   /* bytes that each queue may still send in this turn */
    nsec_t due[CLASS_SCHED_MAX];       /* of those in @aside */
    const void *peer[CLASS_SCHED_MAX]; /* whom the latest frame of each queue was for; compared
                                          only, so it may be gone */
};

/** class_sched_init() - nothing is ready, and there are no classes. */
void class_sched_init(struct class_sched *s);

/**
 * class_sched_next() - the queue to read a frame of now
 * @closed:	a bit for each class that may not be sent
 *
 * Return: its number; -1: none has frames that may be sent at @now (see @until).
 */
int class_sched_next(struct class_sched *s, unsigned closed, nsec_t now);

/** class_sched_on_sent() - a frame of @queue, of @n_bytes, was sent to @peer. */
void class_sched_on_sent(struct class_sched *s, unsigned queue, uint32_t n_bytes, const void *peer);

/** class_sched_set_aside() - the next frame of @queue is for @peer, who may be sent to at @due. */
void class_sched_set_aside(struct class_sched *s, unsigned queue, const void *peer, nsec_t due);

/** class_sched_class() - of a queue. */
static inline enum traffic_class class_sched_class(const struct class_sched *s, unsigned queue)
{
    return s->has_classes ? (enum traffic_class)(queue % TRAFFIC_CLASS_N) : TRAFFIC_CLASS_NORMAL;
}

/*
 * Which of a tx worker's queues is read next.
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

/** A bit for each queue. */
#define QUEUE_SCHED_MAX 64

struct queue_sched {
    struct sched_queues queues;
    uint64_t left;    /* of those ready when the batch began, the ones not asked yet */
    unsigned at;      /* where the turn is */
    bool is_turn_due; /* fresh ones have gone first, and nobody by turn since */
    bool may_jump;    /* fresh ones go first in this batch */
};

/** queue_sched_begin() - a batch begins. Each ready queue is asked once in it. Returns how many. */
unsigned queue_sched_begin(struct queue_sched *s);

/** queue_sched_next() - the queue to read now, or -1: all of them were asked. */
int queue_sched_next(struct queue_sched *s);

/*
 * A rate limit that several threads keep together.
 *
 * It is a clock of its own: each byte moves it on by the time that the byte takes at the rate, and
 * nothing is sent while it is ahead of the real one (the virtual scheduling form of the generic
 * cell rate algorithm, ITU-T I.371). One that fell behind, because there was nothing to send or
 * because a thread woke late, makes good for PACE_BURST at most; so timers that are late cost no
 * rate, and what follows a pause does not fill the queues behind us.
 *
 * No I/O; time is an argument. Threads: any.
 */

/** How much time that was not used may be made good. */
#define PACE_BURST (4 * NSEC_PER_MSEC)

struct pace {
    _Atomic uint64_t bits_per_s; /* 0: no limit */
    _Atomic nsec_t at;           /* the clock of its own */
};

/** pace_set() - @bits_per_s, as traffic_rate_is_allowed() allows; 0: no limit. What was sent before
 * counts no more. */
void pace_set(struct pace *p, uint64_t bits_per_s);

/** pace_rate() - in bit/s; 0: no limit. */
static inline uint64_t pace_rate(const struct pace *p)
{
    return atomic_load_explicit(&p->bits_per_s, memory_order_relaxed);
}

/** pace_due() - when something may be sent again; at most @now means at once. */
nsec_t pace_due(const struct pace *p, nsec_t now);

/** pace_take() - @n_bytes are sent at @now. */
void pace_take(struct pace *p, uint64_t n_bytes, nsec_t now);
