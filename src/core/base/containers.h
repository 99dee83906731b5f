/*
 * containers.h - lists, heaps, hash tables, queues, sorted arrays and windows of sequences.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Intrusive doubly linked list.
 *
 * A `struct list` is both the head and the link. The head's next is the first
 * element; an empty head, and an unlinked element, point to themselves, so
 * list_remove() is idempotent and safe on an element that was only initialised.
 */

struct list {
    struct list *next; /* the head's: first element */
    struct list *prev; /* the head's: last element */
};

#define LIST_NULL(name) {&(name), &(name)}

/** container_of() - the struct of @type in which @ptr points at @member. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_is_empty(const struct list *l)
{
    return l->next == l;
}

/** list_add_tail() - put @item, which is in no list, last. */
static inline void list_add_tail(struct list *head, struct list *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}

/** list_add() - put @item, which is in no list, first. */
static inline void list_add(struct list *head, struct list *item)
{
    list_add_tail(head->next, item);
}

/** list_remove() - unlink; the item is then as after list_init(). */
static inline void list_remove(struct list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}

/** list_first() - the first item, NULL when empty. */
#define list_first(head, type, member)                                                             \
    (list_is_empty(head) ? NULL : container_of((head)->next, type, member))

/** list_foreach() - each @it; the list may not change meanwhile. */
#define list_foreach(it, head, member)                                                             \
    for (it = container_of((head)->next, __typeof__(*it), member); &it->member != (head);          \
         it = container_of(it->member.next, __typeof__(*it), member))

/** list_foreach_safe() - each @it, which may be removed meanwhile; no other may. */
#define list_foreach_safe(it, tmp, head, member)                                                   \
    for (it = container_of((head)->next, __typeof__(*it), member),                                 \
        tmp = container_of(it->member.next, __typeof__(*it), member);                              \
         &it->member != (head);                                                                    \
         it = tmp, tmp = container_of(it->member.next, __typeof__(*it), member))

/*
 * Intrusive binary heap of deadlines.
 *
 * One per loop or thread; the member with the earliest deadline comes first,
 * ties by the order of arming, so that timers are deterministic.
 *
 * The array holds what members are compared by, so that with thousands of them a change does not
 * read a member at each step.
 */

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

#define HEAP_NULL {0}

/** heap_deinit() - release the array; members are not touched. */
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

/*
 * Intrusive hash table, chained, growing.
 *
 * The caller hashes (hash_bytes() with the table's random seed, so that
 * strangers cannot choose colliding keys) and compares. The table stores links
 * only and never frees what it holds.
 *
 *     for (struct htab_link *l = htab_first(t, hash); l; l = htab_next(l, hash)) {
 *         struct peer *p = container_of(l, struct peer, link);
 *         if (key_equal(&p->key, key))
 *             return p;
 *     }
 *
 * Threads: none of its own; the owner guards it.
 */

/** A member's link. */
struct htab_link {
    struct htab_link *next; /* in the chain */
    uint64_t hash;          /* as given to htab_add() */
};

struct htab {
    struct htab_link **buckets; /* owns; 1 << bits chains, NULL until the first add */
    size_t n;                   /* members */
    unsigned bits;              /* log2 of the number of chains */
    uint64_t seed;              /* for hash_bytes() */
};

/** htab_init() - an empty table; @seed: random, unknown to strangers. No allocation yet. */
void htab_init(struct htab *t, uint64_t seed);

/** htab_deinit() - release the chains; members are not touched. */
void htab_deinit(struct htab *t);

/**
 * htab_add() - link a member in
 *
 * Does not look for an equal one: that is the caller's. Grows by doubling when
 * there is a member per chain; if that fails the chains just get longer.
 *
 * Return: 0, or -ENOMEM when not even the first chains could be had.
 */
int htab_add(struct htab *t, struct htab_link *link, uint64_t hash);

/** htab_remove() - unlink a member that is in the table. */
void htab_remove(struct htab *t, struct htab_link *link);

/** htab_first() - the first member whose hash equals @hash, or NULL. */
struct htab_link *htab_first(const struct htab *t, uint64_t hash);

/** htab_next() - the next after @link whose hash equals @hash, or NULL. */
struct htab_link *htab_next(const struct htab_link *link, uint64_t hash);

/**
 * htab_each() - walk all members, in no order
 * @cursor:	0 at first; advanced
 * @link:	the last one returned, NULL at first; it may have been removed since, not freed
 *
 * Return: the next, NULL at the end.
 */
struct htab_link *htab_each(const struct htab *t, size_t *cursor, const struct htab_link *link);

/**
 * hash_bytes() - keyed hash for tables
 *
 * A multiply-fold construction: fast and flood resistant as long as @seed is
 * secret; not a MAC.
 */
uint64_t hash_bytes(uint64_t seed, const void *p, size_t len);

/** hash_u64() - the same for one number. */
uint64_t hash_u64(uint64_t seed, uint64_t v);

/*
 * Bounded lock-free queue of pointers, many producers, one consumer.
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

/*
 * Arrays that are kept in order: where an item is or belongs, and room for it there.
 *
 * For arrays that are walked more often than they grow: an insertion moves what is behind it.
 *
 * Pure.
 */

/** Compares an item of the array with what is looked for, as strcmp() does. */
typedef int (*sorted_compare_fn)(const void *item, const void *wanted);

/**
 * sorted_place() - the index of the item, or that at which it belongs
 * @items:	@n items of @size bytes, in the order of @compare
 * @wanted:	handed to @compare
 */
size_t sorted_place(const void *items, size_t n, size_t size, sorted_compare_fn compare,
    const void *wanted, bool *ret_found);

/**
 * sorted_open() - make room for one more item at @at
 * @items:	@n items of @size bytes, of which *@cap fit; taken, unless there is no memory
 * @cap:	grows with the array
 *
 * Return: the array, in which the caller writes item @at and counts it; NULL: no memory, and
 * @items is as it was.
 */
void *sorted_open(void *items, size_t n, size_t size, size_t at, size_t *cap);

/*
 * Which numbers of an ascending sequence have come, each of which counts once.
 *
 * They may overtake each other: SEQ_WINDOW numbers behind the highest one are remembered.
 *
 * Pure.
 */

struct seq_window {
    uint64_t highest; /* that was taken */
    uint64_t seen;    /* bit i: highest - i was taken, or is too old */
};

/**
 * seq_window_take() - mark @sequence as seen
 *
 * Only when it is known to be authentic, or a stranger could move the window.
 *
 * Return: false if it was seen before, or is too far behind.
 */
bool seq_window_take(struct seq_window *w, uint64_t sequence);
