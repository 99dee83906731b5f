/* edge_events.c - see edge_events.h. */
#include "edge_events.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/containers.h"
#include "mesh/object/fields.h"
#include "mesh/object/object_meta.h"

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
    [EDGE_EVENT_ASKED_AWAY] = "AskedAway",
    [EDGE_EVENT_LET_BACK] = "LetBack",
    [EDGE_EVENT_REFUSED] = "Refused",
    [EDGE_EVENT_FOUND] = "Found",
    [EDGE_EVENT_GONE] = "Gone",
};

_Static_assert(sizeof(edge_event_names) / sizeof(*edge_event_names) == EDGE_EVENT_N, "a name each");

struct edge_event_kept {
    uint64_t number; /* of the event, from 1 on */
    int64_t at;
    enum edge_event_kind kind;
    const char *code; /* a constant; NULL: none */
    char object[OBJECT_NAME_MAX + 1];
    char text[EDGE_EVENT_TEXT_MAX];
};

/* The last events of one network. */
struct edge_events_ring {
    struct keyed keyed;           /* by its network */
    struct edge_event_kept *kept; /* owns; @n of them in @cap slots */
    size_t n;
    size_t cap;   /* grows to EDGE_EVENTS_MAX */
    size_t first; /* slot of the oldest; 0 until all EDGE_EVENTS_MAX are taken */
};

void edge_events_deinit(struct edge_events *s)
{
    for (size_t i = 0; i < s->rings.n; i++)
        free(container_of(s->rings.items[i], struct edge_events_ring, keyed)->kept);
    keys_free_all(&s->rings);
    *s = (struct edge_events){.n = 0};
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
    struct edge_events_ring *ring = keys_open(&s->rings, ev->network, sizeof(*ring));
    struct edge_event_kept *kept = ring ? next_slot(ring) : NULL;

    s->counts[ev->kind]++;
    s->n++;
    if (!kept)
        return;
    *kept =
        (struct edge_event_kept){.number = s->n, .at = ev->at, .kind = ev->kind, .code = ev->code};
    (void)snprintf(kept->object, sizeof(kept->object), "%s", ev->object);
    (void)snprintf(kept->text, sizeof(kept->text), "%s", ev->text);
}

uint64_t edge_events_last(const struct edge_events *s, const char *network)
{
    const struct edge_events_ring *ring = keys_find(&s->rings, network);

    if (!ring || ring->n == 0)
        return 0;
    /* The newest is before the oldest once the ring goes around, and else the last one. */
    return ring->kept[ring->first > 0 ? ring->first - 1 : ring->n - 1].number;
}

void edge_events_forget(struct edge_events *s, const char *network)
{
    struct edge_events_ring *ring = keys_find(&s->rings, network);

    if (!ring)
        return;
    free(ring->kept);
    keys_free(&s->rings, &ring->keyed);
}

json_t *edge_events_encode(const struct edge_events *s, const char *network)
{
    const struct edge_events_ring *ring = keys_find(&s->rings, network);
    json_t *items = json_array();

    for (size_t i = 0; items && ring && i < ring->n; i++) {
        const struct edge_event_kept *kept = &ring->kept[(ring->first + i) % ring->n];

        fields_append(
            &items, json_pack("{s:I, s:I, s:s, s:s*, s:s, s:s}", "number", (json_int_t)kept->number,
                        "time", (json_int_t)kept->at, "type", edge_event_names[kept->kind], "code",
                        kept->code, "object", kept->object, "text", kept->text));
    }
    return items;
}
