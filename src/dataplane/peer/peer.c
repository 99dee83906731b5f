/* peer.c - see peer.h. */
#include "peer/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/drop.h"
#include "net/netlink/link_watch.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "peer/handshake_io.h"
#include "peer/relay_device.h"
#include "peer/sender.h"
#include "shared/device_state.h"
#include "shared/gates.h"
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
    handshake_clear(&peer->handshake);
    cookie_maker_init(&peer->cookies);
    keypairs_init(&peer->keypairs);
    timers_init(&peer->timers);
    (void)pthread_mutex_init(&peer->lock, NULL);
    *ret = peer;
    return 0;
}

void peer_unlink(struct peer *peer)
{
    struct device *d = peer->device;

    peer->is_unlinked = true;
    allowedips_remove_owner(&d->allowed, &peer->allowed);
    htab_remove(&d->by_key, &peer->by_key);
    list_remove(&peer->siblings);
    poll_list_remove(&d->port->polls, &peer->poll);
    d->n_peers--;
}

void peer_free(struct peer *peer)
{
    struct drops ignored = {0};

    peer_drop_staged(peer, &ignored);
    noise_remote_deinit(&peer->remote);
    handshake_clear(&peer->handshake);
    cookie_maker_deinit(&peer->cookies);
    keypairs_deinit(&peer->keypairs);
    (void)pthread_mutex_destroy(&peer->lock);
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

struct udp_path peer_get_path(struct peer *peer)
{
    struct udp_path path;

    (void)pthread_mutex_lock(&peer->lock);
    path = peer->path;
    (void)pthread_mutex_unlock(&peer->lock);
    return path;
}

void peer_set_endpoint(struct peer *peer, const struct endpoint *ep)
{
    (void)pthread_mutex_lock(&peer->lock);
    peer->path = (struct udp_path){.remote = *ep};
    (void)pthread_mutex_unlock(&peer->lock);
}

struct udp_path peer_get_heard(struct peer *peer)
{
    struct udp_path heard;

    (void)pthread_mutex_lock(&peer->lock);
    heard = peer->heard;
    (void)pthread_mutex_unlock(&peer->lock);
    return heard;
}

void peer_set_left(struct peer *peer, const struct udp_path *path)
{
    (void)pthread_mutex_lock(&peer->lock);
    peer->left = path ? *path : (struct udp_path){.ifindex = 0};
    if (path && udp_path_equal(&peer->path, path))
        peer->path = (struct udp_path){.remote = path->remote};
    (void)pthread_mutex_unlock(&peer->lock);
}

struct udp_path peer_get_left(struct peer *peer)
{
    struct udp_path left;

    (void)pthread_mutex_lock(&peer->lock);
    left = peer->left;
    (void)pthread_mutex_unlock(&peer->lock);
    return left;
}

void peer_set_pin(struct peer *peer, enum pin pin)
{
    (void)pthread_mutex_lock(&peer->lock);
    peer->pin = pin;
    (void)pthread_mutex_unlock(&peer->lock);
}

enum pin peer_get_pin(struct peer *peer)
{
    enum pin pin;

    (void)pthread_mutex_lock(&peer->lock);
    pin = peer->pin;
    (void)pthread_mutex_unlock(&peer->lock);
    return pin;
}

/* Under the peer's lock. */
static bool is_held(const struct peer *peer, bool begins)
{
    bool can_be = peer->pin == PIN_FIXED || (peer->pin == PIN_SESSION && !begins);

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

void peer_forget_session(struct peer *peer)
{
    struct keypairs_evicted evicted;

    keypairs_clear(&peer->keypairs, &evicted);
    retire_keypairs(peer->device->port, &evicted);
    handshake_io_abandon(peer);
}

/* Keepalives wait for the caller's sender_flush(). */
static void poll_one(struct peer *peer, nsec_t now)
{
    struct port *p = peer->device->port;
    unsigned todo;

    if (!peer->device->link.is_up)
        return;
    todo = timers_poll(&peer->timers, now);
    if (todo & TIMERS_DROP_STAGED)
        peer_drop_staged(peer, &p->drops);
    if (todo & TIMERS_ZERO_KEYS)
        peer_forget_session(peer);
    if (todo & TIMERS_SEND_INITIATION)
        handshake_io_initiate(peer, now);
    if (todo & TIMERS_SEND_KEEPALIVE) {
        if (atomic_load(&peer->staged.n) > 0)
            sender_add_staged(p->sender, peer, now);
        if (!sender_add_keepalive(p->sender, peer, now) && timers_on_rekey_wanted(&peer->timers))
            peer_tell(peer);
    }
    poll_list_arm(&p->polls, &peer->poll, timers_due(&peer->timers));
}

void peer_poll(struct peer *peer, nsec_t now)
{
    poll_one(peer, now);
    sender_flush(peer->device->port->sender);
}

void peer_poll_due(struct port *p, nsec_t now)
{
    struct poll_link *link;

    while ((link = poll_list_pop_due(&p->polls, now)) != NULL)
        poll_one(container_of(link, struct peer, poll), now);
    sender_flush(p->sender);
}

static void tell_listener(struct peer *peer)
{
    const struct device_listener *l = &peer->device->listener;
    struct udp_path path = peer_get_heard(peer);

    relay_device_on_heard(peer, &path);
    if (l->on_path)
        l->on_path(l->ctx, &peer->remote.public, &path);
}

static void take_told(struct peer *peer, nsec_t now)
{
    if (peer->is_unlinked)
        return;
    if (atomic_exchange(&peer->has_moved, false))
        tell_listener(peer);
    if (atomic_exchange(&peer->has_new_path, false))
        source_addr_check(peer, now);
    if (atomic_exchange(&peer->has_confirmed, false))
        handshake_io_session_ready(peer, now);
    poll_one(peer, now);
}

void peer_poll_told(struct port *p)
{
    struct poll_link *link = poll_list_take_told(&p->polls);
    nsec_t now = clock_now();

    while (link) {
        struct peer *peer = container_of(link, struct peer, poll);

        link = poll_list_next_told(link);
        take_told(peer, now);
    }
    sender_flush(p->sender);
}

/* A change comes in several pieces, as a rule: the old route goes, the new one comes. */
#define SETTLE (100 * NSEC_PER_MSEC)

/* A check of all peers costs a question to the kernel for each: it is not made more often than
 * this, whatever goes on in the network. */
#define CHECK_EVERY NSEC_PER_SEC

struct source_addr {
    struct port *port;       /* pins */
    int fd;                  /* owns: news of routes; -1: none can be had */
    struct loop_event event; /* of fd */
    struct netlink nl;       /* for questions */
    nsec_t due;              /* of the next check of all peers; NSEC_NEVER: nothing is new */
    nsec_t checked_at;       /* when the last one was; 0: never */
};

/** Is the interface by which packets to a place leave the one by which packets from there came? */
enum way {
    WAY_UNKNOWN, /* there is no route at present, or it cannot be asked for */
    WAY_SAME,
    WAY_OTHER,
};

static enum way find_way(struct port *p, const struct udp_path *path)
{
    struct rtnl_flow flow = {.to = path->remote,
        .from = path->local,
        .from_port = p->sockets.listen_port,
        .fwmark = p->sockets.fwmark};
    unsigned ifindex;

    /* A link-local address has but one interface. */
    if (!p->source->nl.socket || ip_addr_is_none(&path->local) || path->ifindex == 0 ||
        ip_addr_is_link_local(&path->local) || rtnl_way_out(&p->source->nl, &flow, &ifindex) != 0)
        return WAY_UNKNOWN;
    return ifindex == path->ifindex ? WAY_SAME : WAY_OTHER;
}

void source_addr_check(struct peer *peer, nsec_t now)
{
    struct port *p = peer->device->port;
    struct udp_path left = peer_get_left(peer);
    struct udp_path path = peer_get_path(peer);
    enum way way = find_way(p, &path);

    if (find_way(p, &left) == WAY_SAME)
        peer_set_left(peer, NULL);
    if (way == WAY_SAME)
        peer->follows_route = true;
    if (way != WAY_OTHER || !peer->follows_route)
        return;
    peer_set_left(peer, &path);
    if (peer->device->link.is_up)
        (void)sender_keepalive(p->sender, peer, now);
}

nsec_t source_addr_tick(struct source_addr *s, nsec_t now)
{
    struct device *d;
    struct peer *peer;

    if (now < s->due)
        return s->due;
    s->due = NSEC_NEVER;
    s->checked_at = now;
    list_foreach(d, &s->port->devices, siblings)
        list_foreach(peer, &d->peers, siblings)
            source_addr_check(peer, now);
    return s->due;
}

static void on_news(void *ctx, uint32_t epoll_events)
{
    struct source_addr *s = ctx;

    if (!net_watch_read(s->fd) || s->due != NSEC_NEVER)
        return;
    s->due = clock_now() + SETTLE;
    if (s->checked_at != 0)
        s->due = nsec_max(s->due, s->checked_at + CHECK_EVERY);
}

int source_addr_new(struct source_addr **ret, struct port *p)
{
    struct source_addr *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->port = p;
    s->fd = -1;
    s->due = NSEC_NEVER;
    *ret = s;
    return 0;
}

struct source_addr *source_addr_free(struct source_addr *s)
{
    free(s);
    return NULL;
}

int source_addr_start(struct source_addr *s)
{
    int r = netlink_open(&s->nl, NETLINK_ROUTE);

    if (r == 0)
        r = s->fd = net_watch_open();
    if (r >= 0) {
        s->event = (struct loop_event){.fd = s->fd, .fn = on_news, .ctx = s};
        r = loop_add(&s->port->loop, &s->event, EPOLLIN);
    }
    if (r < 0)
        source_addr_stop(s);
    return r < 0 ? r : 0;
}

void source_addr_stop(struct source_addr *s)
{
    netlink_close(&s->nl);
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
    s->due = NSEC_NEVER;
}
