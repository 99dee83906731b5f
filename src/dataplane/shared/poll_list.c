/* poll_list.c - see poll_list.h. */
#include "shared/poll_list.h"

#include "base/containers.h"

int poll_list_add(struct poll_list *l)
{
    int r = heap_reserve(&l->timers, l->n + 1);

    if (r == 0)
        l->n++;
    return r;
}

void poll_list_remove(struct poll_list *l, struct poll_link *link)
{
    heap_remove(&l->timers, &link->due);
    l->n--;
}

struct poll_link *poll_list_pop_due(struct poll_list *l, nsec_t now)
{
    struct heap_link *due = heap_pop_due(&l->timers, now);

    return due ? container_of(due, struct poll_link, due) : NULL;
}

bool poll_list_tell(struct poll_list *l, struct poll_link *link)
{
    struct poll_link *top;

    if (atomic_exchange(&link->is_notified, true))
        return false;
    top = atomic_load_explicit(&l->top, memory_order_relaxed);
    do
        link->next = top;
    /* Release: control sees next, and what it is told about. */
    while (!atomic_compare_exchange_weak_explicit(
        &l->top, &top, link, memory_order_release, memory_order_relaxed));
    return true;
}

struct poll_link *poll_list_take_notified(struct poll_list *l)
{
    return atomic_exchange_explicit(&l->top, NULL, memory_order_acquire);
}

struct poll_link *poll_list_next_notified(struct poll_link *link)
{
    struct poll_link *next = link->next;

    /* Read and written in one, so that it pairs with the exchange of whoever found it set: what
     * that one wrote before is seen from here on. A store alone would order nothing behind it. */
    (void)atomic_exchange(&link->is_notified, false);
    return next;
}
