/*
 * heap.h - intrusive binary heap of deadlines.
 *
 * One per loop or thread; the member with the earliest deadline comes first,
 * ties by the order of arming, so that timers are deterministic.
 *
 * The array holds what members are compared by, so that with thousands of them a change does not
 * read a member at each step.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/** A member's place in the heap. */
struct heap_link {
    nsec_t due; /* when; valid while armed */
    size_t pos; /* index in the array plus one; 0 when not armed */
};

struct heap_item {
    nsec_t due;     /* the member's */
    uint64_t order; /* of arming, breaks ties */
    struct heap_link *link;
};

struct heap {
    struct heap_item *items; /* owns the array; pins the members */
    size_t n;                /* armed members */
    size_t cap;              /* room in the array */
    uint64_t next_order;     /* for the next arming */
};

#define HEAP_NULL                                                                                  \
    {                                                                                              \
        0                                                                                          \
    }

/** heap_deinit() - release the array; members are not touched. Idempotent. */
void heap_deinit(struct heap *h);

/** heap_reserve() - room for @n members, so that heap_set() cannot fail. 0 or -ENOMEM. */
int heap_reserve(struct heap *h, size_t n);

/** heap_set() - arm @link for @due, or move it; NSEC_NEVER disarms. 0 or -ENOMEM. */
int heap_set(struct heap *h, struct heap_link *link, nsec_t due);

/** heap_remove() - disarm; nothing happens when not armed. */
void heap_remove(struct heap *h, struct heap_link *link);

/** heap_first() - the earliest, NULL when none is armed. */
struct heap_link *heap_first(const struct heap *h);

/** heap_due() - the earliest deadline, or NSEC_NEVER. */
nsec_t heap_due(const struct heap *h);

/** heap_pop_due() - disarm and return the earliest if its time has come, else NULL. */
struct heap_link *heap_pop_due(struct heap *h, nsec_t now);
