/* admission.c - see admission.h. */
#include "admission.h"

#include <assert.h>
#include <stdlib.h>

/** A block of addresses from which there is at least one. */
struct source {
    struct htab_link link; /* in the table, by block */
    struct ip_addr block;  /* see ip_addr_block() */
    unsigned n;            /* how many from it are there, at least 1 */
};

static struct source *source_find(const struct htab *t, const struct ip_addr *from)
{
    struct ip_addr block = ip_addr_block(from);
    uint64_t hash = hash_bytes(t->seed, block.b, sizeof(block.b));

    for (struct htab_link *l = htab_first(t, hash); l; l = htab_next(l, hash)) {
        struct source *src = container_of(l, struct source, link);

        if (ip_addr_equal(&src->block, &block))
            return src;
    }
    return NULL;
}

/* False without memory. */
static bool source_add(struct htab *t, struct source *src, const struct ip_addr *from)
{
    src->block = ip_addr_block(from);
    return htab_add(t, &src->link, hash_bytes(t->seed, src->block.b, sizeof(src->block.b))) == 0;
}

void admission_init(struct admission *a, unsigned max, unsigned max_by_address, uint64_t seed)
{
    *a = (struct admission){.max = max, .max_by_address = max_by_address};
    htab_init(&a->sources, seed);
}

void admission_deinit(struct admission *a)
{
    struct htab_link *next;
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&a->sources, &cursor, NULL); l; l = next) {
        next = htab_each(&a->sources, &cursor, l);
        free(container_of(l, struct source, link));
    }
    htab_deinit(&a->sources);
    a->n = 0;
}

bool admission_enter(struct admission *a, const struct ip_addr *from)
{
    struct source *src;

    if (a->n >= a->max)
        return false;
    if (!ip_addr_is_none(from)) {
        src = source_find(&a->sources, from);
        if (src && src->n >= a->max_by_address)
            return false;
        if (!src) {
            src = calloc(1, sizeof(*src));
            if (!src || !source_add(&a->sources, src, from)) {
                free(src);
                return false;
            }
        }
        src->n++;
    }
    a->n++;
    return true;
}

void admission_leave(struct admission *a, const struct ip_addr *from)
{
    struct source *src = ip_addr_is_none(from) ? NULL : source_find(&a->sources, from);

    a->n--;
    if (src && --src->n == 0) {
        htab_remove(&a->sources, &src->link);
        free(src);
    }
}

/* ---- connections that wait for their turn --------------------------------------------------- */

/** A source with at least one connection that waits. */
struct waiting_source {
    struct source by_block; /* its @n is the length of @queue */
    struct list turn;       /* in the list of turns */
    struct list queue;      /* of struct entry, oldest first */
};

/** A connection that waits. */
struct entry {
    struct list link; /* in its source's queue */
    struct waiting_connection c;
};

void waiting_init(struct waiting *w, unsigned max, uint64_t seed)
{
    *w = (struct waiting){.max = max};
    htab_init(&w->sources, seed);
    list_init(&w->turns);
}

void waiting_deinit(struct waiting *w)
{
    htab_deinit(&w->sources);
}

static struct waiting_source *find_or_add(struct waiting *w, const struct ip_addr *from)
{
    struct source *known = source_find(&w->sources, from);
    struct waiting_source *src;

    if (known)
        return container_of(known, struct waiting_source, by_block);
    src = calloc(1, sizeof(*src));
    if (!src || !source_add(&w->sources, &src->by_block, from)) {
        free(src);
        return NULL;
    }
    list_init(&src->queue);
    list_add_tail(&w->turns, &src->turn);
    return src;
}

/* Frees a source whose queue is empty. */
static void forget_if_empty(struct waiting *w, struct waiting_source *src)
{
    if (src->by_block.n > 0)
        return;
    htab_remove(&w->sources, &src->by_block.link);
    list_remove(&src->turn);
    free(src);
}

static struct waiting_connection unlink_entry(
    struct waiting *w, struct waiting_source *src, struct entry *entry)
{
    struct waiting_connection c = entry->c;

    list_remove(&entry->link);
    free(entry);
    src->by_block.n--;
    w->n--;
    return c;
}

/* One of the sources with the longest queue. O(sources), of which there are at most @max. */
static struct waiting_source *find_longest(const struct waiting *w, uint64_t random)
{
    struct waiting_source *longest = NULL;
    struct waiting_source *src;
    uint64_t n_ties = 1;
    uint64_t chosen;

    list_foreach(src, &w->turns, turn) {
        if (longest && src->by_block.n < longest->by_block.n)
            continue;
        n_ties = longest && src->by_block.n == longest->by_block.n ? n_ties + 1 : 1;
        longest = src;
    }
    assert(longest); /* a connection was just added, so there is a source */
    chosen = random % n_ties;
    list_foreach(src, &w->turns, turn)
        if (src->by_block.n == longest->by_block.n && chosen-- == 0)
            return src;
    return longest;
}

bool waiting_add(struct waiting *w, const struct waiting_connection *c, uint64_t random,
    struct waiting_connection *ret)
{
    struct entry *entry = calloc(1, sizeof(*entry));
    struct waiting_source *src = entry ? find_or_add(w, &c->from.addr) : NULL;

    if (!src) {
        free(entry);
        *ret = *c;
        return true;
    }
    entry->c = *c;
    list_add_tail(&src->queue, &entry->link);
    src->by_block.n++;
    w->n++;
    if (w->n <= w->max)
        return false;
    src = find_longest(w, random);
    entry = container_of(src->queue.prev, struct entry, link);
    *ret = unlink_entry(w, src, entry);
    forget_if_empty(w, src);
    return true;
}

bool waiting_take(struct waiting *w, struct waiting_connection *ret)
{
    struct waiting_source *src = list_first(&w->turns, struct waiting_source, turn);
    struct entry *entry;

    if (!src)
        return false;
    entry = list_first(&src->queue, struct entry, link);
    assert(entry); /* sources without one are freed */
    *ret = unlink_entry(w, src, entry);
    list_remove(&src->turn);
    list_add_tail(&w->turns, &src->turn);
    forget_if_empty(w, src);
    return true;
}
