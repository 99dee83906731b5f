/* device_config.c - see device_config.h. */
#include "port/device_config.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/secret.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "net/tun/tun.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/log.h"
#include "packet/sched.h"
#include "peer/peer.h"
#include "peer/relay_device.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "wire/ip.h"
#include "wire/wg.h"
#include "worker/tx.h"

/* ---- rates ---- */

void shaping_config_set(struct device *d, struct pace *pace, uint64_t bits_per_s)
{
    bool was_on = d->shaping.n_rates > 0;

    if (bits_per_s == 0 && pace_rate(pace) == 0)
        return;
    d->shaping.n_rates += (bits_per_s != 0) - (pace_rate(pace) != 0);
    pace_set(pace, bits_per_s);
    if ((d->shaping.n_rates > 0) != was_on) {
        int r = tun_set_classes(&d->tun, !was_on);

        /* Queues by class; where that cannot be, all packets are of one class. */
        if (r < 0 && !was_on)
            log_warning("%s: its queues cannot be sorted by class (%s), so packets of all classes "
                        "are sent alike; that takes CAP_BPF when it starts",
                d->name, strerror(-r));
        atomic_store(&d->shaping.has_classes, !was_on && r == 0);
        /* Release: what was set before is seen by the workers that see this. */
        atomic_store_explicit(&d->shaping.is_on, !was_on, memory_order_release);
    }
    /* A worker may sleep until the time that the old rate gave. */
    tx_wake(d);
}

/* ---- keys ---- */

/* The device answers under @next, too, which is taken; NULL: under its own key alone. */
static void replace_next(struct device *d, struct device_next *next)
{
    struct device_next *before = d->next;
    struct peer *peer;

    port_gates_close(d->port, d);
    d->next = next;
    port_gates_open(d->port, d);
    if (!next)
        d->initiates_with_next = false;
    if (before) {
        secret_wipe(before, sizeof(*before));
        free(before);
    }
    list_foreach(peer, &d->peers, siblings) {
        peer->has_session_under_next = false;
        if (peer->begun.is_our_next)
            handshake_io_begin_again(peer);
    }
    relay_device_on_our_keys(d);
}

int device_config_set_next_key(struct device *d, const struct x25519_secret *secret)
{
    struct device_next *next = NULL;
    bool is_there;

    if (!x25519_secret_is_none(secret)) {
        next = calloc(1, sizeof(*next));
        if (!next)
            return -ENOMEM;
        noise_local_set(&next->local, secret);
        is_there = d->next && x25519_public_equal(&next->local.public, &d->next->local.public);
        if (is_there || !next->local.has_key || !d->local.has_key ||
            x25519_public_equal(&next->local.public, &d->local.public)) {
            secret_wipe(next, sizeof(*next));
            free(next);
            return is_there ? 0 : -EINVAL;
        }
        cookie_checker_set_key(&next->checker, &next->local.public);
        cookie_checker_share(&next->checker, &d->checker);
    }
    if (next || d->next)
        replace_next(d, next);
    return 0;
}

int device_config_initiate_with_next(struct device *d, bool on)
{
    struct peer *peer;

    if (on && !d->next)
        return -EINVAL;
    if (on == d->initiates_with_next)
        return 0;
    d->initiates_with_next = on;
    list_foreach(peer, &d->peers, siblings) {
        struct keypair *kp = on && !peer->keeps_to_our_key && !peer->has_session_under_next
                                 ? keypairs_acquire_current(&peer->keypairs)
                                 : NULL;

        /* Who has no session gets one under that key when there is something to send. */
        if (kp && timers_on_rekey_wanted(&peer->timers))
            peer_tell(peer);
        (void)keypair_unref(kp);
    }
    return 0;
}

/* @local: copied. The gates are open. */
static void replace_local(struct device *d, const struct noise_local *local)
{
    struct peer *same;
    struct peer *peer;

    port_gates_close(d->port, d);
    secret_wipe(&d->local, sizeof(d->local));
    d->local = *local;
    cookie_checker_set_key(&d->checker, &d->local.public);
    port_gates_open(d->port, d);
    list_foreach(peer, &d->peers, siblings)
        noise_remote_set_local(&peer->remote, &d->local);
    same = d->local.has_key ? peer_find(d, &d->local.public) : NULL;
    if (same)
        device_config_remove_peer(d, same);
}

/* The next key is the key. What was begun under it goes on. */
static void use_next(struct device *d)
{
    struct noise_local local = d->next->local;
    struct peer *peer;

    replace_local(d, &local);
    secret_wipe(&local, sizeof(local));
    list_foreach(peer, &d->peers, siblings) {
        peer->begun.is_our_next = !peer->begun.is_our_next;
        peer->keeps_to_our_key = false;
    }
    /* And what was begun under the key before has to be begun again: it is marked so now. */
    replace_next(d, NULL);
}

void device_config_set_key(struct device *d, const struct x25519_secret *secret)
{
    struct noise_local local = {.has_key = false};
    struct peer *peer;

    noise_local_set(&local, secret);
    if (local.has_key && d->next && x25519_public_equal(&local.public, &d->next->local.public)) {
        use_next(d);
    } else {
        /* Its router knows the old key; whoever wants a relay says so again. */
        (void)relay_device_set(d, false);
        list_foreach(peer, &d->peers, siblings)
            peer_forget_session(peer);
        if (d->next)
            replace_next(d, NULL);
        replace_local(d, &local);
    }
    secret_wipe(&local, sizeof(local));
}

int device_config_set_peer_next(struct peer *peer, const struct x25519_public *public)
{
    struct device *d = peer->device;
    int r;

    if (peer->next ? x25519_public_equal(&peer->next->public, public)
                   : x25519_public_is_none(public))
        return 0;
    if (!x25519_public_is_none(public) &&
        (peer_find(d, public) || peer_find_next(d, public) ||
            (d->local.has_key && x25519_public_equal(public, &d->local.public))))
        return -EEXIST;
    r = peer_set_next(peer, public);
    if (r < 0)
        return r;
    relay_device_on_keys(peer);
    if (peer->begun.is_their_next)
        handshake_io_begin_again(peer);
    return 0;
}

void device_config_use_peer_next(struct peer *peer)
{
    bool goes_on = peer->begun.is_their_next;

    peer->begun.is_their_next = false;
    peer_use_next(peer);
    relay_device_on_keys(peer);
    /* To the key before nobody may answer any more. */
    if (!goes_on)
        handshake_io_begin_again(peer);
}

/* ---- peers ---- */

/* The gates are closed. */
static void unlink_peer(struct peer *peer)
{
    peer_unlink(peer);
    shaping_config_set(peer->device, &peer->pace, 0);
    peer_forget_session(peer);
    relay_device_forget(peer);
}

void device_config_remove_peer(struct device *d, struct peer *peer)
{
    port_gates_close(d->port, d);
    unlink_peer(peer);
    port_gates_open(d->port, d);
    peer_poll_notified(d->port);
    peer_free(peer);
}

void device_config_remove_peers(struct device *d)
{
    struct list gone = LIST_NULL(gone);
    struct peer *peer, *next;

    port_gates_close(d->port, d);
    list_foreach_safe(peer, next, &d->peers, siblings) {
        unlink_peer(peer);
        list_add_tail(&gone, &peer->siblings);
    }
    port_gates_open(d->port, d);
    peer_poll_notified(d->port);
    list_foreach_safe(peer, next, &gone, siblings)
        peer_free(peer);
}

/* ---- the interface ---- */

static void start_peers(struct device *d, nsec_t now)
{
    struct peer *peer;

    list_foreach(peer, &d->peers, siblings) {
        /* As if it were turned on only now: the first one is due at once. */
        timers_set_persistent_keepalive(&peer->timers, 0, now);
        timers_set_persistent_keepalive(&peer->timers, peer->keepalive_s * NSEC_PER_SEC, now);
        peer_poll(peer, now);
    }
}

nsec_t device_link_bind_again(struct port *p, nsec_t now)
{
    struct device *d;

    if (p->sockets.retry_at > now)
        return p->sockets.retry_at;
    list_foreach(d, &p->devices, siblings) {
        if (d->link.is_up && p->sockets.retry_at <= now)
            port_sockets_keep_open(p, d->name, now);
    }
    list_foreach(d, &p->devices, siblings) {
        if (d->link.is_up && p->sockets.retry_at == NSEC_NEVER)
            start_peers(d, now);
    }
    return p->sockets.retry_at;
}

static void link_down(struct device *d)
{
    struct port *p = d->port;
    struct device *each;
    struct peer *peer;
    bool any_up = false;

    d->link.is_up = false;
    list_foreach(peer, &d->peers, siblings) {
        peer_forget_session(peer);
        timers_clear(&peer->timers);
        peer_drop_staged(peer, &p->drops);
        (void)heap_set(&p->polls.timers, &peer->poll.due, NSEC_NEVER);
    }
    list_foreach(each, &p->devices, siblings)
        any_up |= each->link.is_up;
    if (p->opt.sockets_follow_links && !any_up)
        port_sockets_close(p);
}

static void on_link_event(void *ctx, uint32_t epoll_events)
{
    device_link_read(ctx);
}

/* Looks for the interface wherever it is now. */
static int find_link(struct device *d)
{
    _cleanup_(closep) int netns_fd = tun_netns(&d->tun);
    char name[IFNAMSIZ];
    int r = tun_name(&d->tun, name);

    return r < 0 ? r : link_watch_find(&d->link.watch, name, netns_fd);
}

int device_link_watch(struct device *d)
{
    int r = link_watch_open(&d->link.watch);

    if (r == 0)
        r = find_link(d);
    if (r < 0)
        return r;
    d->link.event = (struct loop_event){.fd = d->link.watch.fd, .fn = on_link_event, .ctx = d};
    return loop_add(&d->port->loop, &d->link.event, EPOLLIN);
}

static void unwatch(struct device *d)
{
    if (d->link.watch.fd >= 0)
        loop_remove(&d->port->loop, &d->link.event);
    closep(&d->link.watch.fd);
}

/* The link left the namespace where it was last seen: deleted, or moved to another. */
static void follow_link(struct device *d)
{
    char name[IFNAMSIZ];
    int r;

    if (tun_name(&d->tun, name) != 0) {
        d->link.is_gone = true;
        if (d->link.is_up)
            link_down(d);
        unwatch(d);
        if (d->listener.on_gone)
            d->listener.on_gone(d->listener.ctx);
        return;
    }
    r = find_link(d);
    if (r < 0)
        log_warning("%s: moved to a network namespace that cannot be watched (%s): the MTU and "
                    "up or down are not followed there",
            d->name, strerror(-r));
}

/* The smallest MTU in use: a superpacket for a peer with a larger one is limited by its bytes. Not
 * that of a path that is narrower than any link ought to be, or was not measured yet: the others
 * would leave in two sends because of it. */
static unsigned least_mtu(const struct device *d)
{
    unsigned least = d->link.watch.state.mtu;
    struct peer *peer;

    list_foreach(peer, &d->peers, siblings) {
        unsigned mtu = atomic_load(&peer->mtu);

        if (mtu >= IP_V6_MTU_MIN && mtu < least)
            least = mtu;
    }
    return least;
}

/* While the interface has a rate a superpacket should take no longer than this: whatever comes
 * meanwhile waits for it. */
#define SUPERPACKET_TIME (2 * NSEC_PER_MSEC)

/* The segments of @mtu bytes that the interface may send in SUPERPACKET_TIME; at least one. */
static unsigned segments_in_turn(const struct device *d, unsigned mtu)
{
    uint64_t rate = pace_rate(&d->shaping.all);
    uint64_t n = rate / 8 * (uint64_t)SUPERPACKET_TIME / (uint64_t)NSEC_PER_SEC / mtu;

    if (rate == 0 || n > UDP_RUN_SEGMENTS_MAX)
        return UDP_RUN_SEGMENTS_MAX;
    return n > 0 ? (unsigned)n : 1;
}

/* Superpackets of as many segments as one send carries: otherwise each would leave as a full run
 * and a short rest, in two. Where this cannot be had it works all the same. */
static void fit_segments(struct device *d, unsigned mtu)
{
    unsigned n = UDP_RUN_BYTES_MAX / (mtu + (unsigned)WG_DATA_OVERHEAD);
    unsigned in_turn = segments_in_turn(d, mtu);
    struct netlink nl = NETLINK_NULL;

    if (n > in_turn)
        n = in_turn;

    if (n == 0 || d->link.watch.state.nsid != LINK_WATCH_HERE || !d->offloads.on[OFFLOAD_UDP_GSO] ||
        netlink_open(&nl, NETLINK_ROUTE) < 0)
        return;
    (void)rtnl_set_segments(
        &nl, d->link.watch.state.ifindex, n < UDP_RUN_SEGMENTS_MAX ? n : UDP_RUN_SEGMENTS_MAX);
    netlink_close(&nl);
}

/* Cuts superpackets for the smallest MTU that is in use now, and for the rate. */
static void fit_to_mtus(struct device *d)
{
    uint64_t rate = pace_rate(&d->shaping.all);
    unsigned least = least_mtu(d);

    d->link.has_new_mtus = false;
    if ((d->link.fitted_mtu == least && d->link.fitted_rate == rate) ||
        d->link.watch.state.ifindex == 0)
        return;
    d->link.fitted_mtu = least;
    d->link.fitted_rate = rate;
    fit_segments(d, least);
}

void device_link_on_configured(struct device *d)
{
    if (d->link.has_new_mtus || d->link.fitted_rate != pace_rate(&d->shaping.all))
        fit_to_mtus(d);
}

void device_link_read(struct device *d)
{
    nsec_t now;

    if (d->link.is_gone)
        return;
    (void)link_watch_read(&d->link.watch);
    /* Of an interface that goes with its whole namespace only the tx workers hear. */
    if (d->link.watch.state.ifindex == 0 || atomic_load(&d->tx.has_vanished))
        follow_link(d);
    if (d->link.is_gone || d->link.watch.state.ifindex == 0)
        return;
    /* Follows the MTU; the first one, too. */
    if (atomic_exchange(&d->mtu, d->link.watch.state.mtu) != d->link.watch.state.mtu)
        fit_to_mtus(d);
    if (d->link.watch.state.up == d->link.is_up || !d->port->is_running)
        return;
    log_debug("%s: link %s", d->name, d->link.watch.state.up ? "up" : "down");
    if (!d->link.watch.state.up) {
        link_down(d);
        return;
    }
    now = clock_now();
    d->link.is_up = true;
    if (d->port->opt.sockets_follow_links)
        port_sockets_keep_open(d->port, d->name, now);
    start_peers(d, now);
}

void device_link_stop(struct device *d)
{
    if (d->link.is_up)
        link_down(d);
    unwatch(d);
}
