/*
 * path_frame.c - what frames that come in mean.
 *
 * An authentic frame may still be an old one that somebody kept. A run of the
 * peer (its session) is believed only after a pong of it answered an outstanding
 * ping of ours, which nobody can have kept; from then on each of its sequences
 * counts once. A frame of another run gets an answer, if it is a ping, and
 * makes us ping where it came from, but changes nothing else.
 */

#include <stdlib.h>

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"

/* Least time between two pings that ask back on one pair. */
#define ASK_BACK_MIN (50 * NSEC_PER_MSEC)
/* A frame of the peer begins a round here, unless one began within this time. */
#define ROUND_MIN (5 * NSEC_PER_SEC)
/* Each round in vain doubles that time, up to so many times. */
#define ROUND_DOUBLINGS 4
/*
 * Endpoints that an edge asks back at in a second, after a burst of eight. Between two
 * NATs with endpoint-dependent mappings that filter nothing, each answer comes from
 * another port than was asked, for ever.
 */
#define ASK_INTERVAL (250 * NSEC_PER_MSEC)
#define ASK_BURST    (2 * NSEC_PER_SEC)

/* While packets flow both ends measure, the one that only answers as often as this. */
#define MEASURE_BACK_EACH (5 * NSEC_PER_SEC)

/* After a change of the network our former address is not used again for this time. */
#define LEFT_FOR (5 * NSEC_PER_SEC)

/*
 * We are answered where we spoke from. But after a change of the network a peer may go on at our
 * old address, and from there nothing leaves any more: let it find the new one first.
 */
static void learn_local(
    const struct path *pp, struct path_pair *pair, const struct path_arrival *in, nsec_t now)
{
    nsec_t changed_at = pp->owner->changed_at;

    if (changed_at != 0 && now - changed_at < LEFT_FOR &&
        ip_addr_equal(&pair->contact.left, &in->local))
        return;
    pair->contact.local = in->local;
}

/* The peer speaks from there: ask back, and try the other ways too if none is found yet. */
static struct path_pair *hear(struct path *pp, const struct path_arrival *in, nsec_t now)
{
    struct path_pair *pair = path__pair_add(pp, CANDIDATE_HEARD, &in->from, in->socket);
    unsigned doublings =
        pp->checks.n_failed < ROUND_DOUBLINGS ? pp->checks.n_failed : ROUND_DOUBLINGS;

    if (!pair)
        return NULL;
    learn_local(pp, pair, in, now);
    if (pair->id != pp->choice.pair && !path__pair_is_valid(pair, now) &&
        now - pair->tried_at >= ASK_BACK_MIN &&
        !rate_is_spent(&pp->receiving.asks_back, now, ASK_BURST) &&
        path__may_ping(pp, pair, 1, now) && paths__may_answer(pp->owner, now)) {
        rate_pay(&pp->receiving.asks_back, now, ASK_INTERVAL);
        path__ping(pp, pair, now);
    }
    if (pp->choice.pair == 0 &&
        (pp->checks.begun_at == 0 || now - pp->checks.begun_at >= ROUND_MIN << doublings))
        path__checks_start(pp, true, now);
    return pair;
}

/* The chosen pair has just been proven to work both ways. */
static void on_alive(struct path *pp, nsec_t now)
{
    struct path_liveness_facts facts = path__liveness_facts(pp, now);

    path_liveness_on_alive(&pp->liveness, &facts, now);
}

/* While packets flow the end that does not begin with the pings sends one now and then as well, so
 * that both know how the round trips are spread. It answers one, so no timer is needed. */
static void measure_back(struct path *pp, struct path_pair *pair, nsec_t now)
{
    if (pp->nominates || pair->id != pp->choice.pair || now - pair->tried_at < MEASURE_BACK_EACH ||
        !path_traffic_is_active(&pp->traffic, now) || !paths__may_answer(pp->owner, now))
        return;
    path__ping(pp, pair, now);
}

/* The chosen pair has answered. */
static void learn_round_trip(struct path *pp, const struct path_pair *pair, nsec_t now)
{
    if (!pp->round_trips)
        pp->round_trips = calloc(1, sizeof(*pp->round_trips));
    if (!pp->round_trips)
        return;
    if (pp->round_trips->pair != pair->id)
        *pp->round_trips = (struct rtt_track){.pair = pair->id};
    rtt_track_add(pp->round_trips, pair->last_rtt, paths_load_is_calm(&pp->owner->load, now), now);
}

static void on_ping(struct path *pp, const struct path_arrival *in, const struct path_frame *f,
    bool is_fresh, size_t len, nsec_t now)
{
    struct path_pair *pair;

    path__answer(pp, in, f, len, now);
    pair = hear(pp, in, now);
    if (!pair || !is_fresh)
        return;
    pair->contact.heard_at = now;
    /* The flag says that our pong to the peer's previous ping arrived: the way works in both
     * directions. */
    if ((f->flags & PATH_FRAME_ANSWERED) && pair->id == pp->choice.pair &&
        f->echo == pp->owner->session)
        on_alive(pp, now);
    measure_back(pp, pair, now);
    if (f->flags & PATH_FRAME_MOVED)
        path__on_peer_moved(pp, pair, now);
}

static void on_pong(
    struct path *pp, const struct path_arrival *in, const struct path_frame *f, nsec_t now)
{
    struct path_pair *pair = path__pair_find(pp, in->socket, &in->from);
    struct endpoint observed;

    if (f->echo != pp->owner->session)
        return;
    /* It answers a guessed port: the endpoint that it came from is the peer's. */
    if (!pair) {
        (void)hear(pp, in, now);
        return;
    }
    if (!path__pair_on_pong(pair, f, in->at, now))
        return;
    pair->contact.heard_at = now;
    destinations_on_answer(&pp->owner->budget.to, &in->from.addr, now);
    /* It answers an outstanding ping of ours: its run is the peer's present one. */
    if (pp->receiving.session != f->session) {
        pp->receiving.session = f->session;
        pp->receiving.sequences = (struct seq_window){.highest = f->sequence, .seen = 1};
        for (unsigned i = 0; i < pp->pairs.n; i++)
            pp->pairs.items[i].contact.agreed = 0;
    }
    learn_local(pp, pair, in, now);
    observed = pair->contact.observed;
    pair->contact.observed = f->observed;
    if (pair->id == pp->choice.pair) {
        learn_round_trip(pp, pair, now);
        /* Our address is another one than before: the peer has to follow us. */
        if (!endpoint_is_none(&observed) && !endpoint_equal(&observed, &f->observed))
            path__on_self_moved(pp, pair, now);
        on_alive(pp, now);
        if (path_liveness_on_agreement(
                &pp->liveness, (f->flags & PATH_FRAME_IN_USE) != 0, pp->choice.sent.pair != 0, now))
            path__settle(pp, pair, now);
        /* Left, with the socket of its own that it had, it is gone. */
        pair = path__pair_find(pp, in->socket, &in->from);
    }
    if (pair)
        path__on_measured(pp, pair, now);
}

static void on_probe_ack(struct path *pp, const struct path_frame *f, size_t len, nsec_t now)
{
    struct paths_item *item;

    if (path__on_fits(pp, f->transaction, f->size, now))
        return;
    item = paths__add(pp->owner, pp, PATH_ACTION_FITS);
    if (!item)
        return;
    item->action.probe = f->transaction;
    item->action.size = f->size;
    item->action.is_whole = len >= f->size;
}

/* Frames that count only within a run that is proven fresh. */
static void on_fresh(struct path *pp, const struct path_arrival *in, const struct path_frame *f,
    size_t len, nsec_t now)
{
    struct path_pair *pair = path__pair_add(pp, CANDIDATE_HEARD, &in->from, in->socket);

    if (!pair)
        return;
    pair->contact.heard_at = now;
    learn_local(pp, pair, in, now);
    switch (f->kind) {
    case PATH_FRAME_NOMINATE:
        pair->contact.agreed = f->sequence;
        path__on_nominate(pp, pair, f->transaction, now);
        break;
    case PATH_FRAME_ACCEPT:
        pair->contact.agreed = f->sequence;
        path__on_accept(pp, pair, f->transaction, now);
        break;
    case PATH_FRAME_LEAVE:
        /* A frame with a smaller sequence was sent before the two ends last agreed on a pair. */
        if (f->sequence > pair->contact.agreed)
            path__on_leave(pp, pair, f->flags, now);
        break;
    case PATH_FRAME_PROBE:
        path__answer(pp, in, f, len, now);
        break;
    case PATH_FRAME_PROBE_ACK:
        on_probe_ack(pp, f, len, now);
        break;
    case PATH_FRAME_NONE:
    case PATH_FRAME_PING:
    case PATH_FRAME_PONG:
    case PATH_FRAME_N:
        break;
    }
}

void path__on_frame(struct path *pp, const struct path_keys *keys, const struct path_arrival *in,
    uint8_t *msg, size_t len, nsec_t now)
{
    struct paths_counters *c = &pp->owner->counters;
    struct path_frame f;
    bool is_known;

    if (!path__wants_direct(pp) || !path__owns_socket(pp, in->socket))
        return;
    if (!path_frame_open(keys, msg, len, &f)) {
        c->refused_seal++;
        return;
    }
    is_known = f.session == pp->receiving.session;
    if (is_known && !seq_window_take(&pp->receiving.sequences, f.sequence)) {
        c->refused_replay++;
        return;
    }
    c->frames_received++;
    if (f.kind == PATH_FRAME_PING)
        on_ping(pp, in, &f, is_known, len, now);
    else if (f.kind == PATH_FRAME_PONG)
        on_pong(pp, in, &f, now);
    else if (is_known && f.echo == pp->owner->session)
        on_fresh(pp, in, &f, len, now);
    else
        c->refused_replay++;
}
