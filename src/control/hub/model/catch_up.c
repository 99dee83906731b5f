/* catch_up.c - see catch_up.h. */
#include "hub/model/catch_up.h"

#include <stdlib.h>

#include "api/server/stream.h"

const struct catch_up_entry *catch_up_find(const struct catch_up *c, uint64_t revision)
{
    for (unsigned i = 0; i < CATCH_UP_MAX; i++)
        if (c->entries[i].lines && c->entries[i].revision == revision)
            return &c->entries[i];
    return NULL;
}

static void forget(struct catch_up_entry *entry)
{
    for (size_t i = 0; i < entry->n; i++)
        (void)line_unref(entry->lines[i]);
    free(entry->lines);
    *entry = (struct catch_up_entry){.lines = NULL};
}

const struct catch_up_entry *catch_up_put(struct catch_up *c, const struct catch_up_entry *entry)
{
    struct catch_up_entry *place = &c->entries[c->next++ % CATCH_UP_MAX];

    forget(place);
    *place = *entry;
    return place;
}

void catch_up_forget(struct catch_up *c)
{
    for (unsigned i = 0; i < CATCH_UP_MAX; i++)
        forget(&c->entries[i]);
}
