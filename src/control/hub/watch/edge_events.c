/* edge_events.c - see edge_events.h. */
#include "edge_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
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
};

_Static_assert(sizeof(names) / sizeof(*names) == EDGE_EVENT_N, "a name each");

const char *edge_event_kind_name(enum edge_event_kind k)
{
    return names[k];
}

void edge_events_deinit(struct edge_events *s)
{
    free(s->kept);
    *s = (struct edge_events){.n = 0};
}

void edge_events_add(struct edge_events *s, const struct edge_event *ev)
{
    struct edge_event_kept *kept;

    s->counts[ev->kind]++;
    if (!s->kept)
        s->kept = calloc(EDGE_EVENTS_MAX, sizeof(*s->kept));
    if (!s->kept)
        return;
    kept = &s->kept[s->n % EDGE_EVENTS_MAX];
    *kept = (struct edge_event_kept){.number = ++s->n, .at = ev->at, .kind = ev->kind};
    (void)snprintf(kept->network, sizeof(kept->network), "%s", ev->network);
    (void)snprintf(kept->object, sizeof(kept->object), "%s", ev->object);
    (void)snprintf(kept->text, sizeof(kept->text), "%s", ev->text);
}

json_t *edge_events_encode(const struct edge_events *s, const char *network)
{
    json_t *items = json_array();

    for (size_t i = 0; items && s->kept && i < EDGE_EVENTS_MAX; i++) {
        const struct edge_event_kept *kept = &s->kept[(s->n + i) % EDGE_EVENTS_MAX];

        if (kept->number == 0 || strcmp(kept->network, network) != 0)
            continue;
        if (json_array_append_new(
                items, json_pack("{s:I, s:I, s:s, s:s, s:s}", "number", (json_int_t)kept->number,
                           "time", (json_int_t)kept->at, "type", names[kept->kind], "object",
                           kept->object, "text", kept->text)) < 0)
            items = (json_decref(items), NULL);
    }
    return items;
}
