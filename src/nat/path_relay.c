/*
 * path_relay.c - which relay an edge without a direct path goes through.
 *
 * Each end reports the relays that it reaches, with the round trip to each. The
 * best is the one with the smallest sum of both. The side with the smaller key
 * moves to a better one, when it has been better for a while; the other follows,
 * because a session goes the way that its handshake went (noise/pin.h), and is told
 * by paths_on_relayed(). A relay that an end has lost it leaves at once, whichever
 * it is, and takes the other one along by the same handshake.
 */
#include <string.h>

#include "nat/path_internal.h"
#include "nat/path_relay_internal.h"
#include "nat/paths_internal.h"

/* A better relay must have been so for this long, and by so much or a fifth. */
#define BETTER_FOR (2 * NSEC_PER_SEC)
#define BETTER_BY  (5 * NSEC_PER_MSEC)
/* Where the other end has led, it had its reasons: its report of them may still be on its way.
 * A relay that either end announces anew ends that: most often it is the one that was left. */
#define HOLD (60 * NSEC_PER_SEC)

static const struct path_relay *find(const struct path_side *s, const struct x25519_public *key)
{
    for (unsigned i = 0; i < s->n_relays; i++)
        if (x25519_public_equal(&s->relays[i].key, key))
            return &s->relays[i];
    return NULL;
}

/* Both ways to it and back; 0: not known, or one end does not reach it. */
static nsec_t sum_of(const struct path *e, const struct x25519_public *key)
{
    const struct path_relay *mine = find(&e->owner->self, key);
    const struct path_relay *theirs = find(&e->side, key);

    return mine && theirs && mine->rtt != 0 && theirs->rtt != 0 ? mine->rtt + theirs->rtt : 0;
}

nsec_t path__relay_best(const struct path *e, struct path_relay *ret)
{
    const struct path_side *self = &e->owner->self;
    nsec_t best = 0;

    *ret = (struct path_relay){0};
    for (unsigned i = 0; i < self->n_relays; i++) {
        const struct path_relay *mine = &self->relays[i];
        nsec_t rtt = sum_of(e, &mine->key);

        if (rtt == 0)
            continue;
        /* Equal ones by key: both ends compute this from the same reports. */
        if (best == 0 || rtt < best ||
            (rtt == best && x25519_public_compare(&mine->key, &ret->key) < 0)) {
            best = rtt;
            *ret = *mine;
            ret->rtt = rtt;
        }
    }
    return best;
}

/* The one in use; while none was chosen that is the first that is told, a hub. */
static const struct x25519_public *current(const struct path *e)
{
    const struct path_side *self = &e->owner->self;

    return x25519_public_is_none(&e->relay.key) && self->n_relays > 0 ? &self->relays[0].key
                                                                      : &e->relay.key;
}

nsec_t path__relay_rtt(const struct path *e, struct path_relay *ret_via)
{
    const struct path_relay *mine = find(&e->owner->self, current(e));

    *ret_via = mine ? *mine : (struct path_relay){.key = *current(e)};
    ret_via->rtt = sum_of(e, current(e));
    return ret_via->rtt;
}

struct paths_item *path__tell_relay(struct path *e)
{
    struct paths_item *item = paths__add(e->owner, e, PATH_ACTION_USE);

    if (!item)
        return NULL;
    item->action.path = e->peer.policy == PATH_POLICY_OFF ? PATH_KIND_NONE : PATH_KIND_RELAY;
    (void)path__relay_rtt(e, &item->action.via);
    return item;
}

/* So that it is missed when it goes. */
static void remember_first(struct path *e)
{
    if (x25519_public_is_none(&e->relay.key))
        e->relay.key = *current(e);
}

static void move(struct path *e, const struct path_relay *to, const char *why)
{
    e->relay.key = to->key;
    e->relay.move_at = NSEC_NEVER;
    e->owner->counters.switches++;
    (void)path__tell_relay(e);
    path__event(e, false, "%s", why);
}

/* What both reach; else what we do. False when there is nothing. */
static bool find_refuge(const struct path *e, struct path_relay *ret)
{
    const struct path_side *self = &e->owner->self;

    if (path__relay_best(e, ret) != 0)
        return true;
    if (self->n_relays == 0)
        return false;
    *ret = self->relays[0];
    return true;
}

/* Is the present one lost, to us or, as it says, to the other end? Then it is left. */
static bool leave_lost(struct path *e)
{
    const struct x25519_public *key = current(e);
    bool is_lost_there = e->has_side && e->side.n_relays > 0 && !find(&e->side, key);
    struct path_relay refuge;

    if (e->owner->self.n_relays == 0 || x25519_public_is_none(key))
        return false;
    if (find(&e->owner->self, key) && !(is_lost_there && e->nominates))
        return false;
    if (!find_refuge(e, &refuge) || x25519_public_equal(&refuge.key, key))
        return false;
    move(e, &refuge,
        find(&e->owner->self, key) ? "the other end has lost the relay; through another one"
                                   : "the relay does not answer any more; through another one");
    return true;
}

/* The best, if it beats the present one by more than chance. */
static bool find_better(const struct path *e, struct path_relay *ret)
{
    nsec_t best = path__relay_best(e, ret);
    nsec_t now = sum_of(e, current(e));

    return best != 0 && now != 0 && best + nsec_max(BETTER_BY, now / 5) <= now;
}

void path__check_relay(struct path *e, nsec_t now)
{
    struct path_relay better;

    remember_first(e);
    if (e->chosen != 0 || e->peer.policy == PATH_POLICY_OFF || leave_lost(e))
        return;
    if (!e->nominates || now < e->relay.held_until || !find_better(e, &better))
        e->relay.move_at = NSEC_NEVER;
    else if (e->relay.move_at == NSEC_NEVER)
        e->relay.move_at = now + BETTER_FOR;
    else if (now >= e->relay.move_at)
        move(e, &better, "another relay is quicker for both; through that");
}

void path__relay_tick(struct path *e, nsec_t now)
{
    if (now >= e->relay.move_at)
        path__check_relay(e, now);
}

void path__relay_enter(struct path *e)
{
    struct path_relay best;

    remember_first(e);
    e->relay.move_at = NSEC_NEVER;
    if (path__relay_best(e, &best) != 0)
        e->relay.key = best.key;
}

void path__on_relayed(struct path *e, const struct x25519_public *via, nsec_t now)
{
    struct paths_item *item;

    if (e->chosen != 0 || x25519_public_equal(current(e), via))
        return;
    e->relay.key = *via;
    e->relay.move_at = NSEC_NEVER;
    e->relay.held_until = now + HOLD;
    item = path__tell_relay(e);
    if (item)
        item->action.is_followed = true;
    path__event(e, false, "through another relay, as the other end wants it");
}

bool path__announces_relay(const struct path_side *before, const struct path_side *now)
{
    for (unsigned i = 0; i < now->n_relays; i++)
        if (!find(before, &now->relays[i].key))
            return true;
    return false;
}

void path__release_relay(struct path *e, nsec_t now)
{
    e->relay.held_until = nsec_min(e->relay.held_until, now);
}

size_t path__relays(const struct path *e, struct path_relay_view *ret, size_t cap)
{
    const struct path_side *self = &e->owner->self;
    size_t n = 0;

    for (unsigned i = 0; i < self->n_relays && n < cap; i++) {
        const struct path_relay *theirs = find(&e->side, &self->relays[i].key);
        bool is_chosen = e->chosen == 0 && x25519_public_equal(current(e), &self->relays[i].key);

        ret[n++] = (struct path_relay_view){
            .key = self->relays[i].key,
            .here = self->relays[i].rtt,
            .there = theirs ? theirs->rtt : 0,
            .verdict = is_chosen ? PATH_VERDICT_CHOSEN
                       : theirs  ? PATH_VERDICT_WORKS
                                 : PATH_VERDICT_SILENT,
        };
    }
    return n;
}
