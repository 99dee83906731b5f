/* flight_causes.c - see flight_causes.h. */
#include "health/flight_causes.h"

#include <stdlib.h>
#include <string.h>

#include "health/flight.h"

/** What is being looked for. */
struct search {
    const struct flight_heard **waiting; /* owns; sorted by rank: places in which ranks wait */
    size_t n_waiting;
    struct flight_cause *ret; /* borrowed; @n of @cap, sorted */
    size_t n, cap;
};

/** The places of one group. */
struct members {
    const struct flight_heard *items;
    size_t n;
    uint64_t number;                 /* in which those wait that are behind */
    const struct flight_place *most; /* one of those that do there as most */
    uint32_t n_most;
};

/* ---- in order ------------------------------------------------------------------------------- */

static int compare_rank(const struct flight_place *a, const struct flight_place *b)
{
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static int compare_heard(const void *a, const void *b)
{
    const struct flight_place *x = ((const struct flight_heard *)a)->place;
    const struct flight_place *y = ((const struct flight_heard *)b)->place;

    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : compare_rank(x, y);
}

static int compare_waiting(const void *a, const void *b)
{
    const struct flight_heard *const *x = a;
    const struct flight_heard *const *y = b;

    return compare_rank((*x)->place, (*y)->place);
}

static int compare_cause(const struct flight_cause *a, const struct flight_cause *b)
{
    if (a->fault != b->fault)
        return (a->fault > b->fault) - (a->fault < b->fault);
    if (a->most->wait_ms != b->most->wait_ms)
        return (a->most->wait_ms < b->most->wait_ms) - (a->most->wait_ms > b->most->wait_ms);
    return compare_rank(a->rank.place, b->rank.place);
}

/* Keeps it at its place in the order, as long as it is among the first. */
static void keep(struct search *s, const struct flight_cause *cause)
{
    size_t at = s->n;

    while (at > 0 && compare_cause(cause, &s->ret[at - 1]) < 0)
        at--;
    if (at == s->cap)
        return;
    s->n += s->n < s->cap;
    memmove(&s->ret[at + 1], &s->ret[at], (s->n - at - 1) * sizeof(*cause));
    s->ret[at] = *cause;
}

/* ---- a group -------------------------------------------------------------------------------- */

/* Operations for which every rank gives as much. */
static bool is_of_one_size(const char *operation)
{
    static const char *const names[] = {
        "all_reduce", "broadcast", "reduce", "_all_gather_base", "_reduce_scatter_base"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(operation, names[i]) == 0)
            return true;
    return false;
}

static bool is_alike(const struct flight_place *a, const struct flight_place *b)
{
    return strcmp(a->operation, b->operation) == 0 &&
           (!is_of_one_size(a->operation) ||
               (a->elements == b->elements && strcmp(a->type, b->type) == 0));
}

static bool waits_there(const struct members *m, size_t i)
{
    return m->items[i].place->waits_in == m->number;
}

/* What most of those do that wait there; of as many for and against, what the lowest rank does. */
static void find_most(struct members *m)
{
    const struct flight_place *first = NULL;
    uint32_t lead = 0;

    /* The vote of Boyer and Moore: who has more than half of all is left at the end. */
    for (size_t i = 0; i < m->n; i++) {
        const struct flight_place *p = m->items[i].place;

        if (!waits_there(m, i))
            continue;
        first = first ? first : p;
        if (lead == 0)
            m->most = p;
        lead = lead == 0 || is_alike(m->most, p) ? lead + 1 : lead - 1;
    }
    for (unsigned again = 0; again < 2; again++) {
        size_t all = 0;

        m->n_most = 0;
        for (size_t i = 0; i < m->n; i++) {
            all += waits_there(m, i);
            m->n_most += waits_there(m, i) && is_alike(m->most, m->items[i].place);
        }
        if (2 * (size_t)m->n_most > all)
            return;
        m->most = first;
    }
}

static void find_different(struct search *s, const struct members *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (waits_there(m, i) && !is_alike(m->most, m->items[i].place))
            keep(s, &(struct flight_cause){.fault = FLIGHT_DIFFERS,
                        .rank = m->items[i],
                        .most = m->most,
                        .n_waiting = m->n_most});
}

/* Where a rank waits that is behind, which can only be in another group; NULL: nowhere. */
static const struct flight_place *find_own(const struct search *s, const struct flight_heard *rank)
{
    const struct flight_heard **found =
        bsearch(&rank, s->waiting, s->n_waiting, sizeof(*s->waiting), compare_waiting);

    return found ? (*found)->place : NULL;
}

static void find_behind(struct search *s, const struct members *m)
{
    size_t behind = 0;

    for (size_t i = 0; i < m->n; i++)
        behind += m->items[i].place->entered < m->number;
    if (2 * behind > m->n)
        return;
    for (size_t i = 0; i < m->n; i++) {
        struct flight_cause cause = {.rank = m->items[i], .most = m->most, .n_waiting = m->n_most};

        if (m->items[i].place->entered >= m->number)
            continue;
        cause.own = find_own(s, &m->items[i]);
        cause.fault = cause.own ? FLIGHT_CROSSED : FLIGHT_BEHIND;
        keep(s, &cause);
    }
}

static void look_at(struct search *s, struct members *m)
{
    for (size_t i = 0; i < m->n; i++) {
        uint64_t number = m->items[i].place->waits_in;

        if (number > 0 && (m->number == 0 || number < m->number))
            m->number = number;
    }
    if (m->number == 0)
        return;
    find_most(m);
    find_different(s, m);
    find_behind(s, m);
}

/* ---- all of it ------------------------------------------------------------------------------ */

size_t flight_causes_find(
    struct flight_heard *heard, size_t n, struct flight_cause *ret, size_t cap)
{
    struct search s = {.ret = ret, .cap = cap};
    size_t n_first = 0;

    if (n == 0 || cap == 0)
        return 0;
    s.waiting = calloc(n, sizeof(*s.waiting));
    if (!s.waiting)
        return 0;
    qsort(heard, n, sizeof(*heard), compare_heard);
    for (size_t i = 0; i < n; i++)
        if (heard[i].place->waits_in > 0)
            s.waiting[s.n_waiting++] = &heard[i];
    qsort(s.waiting, s.n_waiting, sizeof(*s.waiting), compare_waiting);
    for (size_t i = 0; i < n;) {
        struct members m = {.items = &heard[i]};

        while (i < n && heard[i].place->key == m.items[0].place->key) {
            m.n++;
            i++;
        }
        look_at(&s, &m);
    }
    free(s.waiting);
    while (n_first < s.n && ret[n_first].fault == ret[0].fault)
        n_first++;
    return n_first;
}
