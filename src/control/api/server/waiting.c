/* waiting.c - see waiting.h. */
#include "waiting.h"

#include <assert.h>
#include <stdlib.h>

#include "api/server/admission.h"

/** A source with at least one connection that waits. */
struct waiting_source {
    struct htab_link link; /* in the table, by block */
    struct list turn;      /* in the list of turns */
    struct ip_addr block;  /* see admission_block() */
    struct list queue;     /* of struct entry, oldest first */
    unsigned n;            /* length of @queue */
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

static struct waiting_source *find(
    const struct waiting *w, const struct ip_addr *block, uint64_t hash)
{
    for (struct htab_link *l = htab_first(&w->sources, hash); l; l = htab_next(l, hash)) {
        struct waiting_source *src = container_of(l, struct waiting_source, link);

        if (ip_addr_equal(&src->block, block))
            return src;
    }
    return NULL;
}

static struct waiting_source *find_or_add(struct waiting *w, const struct ip_addr *from)
{
    struct ip_addr block = admission_block(from);
    uint64_t hash = hash_bytes(w->sources.seed, block.b, sizeof(block.b));
    struct waiting_source *src = find(w, &block, hash);

    if (src)
        return src;
    src = calloc(1, sizeof(*src));
    if (!src)
        return NULL;
    src->block = block;
    list_init(&src->queue);
    if (htab_add(&w->sources, &src->link, hash) != 0) {
        free(src);
        return NULL;
    }
    list_add_tail(&w->turns, &src->turn);
    return src;
}

/* Frees a source whose queue is empty. */
static void forget_if_empty(struct waiting *w, struct waiting_source *src)
{
    if (src->n > 0)
        return;
    htab_remove(&w->sources, &src->link);
    list_remove(&src->turn);
    free(src);
}

static struct waiting_connection unlink_entry(
    struct waiting *w, struct waiting_source *src, struct entry *entry)
{
    struct waiting_connection c = entry->c;

    list_remove(&entry->link);
    free(entry);
    src->n--;
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
        if (longest && src->n < longest->n)
            continue;
        n_ties = longest && src->n == longest->n ? n_ties + 1 : 1;
        longest = src;
    }
    assert(longest); /* a connection was just added, so there is a source */
    chosen = random % n_ties;
    list_foreach(src, &w->turns, turn)
        if (src->n == longest->n && chosen-- == 0)
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
    src->n++;
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
