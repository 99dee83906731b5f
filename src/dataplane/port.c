/* port.c - see port.h: life of a port, its sockets, and what any thread may ask of it. */
#include "dataplane/port.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "dataplane/control.h"
#include "dataplane/port_internal.h"
#include "dataplane/source_addr.h"
#include "sys/rng_kernel.h"

/* The handshake messages of all workers must fit, so that pushing one never fails. */
static size_t handshakes_cap(unsigned n_workers)
{
    size_t cap = HANDSHAKES_PER_WORKER;

    while (cap < (size_t)n_workers * HANDSHAKES_PER_WORKER)
        cap *= 2;
    return cap;
}

static int init_parts(struct port *p)
{
    int r = gate_init(&p->gate, p->opt.n_workers);

    if (r == 0)
        r = index_init(&p->index);
    if (r == 0)
        r = mpsc_init(&p->handshakes, handshakes_cap(p->opt.n_workers));
    if (r == 0)
        r = control_init(p);
    if (r == 0)
        r = sender_init(&p->sender, p, &p->drops, false);
    if (r == 0 && !(p->workers = calloc(p->opt.n_workers, sizeof(*p->workers))))
        r = -ENOMEM;
    for (unsigned i = 0; r == 0 && i < p->opt.n_workers; i++)
        r = rx_init(&p->workers[i], p, i);
    return r;
}

/* A library that is asked for by name need not have both ciphers. */
static int find_ciphers(struct port *p, struct err *e)
{
    const char *backend = p->opt.aead_backend;
    bool found = false;

    for (unsigned c = 0; c < AEAD_CIPHER_N; c++) {
        p->aead[c] = aead_best((enum aead_cipher)c, backend);
        found |= p->aead[c] != NULL;
        if (!p->aead[c])
            p->aead[c] = aead_best((enum aead_cipher)c, NULL);
        if (!p->aead[c])
            return err_set(e, -EINVAL, "libcrypto does not compute %s correctly",
                aead_cipher_name((enum aead_cipher)c));
    }
    return found ? 0
                 : err_set(e, -EINVAL, "cipher library \"%s\" is not there or does not work",
                       backend ? backend : "openssl");
}

int port_new(struct port **ret, const struct port_options *opt, struct err *e)
{
    struct port *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return err_set(e, -ENOMEM, "no memory for a UDP port");
    p->opt = *opt;
    if (p->opt.n_workers == 0)
        p->opt.n_workers = 1;
    if (p->opt.n_workers > GATE_READERS_MAX)
        p->opt.n_workers = GATE_READERS_MAX;
    p->listen_port = opt->listen_port;
    p->fwmark = opt->fwmark;
    p->rng = rng_kernel();
    p->epoll_fd = p->wake_fd = p->path_fd = -1;
    p->reclaim_due = NSEC_NEVER;
    p->expire_due = NSEC_NEVER;
    p->bind_due = NSEC_NEVER;
    p->source = (struct source_addr)SOURCE_ADDR_NULL;
    list_init(&p->devices);
    (void)pthread_mutex_init(&p->lock, NULL);
    ratelimit_init(&p->ratelimit, rng_u64(&p->rng));
    offload_test_udp(&p->opt.offloads);
    r = find_ciphers(p, e);
    if (r == 0)
        r = init_parts(p);
    if (r < 0) {
        (void)port_free(p);
        return r == -ENOMEM ? err_set(e, r, "no memory for a UDP port") : r;
    }
    *ret = p;
    return 0;
}

struct port *port_free(struct port *p)
{
    if (!p)
        return NULL;
    for (unsigned i = 0; p->workers && i < p->opt.n_workers; i++)
        rx_deinit(&p->workers[i]);
    free(p->workers);
    if (p->gate.parts)
        control_reclaim(p);
    sender_deinit(&p->sender);
    control_deinit(p);
    mpsc_deinit(&p->handshakes);
    index_deinit(&p->index);
    gate_deinit(&p->gate);
    heap_deinit(&p->timers);
    ratelimit_deinit(&p->ratelimit);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

/* ---- gates and sockets ---- */

void port__close_gates(struct port *p, struct device *d)
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

void port__open_gates(struct port *p, struct device *d)
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

void port__wake(int event_fd)
{
    uint64_t one = 1;

    /* Fails only when the counter is at its end, and then it is readable anyway. */
    if (write(event_fd, &one, sizeof(one)) < 0)
        return;
}

void port__take_wake(int event_fd)
{
    uint64_t ignored;

    /* Fails only when it is unreadable already. */
    if (read(event_fd, &ignored, sizeof(ignored)) < 0)
        return;
}

void port__watch_gso(struct port *p, const struct udp_outbox *out)
{
    if (out->gso || !p->opt.offloads.on[OFFLOAD_UDP_GSO] || atomic_exchange(&p->refuses_gso, true))
        return;
    log_warning("port %u: the offload %s is off from now on: the kernel could not send a segmented "
                "batch",
        p->listen_port, offload_name(OFFLOAD_UDP_GSO));
}

static bool has_sockets(const struct port *p)
{
    const struct udp_sockets *s = port__sockets(p);

    return s->fd[UDP_FAMILY_V4] >= 0 || s->fd[UDP_FAMILY_V6] >= 0;
}

/* Wakes a worker, and waits until it has left the epoll_wait() that it may be in. */
static void await_turn(struct rx_worker *w)
{
    uint32_t before = atomic_load(&w->turn);

    port__wake(w->wake_fd);
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

/* ---- start and stop ---- */

static int start_threads(struct port *p)
{
    const struct cpulist *cpus = &p->opt.cpus;
    struct device *d;
    int r = 0;

    for (; r == 0 && p->n_started < p->opt.n_workers; p->n_started += r == 0)
        r = rx_start(&p->workers[p->n_started],
            cpus->n ? cpus->cpu[cpus->n - 1 - p->n_started % cpus->n] : -1);
    list_foreach(d, &p->devices, siblings)
        if (r == 0)
            r = tx_start(d);
    if (r == 0)
        r = control_start(p);
    p->is_controlled = r == 0;
    return r;
}

int port_start(struct port *p, struct err *e)
{
    struct device *d;
    int r = 0;

    (void)pthread_mutex_lock(&p->lock);
    if (!p->opt.sockets_follow_links)
        r = port__open_sockets(p, e);
    if (r == 0) {
        p->is_running = true;
        r = start_threads(p);
        if (r < 0)
            (void)err_set(e, r, "cannot start a thread: %s", strerror(-r));
    }
    if (r == 0 && source_addr_init(p) < 0)
        log_warning("port %u: changes of routes are not heard of: a peer may be answered from a "
                    "stale address until it is heard again",
            p->listen_port);
    list_foreach(d, &p->devices, siblings)
        if (r == 0)
            device__on_link(d);
    (void)pthread_mutex_unlock(&p->lock);
    if (r < 0)
        port_stop(p);
    return r;
}

void port_stop(struct port *p)
{
    struct device *d;

    atomic_store(&p->is_stopping, true);
    if (p->is_controlled)
        control_stop(p);
    p->is_controlled = false;
    source_addr_deinit(p);
    list_foreach(d, &p->devices, siblings)
        tx_stop(d);
    while (p->n_started > 0) {
        struct rx_worker *w = &p->workers[--p->n_started];

        port__wake(w->wake_fd);
        (void)pthread_join(w->thread, NULL);
    }
    p->is_running = false;
    port__close_sockets(p);
}

/* ---- asked by anybody ---- */

uint16_t port_listen_port(struct port *p)
{
    uint16_t listen_port;

    (void)pthread_mutex_lock(&p->lock);
    listen_port = p->listen_port;
    (void)pthread_mutex_unlock(&p->lock);
    return listen_port;
}

const struct offloads *port_offloads(const struct port *p)
{
    return &p->opt.offloads;
}

void port__drops(struct port *p, uint64_t sum[static DROP_REASON_N])
{
    const struct device *d;

    for (int i = 0; i < DROP_REASON_N; i++)
        sum[i] += p->past_drops[i];
    drops_add(&p->drops, sum);
    for (unsigned i = 0; i < p->opt.n_workers; i++)
        drops_add(&p->workers[i].drops, sum);
    list_foreach(d, &p->devices, siblings)
        tx_drops(d, sum);
}

void port_drops(struct port *p, uint64_t sum[static DROP_REASON_N])
{
    (void)pthread_mutex_lock(&p->lock);
    port__drops(p, sum);
    (void)pthread_mutex_unlock(&p->lock);
}

void port__set_filter(struct port *p, port_filter_fn fn, void *ctx)
{
    gate_close(&p->gate);
    p->filter = fn;
    p->filter_ctx = ctx;
    gate_open(&p->gate);
}

void port_set_filter(struct port *p, port_filter_fn fn, void *ctx)
{
    (void)pthread_mutex_lock(&p->lock);
    port__set_filter(p, fn, ctx);
    (void)pthread_mutex_unlock(&p->lock);
}

int port_send(struct port *p, const struct udp_run *run)
{
    struct udp_outbox *out = &p->sender.out;
    uint64_t failed;
    int r = 0;

    (void)pthread_mutex_lock(&p->lock);
    failed = out->n_failed;
    udp_outbox_add(out, port__sockets(p), run);
    udp_outbox_flush(out, port__sockets(p));
    if (out->n_failed != failed)
        r = -out->last_error;
    (void)pthread_mutex_unlock(&p->lock);
    return r;
}

void port_quiesce(struct port *p)
{
    (void)pthread_mutex_lock(&p->lock);
    gate_close(&p->gate);
    gate_open(&p->gate);
    (void)pthread_mutex_unlock(&p->lock);
}
