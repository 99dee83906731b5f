/* heap.c - see heap.h. */
#include "heap.h"

#include <errno.h>
#include <stdlib.h>

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
