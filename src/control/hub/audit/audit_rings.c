/* audit_rings.c - see audit_rings.h. */
#include "hub/audit/audit_rings.h"

#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"

#define CAP_FIRST 16

void audit_rings_deinit(struct audit_rings *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->items[i].ids);
    free(r->items);
    *r = (struct audit_rings){.n = 0};
}

static int compare(const void *item, const void *wanted)
{
    return strcmp(((const struct audit_ring *)item)->network, wanted);
}

static struct audit_ring *find(const struct audit_rings *r, const char *network)
{
    bool found;
    size_t at = sorted_place(r->items, r->n, sizeof(*r->items), compare, network, &found);

    return found ? &r->items[at] : NULL;
}

static struct audit_ring *find_or_make(struct audit_rings *r, const char *network)
{
    bool found;
    size_t at = sorted_place(r->items, r->n, sizeof(*r->items), compare, network, &found);
    struct audit_ring *items;

    if (found)
        return &r->items[at];
    items = sorted_open(r->items, r->n, sizeof(*r->items), at, &r->cap);
    if (!items)
        return NULL;
    r->items = items;
    r->n++;
    items[at] = (struct audit_ring){.cap = 0};
    memcpy(items[at].network, network, strnlen(network, NAME_MAX_LEN));
    return &items[at];
}

/* A network without entries is not remembered. */
static void drop_if_empty(struct audit_rings *r, struct audit_ring *ring)
{
    size_t at = (size_t)(ring - r->items);

    if (ring->n > 0)
        return;
    free(ring->ids);
    memmove(ring, ring + 1, (--r->n - at) * sizeof(*ring));
}

static bool grow(struct audit_ring *ring)
{
    size_t cap = ring->cap == 0 ? CAP_FIRST : 2 * ring->cap;
    struct audit_rings_id *ids = malloc(cap * sizeof(*ids));

    if (!ids)
        return false;
    for (size_t i = 0; i < ring->n; i++)
        ids[i] = ring->ids[(ring->first + i) & (ring->cap - 1)];
    free(ring->ids);
    ring->ids = ids;
    ring->cap = cap;
    ring->first = 0;
    return true;
}

static bool parse(const char *id, struct audit_rings_id *ret)
{
    if (!audit_id_check(id))
        return false;
    ret->number = audit_id_number(id);
    ret->n = (unsigned)strtoul(id + strcspn(id, "-") + 1, NULL, 16);
    return true;
}

static struct audit_rings_id take_oldest(struct audit_ring *ring)
{
    struct audit_rings_id id = ring->ids[ring->first];

    ring->first = (ring->first + 1) & (ring->cap - 1);
    ring->n--;
    return id;
}

void audit_rings_add(struct audit_rings *r, const char *network, const char *id)
{
    struct audit_rings_id parsed;
    struct audit_ring *ring;

    if (!parse(id, &parsed))
        return;
    ring = find_or_make(r, network);
    if (!ring)
        return;
    if (ring->n < ring->cap || grow(ring))
        ring->ids[(ring->first + ring->n++) & (ring->cap - 1)] = parsed;
    drop_if_empty(r, ring);
}

void audit_rings_remove(struct audit_rings *r, const char *network, const char *id)
{
    struct audit_ring *ring = find(r, network);
    struct audit_rings_id gone;

    if (!ring || !parse(id, &gone))
        return;
    while (ring->n > 0) {
        const struct audit_rings_id *oldest = &ring->ids[ring->first];

        if (oldest->number > gone.number || (oldest->number == gone.number && oldest->n > gone.n))
            break;
        (void)take_oldest(ring);
    }
    drop_if_empty(r, ring);
}

bool audit_rings_take(struct audit_rings *r, char ret_id[static AUDIT_ID_MAX])
{
    struct audit_ring *most = NULL;
    struct audit_rings_id id;

    for (size_t i = 0; i < r->n; i++)
        if (!most || r->items[i].n > most->n)
            most = &r->items[i];
    if (!most)
        return false;
    id = take_oldest(most);
    (void)audit_id(ret_id, id.number, id.n);
    drop_if_empty(r, most);
    return true;
}
