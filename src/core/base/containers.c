/* containers.c - see containers.h. */
#include "base/containers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEQ_WINDOW 64

/* ---- heap ---- */

static bool is_before(const struct heap_item *a, const struct heap_item *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void place(struct heap *h, struct heap_item item, size_t i)
{
    h->items[i] = item;
    item.link->pos = i + 1;
}

static void sift_up(struct heap *h, struct heap_item item, size_t i)
{
    while (i > 0 && is_before(&item, &h->items[(i - 1) / 2])) {
        place(h, h->items[(i - 1) / 2], i);
        i = (i - 1) / 2;
    }
    place(h, item, i);
}

static void sift_down(struct heap *h, struct heap_item item, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= h->n)
            break;
        if (child + 1 < h->n && is_before(&h->items[child + 1], &h->items[child]))
            child++;
        if (!is_before(&h->items[child], &item))
            break;
        place(h, h->items[child], i);
        i = child;
    }
    place(h, item, i);
}

/* @item's place is somewhere above or below @i, which is free. */
static void sift(struct heap *h, struct heap_item item, size_t i)
{
    if (i > 0 && is_before(&item, &h->items[(i - 1) / 2]))
        sift_up(h, item, i);
    else
        sift_down(h, item, i);
}

void heap_deinit(struct heap *h)
{
    free(h->items);
    *h = (struct heap)HEAP_NULL;
}

int heap_reserve(struct heap *h, size_t n)
{
    struct heap_item *items;
    size_t cap = h->cap ? h->cap : 16;

    while (cap < n)
        cap *= 2;
    if (cap == h->cap)
        return 0;
    items = reallocarray(h->items, cap, sizeof(*items));
    if (!items)
        return -ENOMEM;
    h->items = items;
    h->cap = cap;
    return 0;
}

int heap_set(struct heap *h, struct heap_link *link, nsec_t due)
{
    struct heap_item item;
    int r;

    if (due == NSEC_NEVER) {
        heap_remove(h, link);
        return 0;
    }
    if (!link->pos) {
        r = heap_reserve(h, h->n + 1);
        if (r < 0)
            return r;
        link->pos = ++h->n;
    }
    link->due = due;
    item = (struct heap_item){.due = due, .order = h->next_order++, .link = link};
    sift(h, item, link->pos - 1);
    return 0;
}

void heap_remove(struct heap *h, struct heap_link *link)
{
    struct heap_item last;
    size_t i;

    if (!link->pos)
        return;
    i = link->pos - 1;
    link->pos = 0;
    last = h->items[--h->n];
    if (last.link == link)
        return;
    sift(h, last, i);
}

struct heap_link *heap_first(const struct heap *h)
{
    return h->n ? h->items[0].link : NULL;
}

nsec_t heap_due(const struct heap *h)
{
    return h->n ? h->items[0].due : NSEC_NEVER;
}

struct heap_link *heap_pop_due(struct heap *h, nsec_t now)
{
    struct heap_link *first = heap_first(h);

    if (!first || first->due > now)
        return NULL;
    heap_remove(h, first);
    return first;
}

/* ---- hash table ---- */

#define HTAB_BITS_MIN 4
#define HTAB_BITS_MAX 28

static struct htab_link **bucket_of(const struct htab *t, uint64_t hash)
{
    return &t->buckets[hash >> (64 - t->bits)];
}

void htab_init(struct htab *t, uint64_t seed)
{
    *t = (struct htab){.seed = seed};
}

void htab_deinit(struct htab *t)
{
    free(t->buckets);
    t->buckets = NULL;
    t->n = 0;
    t->bits = 0;
}

static void grow(struct htab *t)
{
    struct htab bigger = {.n = t->n, .bits = t->bits + 1, .seed = t->seed};

    if (bigger.bits > HTAB_BITS_MAX)
        return;
    bigger.buckets = calloc((size_t)1 << bigger.bits, sizeof(*bigger.buckets));
    if (!bigger.buckets)
        return;
    for (size_t i = 0; i < (size_t)1 << t->bits; i++) {
        struct htab_link *next;

        for (struct htab_link *l = t->buckets[i]; l; l = next) {
            struct htab_link **b = bucket_of(&bigger, l->hash);

            next = l->next;
            l->next = *b;
            *b = l;
        }
    }
    free(t->buckets);
    *t = bigger;
}

int htab_add(struct htab *t, struct htab_link *link, uint64_t hash)
{
    struct htab_link **b;

    if (!t->buckets) {
        t->buckets = calloc((size_t)1 << HTAB_BITS_MIN, sizeof(*t->buckets));
        if (!t->buckets)
            return -ENOMEM;
        t->bits = HTAB_BITS_MIN;
    }
    if (t->n >= (size_t)1 << t->bits)
        grow(t);
    b = bucket_of(t, hash);
    link->hash = hash;
    link->next = *b;
    *b = link;
    t->n++;
    return 0;
}

void htab_remove(struct htab *t, struct htab_link *link)
{
    for (struct htab_link **p = bucket_of(t, link->hash); *p; p = &(*p)->next) {
        if (*p == link) {
            *p = link->next;
            t->n--;
            return;
        }
    }
}

static struct htab_link *find_in_chain(struct htab_link *l, uint64_t hash)
{
    while (l && l->hash != hash)
        l = l->next;
    return l;
}

struct htab_link *htab_first(const struct htab *t, uint64_t hash)
{
    return t->buckets ? find_in_chain(*bucket_of(t, hash), hash) : NULL;
}

struct htab_link *htab_next(const struct htab_link *link, uint64_t hash)
{
    return find_in_chain(link->next, hash);
}

struct htab_link *htab_each(const struct htab *t, size_t *cursor, const struct htab_link *link)
{
    if (link && link->next)
        return link->next;
    while (t->buckets && *cursor < (size_t)1 << t->bits) {
        struct htab_link *l = t->buckets[(*cursor)++];

        if (l)
            return l;
    }
    return NULL;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

uint64_t hash_bytes(uint64_t seed, const void *p, size_t len)
{
    const uint8_t *b = p;
    uint64_t h = seed ^ 0x2d358dccaa6c78a5u;

    for (size_t left = len;;) {
        uint64_t v = 0;

        memcpy(&v, b, left < sizeof(v) ? left : sizeof(v));
        h = fold(h ^ v, seed ^ 0x8bb84b93962eacc9u);
        if (left <= sizeof(v))
            break;
        left -= sizeof(v);
        b += sizeof(v);
    }
    return fold(h ^ len, 0x4b33a62ed433d4a3u ^ seed);
}

uint64_t hash_u64(uint64_t seed, uint64_t v)
{
    return hash_bytes(seed, &v, sizeof(v));
}

/* ---- queue ---- */

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

/* ---- sorted arrays ---- */

#define CAP_FIRST 8

size_t sorted_place(const void *items, size_t n, size_t size, sorted_compare_fn compare,
    const void *wanted, bool *ret_found)
{
    size_t low = 0;
    size_t high = n;

    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare((const char *)items + middle * size, wanted);

        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *sorted_open(void *items, size_t n, size_t size, size_t at, size_t *cap)
{
    char *bytes = items;

    if (n == *cap) {
        size_t more = *cap ? 2 * *cap : CAP_FIRST;

        bytes = reallocarray(items, more, size);
        if (!bytes)
            return NULL;
        *cap = more;
    }
    memmove(bytes + (at + 1) * size, bytes + at * size, (n - at) * size);
    return bytes;
}

/* ---- windows of sequences ---- */

bool seq_window_take(struct seq_window *w, uint64_t sequence)
{
    uint64_t behind;

    if (sequence > w->highest) {
        uint64_t ahead = sequence - w->highest;

        w->seen = (ahead < SEQ_WINDOW ? w->seen << ahead : 0) | 1;
        w->highest = sequence;
        return true;
    }
    behind = w->highest - sequence;
    if (behind >= SEQ_WINDOW || (w->seen >> behind & 1) != 0)
        return false;
    w->seen |= UINT64_C(1) << behind;
    return true;
}
