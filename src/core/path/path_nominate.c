/*
 * path_nominate.c - which pair an edge uses, and how both sides come to agree.
 *
 * One side nominates, the one with the smaller key; a way there and back has been
 * measured before it does. The other follows at once if the way works for itself
 * too, or as soon as it does. Either may leave a dead pair for the relay by itself.
 */
#include <stdio.h>

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"
#include "path/pmtu.h"
#include "wire/wg.h"

/* ---- through which relay --------------------------------------------------------------------- */

/*
 * Which relay an edge without a direct path goes through.
 *
 * Each end reports the relays that it reaches, with the round trip to each. The
 * best is the one with the smallest sum of both. The side with the smaller key
 * moves to a better one, when it has been better for a while; the other follows,
 * because a session goes the way that its handshake went (noise/profile.h), and is
 * told by paths_on_relayed(). Where nothing is sent there is no session that takes it
 * along: then it moves a little later by itself, to the same one. A relay that
 * an end has lost it leaves at once, whichever it is, and takes the other one
 * along by the same handshake.
 *
 * A relay whose line is full says so (relay/line.h). No edge moves to it that has another one, and
 * none begins to send data there; an edge that it asks to go takes the best of those that are open
 * to it, by the same steps.
 */

/* A relay must have been better for this time, and by so much or by a fifth. The second is that of
 * the side which is taken along, where there is a session to do so. */
#define BETTER_FOR          (2 * NSEC_PER_SEC)
#define BETTER_FOR_FOLLOWER (6 * NSEC_PER_SEC)
#define BETTER_BY           (5 * NSEC_PER_MSEC)
/* Where the other end has led, it had its reasons: its report of them may still be on its way.
 * A relay that either end announces anew ends that: most often it is the one that was left. */
#define FOLLOWED_FOR (60 * NSEC_PER_SEC)

static const struct path_relay *find_relay(
    const struct path_side *s, const struct x25519_public *key)
{
    for (unsigned i = 0; i < s->n_relays; i++)
        if (x25519_public_equal(&s->relays[i].key, key))
            return &s->relays[i];
    return NULL;
}

/* The sum of both ends' round trips to it; 0: not known, or one end does not reach it. */
static nsec_t relay_rtt_sum(const struct path *pp, const struct x25519_public *key)
{
    const struct path_relay *mine = find_relay(&pp->owner->self, key);
    const struct path_relay *theirs = find_relay(&pp->side, key);

    return mine && theirs && mine->rtt != 0 && theirs->rtt != 0 ? mine->rtt + theirs->rtt : 0;
}

uint16_t path__relay_mtu(const struct path *pp, const struct x25519_public *key)
{
    const struct path_relay *mine = find_relay(&pp->owner->self, key);
    const struct path_relay *theirs = find_relay(&pp->side, key);

    if (!mine || !theirs)
        return 0;
    return mine->mtu < theirs->mtu ? mine->mtu : theirs->mtu;
}

/* Does that relay carry as much as @mtu? Where one is not known, the least that every path carries
 * is taken for it. */
static bool relay_carries(const struct path *pp, const struct x25519_public *key, uint16_t mtu)
{
    uint16_t carries = path__relay_mtu(pp, key);

    return mtu <= (carries > PMTU_INNER_MIN ? carries : PMTU_INNER_MIN);
}

/* The one in use; while none was chosen that is the first that is told, a hub. */
static const struct x25519_public *current_relay(const struct path *pp)
{
    const struct path_side *self = &pp->owner->self;

    return x25519_public_is_none(&pp->relay.key) && self->n_relays > 0 ? &self->relays[0].key
                                                                       : &pp->relay.key;
}

/* Does that relay ask the edge to go another way? */
static bool is_asked_away(const struct path *pp, const struct x25519_public *relay)
{
    const struct path_relay_notice *notice = paths__notice(pp->owner, relay);

    return notice && path_relay_notice_is_away(notice, pp->tag);
}

/* Which relays count. */
enum relays_counted {
    RELAYS_ALL,
    RELAYS_OPEN,         /* those that the edge may begin to use */
    RELAYS_OPEN_OR_HERE, /* and the one that it uses, if that is full and does not ask it to go */
};

static bool relay_counts(
    const struct path *pp, const struct x25519_public *relay, enum relays_counted which)
{
    const struct path_relay_notice *notice = paths__notice(pp->owner, relay);

    if (!notice || which == RELAYS_ALL)
        return true;
    if (is_asked_away(pp, relay))
        return false;
    return !notice->is_closed ||
           (which == RELAYS_OPEN_OR_HERE && x25519_public_equal(relay, current_relay(pp)));
}

/* The best common relay of those that count, and its RTT, both ends' together; 0: none known. */
static nsec_t find_best(const struct path *pp, enum relays_counted which, struct path_relay *ret)
{
    const struct path_side *self = &pp->owner->self;
    nsec_t best = 0;

    *ret = (struct path_relay){0};
    for (unsigned i = 0; i < self->n_relays; i++) {
        const struct path_relay *mine = &self->relays[i];
        nsec_t rtt = relay_rtt_sum(pp, &mine->key);

        if (rtt == 0 || !relay_counts(pp, &mine->key, which))
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

/* For an edge that has to take one: a full one only where there is no other. */
static nsec_t best_relay(const struct path *pp, struct path_relay *ret)
{
    nsec_t best = find_best(pp, RELAYS_OPEN, ret);

    return best != 0 ? best : find_best(pp, RELAYS_ALL, ret);
}

nsec_t path__relay_rtt(const struct path *pp, struct path_relay *ret_via)
{
    const struct path_relay *mine = find_relay(&pp->owner->self, current_relay(pp));

    *ret_via = mine ? *mine : (struct path_relay){.key = *current_relay(pp)};
    ret_via->rtt = relay_rtt_sum(pp, current_relay(pp));
    return ret_via->rtt;
}

/* The action that says: through the relay, or not at all. NULL: no memory. */
static struct paths_item *queue_use_relay(struct path *pp)
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
        pp->relay.key = *current_relay(pp);
}

static void move_to_relay(struct path *pp, const struct path_relay *to, const char *why)
{
    pp->relay.key = to->key;
    pp->relay.move_at = NSEC_NEVER;
    pp->owner->counters.switches++;
    (void)queue_use_relay(pp);
    path__event(pp, false, "%s", why);
}

/* Leaves the present relay if one of the ends does not reach it any more. True if it did. */
static bool leave_lost(struct path *pp)
{
    const struct x25519_public *key = current_relay(pp);
    bool is_lost_there = pp->has_side && pp->side.n_relays > 0 && !find_relay(&pp->side, key);
    struct path_relay refuge;

    if (pp->owner->self.n_relays == 0 || x25519_public_is_none(key))
        return false;
    if (find_relay(&pp->owner->self, key) && !(is_lost_there && pp->nominates))
        return false;
    /* A relay that both ends reach, or else one that we reach. */
    if (best_relay(pp, &refuge) == 0)
        refuge = pp->owner->self.relays[0];
    if (x25519_public_equal(&refuge.key, key))
        return false;
    move_to_relay(pp, &refuge,
        find_relay(&pp->owner->self, key)
            ? "the other end has lost the relay; through another one"
            : "the relay does not answer any more; through another one");
    return true;
}

/* By what relays say of their lines: may the edge stay, and does it leave out a nearer one? Once it
 * is asked to go it tries to be direct, as the other end does at the same time. */
static void take_notices(struct path *pp, nsec_t now)
{
    bool was_asked = pp->relay.is_asked;
    struct path_relay best;

    pp->relay.is_asked = is_asked_away(pp, current_relay(pp));
    pp->relay.avoids = find_best(pp, RELAYS_ALL, &best) != 0 &&
                       !x25519_public_equal(&best.key, current_relay(pp)) &&
                       !relay_counts(pp, &best.key, RELAYS_OPEN_OR_HERE);
    if (pp->relay.is_asked && !was_asked && path__wants_direct(pp))
        path__checks_start(pp, true, now);
}

/* Is @best, of @best_rtt, where the edge should go? */
static bool is_better_relay(
    const struct path *pp, const struct path_relay *best, nsec_t best_rtt, nsec_t now)
{
    nsec_t present_rtt = relay_rtt_sum(pp, current_relay(pp));

    if (best_rtt == 0 || now < pp->relay.free_at)
        return false;
    if (pp->relay.is_asked)
        return true;
    return present_rtt != 0 && best_rtt + nsec_max(BETTER_BY, present_rtt / 5) <= present_rtt &&
           relay_carries(pp, &best->key, path__relay_mtu(pp, current_relay(pp)));
}

void path__check_relay(struct path *pp, nsec_t now)
{
    struct path_relay best;
    nsec_t best_rtt;

    remember_first(pp);
    if (pp->choice.pair != 0 || pp->peer.policy == PATH_POLICY_OFF || leave_lost(pp))
        return;
    take_notices(pp, now);
    best_rtt = find_best(pp, RELAYS_OPEN_OR_HERE, &best);
    if (!is_better_relay(pp, &best, best_rtt, now)) {
        pp->relay.move_at = NSEC_NEVER;
    } else if (pp->relay.move_at == NSEC_NEVER) {
        pp->relay.move_at = now + (pp->nominates ? BETTER_FOR : BETTER_FOR_FOLLOWER);
    } else if (now >= pp->relay.move_at) {
        move_to_relay(pp, &best,
            pp->relay.is_asked ? "the relay's line is full; through another one"
                               : "another relay is quicker for both; through that");
        take_notices(pp, now);
    }
}

void path__begin_relay(struct path *pp, nsec_t now)
{
    struct path_relay best;

    if (!pp->nominates || pp->choice.pair != 0 || now < pp->relay.free_at ||
        pp->peer.policy == PATH_POLICY_OFF || relay_counts(pp, current_relay(pp), RELAYS_OPEN) ||
        find_best(pp, RELAYS_OPEN, &best) == 0)
        return;
    move_to_relay(pp, &best, "the relay's line is full; through another one");
    take_notices(pp, now);
}

void path__on_relayed(struct path *pp, const struct x25519_public *via, nsec_t now)
{
    struct paths_item *item;

    if (pp->choice.pair != 0 || x25519_public_equal(current_relay(pp), via))
        return;
    pp->relay.key = *via;
    pp->relay.move_at = NSEC_NEVER;
    pp->relay.free_at = now + FOLLOWED_FOR;
    item = queue_use_relay(pp);
    if (item)
        item->action.is_followed = true;
    path__event(pp, false, "through another relay, as the other end wants it");
    take_notices(pp, now);
}

bool path__announces_relay(const struct path_side *before, const struct path_side *now)
{
    for (unsigned i = 0; i < now->n_relays; i++)
        if (!find_relay(before, &now->relays[i].key))
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
        const struct path_relay *theirs = find_relay(&pp->side, &self->relays[i].key);
        bool is_chosen =
            pp->choice.pair == 0 && x25519_public_equal(current_relay(pp), &self->relays[i].key);

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

/* ---- which pair ------------------------------------------------------------------------------ */

/* How long the choice waits after the first pair is valid, since a better one may follow. */
#define CHOOSE_DELAY (100 * NSEC_PER_MSEC)
/* Measurements that a pair needs before it is nominated or displaces another. */
#define SAMPLES_MIN 2
#define BETTER_MIN  2
/* A nomination is repeated after this time, and given up after so many frames. */
#define NOMINATE_AGAIN (150 * NSEC_PER_MSEC)
#define NOMINATE_MAX   8
/* How long the peer's nomination is remembered while the pair is not valid here yet. */
#define NOMINATED_FOR (2 * NSEC_PER_SEC)
/* A pair that died twice or more is not used for a time that doubles with each death. */
#define HOLD_MIN   (2 * NSEC_PER_SEC)
#define HOLD_MAX   (60 * NSEC_PER_SEC)
#define STABLE_FOR (300 * NSEC_PER_SEC)
/* A pair that works, but worse than the relay, is looked at again after so long, at the next slot
 * of an edge that is in haste (path_checks.c): a better way is taken within 10 s. */
#define WORSE_FOR (4 * NSEC_PER_SEC)
/* A pair that loses more is not used if there is a relay. */
#define LOSS_UNUSABLE_PERMILLE 250
#define LOSS_SAMPLES           20
/* When so many of the newest pings were all answered, the losses before them are over. */
#define LOSS_OVER 8
/* The relay has to be better by so much, or by half. Of the pair's round trips the least of the
 * last minute counts, of the relay's each end's last one: so a relay that is as full as the pair,
 * or whose ways are, is none to go to. */
#define RELAY_MARGIN (10 * NSEC_PER_MSEC)
/* Who comes back from a relay stays for so long, and twice as long each time, because it may have
 * been the edge's own traffic that made the relay worse; until it has stayed longer than that by
 * STABLE_FOR. */
#define STAY_MIN (30 * NSEC_PER_SEC)
#define STAY_MAX (1200 * NSEC_PER_SEC)
/* Least time between two looks at the engine's counters that are asked for. */
#define LOOK_MIN (300 * NSEC_PER_MSEC)
/* With the policy DIRECT a relayed edge is warned of after this time. */
#define ALARM_AFTER (30 * NSEC_PER_SEC)
/* What a pair was found to carry counts for so long, and is asked for again after so long. */
#define PROVEN      (10 * NSEC_PER_SEC)
#define PROVE_AGAIN (1 * NSEC_PER_SEC)

/* ---- switching ------------------------------------------------------------------------------ */

static void say_direct(struct path *pp, const struct path_pair *pair)
{
    const char *kind = path__pair_kind(pair) == PATH_KIND_LAN ? "lan" : "direct";
    char ep[ENDPOINT_TEXT_MAX];

    (void)endpoint_format(&pair->remote.endpoint, ep);
    if (pair->n_samples == 0)
        path__event(pp, false, "%s path %s, kept from before this start", kind, ep);
    else
        path__event(pp, false, "%s path %s, %lld.%lld ms", kind, ep,
            (long long)(pair->rtt / NSEC_PER_MSEC),
            (long long)(pair->rtt / (NSEC_PER_MSEC / 10) % 10));
}

void path__end_alarm(struct path *pp, const char *words)
{
    if (pp->choice.is_alarm)
        path__event(pp, false, "%s: the alarm is over", words);
    pp->choice.is_alarm = false;
    pp->choice.alarm_at = NSEC_NEVER;
}

struct path_liveness_facts path__liveness_facts(const struct path *pp, nsec_t now)
{
    const struct path_pair *pair = path__pair_of(pp, pp->choice.pair);

    return (struct path_liveness_facts){
        .keepalive_here = pp->owner->self.keepalive,
        .keepalive_there = pp->side.keepalive,
        .rtt = pair ? pair->rtt : 0,
        .is_active = path_traffic_is_active(&pp->traffic, now),
        .is_relay = pp->peer.is_relay,
        .begins = pp->nominates,
    };
}

static nsec_t double_time(nsec_t time, unsigned n_times, nsec_t limit)
{
    for (unsigned i = 0; i < n_times && time < limit; i++)
        time *= 2;
    return nsec_min(time, limit);
}

static void use_pair(struct path *pp, struct path_pair *pair, nsec_t now)
{
    struct path_liveness_facts facts;
    struct paths_item *item;
    uint32_t before = pp->choice.pair;
    const struct path_pair *old = path__pair_of(pp, before);
    uint32_t old_socket = old ? old->socket : PATH_SOCKET_MAIN;

    pp->choice.received.pair = 0;
    pp->choice.is_moved = false;
    pp->choice.moved_to = 0;
    if (before == pair->id)
        return;
    pp->choice.pair = pair->id;
    pp->choice.mtu = 0;
    pp->choice.since = now;
    pp->checks.n_failed = 0;
    path__port_guess_on_used(pp, now);
    if (pp->choice.has_left)
        pp->choice.stay_until = now + double_time(STAY_MIN, pp->choice.n_returns++, STAY_MAX);
    pp->choice.is_worse = pp->choice.has_left = false;
    pair->record.n_better = 0;
    pp->owner->counters.switches++;
    item = paths__add(pp->owner, pp, PATH_ACTION_USE);
    if (item) {
        item->action.path = path__pair_kind(pair);
        item->action.remote = pair->remote.endpoint;
        item->action.socket = pair->socket;
        item->action.local = pair->contact.local;
    }
    say_direct(pp, pair);
    path__end_alarm(pp, "direct, as it should be");
    facts = path__liveness_facts(pp, now);
    path_liveness_start(&pp->liveness, &facts, now);
    path__port_guess_end(pp);
    if (old_socket != PATH_SOCKET_MAIN && old_socket != pair->socket)
        path__close_socket(pp, old_socket);
}

void path__keep(struct path *pp, const struct endpoint *at, nsec_t now)
{
    struct path_pair *pair = path__pair_add(pp, CANDIDATE_HEARD, at, PATH_SOCKET_MAIN);

    if (!pair)
        return;
    use_pair(pp, pair, now);
    path_liveness_suspect(&pp->liveness, now);
}

void path__use_relay(struct path *pp, const char *why, nsec_t now)
{
    const struct path_pair *pair = path__pair_of(pp, pp->choice.pair);
    uint32_t socket = pair ? pair->socket : PATH_SOCKET_MAIN;
    struct path_relay best;

    pp->choice.sent.pair = pp->choice.received.pair = 0;
    if (pp->choice.pair != 0 && now - pp->choice.since >= STABLE_FOR)
        pp->guess.n_tried = 0;
    pp->choice.pair = 0;
    pp->choice.mtu = 0;
    pp->choice.since = now;
    pp->choice.choose_at = NSEC_NEVER;
    pp->liveness = (struct path_liveness){.next_at = NSEC_NEVER};
    if (why)
        pp->owner->counters.switches++;
    remember_first(pp);
    pp->relay.move_at = NSEC_NEVER;
    if (best_relay(pp, &best) != 0)
        pp->relay.key = best.key;
    pp->relay.is_asked = pp->relay.avoids = false;
    (void)queue_use_relay(pp);
    if (why)
        path__event(pp, false, "%s", why);
    pp->choice.alarm_at = pp->peer.policy == PATH_POLICY_DIRECT ? now + ALARM_AFTER : NSEC_NEVER;
    path__slot_plan(pp, now);
    if (socket != PATH_SOCKET_MAIN)
        path__close_socket(pp, socket);
}

static void hold_pair(struct path_pair *pair, nsec_t since, nsec_t now)
{
    if (now - since >= STABLE_FOR)
        pair->record.n_deaths = 0;
    if (pair->record.n_deaths > 0)
        pair->record.free_at = now + double_time(HOLD_MIN, pair->record.n_deaths - 1, HOLD_MAX);
    pair->record.n_deaths++;
}

/* The pair works but is worse than the relay: it is not used for a while. */
static void hold_worse(struct path *pp, struct path_pair *pair, nsec_t now)
{
    pair->record.free_at = now + WORSE_FOR;
    pp->choice.is_worse = true;
}

/* Least time between two requests to STUN servers, however many paths die. */
#define ASK_ADDRESS_MIN NSEC_PER_SEC

/* A path has died: ask STUN servers again, since our NAT may have changed or forgotten us. */
static void ask_address(const struct path *pp, nsec_t now)
{
    struct paths *p = pp->owner;

    /* When many paths die at once, one request serves all. */
    if ((p->asking.death_at == 0 || now - p->asking.death_at >= ASK_ADDRESS_MIN) &&
        paths__add(p, NULL, PATH_ACTION_FRESH))
        p->asking.death_at = now;
}

/* The pair is dead, as this side has found or as the peer says. */
static void leave_dead(struct path *pp, struct path_pair *pair, const char *words, nsec_t now)
{
    char text[PATH_TEXT_MAX];
    char ep[ENDPOINT_TEXT_MAX];

    hold_pair(pair, pp->choice.since, now);
    pair->record.has_died = true;
    /* What was measured before says nothing of a path that is dead. */
    pp->choice.is_worse = false;
    path__pair_on_death(pair);
    pp->choice.died_at = now;
    ask_address(pp, now);
    (void)snprintf(text, sizeof(text), "%s at %s; through the relay again", words,
        endpoint_format(&pair->remote.endpoint, ep));
    path__use_relay(pp, text, now);
    path__checks_stop(pp);
    path__checks_start(pp, true, now);
}

/* Sent twice, because one may be lost. */
static void tell_leave(struct path *pp, const struct path_pair *pair, uint8_t flags, nsec_t now)
{
    path__tell(pp, pair, PATH_FRAME_LEAVE, flags, ++pp->sending.transaction, now);
    path__tell(pp, pair, PATH_FRAME_LEAVE, flags, ++pp->sending.transaction, now);
}

void path__chosen_tick(struct path *pp, nsec_t now)
{
    struct paths *p = pp->owner;
    struct path_pair *pair = path__pair_of(pp, pp->choice.pair);
    struct path_liveness_facts facts = path__liveness_facts(pp, now);

    if (!pair)
        return;
    switch (path_liveness_tick(&pp->liveness, &facts, now)) {
    case PATH_LIVENESS_PING:
        (void)paths__reserve(p, 1, now);
        path__ping(pp, pair, now);
        /* One look shows what has come from all peers. */
        if (path_liveness_wants_look(&pp->liveness, &facts) &&
            (p->looked_at == 0 || now - p->looked_at >= LOOK_MIN) &&
            paths__add(p, NULL, PATH_ACTION_LOOK))
            p->looked_at = now;
        break;
    case PATH_LIVENESS_DEAD:
        /* The pair may still work towards the peer, which then need not find out by itself. */
        tell_leave(pp, pair, 0, now);
        leave_dead(pp, pair, "no answer any more", now);
        break;
    case PATH_LIVENESS_WAIT:
        break;
    }
}

void path__on_leave(struct path *pp, struct path_pair *pair, uint8_t flags, nsec_t now)
{
    if (pair->id != pp->choice.pair)
        return;
    if ((flags & PATH_FRAME_WORSE) == 0) {
        leave_dead(pp, pair, "it is not heard any more, as the other end says,", now);
        return;
    }
    pp->choice.is_worse = true;
    path__use_relay(pp, "the relay is better than the direct path", now);
}

void path__leave_socket(struct path *pp, nsec_t now)
{
    const struct path_pair *pair = path__pair_of(pp, pp->choice.pair);

    path__port_guess_end(pp);
    if (!pair || pair->socket == PATH_SOCKET_MAIN)
        return;
    tell_leave(pp, pair, 0, now);
    path__use_relay(
        pp, "the agent ends, through which the path went; through the relay again", now);
}

/* ---- nominating ----------------------------------------------------------------------------- */

static void send_nomination(struct path *pp, struct path_pair *pair, nsec_t now)
{
    struct path_nomination *n = &pp->choice.sent;

    path__tell(pp, pair, PATH_FRAME_NOMINATE, 0, n->transaction, now);
    n->n_sent++;
    n->next_at = now + NOMINATE_AGAIN + pair->rtt;
}

static void nominate(struct path *pp, struct path_pair *pair, nsec_t now)
{
    pp->choice.sent =
        (struct path_nomination){.pair = pair->id, .transaction = ++pp->sending.transaction};
    send_nomination(pp, pair, now);
}

void path__settle(struct path *pp, struct path_pair *pair, nsec_t now)
{
    if (pp->nominates) {
        nominate(pp, pair, now);
        return;
    }
    path__tell(pp, pair, PATH_FRAME_LEAVE, 0, ++pp->sending.transaction, now);
    path__use_relay(pp, "the other end has left the direct path; through the relay again", now);
}

static void nomination_tick(struct path *pp, nsec_t now)
{
    struct path_pair *pair = path__pair_of(pp, pp->choice.sent.pair);

    if (pp->choice.sent.pair == 0 || now < pp->choice.sent.next_at)
        return;
    if (!pair || pp->choice.sent.n_sent >= NOMINATE_MAX) {
        pp->choice.sent.pair = 0;
        /* A pair that answers pings but not nominations is treated as if it had died. */
        if (pair && pair->id != pp->choice.pair) {
            pair->record.n_deaths++;
            hold_pair(pair, now, now);
        }
        return;
    }
    send_nomination(pp, pair, now);
}

void path__on_accept(struct path *pp, struct path_pair *pair, uint64_t transaction, nsec_t now)
{
    if (pp->choice.sent.pair != pair->id || pp->choice.sent.transaction != transaction)
        return;
    pp->choice.sent.pair = 0;
    use_pair(pp, pair, now);
}

/* The peer has measured the pair there and back; we follow as soon as we have. */
void path__on_nominate(struct path *pp, struct path_pair *pair, uint64_t transaction, nsec_t now)
{
    if (pp->nominates)
        return;
    if (path__pair_is_valid(pair, now) || pair->id == pp->choice.pair) {
        path_liveness_on_nominate(&pp->liveness, now);
        path__tell(pp, pair, PATH_FRAME_ACCEPT, 0, transaction, now);
        use_pair(pp, pair, now);
        return;
    }
    pp->choice.received = (struct path_nomination){
        .pair = pair->id, .transaction = transaction, .next_at = now + NOMINATED_FOR};
    if (path__may_ping(pp, pair, 1, now))
        path__ping(pp, pair, now);
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* Is the relay better than the pair by more than chance, or does the pair lose too much? */
static bool is_relay_better(const struct path *pp, const struct path_pair *pair)
{
    struct path_relay via;
    /* One that is full is no better than any path. */
    nsec_t relayed = find_best(pp, RELAYS_OPEN, &via);
    nsec_t rtt = path__least(&pair->recent);

    if (!pp->owner->relay_is_usable || pp->peer.policy == PATH_POLICY_DIRECT)
        return false;
    /* Neither end has measured it lately, or one of them loses what it sends there. */
    if (relayed == 0)
        return false;
    if (pair->n_known >= LOSS_SAMPLES && path__pair_loss(pair) >= LOSS_UNUSABLE_PERMILLE &&
        (pair->lost & ((UINT64_C(1) << LOSS_OVER) - 1)) != 0)
        return true;
    return relayed + nsec_max(RELAY_MARGIN, rtt / 2) <= rtt &&
           relay_carries(pp, &via.key, pp->choice.mtu);
}

static struct path_pair *best_pair(struct path *pp, nsec_t now)
{
    struct path_pair *best = NULL;

    for (unsigned i = 0; i < pp->pairs.n; i++) {
        struct path_pair *pair = &pp->pairs.items[i];

        if (!path__pair_is_valid(pair, now) || pair->n_samples < SAMPLES_MIN ||
            now < pair->record.free_at)
            continue;
        if (!best || path__pair_is_better(pair, best) ||
            (pair->rtt < best->rtt && !path__pair_is_better(best, pair)))
            best = pair;
    }
    return best;
}

static void choose_pair(struct path *pp, nsec_t now)
{
    struct path_pair *best;

    if (!pp->nominates || pp->choice.sent.pair != 0 || pp->choice.pair != 0 ||
        now < pp->choice.choose_at)
        return;
    best = best_pair(pp, now);
    if (!best)
        return;
    if (!is_relay_better(pp, best)) {
        pp->choice.is_worse = false;
        nominate(pp, best, now);
    } else if (best->n_samples >= PATH_SAMPLES_SURE) {
        hold_worse(pp, best, now);
        path__slot_plan(pp, now);
    }
}

/* The chosen pair has a new measurement. When the relay is better twice in a row, the edge goes
 * there. */
static void reconsider_chosen(struct path *pp, struct path_pair *pair, nsec_t now)
{
    if (now < pp->choice.stay_until || !is_relay_better(pp, pair)) {
        pair->record.n_better = 0;
        return;
    }
    if (++pair->record.n_better < BETTER_MIN)
        return;
    pair->record.n_better = 0;
    if (now - pp->choice.stay_until >= STABLE_FOR)
        pp->choice.n_returns = 0;
    pp->choice.has_left = true;
    hold_worse(pp, pair, now);
    tell_leave(pp, pair, PATH_FRAME_WORSE, now);
    path__use_relay(pp, "the relay is better than the direct path", now);
}

/*
 * Are packets of the size that flows have now known to pass on that pair? A line may lose the long
 * ones without a word, and pings are short. Asked once a second, by a probe of that size.
 */
static bool is_proven(struct path *pp, struct path_pair *pair, nsec_t now)
{
    uint16_t size = (uint16_t)(pp->choice.mtu + WG_DATA_OVERHEAD);

    if (pp->choice.mtu == 0 || (pair->record.fits >= size && now - pair->record.fits_at < PROVEN))
        return true;
    if (pair->record.probe != 0 && now - pair->record.probed_at < PROVE_AGAIN)
        return false;
    pair->record.probed_at = now;
    (void)paths__reserve(pp->owner, 1, now);
    (void)path__probe(pp, pair, size, &pair->record.probe, now);
    return false;
}

bool path__on_fits(struct path *pp, uint64_t id, uint16_t size, nsec_t now)
{
    for (unsigned i = 0; i < pp->pairs.n; i++) {
        struct path_pair *pair = &pp->pairs.items[i];

        if (pair->record.probe != id)
            continue;
        pair->record.fits = size;
        pair->record.fits_at = now;
        /* It goes on where the last measurement has left it. */
        if (pp->nominates && pp->choice.pair != 0 && pair->id != pp->choice.pair &&
            pair->record.n_better >= BETTER_MIN && pp->choice.sent.pair == 0)
            nominate(pp, pair, now);
        return true;
    }
    return false;
}

static void consider_challenger(struct path *pp, struct path_pair *pair, nsec_t now)
{
    const struct path_pair *chosen = path__pair_of(pp, pp->choice.pair);

    if (!path__pair_is_better(pair, chosen) || now < pair->record.free_at) {
        pair->record.n_better = 0;
        return;
    }
    if (++pair->record.n_better >= BETTER_MIN && pair->n_samples > BETTER_MIN &&
        pp->choice.sent.pair == 0 && is_proven(pp, pair, now))
        nominate(pp, pair, now);
}

/* Nominate the pair on which a moved peer speaks, once it is valid. */
static void follow_move(struct path *pp, struct path_pair *pair, nsec_t now)
{
    if (pp->choice.moved_to != pair->id || !path__pair_is_valid(pair, now) ||
        pp->choice.sent.pair != 0)
        return;
    pp->choice.moved_to = 0;
    nominate(pp, pair, now);
}

/* The peer cannot be reached at its former place, so that pair need not be found dead first. */
void path__on_peer_moved(struct path *pp, struct path_pair *pair, nsec_t now)
{
    if (!pp->nominates || pp->choice.pair == 0 || pair->id == pp->choice.pair)
        return;
    pp->choice.moved_to = pair->id;
    follow_move(pp, pair, now);
}

void path__on_self_moved(struct path *pp, struct path_pair *pair, nsec_t now)
{
    if (pp->nominates) {
        nominate(pp, pair, now);
        return;
    }
    pp->choice.is_moved = true;
    /* Until the peer has followed, its answers name another pair, that of our old address. */
    path_liveness_on_nominate(&pp->liveness, now);
    path__ping(pp, pair, now);
}

void path__on_measured(struct path *pp, struct path_pair *pair, nsec_t now)
{
    if (pp->choice.received.pair == pair->id) {
        if (now < pp->choice.received.next_at) {
            path__tell(pp, pair, PATH_FRAME_ACCEPT, 0, pp->choice.received.transaction, now);
            use_pair(pp, pair, now);
        }
        pp->choice.received.pair = 0;
    }
    /* A second ping at once, because one measurement is not enough to choose by. */
    if (pair->n_samples < SAMPLES_MIN && pp->choice.pair == 0)
        path__ping(pp, pair, now);
    if (pp->choice.choose_at == NSEC_NEVER || path__pair_kind(pair) == PATH_KIND_LAN)
        pp->choice.choose_at = path__pair_kind(pair) == PATH_KIND_LAN ? now : now + CHOOSE_DELAY;
    if (!pp->nominates)
        return;
    if (pp->choice.pair == 0)
        choose_pair(pp, now);
    else if (pair->id == pp->choice.moved_to)
        follow_move(pp, pair, now);
    else if (pair->id == pp->choice.pair)
        reconsider_chosen(pp, pair, now);
    else
        consider_challenger(pp, pair, now);
}

void path__nominate_tick(struct path *pp, nsec_t now)
{
    nomination_tick(pp, now);
    choose_pair(pp, now);
    if (now < pp->choice.alarm_at)
        return;
    pp->choice.alarm_at = NSEC_NEVER;
    if (pp->choice.pair == 0 && pp->peer.policy == PATH_POLICY_DIRECT) {
        char why[PATH_TEXT_MAX];

        pp->choice.is_alarm = true;
        path__explain(pp, why, now);
        path__event(pp, true, "no direct path, though only direct paths are wanted: %s", why);
    }
}
