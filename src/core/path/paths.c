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
    secret_wipe(&pp->known, sizeof(pp->known));
    if (pp->more)
        secret_wipe(pp->more, PATH_KNOWN_MORE * sizeof(*pp->more));
    free(pp->more);
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

static struct path_known *find_tag(const struct paths *p, const struct path_tag *tag)
{
    uint64_t hash = tag_hash(p, tag);

    for (struct htab_link *l = htab_first(&p->by_tag, hash); l; l = htab_next(l, hash)) {
        struct path_known *k = container_of(l, struct path_known, by_tag);

        if (secret_equal(&k->keys.receive_tag, tag, sizeof(*tag)))
            return k;
    }
    return NULL;
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* Of frames under other keys than those of the first; up to PATH_KNOWN_MORE into @ret. */
static int derive_more(const struct path *pp, const struct x25519_public *key,
    const struct x25519_public *other, struct path_keys ret[static PATH_KNOWN_MORE],
    unsigned *ret_n)
{
    const struct paths *p = pp->owner;
    const struct x25519_secret *secrets[] = {&p->secret, &p->other_secret};
    const struct x25519_public *own[] = {&p->public, &p->other_public};
    const struct x25519_public *theirs[] = {key, other};
    unsigned n = 0;

    for (unsigned i = 1; i < 4; i++) {
        if (x25519_public_is_none(own[i & 1]) || x25519_public_is_none(theirs[i >> 1]))
            continue;
        if (!path_keys_derive(&ret[n], secrets[i & 1], own[i & 1], theirs[i >> 1]))
            return -EINVAL;
        n++;
    }
    *ret_n = n;
    return 0;
}

static void forget_known(struct paths *p, struct path_known *k)
{
    if (k->path)
        htab_remove(&p->by_tag, &k->by_tag);
    secret_wipe(k, sizeof(*k));
}

static int learn_known(struct path *pp, struct path_known *k, const struct path_keys *keys)
{
    int r;

    k->keys = *keys;
    r = htab_add(&pp->owner->by_tag, &k->by_tag, tag_hash(pp->owner, &keys->receive_tag));
    k->path = r == 0 ? pp : NULL;
    return r;
}

/* What both ends compute of the keys that their frames go under. */
static void apply_keys(struct path *pp)
{
    const struct path_keys *keys = &pp->known.keys;
    uint64_t phase = 0;

    pp->nominates = x25519_public_compare(&pp->owner->public, &pp->peer.key) < 0;
    pp->tag = path_pair_tag(&pp->owner->public, &pp->peer.key);
    /* Both tags come from the shared secret. */
    for (unsigned i = 0; i < sizeof(keys->send_tag.b); i++)
        phase = phase * 257 + (uint64_t)(keys->send_tag.b[i] ^ keys->receive_tag.b[i]);
    pp->slot.phase = (nsec_t)(phase % (uint64_t)(3600 * NSEC_PER_SEC));
}

/* Takes the edge's keys anew from the owner's and those of the peer, @key and @other, whose are
 * none of another edge. Nothing changes on failure but that frames under fewer keys may be taken.
 */
static int set_keys(
    struct path *pp, const struct x25519_public *key, const struct x25519_public *other)
{
    struct paths *p = pp->owner;
    struct path_keys first;
    struct path_keys more[PATH_KNOWN_MORE];
    unsigned n = 0;
    int r = -EINVAL;

    if (!path_keys_derive(&first, &p->secret, &p->public, key))
        goto out;
    r = derive_more(pp, key, other, more, &n);
    if (r == 0 && n > 0 && !pp->more) {
        pp->more = calloc(PATH_KNOWN_MORE, sizeof(*pp->more));
        r = pp->more ? 0 : -ENOMEM;
    }
    if (r < 0)
        goto out;
    for (unsigned i = 0; pp->more && i < PATH_KNOWN_MORE; i++)
        forget_known(p, &pp->more[i]);
    forget_known(p, &pp->known);
    /* The table has room for what was taken out of it; of more it may take less. */
    r = learn_known(pp, &pp->known, &first);
    for (unsigned i = 0; r == 0 && i < n; i++)
        r = learn_known(pp, &pp->more[i], &more[i]);
    if (pp->more && n == 0) {
        free(pp->more);
        pp->more = NULL;
    }
    pp->peer.key = *key;
    pp->other = *other;
    apply_keys(pp);
out:
    secret_wipe(&first, sizeof(first));
    secret_wipe(more, sizeof(more));
    return r;
}

/* What path__use_relay() sets anew is not set here. */
static int add_path(struct paths *p, const struct path_peer *peer, struct path **ret)
{
    static const struct x25519_public none = {{0}};
    struct path *pp = calloc(1, sizeof(*pp));
    int r;

    if (!pp)
        return -ENOMEM;
    pp->owner = p;
    pp->checks.round.next_at = NSEC_NEVER;
    r = set_keys(pp, &peer->key, &none);
    /* Room for its deadline is reserved now, so that arming it later cannot fail. */
    if (r == 0 && (heap_reserve(&p->timers, p->by_key.n + 1) < 0 ||
                      htab_add(&p->by_key, &pp->by_key, path_key_hash(p, &peer->key)) < 0))
        r = -ENOMEM;
    if (r == 0) {
        *ret = pp;
        return 0;
    }
    for (unsigned i = 0; pp->more && i < PATH_KNOWN_MORE; i++)
        forget_known(p, &pp->more[i]);
    forget_known(p, &pp->known);
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
    for (unsigned i = 0; pp->more && i < PATH_KNOWN_MORE; i++)
        forget_known(p, &pp->more[i]);
    forget_known(p, &pp->known);
    heap_remove(&p->timers, &pp->timer);
    path_free(pp);
}

/* The edge of which @key is one of the peer's. */
static const struct path *find_any(const struct paths *p, const struct x25519_public *key)
{
    struct htab_link *link = NULL;
    size_t cursor = 0;

    while ((link = htab_each(&p->by_key, &cursor, link))) {
        const struct path *pp = container_of(link, struct path, by_key);

        if (x25519_public_equal(&pp->peer.key, key) || x25519_public_equal(&pp->other, key))
            return pp;
    }
    return NULL;
}

int paths_set_peer_keys(struct paths *p, const struct x25519_public *was,
    const struct x25519_public *key, const struct x25519_public *other, nsec_t now)
{
    static const struct x25519_public none = {{0}};
    struct path *pp = find_path(p, was);
    const struct path *of_key;
    const struct path *of_other;
    int r;

    if (!pp)
        return 0;
    of_key = find_any(p, key);
    of_other = other ? find_any(p, other) : NULL;
    if ((of_key && of_key != pp) || (of_other && of_other != pp))
        return -EINVAL;
    r = set_keys(pp, key, other ? other : &none);
    if (x25519_public_equal(&pp->peer.key, was))
        return r;
    htab_remove(&p->by_key, &pp->by_key);
    /* Cannot fail: the table has its chains. */
    (void)htab_add(&p->by_key, &pp->by_key, path_key_hash(p, &pp->peer.key));
    path__slot_plan(pp, now);
    path_rearm(pp);
    return r;
}

int paths_set_own_keys(struct paths *p, const struct x25519_secret *secret,
    const struct x25519_secret *other, nsec_t now)
{
    struct x25519_public public;
    struct x25519_public other_public = {{0}};
    struct htab_link *link = NULL;
    size_t cursor = 0;
    int r = 0;

    if (!x25519_derive_public(secret, &public) ||
        (other && !x25519_derive_public(other, &other_public)))
        return -EINVAL;
    p->secret = *secret;
    p->public = public;
    secret_wipe(&p->other_secret, sizeof(p->other_secret));
    if (other)
        p->other_secret = *other;
    p->other_public = other_public;
    while ((link = htab_each(&p->by_key, &cursor, link))) {
        struct path *pp = container_of(link, struct path, by_key);
        int failed = set_keys(pp, &pp->peer.key, &pp->other);

        r = failed < 0 ? failed : r;
        path__slot_plan(pp, now);
        path_rearm(pp);
    }
    return r;
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
    struct path_known *k = path_frame_read_tag(frame, len, &tag) ? find_tag(p, &tag) : NULL;

    if (!k) {
        p->counters.refused_tag++;
        return;
    }
    path__on_frame(k->path, &k->keys, in, frame, len, now);
    path_rearm(k->path);
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
