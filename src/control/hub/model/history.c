/* history.c - see history.h. */
#include "hub/model/history.h"

#include <stdlib.h>
#include <string.h>

void history_init(struct history *h, uint64_t seed)
{
    *h = (struct history){.n = 0};
    list_init(&h->changes);
    htab_init(&h->by_name, seed);
}

static void forget(struct history *h, struct history_change *c)
{
    list_remove(&c->link);
    htab_remove(&h->by_name, &c->by_name);
    h->n--;
    free(c);
}

void history_deinit(struct history *h)
{
    struct history_change *c;

    while ((c = list_first(&h->changes, struct history_change, link)))
        forget(h, c);
    htab_deinit(&h->by_name);
}

static uint64_t hash_of(const struct history *h, const struct object_kind *kind, const char *name)
{
    return hash_bytes(h->by_name.seed ^ (uintptr_t)kind, name, strlen(name));
}

static struct history_change *find(
    const struct history *h, const struct object_kind *kind, const char *name)
{
    uint64_t hash = hash_of(h, kind, name);

    for (struct htab_link *l = htab_first(&h->by_name, hash); l; l = htab_next(l, hash)) {
        struct history_change *c = container_of(l, struct history_change, by_name);

        if (c->kind == kind && strcmp(c->name, name) == 0)
            return c;
    }
    return NULL;
}

/* NULL: no memory. */
static struct history_change *make(
    struct history *h, const struct object_kind *kind, const char *name)
{
    size_t room = strlen(name) + 1;
    struct history_change *c = malloc(sizeof(*c) + room);

    if (!c)
        return NULL;
    *c = (struct history_change){.kind = kind};
    memcpy(c->name, name, room);
    list_init(&c->link);
    if (htab_add(&h->by_name, &c->by_name, hash_of(h, kind, name)) != 0) {
        free(c);
        return NULL;
    }
    h->n++;
    return c;
}

void history_add(
    struct history *h, const struct object_kind *kind, const char *name, uint64_t revision)
{
    struct history_change *c = find(h, kind, name);

    if (!c)
        c = make(h, kind, name);
    if (!c) {
        h->forgotten = revision;
        return;
    }
    list_remove(&c->link);
    list_add_tail(&h->changes, &c->link);
    c->revision = revision;
    if (h->n <= HISTORY_MAX)
        return;
    c = list_first(&h->changes, struct history_change, link);
    /* Of a later one there may have been no memory for its entry. */
    if (h->forgotten < c->revision)
        h->forgotten = c->revision;
    forget(h, c);
}

bool history_holds(const struct history *h, uint64_t revision)
{
    return revision > h->forgotten;
}

const struct history_change *history_since(const struct history *h, uint64_t revision)
{
    struct list *at = h->changes.prev;

    while (at != &h->changes && container_of(at, struct history_change, link)->revision >= revision)
        at = at->prev;
    return at->next == &h->changes ? NULL : container_of(at->next, struct history_change, link);
}

const struct history_change *history_next(const struct history *h, const struct history_change *c)
{
    return c->link.next == &h->changes ? NULL
                                       : container_of(c->link.next, struct history_change, link);
}
