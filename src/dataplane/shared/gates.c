/* gates.c - see port_state.h: what is changed with the gates closed. */
#include "shared/port_state.h"

#include <string.h>

#include "base/err.h"
#include "noise/keypair.h"
#include "os/clock.h"
#include "os/log.h"
#include "shared/device_state.h"

/* ---- the gates ---- */

void port_gates_close(struct port *p, struct device *d)
{
    struct device *each;

    gate_close(&p->gate);
    if (d) {
        gate_close(&d->gate);
        return;
    }
    list_foreach(each, &p->devices, siblings)
        gate_close(&each->gate);
}

void port_gates_open(struct port *p, struct device *d)
{
    struct device *each;

    if (d) {
        gate_open(&d->gate);
    } else {
        list_foreach(each, &p->devices, siblings)
            gate_open(&each->gate);
    }
    gate_open(&p->gate);
}

void port_gates_set_filter(struct port *p, port_filter_fn fn, void *ctx)
{
    gate_close(&p->gate);
    p->filter = (struct port_filter){.fn = fn, .ctx = ctx};
    gate_open(&p->gate);
}

/* ---- keypairs that go ---- */

/* They are freed this soon, or when RECLAIM_MANY wait. */
#define RECLAIM_DELAY (200 * NSEC_PER_MSEC)

void retire_keypairs(struct port *p, const struct keypairs_evicted *evicted)
{
    struct retired *r = &p->retired;

    for (size_t i = 0; i < 3; i++) {
        struct keypair *kp = evicted->kp[i];

        if (!kp)
            continue;
        index_release(&p->index, kp->local_index);
        kp->link.next = r->first;
        r->first = &kp->link;
        r->n++;
        if (r->due == NSEC_NEVER)
            r->due = clock_now() + RECLAIM_DELAY;
    }
}

void retire_reclaim(struct port *p)
{
    struct retired *r = &p->retired;

    /* Waits until every rx worker has left the gate once: what was unlinked before is used by none
     * of them any more. */
    gate_close(&p->gate);
    gate_open(&p->gate);
    while (r->first) {
        struct keypair *kp = container_of(r->first, struct keypair, link);

        r->first = kp->link.next;
        (void)keypair_unref(kp);
    }
    index_reclaim(&p->index);
    *r = (struct retired)RETIRED_NULL;
}

/* ---- sockets ---- */

/* A port that is taken is asked for again after so long. */
#define RETRY_AFTER (200 * NSEC_PER_MSEC)

static bool has_sockets(const struct port *p)
{
    const struct udp_sockets *s = port_state_sockets(p);

    return s->fd[UDP_FAMILY_V4] >= 0 || s->fd[UDP_FAMILY_V6] >= 0;
}

/* Wakes the worker, and waits until it has left an epoll_wait() that it is in. A socket keeps its
 * port, closed or not, while somebody polls it; after this nobody does. Any thread but the worker,
 * outside the gate. */
static void await_turn(struct rx_waiter *w)
{
    uint32_t before = atomic_load(&w->turn);

    wakeup_signal(w->wake_fd);
    while (atomic_load(&w->turn) == before && !atomic_load(w->is_stopping))
        (void)sched_yield();
}

/*
 * Puts @s, one for each worker, in place of the present ones, and has every worker look again: at
 * the return nobody polls the old ones, so their port can be opened again at once.
 */
static void swap_sockets(struct port *p, struct udp_sockets *s)
{
    port_gates_close(p, NULL);
    for (unsigned i = 0; i < p->opt.n_workers; i++) {
        struct udp_sockets old = p->waiters[i].sockets;

        p->waiters[i].sockets = s[i];
        s[i] = old;
    }
    port_gates_open(p, NULL);
    for (unsigned i = 0; i < p->opt.n_workers; i++) {
        p->sockets.n_dropped += udp_drops(&s[i]);
        udp_close(&s[i]);
        if (i < p->n_receiving)
            await_turn(&p->waiters[i]);
    }
}

static void no_sockets(struct udp_sockets s[static GATE_READERS_MAX])
{
    for (unsigned i = 0; i < GATE_READERS_MAX; i++)
        s[i] = (struct udp_sockets)UDP_SOCKETS_NULL;
}

static int open_at(struct port *p, uint16_t listen_port, struct err *e)
{
    struct udp_sockets s[GATE_READERS_MAX];
    uint16_t chosen = listen_port;
    int r = 0;

    no_sockets(s);
    for (unsigned i = 0; r == 0 && i < p->opt.n_workers; i++) {
        enum udp_share share = i > 0                  ? UDP_SHARE_NEXT
                               : p->opt.n_workers > 1 ? UDP_SHARE_FIRST
                                                      : UDP_SHARE_NONE;

        r = udp_open(&s[i], chosen, p->sockets.fwmark, share, &p->opt.offloads, e);
        chosen = s[i].port;
    }
    for (unsigned i = 0; r == 0 && i < p->opt.n_workers; i++) {
        r = rx_waiter_watch_sockets(&p->waiters[i], &s[i]);
        if (r < 0)
            (void)err_set(e, r, "cannot wait for UDP port %u: %s", chosen, strerror(-r));
    }
    if (r < 0) {
        for (unsigned i = 0; i < p->opt.n_workers; i++)
            udp_close(&s[i]);
        return r;
    }
    p->sockets.listen_port = chosen;
    swap_sockets(p, s);
    return 0;
}

int port_sockets_open(struct port *p, struct err *e)
{
    return has_sockets(p) ? 0 : open_at(p, p->sockets.listen_port, e);
}

void port_sockets_keep_open(struct port *p, const char *who, nsec_t now)
{
    bool is_first = p->sockets.retry_at == NSEC_NEVER;
    struct err e = ERR_NULL;
    int r = port_sockets_open(p, &e);

    p->sockets.retry_at = r < 0 ? now + RETRY_AFTER : NSEC_NEVER;
    p->sockets.failed = r < 0 ? -r : 0;
    if (r < 0 && is_first)
        log_error("%s: %s; trying again", who, err_text(&e));
    else if (r == 0 && !is_first)
        log_info("%s: listening on port %u", who, p->sockets.listen_port);
}

uint64_t port_sockets_drops(const struct port *p)
{
    uint64_t n = p->sockets.n_dropped;

    for (unsigned i = 0; i < p->opt.n_workers; i++)
        n += udp_drops(&p->waiters[i].sockets);
    return n;
}

void port_sockets_close(struct port *p)
{
    struct udp_sockets none[GATE_READERS_MAX];

    p->sockets.retry_at = NSEC_NEVER;
    p->sockets.failed = 0;
    no_sockets(none);
    if (has_sockets(p))
        swap_sockets(p, none);
}

int port_sockets_set_listen_port(struct port *p, uint16_t listen_port, struct err *e)
{
    if (!has_sockets(p)) {
        p->sockets.listen_port = listen_port;
        return 0;
    }
    if (listen_port == p->sockets.listen_port && listen_port != 0)
        return 0;
    return open_at(p, listen_port, e);
}
