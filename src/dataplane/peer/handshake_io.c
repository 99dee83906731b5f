/* handshake_io.c - see peer.h. */
#include "peer/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drop.h"
#include "base/rate.h"
#include "base/secret.h"
#include "os/clock.h"
#include "os/log.h"
#include "peer/relay_device.h"
#include "peer/sender.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "wire/wg.h"

/* Of one source, as the Linux kernel has it. */
#define PROVEN_EACH  (NSEC_PER_SEC / 20)
#define PROVEN_BURST 5

struct handshake_limits {
    struct ratelimit cookies;      /* of messages with a right cookie, by source */
    struct log_limit mismatch_log; /* of peers that want another cipher */
};

int handshake_limits_new(struct handshake_limits **ret, const struct rng *rng)
{
    struct handshake_limits *limits = calloc(1, sizeof(*limits));

    if (!limits)
        return -ENOMEM;
    ratelimit_init(&limits->cookies, PROVEN_EACH, PROVEN_BURST, rng_u64(rng));
    *ret = limits;
    return 0;
}

struct handshake_limits *handshake_limits_free(struct handshake_limits *limits)
{
    if (limits)
        ratelimit_deinit(&limits->cookies);
    free(limits);
    return NULL;
}

static void drop(struct port *p, enum drop_reason reason)
{
    drop_count(&p->drops, reason, 1);
}

/* ---- keys ---- */

static const struct noise_local *our_key(const struct device *d, struct key_choice keys)
{
    return keys.is_our_next ? &d->next->local : &d->local;
}

static const struct x25519_public *their_key(const struct peer *peer, struct key_choice keys)
{
    return keys.is_their_next ? &peer->next->public : &peer->remote.public;
}

/*
 * The keys of the next initiation: first those that both ends are to use. While nobody answers, the
 * other ones take turns with them, as the peer may have changed its key, or not know ours, without
 * our having heard of it.
 */
static struct key_choice choose_keys(const struct peer *peer)
{
    bool has_two = peer->next != NULL;
    bool has_ours = peer->device->next && peer->device->initiates_with_next;
    bool is_their_turn = has_two && peer->n_unanswered % 2 == 1;
    bool is_our_turn = has_ours && peer->n_unanswered / (has_two ? 2 : 1) % 2 == 1;

    return (struct key_choice){
        .is_our_next = has_ours && peer->keeps_to_our_key == is_our_turn,
        .is_their_next = has_two && peer->next->is_heard != is_their_turn,
    };
}

/** A peer as it is under the keys of one handshake. */
struct under {
    struct noise_remote *remote; /* pins: the peer's own, or @other */
    struct noise_remote other;
};

/* Until under_end(). */
static void under_begin(struct under *u, struct peer *peer, struct key_choice keys)
{
    u->remote = &peer->remote;
    if (!keys.is_our_next && !keys.is_their_next)
        return;
    u->remote = &u->other;
    noise_remote_under(
        &u->other, &peer->remote, our_key(peer->device, keys), their_key(peer, keys));
}

static void under_end(struct under *u, struct peer *peer)
{
    if (u->remote == &peer->remote)
        return;
    noise_remote_remember(&peer->remote, &u->other);
    secret_wipe(&u->other, sizeof(u->other));
}

/* ---- sending ---- */

/* A handshake message, at once, by @path. */
static void send_at_once(struct sender *s, const struct udp_path *path, const void *msg, size_t len)
{
    struct udp_run run = {
        .len = (uint32_t)len, .seg = (uint16_t)len, .tos = WG_HANDSHAKE_TOS, .path = *path};

    sender_flush(s);
    memcpy(s->space, msg, len);
    run.buf = s->space;
    udp_outbox_add(&s->out, port_state_sockets(s->port), &run);
    sender_flush(s);
}

static void send_message(struct peer *peer, struct key_choice keys, const struct udp_path *path,
    void *msg, size_t len, nsec_t now)
{
    struct port *p = peer->device->port;

    cookie_add_macs(&peer->cookies, their_key(peer, keys), msg, len, now);
    peer->has_greeted_next = keys.is_their_next;
    if (endpoint_is_none(&path->remote)) {
        drop(p, DROP_NO_ENDPOINT);
        return;
    }
    send_at_once(p->sender, path, msg, len);
    peer_count(&peer->tx_bytes, len);
}

void handshake_io_abandon(struct peer *peer)
{
    if (peer->handshake.state != HANDSHAKE_STATE_NONE)
        index_release(&peer->device->port->index, peer->handshake.local_index);
    handshake_clear(&peer->handshake);
    peer->begun = (struct key_choice){.is_our_next = false};
}

/* An index for a session with @peer that nothing else on the port has. */
static int take_index(struct peer *peer, uint32_t *ret)
{
    const struct device_listener *l = &peer->device->listener;
    struct port *p = peer->device->port;
    int r = index_take(&p->index, peer, &p->rng, ret);

    while (
        r == 0 && ((l->is_index_taken && l->is_index_taken(l->ctx, &peer->remote.public, *ret)) ||
                      relay_device_has_index(peer, *ret))) {
        index_release(&p->index, *ret);
        r = index_take(&p->index, peer, &p->rng, ret);
    }
    return r;
}

/* Below this a clock may go back for other reasons than that it was set. */
#define CLOCK_SLACK NSEC_PER_SEC

/*
 * The time of an initiation. A peer that was removed and added again has forgotten nothing, but we
 * have: if the clock was set back meanwhile it gets a time after all that anybody was sent.
 */
static nsec_t date(const struct peer *peer)
{
    const struct port *p = peer->device->port;
    struct tai64n_bounds bounds = p->stamps;
    nsec_t sent = tai64n_wall(&p->stamped);
    nsec_t wall = clock_wall();

    if (tai64n_wall(&peer->remote.sent) == 0 && wall < sent - CLOCK_SLACK)
        bounds.above = nsec_max(bounds.above, sent);
    return tai64n_bound(&bounds, wall);
}

void handshake_io_initiate(struct peer *peer, nsec_t now)
{
    struct udp_path path = peer_copy_path(peer, &peer->path);
    struct device *d = peer->device;
    struct port *p = d->port;
    struct key_choice keys = choose_keys(peer);
    struct wg_initiation msg;
    struct under under;
    uint32_t index;
    int r;

    /* Told even when it fails, so that the next attempt is a timeout away. */
    timers_on_initiation_sent(&peer->timers, now, &p->rng);
    handshake_io_abandon(peer);
    if (take_index(peer, &index) < 0) {
        drop(p, DROP_NO_BUFFER);
        return;
    }
    peer->n_unanswered++;
    under_begin(&under, peer, keys);
    r = handshake_create_initiation(
        &peer->handshake, our_key(d, keys), under.remote, index, date(peer), &p->rng, &msg);
    under_end(&under, peer);
    if (r != 0) {
        index_release(&p->index, index);
        return;
    }
    peer->begun = keys;
    if (tai64n_compare(&peer->remote.sent, &p->stamped) > 0)
        p->stamped = peer->remote.sent;
    send_message(peer, keys, &path, &msg, sizeof(msg), now);
}

void handshake_io_begin_again(struct peer *peer)
{
    bool is_begun = peer->handshake.state != HANDSHAKE_STATE_NONE;

    handshake_io_abandon(peer);
    if (is_begun && peer->device->link.is_up)
        handshake_io_initiate(peer, clock_now());
}

/* ---- sessions ---- */

/* A finished handshake becomes a keypair in its slot; without memory its index is given back. */
static bool begin_session(
    struct peer *peer, struct handshake *hs, struct key_choice keys, nsec_t now)
{
    struct port *p = peer->device->port;
    const struct aead_algorithm *alg = p->aead[hs->profile->transport];
    struct keypairs_evicted evicted;
    struct keypair *kp;

    if (handshake_derive(hs, alg, peer, now, &kp) != 0) {
        drop(p, DROP_NO_BUFFER);
        index_release(&p->index, hs->local_index);
        handshake_clear(hs);
        return false;
    }
    index_publish(&p->index, kp);
    keypairs_add(&peer->keypairs, kp, &evicted);
    peer_retire(peer, &evicted);
    timers_on_session_derived(&peer->timers, now);
    peer->n_unanswered = 0;
    peer->has_session_under_next = keys.is_our_next;
    /* Only who has that key can have come so far. */
    if (keys.is_their_next)
        peer->next->is_heard = true;
    return true;
}

void handshake_io_session_ready(struct peer *peer, nsec_t now)
{
    const struct device_listener *l = &peer->device->listener;
    struct udp_path path;

    peer->handshake_wall = clock_wall();
    sender_add_staged(peer->device->port->sender, peer, now);
    path = peer_copy_path(peer, &peer->heard);
    relay_device_on_heard(peer, &path);
    if (l->on_session)
        l->on_session(l->ctx, &peer->remote.public, &path);
}

/* ---- messages in ---- */

/*
 * Back to where the initiation came from, also when the peer is pinned elsewhere: a relay on the
 * way learns from the response whose packets it will carry.
 */
static void send_response(struct peer *peer, struct key_choice keys,
    const struct noise_remote *remote, struct handshake *hs, const struct udp_path *path,
    nsec_t now)
{
    struct port *p = peer->device->port;
    struct wg_response msg;
    uint32_t index;

    if (take_index(peer, &index) < 0) {
        drop(p, DROP_NO_BUFFER);
        return;
    }
    if (handshake_create_response(hs, remote, index, &p->rng, &msg) != 0) {
        index_release(&p->index, index);
        drop(p, DROP_HANDSHAKE_INVALID);
        return;
    }
    if (!begin_session(peer, hs, keys, now))
        return;
    timers_on_response_sent(&peer->timers, now);
    send_message(peer, keys, path, &msg, sizeof(msg), now);
}

/* Only the responder can know this, so it says so in its log. The initiator gets no answer, as it
 * would not from any other failed handshake. */
static void on_mismatch(struct peer *peer, const struct noise_profile *wanted,
    const struct handshake_msg *m, nsec_t now)
{
    struct port *p = peer->device->port;
    char key[X25519_BASE64_MAX], ep[ENDPOINT_TEXT_MAX], choice[NOISE_CHOICE_TEXT_MAX];

    drop(p, DROP_CIPHER_MISMATCH);
    log_limited(&p->limits->mismatch_log, now, LOG_LEVEL_WARNING,
        "%s: peer %s at %s wants a session in %s, and is configured here for %s",
        peer->device->name, x25519_public_format(&peer->remote.public, key),
        endpoint_format(&m->path.remote, ep), aead_cipher_names[wanted->transport],
        noise_choice_format(noise_remote_choice(&peer->remote), choice));
}

/*
 * An authentic initiation that is older than one before is a replay, or its sender has started
 * again with a clock that went back: its initiations stay refused until that clock has caught up.
 * Ours are not, so without a session we begin one ourselves, where we know the peer to be. A
 * replay gains nothing by that: it moves no endpoint, and nothing is sent while a session lives.
 * True when one is wanted.
 */
static bool on_stale_initiation(struct peer *peer, nsec_t now)
{
    struct keypair *kp = keypairs_acquire_current(&peer->keypairs);
    bool can_send = kp && keypair_can_send(kp, now);

    (void)keypair_unref(kp);
    drop(peer->device->port, DROP_HANDSHAKE_INVALID);
    if (can_send)
        return false;
    (void)timers_on_rekey_wanted(&peer->timers);
    return true;
}

/*
 * The answer is a handshake of its own, which is over when this returns: one that we have begun
 * goes on. If both ends begin at the same time and each gave up its own for the other's, neither
 * could take the response to it, and they would be silent until one repeats five seconds later.
 * This way both come about, and each end sends under one and receives under both.
 */
static struct peer *take_initiation(struct device *d, const struct handshake_msg *m, nsec_t now)
{
    struct key_choice keys = {.is_our_next = m->is_to_next && d->next};
    struct handshake_incoming in;
    struct handshake answer;
    struct wg_initiation msg;
    struct under under;
    struct peer *peer;
    bool is_due = false;
    int r;

    handshake_clear(&answer);
    memcpy(&msg, m->msg, sizeof(msg));
    if (handshake_open_initiation(our_key(d, keys), noise_profiles, NOISE_PROFILE_N, &msg, &in) !=
        0) {
        drop(d->port, DROP_HANDSHAKE_INVALID);
        return NULL;
    }
    peer = peer_find(d, &in.public);
    if (!peer) {
        peer = peer_find_next(d, &in.public);
        keys.is_their_next = true;
    }
    if (!peer) {
        drop(d->port, DROP_UNKNOWN_PEER);
        goto out;
    }
    under_begin(&under, peer, keys);
    r = handshake_consume_initiation(&answer, under.remote, &in, now);
    if (r == HANDSHAKE_E_PROFILE)
        on_mismatch(peer, in.profile, m, now);
    else if (r == HANDSHAKE_E_REPLAY)
        is_due = on_stale_initiation(peer, now);
    else if (r != 0)
        drop(d->port, DROP_HANDSHAKE_INVALID);
    if (r == 0) {
        peer_count(&peer->rx_bytes, sizeof(msg));
        timers_on_other_received(&peer->timers, now);
        peer_learn_path(peer, &m->path, false);
        send_response(peer, keys, under.remote, &answer, &m->path, now);
        is_due = true;
    }
    under_end(&under, peer);
out:
    handshake_clear(&answer);
    secret_wipe(&in, sizeof(in));
    return is_due ? peer : NULL;
}

static struct peer *take_response(struct device *d, const struct handshake_msg *m, nsec_t now)
{
    const struct noise_profile *profile;
    struct wg_response msg;
    struct peer *peer;

    memcpy(&msg, m->msg, sizeof(msg));
    peer = index_peer(&d->port->index, le32_get(msg.receiver));
    if (!peer || peer->device != d) {
        drop(d->port, DROP_UNKNOWN_INDEX);
        return NULL;
    }
    if (peer->handshake.local_index != le32_get(msg.receiver) ||
        handshake_consume_response(
            &peer->handshake, our_key(d, peer->begun), &peer->remote, &msg) != 0) {
        drop(d->port, DROP_HANDSHAKE_INVALID);
        return NULL;
    }
    peer_count(&peer->rx_bytes, sizeof(msg));
    timers_on_other_received(&peer->timers, now);
    peer_learn_path(peer, &m->path, true);
    profile = peer->handshake.profile;
    if (!begin_session(peer, &peer->handshake, peer->begun, now))
        return NULL;
    timers_on_handshake_complete(&peer->timers, now);
    /* The peer's cipher was changed while this was under way: the next session has the new one. */
    if (profile != peer->remote.profile)
        (void)timers_on_rekey_wanted(&peer->timers);
    /* The responder may not send before it has heard from us under the new keys (5.4.5). */
    if (atomic_load(&peer->staged.n) == 0)
        (void)sender_keepalive(d->port->sender, peer, now);
    handshake_io_session_ready(peer, now);
    return peer;
}

static void take_cookie_reply(struct port *p, const struct handshake_msg *m, nsec_t now)
{
    struct wg_cookie_reply msg;
    struct peer *peer;

    memcpy(&msg, m->msg, sizeof(msg));
    peer = index_peer(&p->index, le32_get(msg.receiver));
    if (!peer)
        drop(p, DROP_UNKNOWN_INDEX);
    else if (!cookie_consume_reply(&peer->cookies,
                 their_key(peer, (struct key_choice){.is_their_next = peer->has_greeted_next}),
                 &msg, now))
        drop(p, DROP_COOKIE_INVALID);
    else
        peer_count(&peer->rx_bytes, sizeof(msg));
}

static void send_cookie(struct port *p, const struct handshake_msg *m, nsec_t now)
{
    struct device *d = m->device;
    struct cookie_checker *checker = &d->checker;
    struct wg_cookie_reply reply;

    if (cookie_checker_is_stale(&d->checker, now)) {
        gate_close(&p->gate);
        cookie_checker_refresh(&d->checker, now, &p->rng);
        gate_open(&p->gate);
    }
    if (m->is_to_next && d->next) {
        checker = &d->next->checker;
        cookie_checker_share(checker, &d->checker);
    }
    if (cookie_create_reply(checker, m->msg, m->len, &m->path.remote, now, &p->rng, &reply))
        send_at_once(p->sender, &m->path, &reply, sizeof(reply));
}

/* Under load: may this message go on? If not, it was answered with a cookie, or dropped. */
static bool is_admitted(struct port *p, const struct handshake_msg *m, nsec_t now)
{
    if (!m->is_proven) {
        drop(p, DROP_UNDER_LOAD);
        send_cookie(p, m, now);
        return false;
    }
    if (!ratelimit_allow(&p->limits->cookies, &m->path.remote.addr, now)) {
        drop(p, DROP_RATE_LIMITED);
        return false;
    }
    return true;
}

/* Returns the peer that has something to do now; NULL: none. */
static struct peer *take(struct port *p, const struct handshake_msg *m, nsec_t now)
{
    if (!m->device) {
        take_cookie_reply(p, m, now);
        return NULL;
    }
    if (!m->device->link.is_up ||
        (handshake_queue_note_load(&p->handshakes, now) && !is_admitted(p, m, now)))
        return NULL;
    if (m->len == sizeof(struct wg_initiation))
        return take_initiation(m->device, m, now);
    return take_response(m->device, m, now);
}

/* ---- the queue ---- */

bool handshake_io_take_next(struct port *p, nsec_t now, struct peer **ret_due)
{
    struct handshake_msg *m = mpsc_pop(&p->handshakes.ring);

    if (!m)
        return false;
    *ret_due = take(p, m, now);
    handshake_queue_done(&p->handshakes, m);
    return true;
}
