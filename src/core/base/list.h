/*
 * list.h - intrusive doubly linked list.
 *
 * A `struct list` is both the head and the link. The head's next is the first
 * element; an empty head, and an unlinked element, point to themselves, so
 * list_remove() is idempotent and safe on an element that was only initialised.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next; /* the head's: first element */
    struct list *prev; /* the head's: last element */
};

#define LIST_NULL(name)                                                                            \
    {                                                                                              \
        &(name), &(name)                                                                           \
    }

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
