/* paths.c - the edges of a node: tables, deadlines, and where events go. */
#include "path/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "crypto/hash.h"
#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"

/*
 * Number of mappings that guessing may make in this node's own NAT, and the time after which as
 * many may be made again. NATs keep an unanswered mapping for two to five minutes (RFC 4787
 * section 4.3), and have room for some thousands.
 */
#define PATHS_MAPPINGS_MAX  1024
#define PATHS_MAPPINGS_TIME (120 * NSEC_PER_SEC)

#define FRAMES_PER_SECOND  400
#define ANSWERS_PER_SECOND 1000
#define GUESS_SOCKETS      256

static struct paths_bucket bucket_make(unsigned per_second, unsigned otherwise)
{
    unsigned rate = per_second ? per_second : otherwise;

    return (struct paths_bucket){.interval = NSEC_PER_SEC / rate, .burst = NSEC_PER_SEC};
}

int paths_new(struct paths **ret, const struct paths_options *opt, nsec_t now)
{
    struct paths *p = calloc(1, sizeof(*p));

    (void)now;
    if (!p)
        return -ENOMEM;
    if (!x25519_derive_public(&opt->secret, &p->public)) {
        free(p);
        return -EINVAL;
    }
    p->secret = opt->secret;
    memcpy(p->name, opt->name, sizeof(p->name));
    p->rng = opt->rng;
    while (p->session == 0)
        p->session = rng_u64(&p->rng);
    p->relay_is_usable = true;
    p->budget.begin = bucket_make(opt->frames_per_second, FRAMES_PER_SECOND);
    p->budget.mappings = (struct paths_bucket){
        .interval = PATHS_MAPPINGS_TIME / PATHS_MAPPINGS_MAX, .burst = PATHS_MAPPINGS_TIME};
    p->budget.answer = bucket_make(opt->answers_per_second, ANSWERS_PER_SECOND);
    p->budget.to.seed = rng_u64(&p->rng);
    p->guessing.sockets_max = opt->guess_sockets ? opt->guess_sockets : GUESS_SOCKETS;
    htab_init(&p->by_key, rng_u64(&p->rng));
    htab_init(&p->by_tag, rng_u64(&p->rng));
    *ret = p;
    return 0;
}

static void path_free(struct path *pp)
{
    secret_wipe(&pp->keys, sizeof(pp->keys));
    free(pp->pairs.items);
    free(pp->guess.present);
    free(pp->round_trips);
    free(pp);
}

struct paths *paths_free(struct paths *p)
{
    struct htab_link *link = NULL;
    struct path *before = NULL;
    size_t cursor = 0;

    if (!p)
        return NULL;
    /* The walk reads the link of the last one to get to the next, so that is removed a step
     * later. */
    while ((link = htab_each(&p->by_key, &cursor, link))) {
        if (before)
            path_free(before);
        before = container_of(link, struct path, by_key);
    }
    if (before)
        path_free(before);
    htab_deinit(&p->by_key);
    htab_deinit(&p->by_tag);
    heap_deinit(&p->timers);
    paths__queue_deinit(p);
    free(p->notices);
    secret_wipe(p, sizeof(*p));
    free(p);
    return NULL;
}

uint64_t path_pair_tag(const struct x25519_public *a, const struct x25519_public *b)
{
    bool in_order = x25519_public_compare(a, b) < 0;
    const struct x25519_public *first = in_order ? a : b;
    const struct x25519_public *second = in_order ? b : a;
    struct blake2s_digest digest;
    uint64_t tag = 0;

    blake2s_hash(first->b, sizeof(first->b), second->b, sizeof(second->b), &digest);
    for (unsigned i = 0; i < sizeof(tag); i++)
        tag = tag << 8 | digest.b[i];
    return tag;
}

/* ---- tables --------------------------------------------------------------------------------- */

static uint64_t path_key_hash(const struct paths *p, const struct x25519_public *key)
{
    return hash_bytes(p->by_key.seed, key->b, sizeof(key->b));
}

static uint64_t tag_hash(const struct paths *p, const struct path_tag *tag)
{
    return hash_bytes(p->by_tag.seed, tag->b, sizeof(tag->b));
}

static struct path *find_path(const struct paths *p, const struct x25519_public *key)
{
    uint64_t hash = path_key_hash(p, key);

    for (struct htab_link *l = htab_first(&p->by_key, hash); l; l = htab_next(l, hash)) {
        struct path *pp = container_of(l, struct path, by_key);

        if (x25519_public_equal(&pp->peer.key, key))
            return pp;
    }
    return NULL;
}

static struct path *find_tag(const struct paths *p, const struct path_tag *tag)
{
    uint64_t hash = tag_hash(p, tag);

    for (struct htab_link *l = htab_first(&p->by_tag, hash); l; l = htab_next(l, hash)) {
        struct path *pp = container_of(l, struct path, by_tag);

        if (secret_equal(&pp->keys.receive_tag, tag, sizeof(*tag)))
            return pp;
    }
    return NULL;
}

/* What path__use_relay() sets anew is not set here. */
static int add_path(struct paths *p, const struct path_peer *peer, struct path **ret)
{
    struct path *pp = calloc(1, sizeof(*pp));
    uint64_t phase = 0;
    int r = -ENOMEM;

    if (!pp)
        return r;
    pp->owner = p;
    if (!path_keys_derive(&pp->keys, &p->secret, &p->public, &peer->key)) {
        free(pp);
        return -EINVAL;
    }
    pp->nominates = x25519_public_compare(&p->public, &peer->key) < 0;
    pp->tag = path_pair_tag(&p->public, &peer->key);
    /* The same at both ends: both tags come from the shared secret. */
    for (unsigned i = 0; i < sizeof(pp->keys.send_tag.b); i++)
        phase = phase * 257 + (uint64_t)(pp->keys.send_tag.b[i] ^ pp->keys.receive_tag.b[i]);
    pp->slot.phase = (nsec_t)(phase % (uint64_t)(3600 * NSEC_PER_SEC));
    pp->checks.round.next_at = NSEC_NEVER;
    /* Room for its deadline is reserved now, so that arming it later cannot fail. */
    if (heap_reserve(&p->timers, p->by_key.n + 1) < 0 ||
        htab_add(&p->by_key, &pp->by_key, path_key_hash(p, &peer->key)) < 0)
        goto fail;
    if (htab_add(&p->by_tag, &pp->by_tag, tag_hash(p, &pp->keys.receive_tag)) < 0) {
        htab_remove(&p->by_key, &pp->by_key);
        goto fail;
    }
    *ret = pp;
    return 0;
fail:
    path_free(pp);
    return r;
}

/* After whatever changed one of the edge's deadlines. */
static void path_rearm(struct path *pp)
{
    nsec_t due =
        nsec_min(pp->checks.round.next_at, nsec_min(pp->liveness.next_at, pp->slot.next_at));

    if (pp->choice.sent.pair != 0)
        due = nsec_min(due, pp->choice.sent.next_at);
    if (pp->choice.pair == 0 && pp->nominates && pp->choice.choose_at > pp->ticked_at)
        due = nsec_min(due, pp->choice.choose_at);
    due = nsec_min(due, nsec_min(pp->choice.alarm_at, path__port_guess_due(pp)));
    if (pp->choice.pair == 0)
        due = nsec_min(due, pp->relay.move_at);
    /* Room was reserved when the edge was added. */
    (void)heap_set(&pp->owner->timers, &pp->timer, due);
}

int paths_put_peer(struct paths *p, const struct path_peer *peer, nsec_t now)
{
    struct path *pp = find_path(p, &peer->key);
    bool is_new = !pp;
    int r = is_new ? add_path(p, peer, &pp) : 0;
    bool is_same;

    if (r < 0)
        return r;
    is_same = !is_new && pp->peer.policy == peer->policy;
    pp->peer = *peer;
    if (is_same)
        return 0;
    if (peer->policy != PATH_POLICY_DIRECT)
        path__end_alarm(pp, "it may be relayed now");
    if (!path__wants_direct(pp)) {
        path__checks_stop(pp);
        path__port_guess_end(pp);
    }
    if (is_new || !path__wants_direct(pp))
        path__use_relay(pp, NULL, now);
    else if (pp->choice.pair == 0)
        path__use_relay(pp, NULL, pp->choice.since);
    path__slot_plan(pp, now);
    path__checks_start(pp, true, now);
    path_rearm(pp);
    return 0;
}

void paths_remove_peer(struct paths *p, const struct x25519_public *key, nsec_t now)
{
    struct path *pp = find_path(p, key);
    const struct path_pair *pair;

    (void)now;
    if (!pp)
        return;
    path__port_guess_end(pp);
    pair = path__pair_of(pp, pp->choice.pair);
    if (pair && pair->socket != PATH_SOCKET_MAIN)
        path__close_socket(pp, pair->socket);
    paths__forget(p, pp);
    htab_remove(&p->by_key, &pp->by_key);
    htab_remove(&p->by_tag, &pp->by_tag);
    heap_remove(&p->timers, &pp->timer);
    path_free(pp);
}

/* ---- deadlines ------------------------------------------------------------------------------ */

nsec_t paths_due(const struct paths *p)
{
    return heap_due(&p->timers);
}

void paths_tick(struct paths *p, nsec_t now)
{
    struct heap_link *link;

    while ((link = heap_pop_due(&p->timers, now))) {
        struct path *pp = container_of(link, struct path, timer);

        pp->ticked_at = now;
        path__chosen_tick(pp, now);
        path__nominate_tick(pp, now);
        path__slot_tick(pp, now);
        path__checks_tick(pp, now);
        path__port_guess_tick(pp, now);
        if (now >= pp->relay.move_at)
            path__check_relay(pp, now);
        path_rearm(pp);
    }
}

/* ---- events --------------------------------------------------------------------------------- */

/* Calls @fn for every edge, then plans its deadlines anew. */
static void for_each_path(struct paths *p, void (*fn)(struct path *pp, nsec_t now), nsec_t now)
{
    struct htab_link *link = NULL;
    size_t cursor = 0;

    while ((link = htab_each(&p->by_key, &cursor, link))) {
        struct path *pp = container_of(link, struct path, by_key);

        fn(pp, now);
        path_rearm(pp);
    }
}

void paths_set_clock(struct paths *p, nsec_t offset, nsec_t now)
{
    nsec_t change = offset - p->clock_offset;

    /* What differs by less is the jitter of a measurement. */
    if (change < 100 * NSEC_PER_MSEC && change > -100 * NSEC_PER_MSEC)
        return;
    p->clock_offset = offset;
    for_each_path(p, path__slot_plan, now);
}

static void self_changed(struct path *pp, nsec_t now)
{
    path__checks_restart(pp, now);
    path__check_relay(pp, now);
}

/* Pings soon on a path that is in use, so that the peer hears of our new address. */
static void address_changed(struct path *pp, nsec_t now)
{
    path_liveness_suspect(&pp->liveness, now);
    self_changed(pp, now);
}

static void blocks_changed(struct path *pp, nsec_t now)
{
    const struct path_pair *chosen = path__pair_of(pp, pp->choice.pair);

    if (chosen && candidate_blocks_have(&pp->owner->blocks, &chosen->remote.endpoint.addr))
        path__use_relay(
            pp, "the direct path leads through an overlay now; through the relay again", now);
    path__pairs_drop_blocked(pp);
    if (pp->has_side)
        path__pairs_take_side(pp);
}

void paths_set_blocks(struct paths *p, const struct candidate_blocks *blocks, nsec_t now)
{
    if (candidate_blocks_equal(&p->blocks, blocks))
        return;
    p->blocks = *blocks;
    for_each_path(p, blocks_changed, now);
}

void paths_set_self(struct paths *p, const struct path_side *self, nsec_t now)
{
    bool has_moved = !candidates_equal(&self->candidates, &p->self.candidates);
    bool is_new = has_moved || self->generation != p->self.generation;

    if (path__announces_relay(&p->self, self))
        for_each_path(p, path__release_relay, now);
    p->self = *self;
    if (has_moved)
        p->self_changed_at = now;
    for_each_path(p, has_moved ? address_changed : is_new ? self_changed : path__check_relay, now);
}

void paths_set_peer_side(
    struct paths *p, const struct x25519_public *key, const struct path_side *side, nsec_t now)
{
    struct path *pp = find_path(p, key);
    bool is_new;

    if (!pp)
        return;
    is_new = !pp->has_side || side->generation != pp->side.generation ||
             !candidates_equal(&side->candidates, &pp->side.candidates);
    if (path__announces_relay(&pp->side, side))
        path__release_relay(pp, now);
    pp->side = *side;
    pp->has_side = true;
    if (is_new) {
        path__pairs_take_side(pp);
        path__slot_plan(pp, now);
        path__checks_restart(pp, now);
    }
    path__check_relay(pp, now);
    path_rearm(pp);
}

void paths_on_frame(
    struct paths *p, const struct path_arrival *in, uint8_t *frame, size_t len, nsec_t now)
{
    struct path_tag tag;
    struct path *pp = path_frame_read_tag(frame, len, &tag) ? find_tag(p, &tag) : NULL;

    if (!pp) {
        p->counters.refused_tag++;
        return;
    }
    path__on_frame(pp, in, frame, len, now);
    path_rearm(pp);
}

/* The next slot, with none to be skipped any more. */
static void slot_restart(struct path *pp, nsec_t now)
{
    pp->slot.backoff = 0;
    path__slot_plan(pp, now);
}

void paths_on_traffic(
    struct paths *p, const struct x25519_public *key, uint64_t rx, uint64_t tx, nsec_t now)
{
    struct path *pp = find_path(p, key);

    if (!pp)
        return;
    paths_load_count(&p->load, &pp->traffic, rx, tx, now);
    /* Data begins to flow, which both ends see at the same time: both begin a round. */
    if (path_traffic_count(&pp->traffic, rx, tx, now)) {
        struct path_liveness_facts facts = path__liveness_facts(pp, now);

        path_liveness_on_data(&pp->liveness, &facts, now);
        path__begin_relay(pp, now);
        slot_restart(pp, now);
        if (pp->choice.pair == 0)
            path__checks_start(pp, true, now);
    }
    path_rearm(pp);
}

bool paths_keep(
    struct paths *p, const struct x25519_public *key, const struct endpoint *at, nsec_t now)
{
    struct path *pp = find_path(p, key);

    if (!pp || !path__wants_direct(pp) || pp->choice.pair != 0)
        return false;
    path__keep(pp, at, now);
    path_rearm(pp);
    return pp->choice.pair != 0;
}

void paths_on_received(struct paths *p, const struct x25519_public *key, nsec_t since, nsec_t now)
{
    struct path *pp = find_path(p, key);

    if (pp && pp->choice.pair != 0)
        path_liveness_on_received(&pp->liveness, since, now);
}

/* The chosen pair may be gone, and there may be better ones. */
static void network_changed(struct path *pp, nsec_t now)
{
    /* Our former address may not work any more; without one the kernel chooses. */
    for (unsigned i = 0; i < pp->pairs.n; i++) {
        struct path_pair_contact *contact = &pp->pairs.items[i].contact;

        contact->left = contact->local;
        contact->local = (struct ip_addr){0};
    }
    path_liveness_suspect(&pp->liveness, now);
    path__checks_start(pp, true, now);
}

void paths_on_network_change(struct paths *p, nsec_t now)
{
    p->changed_at = now;
    for_each_path(p, network_changed, now);
}

void paths_on_relay(struct paths *p, bool usable, nsec_t now)
{
    if (p->relay_is_usable == usable)
        return;
    p->relay_is_usable = usable;
    for_each_path(p, slot_restart, now);
}

static bool are_notices(const struct paths *p, const struct paths_notice *notices, size_t n)
{
    bool same = p->n_notices == n;

    for (size_t i = 0; same && i < n; i++)
        same = x25519_public_equal(&p->notices[i].relay, &notices[i].relay) &&
               path_relay_notice_equal(&p->notices[i].notice, &notices[i].notice);
    return same;
}

int paths_set_notices(struct paths *p, const struct paths_notice *notices, size_t n, nsec_t now)
{
    struct paths_notice *copy;

    if (are_notices(p, notices, n))
        return 0;
    copy = calloc(n + 1, sizeof(*copy));
    if (!copy)
        return -ENOMEM;
    if (n > 0)
        memcpy(copy, notices, n * sizeof(*copy));
    free(p->notices);
    p->notices = copy;
    p->n_notices = n;
    for_each_path(p, path__check_relay, now);
    return 0;
}

void paths_leave_sockets(struct paths *p, nsec_t now)
{
    for_each_path(p, path__leave_socket, now);
}

void paths_on_relayed(
    struct paths *p, const struct x25519_public *key, const struct x25519_public *relay, nsec_t now)
{
    struct path *pp = find_path(p, key);

    if (!pp)
        return;
    path__on_relayed(pp, relay, now);
    path_rearm(pp);
}

void paths_on_socket(struct paths *p, uint32_t socket, bool opened)
{
    struct paths_item *item;

    if (p->guessing.edge) {
        path__port_guess_on_socket(p->guessing.edge, socket, opened);
        return;
    }
    /* The socket was opened for a guess that has ended meanwhile. */
    item = opened ? paths__add(p, NULL, PATH_ACTION_CLOSE) : NULL;
    if (item)
        item->action.socket = socket;
}

bool paths_probe(struct paths *p, const struct x25519_public *key, uint16_t size,
    uint64_t *ret_probe, nsec_t now)
{
    struct path *pp = find_path(p, key);
    const struct path_pair *pair = pp ? path__pair_of(pp, pp->choice.pair) : NULL;

    if (!pair || size < PATH_FRAME_MIN || size > PATH_FRAME_MAX || pp->receiving.session == 0)
        return false;
    (void)paths__reserve(p, 1, now);
    return path__probe(pp, pair, size, ret_probe, now);
}

void paths_set_mtu(struct paths *p, const struct x25519_public *key, uint16_t mtu)
{
    struct path *pp = find_path(p, key);

    if (pp)
        pp->choice.mtu = pp->choice.pair != 0 ? mtu : 0;
}

uint16_t paths_relay_mtu(
    const struct paths *p, const struct x25519_public *key, const struct x25519_public *relay)
{
    const struct path *pp = find_path(p, key);

    return pp ? path__relay_mtu(pp, relay) : 0;
}

/* ---- for people ----------------------------------------------------------------------------- */

bool paths_view(
    const struct paths *p, const struct x25519_public *key, struct path_view *ret, nsec_t now)
{
    const struct path *pp = find_path(p, key);
    const struct path_pair *pair = pp ? path__pair_of(pp, pp->choice.pair) : NULL;
    struct path_relay via;

    if (!pp)
        return false;
    *ret = (struct path_view){.peer = pp->peer,
        .since = pp->choice.since,
        .died_at = pp->choice.died_at,
        .is_better = path__relay_is_better(pp, now),
        .n_frames = pp->sending.n_frames,
        .n_guesses = pp->sending.n_guesses};
    path__explain(pp, ret->why, now);
    if (pair) {
        ret->kind = path__pair_kind(pair);
        ret->remote = pair->remote.endpoint;
        ret->socket = pair->socket;
        ret->rtt = pair->rtt;
        ret->least_rtt = path__least(&pair->least);
        ret->loss_permille = path__pair_loss(pair);
        ret->lost_lately_permille = path__pair_lost_lately(pair);
        ret->answered_at = pair->answered_at;
        if (pp->round_trips && pp->round_trips->pair == pair->id) {
            ret->spread = rtt_track_spread(pp->round_trips, now);
            ret->longer = rtt_track_longer(pp->round_trips, now);
        }
        return true;
    }
    ret->kind = pp->peer.policy == PATH_POLICY_OFF ? PATH_KIND_NONE : PATH_KIND_RELAY;
    ret->rtt = path__relay_rtt(pp, &via);
    ret->least_rtt = ret->rtt;
    ret->via = via.key;
    if (ret->kind == PATH_KIND_RELAY && via.is_stream)
        ret->kind = PATH_KIND_STREAM;
    ret->is_alarm = pp->choice.is_alarm;
    ret->is_relay_better = pp->choice.is_worse;
    return true;
}

size_t paths_pairs(
    const struct paths *p, const struct x25519_public *key, struct path_pair_view *ret, size_t cap)
{
    const struct path *pp = find_path(p, key);
    size_t n = 0;

    for (unsigned i = 0; pp && i < pp->pairs.n && n < cap; i++) {
        const struct path_pair *pair = &pp->pairs.items[i];

        ret[n++] = (struct path_pair_view){
            .remote = pair->remote,
            .socket = pair->socket,
            .verdict = path__pair_verdict(pp, pair),
            .rtt = pair->rtt,
            .loss_permille = path__pair_loss(pair),
            .tried_at = pair->tried_at,
            .n_pings = pair->n_pings,
            .n_pongs = pair->n_pongs,
        };
    }
    return n;
}

size_t paths_relays(
    const struct paths *p, const struct x25519_public *key, struct path_relay_view *ret, size_t cap)
{
    const struct path *pp = find_path(p, key);

    return pp ? path__relays(pp, ret, cap) : 0;
}

const struct paths_counters *paths_counters(const struct paths *p)
{
    return &p->counters;
}
