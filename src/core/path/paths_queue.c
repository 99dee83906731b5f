/* paths_queue.c - actions on their way to the caller, and the budget of frames. */
#include <stdlib.h>

#include "path/path_internal.h"
#include "path/paths_internal.h"

/* A caller that takes its actions never has so many; frames beyond are dropped. */
#define ITEMS_MAX 16384

static bool grow(struct paths *p)
{
    size_t cap = p->cap_items ? 2 * p->cap_items : 64;
    struct paths_item *items = calloc(cap, sizeof(*items));

    if (!items)
        return false;
    for (size_t i = 0; i < p->n_items; i++)
        items[i] = p->items[(p->first_item + i) % p->cap_items];
    free(p->items);
    p->items = items;
    p->cap_items = cap;
    p->first_item = 0;
    return true;
}

struct paths_item *paths__add(struct paths *p, struct path *pp, enum path_action_kind kind)
{
    struct paths_item *item;

    if (kind == PATH_ACTION_SEND && p->n_items >= ITEMS_MAX) {
        p->counters.over_budget++;
        return NULL;
    }
    if (p->n_items == p->cap_items && !grow(p))
        return NULL;
    item = &p->items[(p->first_item + p->n_items++) % p->cap_items];
    *item = (struct paths_item){.path = pp, .action.kind = kind};
    if (pp)
        item->action.peer = pp->peer.key;
    return item;
}

void paths__forget(struct paths *p, const struct path *pp)
{
    for (size_t i = 0; i < p->n_items; i++) {
        struct paths_item *item = &p->items[(p->first_item + i) % p->cap_items];

        if (item->path != pp)
            continue;
        item->path = NULL;
        if (item->action.kind != PATH_ACTION_CLOSE)
            item->action.kind = PATH_ACTION_NONE;
    }
}

/* What was left for the last moment: the seal, so that a pong says how long it was held. */
static bool finish_frame(struct paths *p, struct paths_item *item)
{
    struct xchacha_nonce nonce;

    rng_fill(&p->rng, nonce.b, sizeof(nonce.b));
    if (!path_frame_seal(&item->path->keys, &item->frame, &nonce, item->action.len, p->frame))
        return false;
    item->action.frame = p->frame;
    p->counters.frames_sent++;
    return true;
}

bool paths_next(struct paths *p, struct path_action *ret)
{
    free(p->text);
    p->text = NULL;
    while (p->n_items > 0) {
        struct paths_item item = p->items[p->first_item];

        p->first_item = (p->first_item + 1) % p->cap_items;
        p->n_items--;
        p->text = item.text;
        item.action.text = item.text;
        item.action.name = item.path ? item.path->peer.name : "";
        if (item.action.kind == PATH_ACTION_SEND && !finish_frame(p, &item))
            continue;
        if (item.action.kind != PATH_ACTION_NONE) {
            *ret = item.action;
            return true;
        }
        free(p->text);
        p->text = NULL;
    }
    return false;
}

void paths__queue_deinit(struct paths *p)
{
    for (size_t i = 0; i < p->n_items; i++)
        free(p->items[(p->first_item + i) % p->cap_items].text);
    free(p->items);
    free(p->text);
}

/* ---- budget --------------------------------------------------------------------------------- */

static nsec_t bucket_take(struct paths_bucket *b, unsigned n, nsec_t now)
{
    nsec_t at = rate_free_at(&b->rate, now, b->burst);

    rate_pay(&b->rate, now, n * b->interval);
    return at;
}

nsec_t paths__reserve(struct paths *p, unsigned n, nsec_t now)
{
    nsec_t at = bucket_take(&p->begin, n, now);

    if (at > now)
        p->counters.over_budget += n;
    return at;
}

bool paths__may_map(struct paths *p, unsigned n, nsec_t now)
{
    struct paths_bucket *b = &p->mappings;

    if (rate_is_spent(&b->rate, now, b->burst - n * b->interval))
        return false;
    (void)bucket_take(b, n, now);
    return true;
}

void paths__unmap(struct paths *p, unsigned n)
{
    rate_give_back(&p->mappings.rate, n * p->mappings.interval);
}

bool paths__may_answer(struct paths *p, nsec_t now)
{
    if (rate_is_spent(&p->answer.rate, now, p->answer.burst)) {
        p->counters.over_budget++;
        return false;
    }
    (void)bucket_take(&p->answer, 1, now);
    return true;
}
