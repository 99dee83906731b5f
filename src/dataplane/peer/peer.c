/* peer.c - see peer.h. */
#include "peer/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drop.h"
#include "base/secret.h"
#include "shared/device_state.h"
#include "shared/port_state.h"

static uint64_t key_hash(const struct device *d, const struct x25519_public *public)
{
    return hash_bytes(d->by_key.seed, public->b, sizeof(public->b));
}

int peer_new(struct peer **ret, struct device *d, const struct x25519_public *public)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    int r;

    if (!peer)
        return -ENOMEM;
    r = htab_add(&d->by_key, &peer->by_key, key_hash(d, public));
    if (r == 0) {
        r = poll_list_add(&d->port->polls);
        if (r < 0)
            htab_remove(&d->by_key, &peer->by_key);
    }
    if (r < 0) {
        free(peer);
        return r;
    }
    d->n_peers++;
    list_add_tail(&d->peers, &peer->siblings);
    peer->device = d;
    noise_remote_init(&peer->remote, &noise_profile_wireguard, &d->local, public);
    noise_remote_set_choice(&peer->remote, d->cipher);
    keypairs_init(&peer->keypairs);
    timers_init(&peer->timers);
    (void)pthread_mutex_init(&peer->lock, NULL);
    *ret = peer;
    return 0;
}

static void forget_next(struct peer *peer)
{
    if (!peer->next)
        return;
    htab_remove(&peer->device->by_next_key, &peer->next->by_key);
    free(peer->next);
    peer->next = NULL;
}

void peer_unlink(struct peer *peer)
{
    struct device *d = peer->device;

    peer->is_unlinked = true;
    allowedips_remove_owner(&d->allowed, &peer->allowed);
    htab_remove(&d->by_key, &peer->by_key);
    forget_next(peer);
    list_remove(&peer->siblings);
    poll_list_remove(&d->port->polls, &peer->poll);
    d->n_peers--;
}

void peer_free(struct peer *peer)
{
    struct drops ignored = {0};

    peer_drop_staged(peer, &ignored);
    keypairs_deinit(&peer->keypairs);
    (void)pthread_mutex_destroy(&peer->lock);
    secret_wipe(peer, sizeof(*peer));
    free(peer);
}

struct peer *peer_find(const struct device *d, const struct x25519_public *public)
{
    uint64_t hash = key_hash(d, public);

    for (struct htab_link *l = htab_first(&d->by_key, hash); l; l = htab_next(l, hash)) {
        struct peer *peer = container_of(l, struct peer, by_key);

        if (x25519_public_equal(&peer->remote.public, public))
            return peer;
    }
    return NULL;
}

struct peer *peer_find_next(const struct device *d, const struct x25519_public *public)
{
    uint64_t hash = key_hash(d, public);

    for (struct htab_link *l = htab_first(&d->by_next_key, hash); l; l = htab_next(l, hash)) {
        struct peer_next *next = container_of(l, struct peer_next, by_key);

        if (x25519_public_equal(&next->public, public))
            return next->peer;
    }
    return NULL;
}

int peer_set_next(struct peer *peer, const struct x25519_public *public)
{
    struct device *d = peer->device;
    struct peer_next *next = NULL;

    if (!x25519_public_is_none(public)) {
        next = calloc(1, sizeof(*next));
        if (!next)
            return -ENOMEM;
        next->public = *public;
        next->peer = peer;
        if (htab_add(&d->by_next_key, &next->by_key, key_hash(d, public)) != 0) {
            free(next);
            return -ENOMEM;
        }
    }
    forget_next(peer);
    peer->next = next;
    if (peer->has_greeted_next)
        secret_wipe(&peer->cookies, sizeof(peer->cookies));
    peer->has_greeted_next = false;
    return 0;
}

void peer_use_next(struct peer *peer)
{
    struct device *d = peer->device;
    struct x25519_public public = peer->next->public;

    htab_remove(&d->by_key, &peer->by_key);
    /* Cannot fail: the table has its chains. */
    (void)htab_add(&d->by_key, &peer->by_key, key_hash(d, &public));
    noise_remote_set_public(&peer->remote, &d->local, &public);
    forget_next(peer);
    /* A cookie that was given for the key before is none for this one. */
    if (!peer->has_greeted_next)
        secret_wipe(&peer->cookies, sizeof(peer->cookies));
    peer->has_greeted_next = false;
}

void peer_tell(struct peer *peer)
{
    struct port *p = peer->device->port;

    /* Also when it was there already: perhaps for something that could wait. */
    (void)poll_list_tell(&p->polls, &peer->poll);
    loop_wake(&p->loop);
}

void peer_tell_soon(struct peer *peer, nsec_t now)
{
    struct port *p = peer->device->port;

    if (poll_list_tell(&p->polls, &peer->poll))
        loop_wake_soon(&p->loop, now);
}

struct udp_path peer_copy_path(struct peer *peer, const struct udp_path *which)
{
    struct udp_path path;

    (void)pthread_mutex_lock(&peer->lock);
    path = *which;
    (void)pthread_mutex_unlock(&peer->lock);
    return path;
}

/* Under the peer's lock. */
static bool is_held(const struct peer *peer, bool begins)
{
    enum pin pin = atomic_load_explicit(&peer->pin, memory_order_relaxed);
    bool can_be = pin == PIN_FIXED || (pin == PIN_SESSION && !begins);

    return can_be && !endpoint_is_none(&peer->path.remote) &&
           atomic_load_explicit(&peer->device->port->frames.is_there, memory_order_relaxed);
}

/* Under the peer's lock. True when it is another one, whose route is to be looked at. */
static bool take_path(struct peer *peer, const struct udp_path *path)
{
    if (udp_path_equal(&peer->path, path))
        return false;
    if (udp_path_equal(&peer->left, path)) {
        peer->path = (struct udp_path){.remote = path->remote};
        return false;
    }
    peer->path = *path;
    return true;
}

void peer_learn_path(struct peer *peer, const struct udp_path *path, bool begins)
{
    bool moved, is_new = false;

    (void)pthread_mutex_lock(&peer->lock);
    moved = !endpoint_equal(&peer->heard.remote, &path->remote);
    peer->heard = *path;
    if (endpoint_equal(&peer->path.remote, &path->remote) || !is_held(peer, begins))
        is_new = take_path(peer, path);
    (void)pthread_mutex_unlock(&peer->lock);
    if (moved)
        atomic_store(&peer->has_moved, true);
    if (is_new)
        atomic_store(&peer->has_new_path, true);
    if (moved || is_new)
        peer_tell(peer);
}

void peer_retire(struct peer *peer, const struct keypairs_evicted *evicted)
{
    struct arrivals gone = keypairs_evicted_arrivals(evicted);

    arrivals_add(&peer->arrivals, &gone);
    retire_keypairs(peer->device->port, evicted);
}

struct arrivals peer_arrivals(struct peer *peer, nsec_t now)
{
    struct arrivals sum = keypairs_arrivals(&peer->keypairs, now);

    arrivals_add(&sum, &peer->arrivals);
    /* What came although it had been given up is balanced by what is lost next. */
    if (sum.lost < peer->lost_most)
        sum.lost = peer->lost_most;
    peer->lost_most = sum.lost;
    return sum;
}

void staged_free(struct staged_packet *list)
{
    while (list) {
        struct staged_packet *next = list->next;

        free(list);
        list = next;
    }
}

void peer_stage(struct peer *peer, const uint8_t *p, uint16_t len, uint8_t tos, struct drops *drops)
{
    struct staged_packet *s = malloc(sizeof(*s) + len), *evicted = NULL;
    struct staged *q = &peer->staged;

    if (!s) {
        drop_count(drops, DROP_NO_BUFFER, 1);
        return;
    }
    *s = (struct staged_packet){.len = len, .tos = tos};
    memcpy(s->data, p, len);
    (void)pthread_mutex_lock(&peer->lock);
    if (q->last)
        q->last->next = s;
    else
        q->first = s;
    q->last = s;
    if (atomic_fetch_add(&q->n, 1) == STAGED_MAX) {
        evicted = q->first;
        q->first = evicted->next;
        evicted->next = NULL;
        atomic_fetch_sub(&q->n, 1);
    }
    (void)pthread_mutex_unlock(&peer->lock);
    if (evicted) {
        drop_count(drops, DROP_NO_KEYPAIR, 1);
        staged_free(evicted);
    }
}

void peer_drop_staged(struct peer *peer, struct drops *drops)
{
    struct staged_packet *list;

    (void)pthread_mutex_lock(&peer->lock);
    list = peer->staged.first;
    drop_count(drops, DROP_NO_KEYPAIR, atomic_load(&peer->staged.n));
    peer->staged.first = peer->staged.last = NULL;
    atomic_store(&peer->staged.n, 0);
    (void)pthread_mutex_unlock(&peer->lock);
    staged_free(list);
}
