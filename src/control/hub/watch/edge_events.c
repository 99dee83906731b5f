/* edge_events.c - see edge_events.h. */
#include "edge_events.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"

const char *const edge_event_names[] = {
    [EDGE_EVENT_FAILING] = "Failing",
    [EDGE_EVENT_APPLIED] = "Applied",
    [EDGE_EVENT_NEVER_APPLIED] = "NeverApplied",
    [EDGE_EVENT_SILENT] = "AgentSilent",
    [EDGE_EVENT_HEARD] = "AgentHeard",
    [EDGE_EVENT_FELL] = "FellBack",
    [EDGE_EVENT_DIRECT_AGAIN] = "DirectAgain",
    [EDGE_EVENT_NO_PATH] = "NoPath",
    [EDGE_EVENT_UNREACHED] = "Unreached",
    [EDGE_EVENT_REACHED_AGAIN] = "ReachedAgain",
    [EDGE_EVENT_BUDGET_NEAR] = "BudgetNear",
    [EDGE_EVENT_BUDGET_SPENT] = "BudgetSpent",
    [EDGE_EVENT_BUDGET_AGAIN] = "BudgetAgain",
    [EDGE_EVENT_STORE_BEHIND] = "StoreBehind",
    [EDGE_EVENT_STORE_AGAIN] = "StoreAgain",
    [EDGE_EVENT_COPIED] = "NodeCopied",
    [EDGE_EVENT_COPIED_NO_MORE] = "NodeCopiedNoMore",
};

_Static_assert(sizeof(edge_event_names) / sizeof(*edge_event_names) == EDGE_EVENT_N, "a name each");

void edge_events_deinit(struct edge_events *s)
{
    for (size_t i = 0; i < s->n_rings; i++)
        free(s->rings[i].kept);
    free(s->rings);
    *s = (struct edge_events){.n = 0};
}

static int compare(const void *item, const void *wanted)
{
    return strcmp(((const struct edge_events_ring *)item)->network, wanted);
}

static struct edge_events_ring *find(const struct edge_events *s, const char *network)
{
    bool found;
    size_t at = sorted_place(s->rings, s->n_rings, sizeof(*s->rings), compare, network, &found);

    return found ? &s->rings[at] : NULL;
}

static struct edge_events_ring *find_or_make(struct edge_events *s, const char *network)
{
    bool found;
    size_t at = sorted_place(s->rings, s->n_rings, sizeof(*s->rings), compare, network, &found);
    struct edge_events_ring *rings;

    if (found)
        return &s->rings[at];
    rings = sorted_open(s->rings, s->n_rings, sizeof(*s->rings), at, &s->cap_rings);
    if (!rings)
        return NULL;
    s->rings = rings;
    s->n_rings++;
    rings[at] = (struct edge_events_ring){.n = 0};
    (void)snprintf(rings[at].network, sizeof(rings[at].network), "%s", network);
    return &rings[at];
}

/* The slot for one more event: a new one, or that of the oldest. NULL: no memory for the first. */
static struct edge_event_kept *next_slot(struct edge_events_ring *ring)
{
    /* One that goes around, since there was no memory, does not grow: its order would be lost. */
    if (ring->n == ring->cap && ring->cap < EDGE_EVENTS_MAX && ring->first == 0) {
        size_t cap = ring->cap == 0 ? EDGE_EVENTS_MAX / 32 : 2 * ring->cap;
        struct edge_event_kept *kept = realloc(ring->kept, cap * sizeof(*kept));

        if (kept) {
            ring->kept = kept;
            ring->cap = cap;
        }
    }
    if (ring->n < ring->cap)
        return &ring->kept[ring->n++];
    if (ring->cap == 0)
        return NULL;
    ring->first = (ring->first + 1) % ring->cap;
    return &ring->kept[(ring->first + ring->cap - 1) % ring->cap];
}

void edge_events_add(struct edge_events *s, const struct edge_event *ev)
{
    struct edge_events_ring *ring = find_or_make(s, ev->network);
    struct edge_event_kept *kept = ring ? next_slot(ring) : NULL;

    s->counts[ev->kind]++;
    s->n++;
    if (!kept)
        return;
    *kept = (struct edge_event_kept){.number = s->n, .at = ev->at, .kind = ev->kind};
    (void)snprintf(kept->object, sizeof(kept->object), "%s", ev->object);
    (void)snprintf(kept->text, sizeof(kept->text), "%s", ev->text);
}

void edge_events_forget(struct edge_events *s, const char *network)
{
    struct edge_events_ring *ring = find(s, network);

    if (!ring)
        return;
    free(ring->kept);
    memmove(ring, ring + 1, (size_t)(&s->rings[--s->n_rings] - ring) * sizeof(*ring));
}

json_t *edge_events_encode(const struct edge_events *s, const char *network)
{
    const struct edge_events_ring *ring = find(s, network);
    json_t *items = json_array();

    for (size_t i = 0; items && ring && i < ring->n; i++) {
        const struct edge_event_kept *kept = &ring->kept[(ring->first + i) % ring->n];

        if (json_array_append_new(
                items, json_pack("{s:I, s:I, s:s, s:s, s:s}", "number", (json_int_t)kept->number,
                           "time", (json_int_t)kept->at, "type", edge_event_names[kept->kind],
                           "object", kept->object, "text", kept->text)) < 0)
            items = (json_decref(items), NULL);
    }
    return items;
}
