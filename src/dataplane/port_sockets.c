/* port_sockets.c - the port's UDP sockets, one pair a worker: opened, closed, swapped. See
 * port_internal.h. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/err.h"
#include "dataplane/port_internal.h"
#include "os/wakeup.h"

static bool has_sockets(const struct port *p)
{
    const struct udp_sockets *s = port__sockets(p);

    return s->fd[UDP_FAMILY_V4] >= 0 || s->fd[UDP_FAMILY_V6] >= 0;
}

/* Wakes a worker, and waits until it has left the epoll_wait() that it may be in. */
static void await_turn(struct rx_worker *w)
{
    uint32_t before = atomic_load(&w->turn);

    wakeup_signal(w->wake_fd);
    while (atomic_load(&w->turn) == before && !atomic_load(&w->port->is_stopping))
        (void)sched_yield();
}

/*
 * Puts @s, one for each worker, in place of the present ones, and has every worker look again. A
 * socket keeps its port, closed or not, while somebody polls it; at the return that is over, so
 * that the port can be opened again at once.
 */
static void swap_sockets(struct port *p, struct udp_sockets *s)
{
    port__close_gates(p, NULL);
    for (unsigned i = 0; i < p->opt.n_workers; i++) {
        struct udp_sockets old = p->workers[i].sockets;

        p->workers[i].sockets = s[i];
        s[i] = old;
    }
    port__open_gates(p, NULL);
    for (unsigned i = 0; i < p->opt.n_workers; i++) {
        udp_close(&s[i]);
        if (i < p->n_started)
            await_turn(&p->workers[i]);
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

        r = udp_open(&s[i], chosen, p->fwmark, share, &p->opt.offloads, e);
        chosen = s[i].port;
    }
    for (unsigned i = 0; r == 0 && i < p->opt.n_workers; i++) {
        r = rx_watch_sockets(&p->workers[i], &s[i]);
        if (r < 0)
            (void)err_set(e, r, "cannot wait for UDP port %u: %s", chosen, strerror(-r));
    }
    if (r < 0) {
        for (unsigned i = 0; i < p->opt.n_workers; i++)
            udp_close(&s[i]);
        return r;
    }
    p->listen_port = chosen;
    swap_sockets(p, s);
    return 0;
}

int port__open_sockets(struct port *p, struct err *e)
{
    return has_sockets(p) ? 0 : open_at(p, p->listen_port, e);
}

void port__close_sockets(struct port *p)
{
    struct udp_sockets none[GATE_READERS_MAX];

    no_sockets(none);
    if (has_sockets(p))
        swap_sockets(p, none);
}

int port__set_listen_port(struct port *p, uint16_t listen_port, struct err *e)
{
    if (!has_sockets(p)) {
        p->listen_port = listen_port;
        return 0;
    }
    if (listen_port == p->listen_port && listen_port != 0)
        return 0;
    return open_at(p, listen_port, e);
}

int port__set_fwmark(struct port *p, uint32_t fwmark)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < p->opt.n_workers; i++)
        r = udp_set_fwmark(&p->workers[i].sockets, fwmark);
    if (r == 0)
        p->fwmark = fwmark;
    return r;
}
