/* device.c - see device.h: life of a device, its keys, its link. */
#include "dataplane/device.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "os/fd_cleanup.h"
#include "base/err.h"
#include "os/log.h"
#include "dataplane/device_internal.h"
#include "dataplane/handshake_io.h"
#include "dataplane/peer.h"
#include "dataplane/peer_poll.h"
#include "dataplane/port_internal.h"
#include "dataplane/relay_device.h"
#include "os/clock.h"
#include "net/netlink.h"
#include "net/rtnl.h"
#include "wire/wg.h"

#define DEFAULT_MTU 1420

/* Frames that may wait for a tx worker: bursts of small packets, one frame each, are long. */
#define TUN_QUEUE_LEN 1000

/* What NCCL takes for an interface that says nothing, and new kernels say of a TUN interface. */
#define TUN_SPEED_MBIT 10000

/* A port that is taken is asked for again after so long. */
#define BIND_AGAIN (200 * NSEC_PER_MSEC)

/* ---- configuration ---- */

void device__set_key(struct device *d, const struct x25519_secret *secret)
{
    struct peer *peer, *next;

    /* Its router knows the old key; whoever wants a relay says so again. */
    (void)relay_device_set(d, false);
    noise_local_set(&d->local, secret);
    port__close_gates(d->port, d);
    cookie_checker_set_key(&d->checker, &d->local.public);
    port__open_gates(d->port, d);
    list_foreach_safe(peer, next, &d->peers, siblings) {
        noise_remote_set_local(&peer->remote, &d->local);
        peer_forget_session(peer);
        if (d->local.has_key && x25519_public_equal(&peer->remote.public, &d->local.public))
            device__remove_peer(d, peer);
    }
}

/* The gates are closed. */
static void unlink_peer(struct peer *peer)
{
    peer_unlink(peer);
    peer_forget_session(peer);
    relay_device_forget(peer);
}

int device__hand_over(struct device *d)
{
    int r = d->listener.on_handed_over ? tun_set_persistent(&d->tun, true) : -EOPNOTSUPP;

    if (r == 0)
        d->listener.on_handed_over(d->listener.ctx);
    return r;
}

void device__remove_peer(struct device *d, struct peer *peer)
{
    port__close_gates(d->port, d);
    unlink_peer(peer);
    port__open_gates(d->port, d);
    peer_poll_told(d->port);
    peer_free(peer);
}

void device__remove_peers(struct device *d)
{
    struct list gone = LIST_NULL(gone);
    struct peer *peer, *next;

    port__close_gates(d->port, d);
    list_foreach_safe(peer, next, &d->peers, siblings) {
        unlink_peer(peer);
        list_add_tail(&gone, &peer->siblings);
    }
    port__open_gates(d->port, d);
    peer_poll_told(d->port);
    list_foreach_safe(peer, next, &gone, siblings)
        peer_free(peer);
}

void device__set_keepalive(struct peer *peer, uint16_t seconds, nsec_t now)
{
    peer->keepalive_s = seconds;
    timers_set_persistent_keepalive(&peer->timers, seconds * NSEC_PER_SEC, now);
}

void device__set_peer_mtu(struct peer *peer, uint16_t mtu)
{
    atomic_store(&peer->mtu, mtu);
    peer->device->has_new_mtus = true;
}

void device__set_cipher(struct peer *peer, struct noise_choice choice)
{
    enum aead_cipher before = peer->remote.profile->transport;
    struct keypair *kp;

    noise_remote_set_choice(&peer->remote, choice);
    if (before == choice.wanted)
        return;
    /* A handshake under way goes on: packets wait for it. take_response() has the rest. */
    kp = keypairs_acquire_current(&peer->keypairs);
    if (kp && kp->alg->cipher != choice.wanted && timers_on_rekey_wanted(&peer->timers))
        peer_tell(peer);
    (void)keypair_unref(kp);
}

/* ---- link ---- */

/* The port may still be held by a process that is just ending, as when we follow one that was
 * killed; so it is tried again. */
static void open_sockets(struct device *d, nsec_t now)
{
    struct port *p = d->port;
    struct err e = ERR_NULL;
    bool is_first = p->bind_due == NSEC_NEVER;
    int r = port__open_sockets(p, &e);

    p->bind_due = r < 0 ? now + BIND_AGAIN : NSEC_NEVER;
    if (r < 0 && is_first)
        log_error("%s: %s; trying again", d->name, err_text(&e));
    else if (r == 0 && !is_first)
        log_info("%s: listening on port %u", d->name, p->listen_port);
}

static void start_peers(struct device *d, nsec_t now)
{
    struct peer *peer;

    list_foreach(peer, &d->peers, siblings) {
        uint16_t seconds = peer->keepalive_s;

        /* As if it were turned on only now: the first one is due at once. */
        device__set_keepalive(peer, 0, now);
        device__set_keepalive(peer, seconds, now);
        peer_poll(peer, now);
    }
}

static void link_up(struct device *d)
{
    nsec_t now = clock_now();

    d->is_up = true;
    if (d->port->opt.sockets_follow_links)
        open_sockets(d, now);
    start_peers(d, now);
}

void device__bind_again(struct port *p, nsec_t now)
{
    struct device *d;

    if (p->bind_due > now)
        return;
    list_foreach(d, &p->devices, siblings) {
        if (d->is_up && p->bind_due <= now)
            open_sockets(d, now);
    }
    list_foreach(d, &p->devices, siblings) {
        if (d->is_up && p->bind_due == NSEC_NEVER)
            start_peers(d, now);
    }
}

static void link_down(struct device *d)
{
    struct port *p = d->port;
    struct device *each;
    struct peer *peer;
    bool any_up = false;

    d->is_up = false;
    list_foreach(peer, &d->peers, siblings) {
        peer_forget_session(peer);
        timers_clear(&peer->timers);
        peer_drop_staged(peer, &p->drops);
        heap_remove(&p->timers, &peer->due);
    }
    list_foreach(each, &p->devices, siblings)
        any_up |= each->is_up;
    if (p->opt.sockets_follow_links && !any_up) {
        port__close_sockets(p);
        p->bind_due = NSEC_NEVER;
    }
}

static void on_link_event(void *ctx, uint32_t epoll_events)
{
    device__on_link(ctx);
}

/* Looks for the interface wherever it is now. */
static int find_link(struct device *d)
{
    _cleanup_(closep) int netns_fd = tun_netns(&d->tun);
    char name[IFNAMSIZ];
    int r = tun_name(&d->tun, name);

    return r < 0 ? r : link_watch_find(&d->link, name, netns_fd);
}

static int watch_link(struct device *d)
{
    int r = link_watch_open(&d->link);

    if (r == 0)
        r = find_link(d);
    if (r < 0)
        return r;
    d->link_event = (struct loop_event){.fd = d->link.fd, .fn = on_link_event, .ctx = d};
    return loop_add(&d->port->loop, &d->link_event, EPOLLIN);
}

static void unwatch_link(struct device *d)
{
    if (d->link.fd >= 0)
        loop_remove(&d->port->loop, &d->link_event);
    link_watch_close(&d->link);
}

static void link_gone(struct device *d)
{
    if (d->is_gone)
        return;
    d->is_gone = true;
    if (d->is_up)
        link_down(d);
    unwatch_link(d);
    if (d->listener.on_gone)
        d->listener.on_gone(d->listener.ctx);
}

/* The link left the namespace where it was last seen: deleted, or moved to another. */
static void follow_link(struct device *d)
{
    int r;

    if (!tun_exists(&d->tun)) {
        link_gone(d);
        return;
    }
    r = find_link(d);
    if (r < 0)
        log_warning("%s: moved to a network namespace that cannot be watched (%s): the MTU and "
                    "up or down are not followed there",
            d->name, strerror(-r));
}

/* The smallest MTU in use: a superpacket for a peer with a larger one is limited by its bytes. */
static unsigned least_mtu(const struct device *d)
{
    unsigned least = d->link.state.mtu;
    struct peer *peer;

    list_foreach(peer, &d->peers, siblings) {
        unsigned mtu = atomic_load(&peer->mtu);

        if (mtu != 0 && mtu < least)
            least = mtu;
    }
    return least;
}

/* Superpackets of as many segments as one send carries: otherwise each would leave as a full run
 * and a short rest, in two. Where this cannot be had it works all the same. */
static void fit_segments(struct device *d, unsigned mtu)
{
    unsigned n = UDP_RUN_BYTES_MAX / (mtu + (unsigned)WG_DATA_OVERHEAD);
    struct netlink nl = NETLINK_NULL;

    if (n == 0 || d->link.state.nsid != LINK_WATCH_HERE || !d->offloads.on[OFFLOAD_UDP_GSO] ||
        netlink_open(&nl, NETLINK_ROUTE) < 0)
        return;
    (void)rtnl_set_segments(
        &nl, d->link.state.ifindex, n < UDP_RUN_SEGMENTS_MAX ? n : UDP_RUN_SEGMENTS_MAX);
    netlink_close(&nl);
}

void device__fit_segments(struct device *d)
{
    unsigned least = least_mtu(d);

    d->has_new_mtus = false;
    if (d->fitted_mtu == least || d->link.state.ifindex == 0)
        return;
    d->fitted_mtu = least;
    fit_segments(d, least);
}

/* Follows the MTU; the first one, too. */
static void take_mtu(struct device *d)
{
    if (atomic_exchange(&d->mtu, d->link.state.mtu) != d->link.state.mtu)
        device__fit_segments(d);
}

void device__on_link(struct device *d)
{
    if (d->is_gone)
        return;
    (void)link_watch_read(&d->link);
    /* Of an interface that goes with its whole namespace only the tx workers hear. */
    if (d->link.state.ifindex == 0 || atomic_load(&d->has_vanished))
        follow_link(d);
    if (d->is_gone || d->link.state.ifindex == 0)
        return;
    take_mtu(d);
    if (d->link.state.up == d->is_up || !d->port->is_running)
        return;
    log_debug("%s: link %s", d->name, d->link.state.up ? "up" : "down");
    if (d->link.state.up)
        link_up(d);
    else
        link_down(d);
}

/* ---- life ---- */

static void log_offloads(const struct device *d)
{
    for (int i = 0; i < OFFLOAD_N; i++) {
        const char *why = device_offload_why(d, (enum offload)i);

        if (why)
            log_info("%s: the offload %s is off: %s", d->name, offload_name((enum offload)i), why);
    }
}

/* Nothing of this is worth failing for: the MTU is told on the link, the rest is a matter of speed,
 * and an interface that stays is removed by who made it. */
static void set_link(struct device *d, const struct device_options *opt)
{
    unsigned mtu = opt->mtu ? opt->mtu : DEFAULT_MTU;

    if (opt->takes_over && d->tun.was_there)
        (void)tun_set_persistent(&d->tun, false);
    else if (opt->tun_fd < 0 && tun_set_mtu(&d->tun, mtu) < 0)
        log_warning("%s: cannot set the MTU to %u", d->name, mtu);
    (void)tun_set_queue_len(&d->tun, TUN_QUEUE_LEN);
    (void)tun_set_speed(&d->tun, TUN_SPEED_MBIT);
}

static int open_tun(struct device *d, const struct device_options *opt, struct err *e)
{
    int r;

    d->offloads = d->port->opt.offloads;
    if (opt->tun_fd >= 0)
        r = tun_adopt(&d->tun, opt->tun_fd, &d->offloads, e);
    else
        r = tun_open(&d->tun, opt->name, opt->n_workers ? opt->n_workers : 1, &d->offloads, e);
    if (r < 0)
        return r;
    memcpy(d->name, d->tun.name, sizeof(d->name));
    set_link(d, opt);
    log_offloads(d);
    return 0;
}

static int init_parts(struct device *d)
{
    int r = gate_init(&d->gate, tun_readers(&d->tun));

    if (r == 0)
        r = tx_init(d);
    if (r == 0)
        r = watch_link(d);
    return r;
}

static int attach(struct device *d)
{
    struct port *p = d->port;
    int r = 0;

    (void)pthread_mutex_lock(&p->lock);
    gate_close(&p->gate);
    list_add_tail(&p->devices, &d->siblings);
    gate_open(&p->gate);
    if (p->is_running)
        r = tx_start(d);
    if (r == 0)
        device__on_link(d);
    (void)pthread_mutex_unlock(&p->lock);
    return r;
}

int device_new(
    struct device **ret, struct port *port, const struct device_options *opt, struct err *e)
{
    struct device *d = calloc(1, sizeof(*d));
    int r;

    if (!d)
        return err_set(e, -ENOMEM, "no memory for an interface");
    d->port = port;
    d->cipher = opt->cipher;
    d->link = (struct link_watch)LINK_WATCH_NULL;
    d->relay_due = NSEC_NEVER;
    list_init(&d->siblings);
    list_init(&d->peers);
    htab_init(&d->by_key, rng_u64(&port->rng));
    cookie_checker_init(&d->checker, &d->local.public);
    r = open_tun(d, opt, e);
    if (r == 0) {
        r = init_parts(d);
        if (r == 0)
            r = attach(d);
        if (r < 0)
            (void)err_set(e, r, "cannot run interface %s: %s", d->name, strerror(-r));
    }
    if (r < 0) {
        (void)device_free(d);
        return r;
    }
    *ret = d;
    return 0;
}

static void detach(struct device *d)
{
    struct port *p = d->port;

    (void)pthread_mutex_lock(&p->lock);
    tx_stop(d);
    if (d->is_up)
        link_down(d);
    unwatch_link(d);
    gate_close(&p->gate);
    list_remove(&d->siblings);
    gate_open(&p->gate);
    handshake_io_forget(p, d);
    (void)relay_device_set(d, false);
    device__remove_peers(d);
    if (d->workers)
        tx_drops(d, p->past_drops);
    (void)pthread_mutex_unlock(&p->lock);
}

struct device *device_free(struct device *d)
{
    if (!d)
        return NULL;
    detach(d);
    tx_deinit(d);
    gate_deinit(&d->gate);
    tun_close(&d->tun);
    allowedips_deinit(&d->allowed);
    htab_deinit(&d->by_key);
    cookie_checker_deinit(&d->checker);
    noise_local_deinit(&d->local);
    free(d);
    return NULL;
}

const char *device_name(const struct device *d)
{
    return d->name;
}

void device_set_accept(struct device *d, const struct device_accept *accept)
{
    struct port *p = d->port;

    (void)pthread_mutex_lock(&p->lock);
    gate_close(&p->gate);
    d->accept = *accept;
    gate_open(&p->gate);
    (void)pthread_mutex_unlock(&p->lock);
}

void device_set_listener(struct device *d, const struct device_listener *listener)
{
    (void)pthread_mutex_lock(&d->port->lock);
    d->listener = *listener;
    (void)pthread_mutex_unlock(&d->port->lock);
}
