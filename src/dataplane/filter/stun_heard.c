/* stun_heard.c - see stun_heard.h. */
#include "filter/stun_heard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stun_heard_init(struct stun_heard *h)
{
    *h = (struct stun_heard){.items = calloc(STUN_HEARD_MAX, sizeof(*h->items))};
    if (!h->items)
        return -ENOMEM;
    (void)pthread_mutex_init(&h->lock, NULL);
    return 0;
}

void stun_heard_deinit(struct stun_heard *h)
{
    if (!h->items)
        return;
    (void)pthread_mutex_destroy(&h->lock);
    free(h->items);
    h->items = NULL;
}

void stun_heard_add(struct stun_heard *h, const struct stun_transaction *id,
    const struct endpoint *from, nsec_t now)
{
    (void)pthread_mutex_lock(&h->lock);
    h->items[h->next] = (struct stun_hearing){.id = *id, .from = *from, .at = now};
    h->next = (h->next + 1) % STUN_HEARD_MAX;
    (void)pthread_mutex_unlock(&h->lock);
}

/* A walk over all of them, some microseconds, for a question that is seldom asked. */
bool stun_heard_find(
    struct stun_heard *h, const struct stun_transaction *id, struct stun_hearing *ret)
{
    bool found = false;

    (void)pthread_mutex_lock(&h->lock);
    for (unsigned i = 0; i < STUN_HEARD_MAX && !found; i++) {
        found = h->items[i].at != 0 && memcmp(&h->items[i].id, id, sizeof(*id)) == 0;
        if (found)
            *ret = h->items[i];
    }
    (void)pthread_mutex_unlock(&h->lock);
    return found;
}
