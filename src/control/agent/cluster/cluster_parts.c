/* cluster_parts.c - see cluster_parts.h. */
#include "agent/cluster/cluster_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/kubernetes/kube_part.h"
#include "base/containers.h"

/* An edge that is not there: the first pause, and how often it is doubled, to an hour. */
#define ABSENT_FIRST     (60 * NSEC_PER_SEC)
#define ABSENT_DOUBLINGS 6
#define ABSENT_MAX       (3600 * NSEC_PER_SEC)

/* Whoever owns it may give it up. */
#define CONTESTED (300 * NSEC_PER_SEC)

/* Nothing is taken: the first pause, and how often it is doubled, to five minutes. */
#define FAILED_FIRST     (5 * NSEC_PER_SEC)
#define FAILED_DOUBLINGS 6
#define FAILED_MAX       (300 * NSEC_PER_SEC)

static struct cluster_part *part_at(const struct cluster_parts *cp, size_t i)
{
    return container_of(cp->items.items[i], struct cluster_part, keyed);
}

void cluster_parts_init(struct cluster_parts *cp, const char *name)
{
    *cp = (struct cluster_parts){.items = KEYS_NULL};
    (void)snprintf(cp->name, sizeof(cp->name), "%s", name);
}

static void free_part(struct cluster_parts *cp, struct cluster_part *p)
{
    json_decref(p->part);
    keys_free(&cp->items, &p->keyed);
}

void cluster_parts_deinit(struct cluster_parts *cp)
{
    while (cp->items.n > 0)
        free_part(cp, part_at(cp, cp->items.n - 1));
    keys_deinit(&cp->items);
    cp->items = (struct keys)KEYS_NULL;
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* A part that is no more is kept until it is taken away there. */
static void take_gone(struct cluster_parts *cp)
{
    for (size_t i = cp->items.n; i > 0; i--) {
        struct cluster_part *p = part_at(cp, i - 1);

        if (p->is_seen)
            continue;
        json_decref(p->part);
        p->part = NULL;
        p->hash[0] = '\0';
        if (p->written[0] == '\0')
            free_part(cp, p);
    }
}

int cluster_parts_set(struct cluster_parts *cp, const json_t *parts, const json_t *asked_for,
    size_t n_members, int64_t wall_s)
{
    const char *peer;
    json_t *given;

    for (size_t i = 0; i < cp->items.n; i++)
        part_at(cp, i)->is_seen = false;
    json_object_foreach((json_t *)parts, peer, given) {
        struct cluster_part *p = keys_open(&cp->items, peer, sizeof(*p));
        bool is_asked_for = json_object_get(asked_for, peer) != NULL;
        json_t *copy = p ? json_deep_copy(given) : NULL;

        if (!copy)
            return -ENOMEM;
        kube_part_drop_empty(copy);
        json_decref(p->part);
        p->part = copy;
        kube_part_hash(p->hash, copy);
        /* The hub shows it now, if it has not before. */
        if (is_asked_for && !p->is_asked_for)
            p->retry_at = 0;
        p->is_asked_for = is_asked_for;
        p->is_seen = true;
    }
    take_gone(cp);
    cp->n_members = n_members;
    cp->observed_at = wall_s;
    return 0;
}

/* ---- what is next ---------------------------------------------------------------------------- */

nsec_t cluster_parts_pace(const struct cluster_parts *cp)
{
    return nsec_max(CLUSTER_PARTS_PACE_MIN, (nsec_t)cp->n_members * CLUSTER_PARTS_PACE_EACH);
}

int64_t cluster_parts_every_s(const struct cluster_parts *cp)
{
    int64_t every_s;
    size_t n = 0;

    for (size_t i = 0; i < cp->items.n; i++)
        n += part_at(cp, i)->written[0] != '\0';
    every_s = (nsec_t)n * 2 * cluster_parts_pace(cp) / NSEC_PER_SEC;
    if (every_s < CLUSTER_PARTS_EVERY_S)
        return CLUSTER_PARTS_EVERY_S;
    return every_s < KUBE_PART_EVERY_MAX ? every_s : KUBE_PART_EVERY_MAX;
}

static bool is_new(const struct cluster_part *p)
{
    return strcmp(p->hash, p->written) != 0;
}

/* When it is to be written; NSEC_NEVER: not again, as far as is known. */
static nsec_t due_of(const struct cluster_parts *cp, const struct cluster_part *p, int64_t every_s)
{
    nsec_t due;

    if (is_new(p))
        due = p->written[0] == '\0' ? 0 : p->written_at + CLUSTER_PARTS_GAP;
    else if (cp->observed_at > p->observed_at)
        due = p->written_at + nsec_min(every_s, p->every_s) * NSEC_PER_SEC;
    else
        due = NSEC_NEVER;
    return nsec_max(due, p->retry_at);
}

/* The order of what is due: what is new of edges that are there, what else is new, and the rest. */
static unsigned rank(const struct cluster_part *p)
{
    return is_new(p) ? (p->is_asked_for || p->written[0] != '\0' ? 0 : 1) : 2;
}

/* The one that is next, and when; NULL: there is none. At @now the first by rank of those that are
 * due, else the one that is due first. */
static const struct cluster_part *find_next(
    const struct cluster_parts *cp, nsec_t now, nsec_t *ret_due)
{
    int64_t every_s = cluster_parts_every_s(cp);
    const struct cluster_part *best = NULL;
    nsec_t best_due = NSEC_NEVER;

    for (size_t i = 0; i < cp->items.n; i++) {
        const struct cluster_part *p = part_at(cp, i);
        nsec_t due = nsec_max(due_of(cp, p, every_s), now);

        if (due == NSEC_NEVER || (best && due > best_due))
            continue;
        if (best && due == best_due &&
            (rank(p) > rank(best) || (rank(p) == rank(best) && p->written_at >= best->written_at)))
            continue;
        best = p;
        best_due = due;
    }
    *ret_due = best_due;
    return best;
}

bool cluster_parts_next(const struct cluster_parts *cp, nsec_t now, struct cluster_parts_write *ret)
{
    const struct cluster_part *p;
    json_t *part;
    nsec_t due;

    if (now < cp->next_at)
        return false;
    p = find_next(cp, now, &due);
    if (!p || due > now)
        return false;
    *ret = (struct cluster_parts_write){.peer = p->keyed.key, .status = json_object()};
    if (!p->part)
        return true;
    part = json_copy(p->part);
    kube_part_stamp(part, cp->observed_at, cluster_parts_every_s(cp));
    (void)json_object_set_new(ret->status, cp->name, part);
    return true;
}

nsec_t cluster_parts_due(const struct cluster_parts *cp)
{
    nsec_t due;

    return find_next(cp, 0, &due) ? nsec_max(due, cp->next_at) : NSEC_NEVER;
}

/* ---- what became of it ----------------------------------------------------------------------- */

static nsec_t pause_of(nsec_t first, unsigned n, unsigned doublings, nsec_t max, uint32_t random)
{
    return nsec_scatter(nsec_min(first << (n < doublings ? n : doublings), max), random);
}

static void on_written(struct cluster_parts *cp, struct cluster_part *p, nsec_t now)
{
    if (!p->part) {
        free_part(cp, p);
        return;
    }
    p->every_s = cluster_parts_every_s(cp);
    p->observed_at = cp->observed_at;
    p->written_at = now;
    p->n_absent = 0;
    p->is_contested = false;
    memcpy(p->written, p->hash, sizeof(p->written));
}

static void on_absent(struct cluster_parts *cp, struct cluster_part *p, uint32_t random, nsec_t now)
{
    p->written[0] = '\0';
    p->is_contested = false;
    p->retry_at = now + pause_of(ABSENT_FIRST, p->n_absent, ABSENT_DOUBLINGS, ABSENT_MAX, random);
    p->n_absent++;
    if (!p->part)
        free_part(cp, p);
}

void cluster_parts_on_result(struct cluster_parts *cp, const char *peer,
    enum cluster_parts_result result, uint32_t random, nsec_t now)
{
    struct cluster_part *p = keys_find(&cp->items, peer);

    cp->next_at = now + cluster_parts_pace(cp);
    if (result == CLUSTER_PARTS_FAILED) {
        cp->next_at =
            now + pause_of(FAILED_FIRST, cp->n_failed, FAILED_DOUBLINGS, FAILED_MAX, random);
        cp->n_failed++;
        return;
    }
    cp->n_failed = 0;
    if (!p)
        return;
    switch (result) {
    case CLUSTER_PARTS_WRITTEN:
        on_written(cp, p, now);
        return;
    case CLUSTER_PARTS_ABSENT:
        on_absent(cp, p, random, now);
        return;
    case CLUSTER_PARTS_CONTESTED:
        p->is_contested = true;
        p->retry_at = now + nsec_scatter(CONTESTED, random);
        return;
    case CLUSTER_PARTS_FAILED:
        return;
    }
}

bool cluster_parts_is_contested(const struct cluster_parts *cp)
{
    for (size_t i = 0; i < cp->items.n; i++)
        if (part_at(cp, i)->is_contested)
            return true;
    return false;
}
