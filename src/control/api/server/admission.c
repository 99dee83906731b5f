/* admission.c - see admission.h. */
#include "admission.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rate.h"

/** A block of addresses from which at least one has entered. */
struct source {
    struct htab_link link; /* in the table, by block */
    struct ip_addr block;  /* see admission_block() */
    unsigned n;            /* how many from it are inside, at least 1 */
};

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

struct ip_addr admission_block(const struct ip_addr *from)
{
    struct ip_addr block = *from;

    if (!ip_addr_is_v4(from))
        memset(block.b + 8, 0, 8);
    return block;
}

static struct source *find(const struct admission *a, const struct ip_addr *block, uint64_t hash)
{
    for (struct htab_link *l = htab_first(&a->sources, hash); l; l = htab_next(l, hash)) {
        struct source *src = container_of(l, struct source, link);

        if (ip_addr_equal(&src->block, block))
            return src;
    }
    return NULL;
}

static uint64_t hash_of(const struct admission *a, const struct ip_addr *block)
{
    return hash_bytes(a->sources.seed, block->b, sizeof(block->b));
}

bool admission_enter(struct admission *a, const struct ip_addr *from)
{
    struct ip_addr block = admission_block(from);
    uint64_t hash = hash_of(a, &block);
    struct source *src;

    if (a->n >= a->max)
        return false;
    if (!ip_addr_is_none(from)) {
        src = find(a, &block, hash);
        if (src && src->n >= a->max_by_address)
            return false;
        if (!src) {
            src = calloc(1, sizeof(*src));
            if (!src)
                return false;
            src->block = block;
            if (htab_add(&a->sources, &src->link, hash) != 0) {
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
    struct ip_addr block = admission_block(from);
    struct source *src = ip_addr_is_none(from) ? NULL : find(a, &block, hash_of(a, &block));

    a->n--;
    if (src && --src->n == 0) {
        htab_remove(&a->sources, &src->link);
        free(src);
    }
}

/* ---- connections that wait for their turn --------------------------------------------------- */

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

static struct waiting_source *find_waiting(
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
    struct waiting_source *src = find_waiting(w, &block, hash);

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

/* ---- sources that fail too often ------------------------------------------------------------ */

struct limited {
    struct htab_link link; /* in the table */
    struct list age;       /* in by_age */
    struct ip_addr block;  /* see admission_block() */
    struct rate failures;
};

void limiter_init(struct limiter *l, uint64_t seed)
{
    htab_init(&l->sources, seed);
    list_init(&l->by_age);
}

static void forget(struct limiter *l, struct limited *src)
{
    htab_remove(&l->sources, &src->link);
    list_remove(&src->age);
    free(src);
}

void limiter_deinit(struct limiter *l)
{
    struct limited *src;
    struct limited *tmp;

    list_foreach_safe(src, tmp, &l->by_age, age)
        forget(l, src);
    htab_deinit(&l->sources);
}

static struct limited *find_limited(const struct limiter *l, const struct ip_addr *from)
{
    struct ip_addr block = admission_block(from);
    uint64_t hash = hash_bytes(l->sources.seed, block.b, sizeof(block.b));

    for (struct htab_link *k = htab_first(&l->sources, hash); k; k = htab_next(k, hash)) {
        struct limited *src = container_of(k, struct limited, link);

        if (ip_addr_equal(&src->block, &block))
            return src;
    }
    return NULL;
}

bool limiter_allows(const struct limiter *l, const struct ip_addr *from, nsec_t now)
{
    const struct limited *src = ip_addr_is_none(from) ? NULL : find_limited(l, from);

    return !src || !rate_is_spent(&src->failures, now, (LIMITER_BURST - 1) * LIMITER_EACH);
}

static struct limited *add(struct limiter *l, const struct ip_addr *from)
{
    struct limited *oldest = list_first(&l->by_age, struct limited, age);
    struct limited *src = calloc(1, sizeof(*src));

    if (!src)
        return NULL;
    if (oldest && l->sources.n >= LIMITER_SOURCES_MAX)
        forget(l, oldest);
    src->block = admission_block(from);
    list_init(&src->age);
    if (htab_add(&l->sources, &src->link,
            hash_bytes(l->sources.seed, src->block.b, sizeof(src->block.b))) != 0) {
        free(src);
        return NULL;
    }
    return src;
}

void limiter_failed(struct limiter *l, const struct ip_addr *from, nsec_t now)
{
    struct limited *src;

    if (ip_addr_is_none(from))
        return;
    src = find_limited(l, from);
    if (!src)
        src = add(l, from);
    /* Without memory nobody is limited; a secret of 32 bytes is not guessed anyway. */
    if (!src)
        return;
    rate_pay(&src->failures, now, LIMITER_EACH);
    list_remove(&src->age);
    list_add_tail(&l->by_age, &src->age);
}
