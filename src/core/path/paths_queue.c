/* paths_queue.c - actions on their way to the caller, and the budget of frames. */
#include <stdlib.h>

#include "base/containers.h"
#include "path/path_internal.h"
#include "path/paths_internal.h"

/* Frames to an address that has not answered: so many at once, and so many a second. */
#define DESTINATIONS_BURST      512
#define DESTINATIONS_PER_SECOND 4
/* So many guesses, or frames to an address that has answered, cost as much as one frame. */
#define DESTINATIONS_CHEAP 8

/* ---- the queue ------------------------------------------------------------------------------- */

/* A caller that takes its actions never has so many; frames beyond are dropped. */
#define ITEMS_MAX 16384

static bool grow_queue(struct paths *p)
{
    size_t cap = p->queue.cap ? 2 * p->queue.cap : 64;
    struct paths_item *items = calloc(cap, sizeof(*items));

    if (!items)
        return false;
    for (size_t i = 0; i < p->queue.n; i++)
        items[i] = p->queue.items[(p->queue.first + i) % p->queue.cap];
    free(p->queue.items);
    p->queue.items = items;
    p->queue.cap = cap;
    p->queue.first = 0;
    return true;
}

struct paths_item *paths__add(struct paths *p, struct path *pp, enum path_action_kind kind)
{
    struct paths_item *item;

    if (kind == PATH_ACTION_SEND && p->queue.n >= ITEMS_MAX) {
        p->counters.over_budget++;
        return NULL;
    }
    if (p->queue.n == p->queue.cap && !grow_queue(p))
        return NULL;
    item = &p->queue.items[(p->queue.first + p->queue.n++) % p->queue.cap];
    *item = (struct paths_item){.path = pp, .action.kind = kind};
    if (pp)
        item->action.peer = pp->peer.key;
    return item;
}

void paths__forget(struct paths *p, const struct path *pp)
{
    for (size_t i = 0; i < p->queue.n; i++) {
        struct paths_item *item = &p->queue.items[(p->queue.first + i) % p->queue.cap];

        if (item->path != pp)
            continue;
        item->path = NULL;
        if (item->action.kind != PATH_ACTION_CLOSE)
            item->action.kind = PATH_ACTION_NONE;
    }
}

/* Seals the frame when it is taken, so that a pong can say for how long it was held. */
static bool finish_frame(struct paths *p, struct paths_item *item)
{
    struct xchacha_nonce nonce;

    rng_fill(&p->rng, nonce.b, sizeof(nonce.b));
    if (!path_frame_seal(
            &item->path->known.keys, &item->frame, &nonce, item->action.len, p->queue.frame))
        return false;
    item->action.frame = p->queue.frame;
    p->counters.frames_sent++;
    return true;
}

bool paths_next(struct paths *p, struct path_action *ret)
{
    free(p->queue.text);
    p->queue.text = NULL;
    while (p->queue.n > 0) {
        struct paths_item item = p->queue.items[p->queue.first];

        p->queue.first = (p->queue.first + 1) % p->queue.cap;
        p->queue.n--;
        p->queue.text = item.text;
        item.action.text = item.text;
        item.action.name = item.path ? item.path->peer.name : "";
        if (item.action.kind == PATH_ACTION_SEND && !finish_frame(p, &item))
            continue;
        if (item.action.kind != PATH_ACTION_NONE) {
            *ret = item.action;
            return true;
        }
        free(p->queue.text);
        p->queue.text = NULL;
    }
    return false;
}

void paths__queue_deinit(struct paths *p)
{
    for (size_t i = 0; i < p->queue.n; i++)
        free(p->queue.items[(p->queue.first + i) % p->queue.cap].text);
    free(p->queue.items);
    free(p->queue.text);
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
    nsec_t at = bucket_take(&p->budget.begin, n, now);

    if (at > now)
        p->counters.over_budget += n;
    return at;
}

bool paths__may_map(struct paths *p, unsigned n, nsec_t now)
{
    struct paths_bucket *b = &p->budget.mappings;

    if (rate_is_spent(&b->rate, now, b->burst - n * b->interval))
        return false;
    (void)bucket_take(b, n, now);
    return true;
}

bool paths__may_send(
    struct paths *p, const struct endpoint *to, unsigned n, bool is_guess, nsec_t now)
{
    if (destinations_take(&p->budget.to, &to->addr, n, is_guess, now))
        return true;
    p->counters.over_budget += n;
    return false;
}

void paths__unmap(struct paths *p, unsigned n)
{
    rate_give_back(&p->budget.mappings.rate, n * p->budget.mappings.interval);
}

bool paths__may_answer(struct paths *p, nsec_t now)
{
    if (rate_is_spent(&p->budget.answer.rate, now, p->budget.answer.burst)) {
        p->counters.over_budget++;
        return false;
    }
    (void)bucket_take(&p->budget.answer, 1, now);
    return true;
}

/* ---- addresses that have not answered -------------------------------------------------------- */

/* What a cheap frame costs, in the time until it has come back. */
#define COST_CHEAP (NSEC_PER_SEC / DESTINATIONS_PER_SECOND / DESTINATIONS_CHEAP)
#define BURST      (DESTINATIONS_BURST * DESTINATIONS_CHEAP * COST_CHEAP)

static unsigned set_of(const struct destinations *d, const struct ip_addr *as)
{
    return (unsigned)(hash_bytes(d->seed, as->b, sizeof(as->b)) % DESTINATIONS_SETS);
}

/* The place of an address, or one that is taken for it; NULL: none is free. */
static struct destination *find_place(
    struct destinations *d, unsigned set, const struct ip_addr *as, nsec_t now)
{
    struct destination *places = d->places[set];
    struct destination *oldest = NULL;

    for (unsigned i = 0; i < DESTINATIONS_ASSOCIATIVITY; i++) {
        if (ip_addr_equal(&places[i].addr, as))
            return &places[i];
        /* Its budget is whole again. */
        if (places[i].rate.full_at <= now &&
            (!oldest || places[i].answered_at < oldest->answered_at))
            oldest = &places[i];
    }
    if (oldest)
        *oldest = (struct destination){.addr = *as};
    return oldest;
}

bool destinations_take(
    struct destinations *d, const struct ip_addr *to, unsigned n_frames, bool is_guess, nsec_t now)
{
    struct ip_addr as = ip_addr_block(to);
    unsigned set = set_of(d, &as);
    struct destination *place = find_place(d, set, &as, now);
    struct rate *rate = place ? &place->rate : &d->others[set];
    bool has_answered =
        place && place->answered_at != 0 && now - place->answered_at < DESTINATIONS_ANSWERED_FOR;
    bool is_cheap = is_guess || has_answered;
    nsec_t cost = (nsec_t)n_frames * (is_cheap ? 1 : DESTINATIONS_CHEAP) * COST_CHEAP;

    if (rate_is_spent(rate, now, BURST - cost))
        return false;
    rate_pay(rate, now, cost);
    return true;
}

void destinations_on_answer(struct destinations *d, const struct ip_addr *from, nsec_t now)
{
    struct ip_addr as = ip_addr_block(from);
    struct destination *place = find_place(d, set_of(d, &as), &as, now);

    if (place)
        *place = (struct destination){.addr = as, .answered_at = now};
}
