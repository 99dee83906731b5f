/* path_pair.c - what was tried for an edge, and how it measured. */
#include <stdlib.h>

#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths.h"
#include "path/paths_internal.h"

/* ---- pairs ----------------------------------------------------------------------------------- */

/* A pong makes a pair valid for this time. */
#define VALID_FOR (4 * NSEC_PER_SEC)
/* The share of lost pings counts from so many pings on. */
#define LOSS_SAMPLES 20
/* So many lost in a row are an outage, of which a path dies (path_liveness.c), and no loss. */
#define OUTAGE_PINGS 4
/* What was lost lately is of so many pings. */
#define LATELY 16
/* Round trips that differ by less, or by a smaller share, count as equal. */
#define RTT_MARGIN           (5 * NSEC_PER_MSEC)
#define LOSS_MARGIN_PERMILLE 20

struct path_pair *path__pair_find(
    const struct path *pp, uint32_t socket, const struct endpoint *remote)
{
    for (unsigned i = 0; i < pp->pairs.n; i++)
        if (pp->pairs.items[i].socket == socket &&
            endpoint_equal(&pp->pairs.items[i].remote.endpoint, remote))
            return &pp->pairs.items[i];
    return NULL;
}

struct path_pair *path__pair_of(const struct path *pp, uint32_t id)
{
    for (unsigned i = 0; id != 0 && i < pp->pairs.n; i++)
        if (pp->pairs.items[i].id == id)
            return &pp->pairs.items[i];
    return NULL;
}

static bool is_in_use(const struct path *pp, const struct path_pair *pair)
{
    return pair->id == pp->choice.pair || pair->id == pp->choice.sent.pair ||
           pair->id == pp->choice.received.pair;
}

static void remove_pair(struct path *pp, struct path_pair *pair)
{
    *pair = pp->pairs.items[--pp->pairs.n];
}

/* The pair that gives way to a new one: not in use, no candidate, the longest without a pong. */
static struct path_pair *least_wanted(struct path *pp)
{
    struct path_pair *worst = NULL;

    for (unsigned i = 0; i < pp->pairs.n; i++) {
        struct path_pair *pair = &pp->pairs.items[i];

        if (is_in_use(pp, pair) || pair->remote.kind != CANDIDATE_HEARD)
            continue;
        if (!worst || pair->valid_at < worst->valid_at ||
            (pair->valid_at == worst->valid_at && pair->id < worst->id))
            worst = pair;
    }
    return worst;
}

static bool make_space(struct path *pp)
{
    if (pp->pairs.n == PATHS_PAIRS_MAX) {
        struct path_pair *worst = least_wanted(pp);

        if (!worst)
            return false;
        remove_pair(pp, worst);
    }
    if (pp->pairs.n == pp->pairs.cap) {
        unsigned cap = pp->pairs.cap ? 2 * pp->pairs.cap : 4;
        struct path_pair *pairs = realloc(pp->pairs.items, cap * sizeof(*pairs));

        if (!pairs)
            return false;
        pp->pairs.items = pairs;
        pp->pairs.cap = cap;
    }
    return true;
}

struct path_pair *path__pair_add(
    struct path *pp, enum candidate_kind kind, const struct endpoint *remote, uint32_t socket)
{
    struct path_pair *pair = path__pair_find(pp, socket, remote);

    if (pair) {
        if (kind < pair->remote.kind)
            pair->remote.kind = kind;
        return pair;
    }
    if (!candidate_is_possible(remote) ||
        candidate_blocks_have(&pp->owner->blocks, &remote->addr) || !make_space(pp))
        return NULL;
    pair = &pp->pairs.items[pp->pairs.n++];
    *pair = (struct path_pair){
        .id = ++pp->pairs.last_id, .socket = socket, .remote = {.kind = kind, .endpoint = *remote}};
    return pair;
}

void path__pairs_take_side(struct path *pp)
{
    const struct candidates *c = &pp->side.candidates;

    for (unsigned i = pp->pairs.n; i-- > 0;) {
        struct path_pair *pair = &pp->pairs.items[i];

        if (pair->socket != PATH_SOCKET_MAIN || candidates_find(c, &pair->remote.endpoint))
            continue;
        if (is_in_use(pp, pair) || pair->is_answered)
            pair->remote.kind = CANDIDATE_HEARD;
        else
            remove_pair(pp, pair);
    }
    for (unsigned i = 0; i < c->n; i++)
        (void)path__pair_add(pp, c->items[i].kind, &c->items[i].endpoint, PATH_SOCKET_MAIN);
}

void path__pairs_drop_blocked(struct path *pp)
{
    for (unsigned i = pp->pairs.n; i-- > 0;)
        if (candidate_blocks_have(&pp->owner->blocks, &pp->pairs.items[i].remote.endpoint.addr))
            remove_pair(pp, &pp->pairs.items[i]);
}

void path__pairs_drop_socket(struct path *pp, uint32_t socket)
{
    for (unsigned i = pp->pairs.n; i-- > 0;)
        if (pp->pairs.items[i].socket == socket)
            remove_pair(pp, &pp->pairs.items[i]);
}

void path__pairs_drop_silent(struct path *pp)
{
    for (unsigned i = pp->pairs.n; i-- > 0;) {
        struct path_pair *pair = &pp->pairs.items[i];

        if (pair->remote.kind == CANDIDATE_HEARD && !pair->is_answered && !is_in_use(pp, pair))
            remove_pair(pp, pair);
    }
}

/* ---- measurements --------------------------------------------------------------------------- */

static void learn_ping_end(struct path_pair *pair, bool lost)
{
    pair->lost = pair->lost << 1 | (lost ? 1 : 0);
    pair->n_ends++;
    if (pair->n_known < 64)
        pair->n_known++;
}

void path__pair_on_ping(struct path_pair *pair, uint64_t transaction, nsec_t now)
{
    struct path_ping *slot = &pair->pings[pair->next_ping];

    if (slot->sent_at != 0 && slot->lost_as == 0)
        learn_ping_end(pair, true);
    *slot = (struct path_ping){.transaction = transaction, .sent_at = now};
    pair->next_ping = (pair->next_ping + 1) % PATH_PINGS_MAX;
    pair->tried_at = now;
    pair->is_answered = false;
    pair->n_pings++;
}

/* A pong says that the pings before the one that it answers are lost, or will be late. */
static void end_earlier(struct path_pair *pair, const struct path_ping *answered)
{
    for (unsigned i = 0; i < PATH_PINGS_MAX; i++) {
        struct path_ping *slot = &pair->pings[i];

        if (slot->sent_at != 0 && slot->lost_as == 0 && slot->transaction < answered->transaction) {
            learn_ping_end(pair, true);
            slot->lost_as = pair->n_ends;
        }
    }
}

/* The pair works again after an outage, whose losses say nothing about how good it is. */
static void forget_outage(struct path_pair *pair)
{
    unsigned run = pair->lost == UINT64_MAX ? 64 : (unsigned)__builtin_ctzll(~pair->lost);

    if (run < OUTAGE_PINGS)
        return;
    /* What is still counted as lost stays so. */
    for (unsigned i = 0; i < PATH_PINGS_MAX; i++)
        if (pair->pings[i].lost_as != 0)
            pair->pings[i].sent_at = 0;
    pair->lost = run < 64 ? pair->lost >> run : 0;
    pair->n_known -= run < pair->n_known ? run : pair->n_known;
    pair->n_samples = 0;
}

/* The outstanding ping that a pong answers; NULL: there is none. */
static struct path_ping *find_ping(struct path_pair *pair, const struct path_frame *pong)
{
    for (unsigned i = 0; i < PATH_PINGS_MAX; i++) {
        struct path_ping *slot = &pair->pings[i];

        if (slot->sent_at != 0 && slot->transaction == pong->transaction &&
            (uint64_t)slot->sent_at == pong->clock)
            return slot;
    }
    return NULL;
}

/* Halves of the two windows. The shorter one is as long as the time in which a relay is measured
 * anew (agent/paths/socket/local_candidates.c), so that what is compared was measured at one time.
 */
#define LEAST_HALF  (600 * NSEC_PER_SEC)
#define RECENT_HALF (30 * NSEC_PER_SEC)

static void learn_least(struct path_least *l, nsec_t rtt, nsec_t half, nsec_t now)
{
    nsec_t age = now - l->since;

    if (l->since == 0 || age >= half) {
        l->values[1] = l->since != 0 && age < 2 * half ? l->values[0] : 0;
        l->values[0] = 0;
        l->since = now;
    }
    if (l->values[0] == 0 || rtt < l->values[0])
        l->values[0] = rtt;
}

nsec_t path__least(const struct path_least *l)
{
    if (l->values[0] == 0 || l->values[1] == 0)
        return l->values[0] + l->values[1];
    return nsec_min(l->values[0], l->values[1]);
}

bool path__pair_on_pong(
    struct path_pair *pair, const struct path_frame *pong, nsec_t at, nsec_t now)
{
    struct path_ping *slot = find_ping(pair, pong);
    nsec_t rtt;

    if (!slot)
        return false;
    /* A ping that was taken to be lost is answered after all. */
    if (slot->lost_as != 0) {
        uint64_t since = pair->n_ends - slot->lost_as;

        if (since < 64)
            pair->lost &= ~(UINT64_C(1) << since);
        slot->sent_at = 0;
        pair->n_pongs++;
        return false;
    }
    rtt = at - slot->sent_at - (nsec_t)pong->held_us * NSEC_PER_USEC;
    rtt = nsec_max(rtt, NSEC_PER_USEC);
    end_earlier(pair, slot);
    slot->sent_at = 0;
    forget_outage(pair);
    /* It may be another way now. */
    if (pair->valid_at == 0) {
        pair->n_samples = pair->n_known = 0;
        pair->least.since = pair->recent.since = 0;
    }
    learn_ping_end(pair, false);
    /* Of the first measurements the smallest counts: where many paths begin at once, the others
     * also have the time for which the two ends were busy. */
    if (pair->n_samples == 0)
        pair->rtt = rtt;
    else if (pair->n_samples < PATH_SAMPLES_SURE)
        pair->rtt = nsec_min(pair->rtt, rtt);
    else
        pair->rtt = (3 * pair->rtt + rtt) / 4;
    pair->last_rtt = rtt;
    pair->n_samples++;
    learn_least(&pair->least, rtt, LEAST_HALF, now);
    learn_least(&pair->recent, rtt, RECENT_HALF, now);
    pair->n_round_pongs++;
    pair->n_pongs++;
    pair->valid_at = pair->answered_at = now;
    pair->is_answered = true;
    return true;
}

void path__pair_on_death(struct path_pair *pair)
{
    pair->valid_at = 0;
    pair->n_samples = 0;
    pair->is_answered = false;
}

bool path__pair_is_valid(const struct path_pair *pair, nsec_t now)
{
    return pair->valid_at != 0 && now - pair->valid_at <= VALID_FOR;
}

/* Share of its last @n pings that were lost, @n being at most 64, in thousandths. */
static unsigned lost_of(const struct path_pair *pair, unsigned n)
{
    uint64_t mask = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;

    return n == 0 ? 0 : (unsigned)__builtin_popcountll(pair->lost & mask) * 1000 / n;
}

unsigned path__pair_loss(const struct path_pair *pair)
{
    return lost_of(pair, pair->n_known);
}

unsigned path__pair_lost_lately(const struct path_pair *pair)
{
    return lost_of(pair, pair->n_known < LATELY ? pair->n_known : LATELY);
}

enum path_kind path__pair_kind(const struct path_pair *pair)
{
    return candidate_is_private(&pair->remote.endpoint.addr) ? PATH_KIND_LAN : PATH_KIND_DIRECT;
}

static int pair_rank(const struct path_pair *pair)
{
    /* Packets of an additional socket are copied by the agent, those of the main socket are not. */
    return (path__pair_kind(pair) == PATH_KIND_LAN ? 2 : 0) +
           (pair->socket == PATH_SOCKET_MAIN ? 1 : 0);
}

bool path__pair_is_better(const struct path_pair *a, const struct path_pair *b)
{
    unsigned loss_a = path__pair_loss(a);
    unsigned loss_b = path__pair_loss(b);
    nsec_t margin = nsec_max(RTT_MARGIN, nsec_max(a->rtt, b->rtt) / 5);

    if (a->n_known >= LOSS_SAMPLES && b->n_known >= LOSS_SAMPLES) {
        if (loss_a + LOSS_MARGIN_PERMILLE <= loss_b)
            return true;
        if (loss_b + LOSS_MARGIN_PERMILLE <= loss_a)
            return false;
    }
    if (a->rtt + margin <= b->rtt)
        return true;
    if (b->rtt + margin <= a->rtt)
        return false;
    return pair_rank(a) > pair_rank(b);
}

enum path_verdict path__pair_verdict(const struct path *pp, const struct path_pair *pair)
{
    if (pair->id == pp->choice.pair)
        return PATH_VERDICT_CHOSEN;
    if (pair->record.has_died && pair->valid_at == 0)
        return PATH_VERDICT_DIED;
    if (pair->tried_at == 0)
        return PATH_VERDICT_UNTRIED;
    if (pair->n_round_pongs > 0 || pair->is_answered)
        return PATH_VERDICT_WORKS;
    return pp->checks.round.next_at != NSEC_NEVER ? PATH_VERDICT_TRYING : PATH_VERDICT_SILENT;
}

/* ---- frames out ------------------------------------------------------------------------------ */

/* Each is put into the node's queue, which its owner empties. */

static struct paths_item *queue_frame(
    struct path *pp, enum path_frame_kind kind, uint32_t socket, const struct endpoint *remote)
{
    struct paths_item *item = paths__add(pp->owner, pp, PATH_ACTION_SEND);

    if (!item)
        return NULL;
    item->action.socket = socket;
    item->action.remote = *remote;
    item->action.len = PATH_FRAME_MIN;
    item->frame.kind = kind;
    item->frame.session = pp->owner->session;
    item->frame.echo = pp->receiving.session;
    item->frame.sequence = ++pp->sending.sequence;
    pp->sending.n_frames++;
    return item;
}

/* NULL: no memory. */
static struct paths_item *queue_ping(
    struct path *pp, uint32_t socket, const struct endpoint *remote, nsec_t now)
{
    struct paths_item *item = queue_frame(pp, PATH_FRAME_PING, socket, remote);

    if (!item)
        return NULL;
    item->frame.transaction = ++pp->sending.transaction;
    item->frame.clock = (uint64_t)now;
    if (pp->choice.is_moved)
        item->frame.flags |= PATH_FRAME_MOVED;
    return item;
}

bool path__may_ping(struct path *pp, const struct path_pair *pair, unsigned n, nsec_t now)
{
    /* What is sent to a pair by which the peer has answered lately is not counted against its
     * address. */
    if (pair->answered_at != 0 && now - pair->answered_at < DESTINATIONS_ANSWERED_FOR)
        return true;
    return paths__may_send(pp->owner, &pair->remote.endpoint, n, false, now);
}

void path__ping(struct path *pp, struct path_pair *pair, nsec_t now)
{
    struct paths_item *item = queue_ping(pp, pair->socket, &pair->remote.endpoint, now);

    if (!item)
        return;
    item->action.local = pair->contact.local;
    if (pair->is_answered)
        item->frame.flags |= PATH_FRAME_ANSWERED;
    path__pair_on_ping(pair, pp->sending.transaction, now);
}

void path__open(struct path *pp, const struct path_pair *pair, uint8_t hops, nsec_t now)
{
    struct paths_item *item = queue_ping(pp, pair->socket, &pair->remote.endpoint, now);

    if (!item)
        return;
    item->action.local = pair->contact.local;
    item->action.hops = hops;
}

void path__ping_loose(struct path *pp, uint32_t socket, const struct endpoint *remote, nsec_t now)
{
    (void)queue_ping(pp, socket, remote, now);
    pp->sending.n_guesses++;
    pp->owner->counters.guesses++;
}

void path__tell(struct path *pp, const struct path_pair *pair, enum path_frame_kind kind,
    uint8_t flags, uint64_t transaction, nsec_t now)
{
    struct paths_item *item = queue_frame(pp, kind, pair->socket, &pair->remote.endpoint);

    if (!item)
        return;
    item->action.local = pair->contact.local;
    item->frame.flags = flags;
    item->frame.transaction = transaction;
    item->frame.clock = (uint64_t)now;
}

bool path__probe(
    struct path *pp, const struct path_pair *pair, uint16_t size, uint64_t *ret_probe, nsec_t now)
{
    struct paths_item *item =
        queue_frame(pp, PATH_FRAME_PROBE, pair->socket, &pair->remote.endpoint);

    if (!item)
        return false;
    item->action.local = pair->contact.local;
    item->action.len = size;
    item->action.dont_fragment = true;
    /* What a relay passes on to this node has to fit, too. */
    if (pp->peer.is_relay)
        item->frame.flags |= PATH_FRAME_WHOLE;
    item->frame.transaction = ++pp->sending.transaction;
    item->frame.clock = (uint64_t)now;
    *ret_probe = pp->sending.transaction;
    return true;
}

void path__answer(struct path *pp, const struct path_arrival *in, const struct path_frame *f,
    size_t len, nsec_t now)
{
    bool is_probe = f->kind == PATH_FRAME_PROBE;
    const struct path_pair *pair = path__pair_find(pp, in->socket, &in->from);
    struct paths_item *item;
    nsec_t held = now - in->at;

    if (!paths__may_answer(pp->owner, now))
        return;
    item =
        queue_frame(pp, is_probe ? PATH_FRAME_PROBE_ACK : PATH_FRAME_PONG, in->socket, &in->from);
    if (!item)
        return;
    item->action.local = in->local;
    item->frame.transaction = f->transaction;
    item->frame.echo = f->session;
    item->frame.clock = f->clock;
    item->frame.held_us = held > 0 && held < NSEC_PER_SEC ? (uint32_t)(held / NSEC_PER_USEC) : 0;
    item->frame.observed = in->from;
    item->frame.size = is_probe ? (uint16_t)len : 0;
    if (is_probe && (f->flags & PATH_FRAME_WHOLE)) {
        item->action.len = len;
        item->action.dont_fragment = true;
    }
    if (pair && pair->id == pp->choice.pair)
        item->frame.flags |= PATH_FRAME_IN_USE;
}
