/*
 * path_relay.c - which relay an edge without a direct path goes through.
 *
 * Each end reports the relays that it reaches, with the round trip to each. The
 * best is the one with the smallest sum of both. The side with the smaller key
 * moves to a better one, when it has been better for a while; the other follows,
 * because a session goes the way that its handshake went (noise/pin.h), and is told
 * by paths_on_relayed(). Where nothing is sent there is no session that takes it
 * along: then it moves a little later by itself, to the same one. A relay that
 * an end has lost it leaves at once, whichever it is, and takes the other one
 * along by the same handshake.
 */
#include <string.h>

#include "path/path_internal.h"
#include "path/path_relay_internal.h"
#include "path/paths_internal.h"
#include "path/pmtu.h"

/* A relay must have been better for this time, and by so much or by a fifth. The second is that of
 * the side which is taken along, where there is a session to do so. */
#define BETTER_FOR          (2 * NSEC_PER_SEC)
#define BETTER_FOR_FOLLOWER (6 * NSEC_PER_SEC)
#define BETTER_BY           (5 * NSEC_PER_MSEC)
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

/* The sum of both ends' round trips to it; 0: not known, or one end does not reach it. */
static nsec_t sum_of(const struct path *pp, const struct x25519_public *key)
{
    const struct path_relay *mine = find(&pp->owner->self, key);
    const struct path_relay *theirs = find(&pp->side, key);

    return mine && theirs && mine->rtt != 0 && theirs->rtt != 0 ? mine->rtt + theirs->rtt : 0;
}

uint16_t path__relay_mtu(const struct path *pp, const struct x25519_public *key)
{
    const struct path_relay *mine = find(&pp->owner->self, key);
    const struct path_relay *theirs = find(&pp->side, key);

    if (!mine || !theirs)
        return 0;
    return mine->mtu < theirs->mtu ? mine->mtu : theirs->mtu;
}

bool path__relay_carries(const struct path *pp, const struct x25519_public *key, uint16_t mtu)
{
    uint16_t carries = path__relay_mtu(pp, key);

    return mtu <= (carries > PMTU_INNER_FLOOR ? carries : PMTU_INNER_FLOOR);
}

nsec_t path__relay_best(const struct path *pp, struct path_relay *ret)
{
    const struct path_side *self = &pp->owner->self;
    nsec_t best = 0;

    *ret = (struct path_relay){0};
    for (unsigned i = 0; i < self->n_relays; i++) {
        const struct path_relay *mine = &self->relays[i];
        nsec_t rtt = sum_of(pp, &mine->key);

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
static const struct x25519_public *current(const struct path *pp)
{
    const struct path_side *self = &pp->owner->self;

    return x25519_public_is_none(&pp->relay.key) && self->n_relays > 0 ? &self->relays[0].key
                                                                       : &pp->relay.key;
}

nsec_t path__relay_rtt(const struct path *pp, struct path_relay *ret_via)
{
    const struct path_relay *mine = find(&pp->owner->self, current(pp));

    *ret_via = mine ? *mine : (struct path_relay){.key = *current(pp)};
    ret_via->rtt = sum_of(pp, current(pp));
    return ret_via->rtt;
}

struct paths_item *path__tell_relay(struct path *pp)
{
    struct paths_item *item = paths__add(pp->owner, pp, PATH_ACTION_USE);

    if (!item)
        return NULL;
    item->action.path = pp->peer.policy == PATH_POLICY_OFF ? PATH_KIND_NONE : PATH_KIND_RELAY;
    (void)path__relay_rtt(pp, &item->action.via);
    return item;
}

/* Remember the first relay by its key, so that its loss is noticed. */
static void remember_first(struct path *pp)
{
    if (x25519_public_is_none(&pp->relay.key))
        pp->relay.key = *current(pp);
}

static void move(struct path *pp, const struct path_relay *to, const char *why)
{
    pp->relay.key = to->key;
    pp->relay.move_at = NSEC_NEVER;
    pp->owner->counters.switches++;
    (void)path__tell_relay(pp);
    path__event(pp, false, "%s", why);
}

/* A relay that both ends reach, or else one that we reach. False when there is none. */
static bool find_refuge(const struct path *pp, struct path_relay *ret)
{
    const struct path_side *self = &pp->owner->self;

    if (path__relay_best(pp, ret) != 0)
        return true;
    if (self->n_relays == 0)
        return false;
    *ret = self->relays[0];
    return true;
}

/* Leaves the present relay if one of the ends does not reach it any more. True if it did. */
static bool leave_lost(struct path *pp)
{
    const struct x25519_public *key = current(pp);
    bool is_lost_there = pp->has_side && pp->side.n_relays > 0 && !find(&pp->side, key);
    struct path_relay refuge;

    if (pp->owner->self.n_relays == 0 || x25519_public_is_none(key))
        return false;
    if (find(&pp->owner->self, key) && !(is_lost_there && pp->nominates))
        return false;
    if (!find_refuge(pp, &refuge) || x25519_public_equal(&refuge.key, key))
        return false;
    move(pp, &refuge,
        find(&pp->owner->self, key) ? "the other end has lost the relay; through another one"
                                    : "the relay does not answer any more; through another one");
    return true;
}

/* The best relay, if it is better than the present one by more than chance. */
static bool find_better(const struct path *pp, struct path_relay *ret)
{
    nsec_t best = path__relay_best(pp, ret);
    nsec_t now = sum_of(pp, current(pp));

    return best != 0 && now != 0 && best + nsec_max(BETTER_BY, now / 5) <= now &&
           path__relay_carries(pp, &ret->key, path__relay_mtu(pp, current(pp)));
}

void path__check_relay(struct path *pp, nsec_t now)
{
    struct path_relay better;

    remember_first(pp);
    if (pp->choice.pair != 0 || pp->peer.policy == PATH_POLICY_OFF || leave_lost(pp))
        return;
    if (now < pp->relay.free_at || !find_better(pp, &better))
        pp->relay.move_at = NSEC_NEVER;
    else if (pp->relay.move_at == NSEC_NEVER)
        pp->relay.move_at = now + (pp->nominates ? BETTER_FOR : BETTER_FOR_FOLLOWER);
    else if (now >= pp->relay.move_at)
        move(pp, &better, "another relay is quicker for both; through that");
}

void path__relay_tick(struct path *pp, nsec_t now)
{
    if (now >= pp->relay.move_at)
        path__check_relay(pp, now);
}

void path__relay_enter(struct path *pp)
{
    struct path_relay best;

    remember_first(pp);
    pp->relay.move_at = NSEC_NEVER;
    if (path__relay_best(pp, &best) != 0)
        pp->relay.key = best.key;
}

void path__on_relayed(struct path *pp, const struct x25519_public *via, nsec_t now)
{
    struct paths_item *item;

    if (pp->choice.pair != 0 || x25519_public_equal(current(pp), via))
        return;
    pp->relay.key = *via;
    pp->relay.move_at = NSEC_NEVER;
    pp->relay.free_at = now + HOLD;
    item = path__tell_relay(pp);
    if (item)
        item->action.is_followed = true;
    path__event(pp, false, "through another relay, as the other end wants it");
}

bool path__announces_relay(const struct path_side *before, const struct path_side *now)
{
    for (unsigned i = 0; i < now->n_relays; i++)
        if (!find(before, &now->relays[i].key))
            return true;
    return false;
}

void path__release_relay(struct path *pp, nsec_t now)
{
    pp->relay.free_at = nsec_min(pp->relay.free_at, now);
}

size_t path__relays(const struct path *pp, struct path_relay_view *ret, size_t cap)
{
    const struct path_side *self = &pp->owner->self;
    size_t n = 0;

    for (unsigned i = 0; i < self->n_relays && n < cap; i++) {
        const struct path_relay *theirs = find(&pp->side, &self->relays[i].key);
        bool is_chosen =
            pp->choice.pair == 0 && x25519_public_equal(current(pp), &self->relays[i].key);

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
