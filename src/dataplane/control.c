/* control.c - see control.h. */
#include "dataplane/control.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/drop.h"
#include "dataplane/handshake_io.h"
#include "dataplane/peer.h"
#include "dataplane/port_internal.h"
#include "dataplane/relay_device.h"
#include "dataplane/source_addr.h"
#include "sys/clock.h"

/* Handshake messages taken before timers and descriptors get their turn. */
#define HANDSHAKES_PER_TURN 32

/* Retired keypairs are freed this soon, or when this many wait. */
#define RECLAIM_DELAY (200 * NSEC_PER_MSEC)
#define RECLAIM_MANY  1024

#define EVENTS_PER_TURN 32

/*
 * Where it shares a core with a data thread that never rests, six parts of seven are control's, as
 * long as it has work: a stream whose keys are due stops until its handshake is done, and a hub
 * that was restarted has handshakes with all at once. No stranger gets that share for his messages,
 * for he is asked for a cookie, and then limited.
 */
#define CONTROL_NICE (-8)

/* ---- descriptors ---- */

int control_add(struct port *p, struct control_event *ev, uint32_t epoll_events)
{
    struct epoll_event e = {.events = epoll_events, .data.ptr = ev};

    return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, ev->fd, &e) < 0 ? -errno : 0;
}

void control_change(struct port *p, struct control_event *ev, uint32_t epoll_events)
{
    struct epoll_event e = {.events = epoll_events, .data.ptr = ev};

    (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, ev->fd, &e);
}

void control_remove(struct port *p, struct control_event *ev)
{
    (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, ev->fd, NULL);
    p->n_removals++;
}

void control_device_gone(struct device *d)
{
    atomic_store(&d->has_vanished, true);
    port__wake(d->port->wake_fd);
}

/* ---- retired keypairs ---- */

void control_retire(struct port *p, const struct keypairs_evicted *evicted)
{
    for (size_t i = 0; i < 3; i++) {
        struct keypair *kp = evicted->kp[i];

        if (!kp)
            continue;
        index_release(&p->index, kp->local_index);
        kp->link.next = p->retired;
        p->retired = &kp->link;
        p->n_retired++;
        if (p->reclaim_due == NSEC_NEVER)
            p->reclaim_due = clock_now() + RECLAIM_DELAY;
    }
}

void control_reclaim(struct port *p)
{
    gate_close(&p->gate);
    gate_open(&p->gate);
    while (p->retired) {
        struct keypair *kp = container_of(p->retired, struct keypair, link);

        p->retired = kp->link.next;
        (void)keypair_unref(kp);
    }
    index_reclaim(&p->index);
    p->n_retired = 0;
    p->reclaim_due = NSEC_NEVER;
}

/* ---- peers ---- */

void peer_tell(struct peer *peer)
{
    struct port *p = peer->device->port;
    struct peer *head;

    if (atomic_exchange(&peer->is_told, true))
        return;
    head = atomic_load_explicit(&p->told, memory_order_relaxed);
    do
        peer->next_told = head;
    /* Release: control sees next_told, and what it is told about. */
    while (!atomic_compare_exchange_weak_explicit(
        &p->told, &head, peer, memory_order_release, memory_order_relaxed));
    port__wake(p->wake_fd);
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
    control_poll_peer(peer, now);
}

void control_untell(struct port *p)
{
    struct peer *peer = atomic_exchange_explicit(&p->told, NULL, memory_order_acquire);
    nsec_t now = clock_now();

    while (peer) {
        struct peer *next = peer->next_told;

        /* From here on it may be told again, which must not be lost. */
        atomic_store(&peer->is_told, false);
        take_told(peer, now);
        peer = next;
    }
}

void control_forget_session(struct peer *peer)
{
    struct keypairs_evicted evicted;

    keypairs_clear(&peer->keypairs, &evicted);
    control_retire(peer->device->port, &evicted);
    handshake_io_abandon(peer);
}

void control_poll_peer(struct peer *peer, nsec_t now)
{
    struct port *p = peer->device->port;
    unsigned todo;

    if (!peer->device->is_up)
        return;
    todo = timers_poll(&peer->timers, now);
    if (todo & TIMERS_DROP_STAGED)
        peer_drop_staged(peer, &p->drops);
    if (todo & TIMERS_ZERO_KEYS)
        control_forget_session(peer);
    if (todo & TIMERS_SEND_INITIATION)
        handshake_io_initiate(peer, now);
    if (todo & TIMERS_SEND_KEEPALIVE) {
        sender_add_staged(&p->sender, peer, now);
        if (!sender_keepalive(&p->sender, peer, now) && timers_on_rekey_wanted(&peer->timers))
            peer_tell(peer);
    }
    /* Cannot fail: peer_new() has reserved the room. */
    (void)heap_set(&p->timers, &peer->due, timers_due(&peer->timers));
}

static void run_timers(struct port *p, nsec_t now)
{
    struct heap_link *link;
    struct device *d;

    while ((link = heap_pop_due(&p->timers, now)) != NULL)
        control_poll_peer(container_of(link, struct peer, due), now);
    if (p->reclaim_due <= now || p->n_retired >= RECLAIM_MANY)
        control_reclaim(p);
    source_addr_tick(p, now);
    device__bind_again(p, now);
    p->expire_due = NSEC_NEVER;
    list_foreach(d, &p->devices, siblings)
        p->expire_due = nsec_min(p->expire_due, relay_device_expire(d, now));
}

/* ---- the loop ---- */

static void finish_handshake(struct port *p, struct handshake_msg *m)
{
    atomic_fetch_sub(&p->n_handshakes, 1);
    /* Release: the worker may overwrite it. */
    atomic_store_explicit(&m->is_busy, false, memory_order_release);
}

/* True when more wait. */
static bool run_handshakes(struct port *p, nsec_t now)
{
    for (unsigned i = 0; i < HANDSHAKES_PER_TURN; i++) {
        struct handshake_msg *m = mpsc_pop(&p->handshakes);

        if (!m)
            return false;
        handshake_io_take(p, m, now);
        finish_handshake(p, m);
    }
    return true;
}

/* Those of other devices go with them: their senders repeat in five seconds. */
void control_forget_handshakes(struct port *p, const struct device *d)
{
    struct handshake_msg *m;

    while ((m = mpsc_pop(&p->handshakes)) != NULL) {
        if (m->device != d)
            drop_count(&p->drops, DROP_QUEUE_FULL, 1);
        finish_handshake(p, m);
    }
}

static void find_vanished(struct port *p)
{
    struct device *d;

    list_foreach(d, &p->devices, siblings)
        if (atomic_load(&d->has_vanished))
            device__on_link(d);
}

static void on_wake(void *ctx, uint32_t epoll_events)
{
    struct port *p = ctx;

    /* Before the work is looked for, so that later work wakes again. */
    port__take_wake(p->wake_fd);
    find_vanished(p);
}

static int wait_ms(const struct port *p, bool busy, nsec_t now)
{
    nsec_t due = nsec_min(heap_due(&p->timers), nsec_min(p->reclaim_due, p->expire_due));
    nsec_t ms;

    due = nsec_min(due, nsec_min(p->source.due, p->bind_due));
    if (busy || due <= now)
        return 0;
    if (due == NSEC_NEVER)
        return -1;
    ms = (due - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
    return ms > 3600 * 1000 ? 3600 * 1000 : (int)ms;
}

static void *control_main(void *arg)
{
    struct port *p = arg;
    bool busy = false;

    thread_set_nice(CONTROL_NICE);
    (void)pthread_mutex_lock(&p->lock);
    while (!atomic_load(&p->is_stopping)) {
        struct epoll_event events[EVENTS_PER_TURN];
        int timeout = wait_ms(p, busy, clock_now());
        unsigned n_removals = p->n_removals;
        int n;

        (void)pthread_mutex_unlock(&p->lock);
        n = epoll_wait(p->epoll_fd, events, EVENTS_PER_TURN, timeout);
        (void)pthread_mutex_lock(&p->lock);
        /* What was removed meanwhile may be freed; whatever else is ready will be ready again. */
        for (int i = 0; i < n && p->n_removals == n_removals; i++) {
            struct control_event *ev = events[i].data.ptr;

            ev->fn(ev->ctx, events[i].events);
        }
        busy = run_handshakes(p, clock_now());
        control_untell(p);
        run_timers(p, clock_now());
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

int control_init(struct port *p)
{
    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (p->epoll_fd < 0)
        return -errno;
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->wake_fd < 0)
        return -errno;
    p->wake_event = (struct control_event){.fd = p->wake_fd, .fn = on_wake, .ctx = p};
    return control_add(p, &p->wake_event, EPOLLIN);
}

int control_start(struct port *p)
{
    const struct cpulist *cpus = &p->opt.cpus;

    return thread_start(
        &p->control_thread, "control", cpus->n ? cpus->cpu[cpus->n - 1] : -1, control_main, p);
}

void control_stop(struct port *p)
{
    port__wake(p->wake_fd);
    (void)pthread_join(p->control_thread, NULL);
}

void control_deinit(struct port *p)
{
    if (p->wake_fd >= 0)
        (void)close(p->wake_fd);
    if (p->epoll_fd >= 0)
        (void)close(p->epoll_fd);
    p->wake_fd = p->epoll_fd = -1;
}
