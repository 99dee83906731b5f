/* traffic_disputes.c - see traffic_disputes.h. */
#include "hub/traffic/traffic_disputes.h"

#include <string.h>

static bool is_same(const struct traffic_dispute *a, const struct traffic_dispute *b)
{
    return strcmp(a->from, b->from) == 0 && strcmp(a->to, b->to) == 0 &&
           strcmp(a->job, b->job) == 0;
}

static const struct traffic_dispute *find(
    const struct traffic_dispute *list, size_t n, const struct traffic_dispute *wanted)
{
    for (size_t i = 0; i < n; i++)
        if (is_same(&list[i], wanted))
            return &list[i];
    return NULL;
}

static void begin(struct traffic_disputed *item, const struct traffic_dispute *d, nsec_t now)
{
    item->is = *d;
    item->greater_then = d->sent > d->received ? d->sent : d->received;
    item->since = now;
}

static void add(struct traffic_disputes *d, const struct traffic_dispute *dispute, nsec_t now)
{
    for (size_t i = 0; i < d->n; i++)
        if (is_same(&d->items[i].is, dispute))
            return;
    if (d->n == TRAFFIC_DISPUTES_MAX)
        return;
    d->items[d->n] = (struct traffic_disputed){.is_told = false};
    begin(&d->items[d->n++], dispute, now);
}

void traffic_disputes_set(struct traffic_disputes *d, const char *from,
    const struct traffic_dispute *list, size_t n, nsec_t now)
{
    for (size_t i = 0; i < d->n;) {
        struct traffic_disputed *item = &d->items[i];
        const struct traffic_dispute *now_is = find(list, n, &item->is);

        if (strcmp(item->is.from, from) != 0) {
            i++;
        } else if (!now_is) {
            *item = d->items[--d->n];
        } else {
            item->is = *now_is;
            /* What was said then is borne out by now. */
            if (now_is->counted + TRAFFIC_DISPUTE_BYTES >= item->greater_then)
                begin(item, now_is, now);
            i++;
        }
    }
    for (size_t i = 0; i < n; i++)
        add(d, &list[i], now);
}

const struct traffic_dispute *traffic_disputes_due(struct traffic_disputes *d, nsec_t now)
{
    for (size_t i = 0; i < d->n; i++) {
        struct traffic_disputed *item = &d->items[i];

        if (item->is_told || now - item->since < TRAFFIC_DISPUTE_AFTER)
            continue;
        item->is_told = true;
        return &item->is;
    }
    return NULL;
}
