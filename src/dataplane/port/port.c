/* port.c - see port.h: life of a port, and what any thread may ask of it. */
#include "port/port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/err.h"
#include "os/clock.h"
#include "os/log.h"
#include "peer/peer.h"
#include "peer/relay_device.h"
#include "peer/sender.h"
#include "port/device_config.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "worker/rx.h"
#include "worker/tx.h"

/*
 * ---- the control thread ----
 *
 * It sleeps in the loop (loop.h) without the port's lock and does everything else with it:
 * handshake messages from the rx workers, peers that a data thread has told about, timers, and
 * whatever else has a descriptor in the loop.
 */

/* Handshake messages taken before timers and descriptors get their turn. */
#define HANDSHAKES_PER_TURN 32

/*
 * How much later than it is due a peer's timer may run. None is for less than Rekey-Timeout, five
 * seconds, and thousands of peers have theirs at as many times. The kernel's WireGuard has such
 * timers run up to an eighth later.
 */
#define TIMER_SLACK (50 * NSEC_PER_MSEC)

/*
 * Where it shares a core with a data thread that never rests, six parts of seven are control's, as
 * long as it has work: a stream whose keys are due stops until its handshake is done, and a hub
 * that was restarted has handshakes with all at once. No stranger gets that share for his messages,
 * for he is asked for a cookie, and then limited.
 */
#define CONTROL_NICE (-8)

/* True when more wait. */
static bool run_handshakes(struct port *p, nsec_t now)
{
    for (unsigned i = 0; i < HANDSHAKES_PER_TURN; i++) {
        struct peer *peer;

        if (!handshake_io_take_next(p, now, &peer))
            return false;
        if (peer)
            peer_poll(peer, now);
    }
    return true;
}

/* Keypairs that wait to be freed are, before their time, when they are so many. */
#define RECLAIM_MANY 1024

/* Whatever is due at @now. Returns when something is due next. */
static nsec_t run_timers(struct port *p, nsec_t now)
{
    struct device *d;
    nsec_t due;
    nsec_t polls;

    peer_poll_due(p, now);
    if (p->retired.due <= now || p->retired.n >= RECLAIM_MANY)
        retire_reclaim(p);
    due = nsec_min(p->retired.due, source_addr_tick(p->source, now));
    due = nsec_min(due, device_link_bind_again(p, now));
    list_foreach(d, &p->devices, siblings)
        due = nsec_min(due, relay_device_expire(d, now));
    /* The next timers of peers come last, since the others may have armed some. Those that are due
     * at about the same time share a turn. */
    polls = heap_due(&p->polls.timers);
    return nsec_min(due, polls <= now ? polls : nsec_max(polls, now + TIMER_SLACK));
}

/* Interfaces whose tx workers could not read any more. */
static void find_vanished(struct port *p)
{
    struct device *d;

    list_foreach(d, &p->devices, siblings)
        if (atomic_load(&d->tx.has_vanished))
            device_link_read(d);
}

static void *control_main(void *arg)
{
    struct port *p = arg;
    nsec_t due = 0; /* at once: there may be deadlines from before */
    bool busy;

    /* On Linux it is a thread's, and 0 means the caller. It takes CAP_SYS_NICE. */
    (void)setpriority(PRIO_PROCESS, 0, CONTROL_NICE);
    (void)pthread_mutex_lock(&p->lock);
    while (!atomic_load(&p->is_stopping)) {
        if (loop_wait(&p->loop, &p->lock, due))
            find_vanished(p);
        busy = run_handshakes(p, clock_now());
        peer_poll_notified(p);
        due = run_timers(p, clock_now());
        if (busy)
            due = 0;
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int init_workers(struct port *p)
{
    int r = 0;

    p->waiters = calloc(p->opt.n_workers, sizeof(*p->waiters));
    p->workers = calloc(p->opt.n_workers, sizeof(*p->workers));
    if (!p->waiters || !p->workers)
        return -ENOMEM;
    for (unsigned i = 0; r == 0 && i < p->opt.n_workers; i++) {
        r = rx_waiter_init(&p->waiters[i], &p->gate, &p->is_stopping);
        if (r == 0)
            r = rx_init(&p->workers[i], p, i);
    }
    return r;
}

static int init_parts(struct port *p)
{
    int r = gate_init(&p->gate, p->opt.n_workers);

    if (r == 0)
        r = index_init(&p->index);
    if (r == 0)
        r = handshake_queue_init(&p->handshakes, p->opt.n_workers,
            p->opt.n_handshakes ? p->opt.n_handshakes : HANDSHAKES_PER_WORKER);
    if (r == 0)
        r = handshake_limits_new(&p->limits, &p->rng);
    if (r == 0)
        r = loop_init(&p->loop);
    if (r == 0)
        r = source_addr_new(&p->source, p);
    if (r == 0)
        r = init_workers(p);
    return r == 0 ? sender_new(&p->sender, p) : r;
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
            return err_set(
                e, -EINVAL, "libcrypto does not compute %s correctly", aead_cipher_names[c]);
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
    p->sockets = (struct port_sockets){
        .listen_port = opt->listen_port, .fwmark = opt->fwmark, .retry_at = NSEC_NEVER};
    p->rng = rng_kernel();
    p->loop = (struct loop)LOOP_NULL;
    p->frames.fd = -1;
    p->retired = (struct retired)RETIRED_NULL;
    p->stamps = (struct tai64n_bounds)TAI64N_UNBOUNDED;
    list_init(&p->devices);
    (void)pthread_mutex_init(&p->lock, NULL);
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
    for (unsigned i = 0; p->waiters && i < p->opt.n_workers; i++)
        rx_waiter_deinit(&p->waiters[i]);
    free(p->workers);
    free(p->waiters);
    if (p->gate.parts)
        retire_reclaim(p);
    p->sender = sender_free(p->sender);
    p->source = source_addr_free(p->source);
    loop_deinit(&p->loop);
    p->limits = handshake_limits_free(p->limits);
    mpsc_deinit(&p->handshakes.ring);
    index_deinit(&p->index);
    gate_deinit(&p->gate);
    heap_deinit(&p->polls.timers);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

/* ---- start and stop ---- */

/* Under the port's lock. */
static int start_threads(struct port *p)
{
    const struct cpulist *cpus = &p->opt.cpus;
    struct device *d;
    int r = 0;

    for (; r == 0 && p->n_receiving < p->opt.n_workers; p->n_receiving += r == 0)
        r = rx_start(&p->workers[p->n_receiving],
            cpus->n ? cpus->cpu[cpus->n - 1 - p->n_receiving % cpus->n] : -1);
    list_foreach(d, &p->devices, siblings)
        if (r == 0)
            r = tx_start(d);
    if (r == 0)
        r = thread_start(
            &p->control_thread, "control", cpus->n ? cpus->cpu[cpus->n - 1] : -1, control_main, p);
    p->is_controlled = r == 0;
    return r;
}

int port_start(struct port *p, struct err *e)
{
    struct device *d;
    int r = 0;

    (void)pthread_mutex_lock(&p->lock);
    if (!p->opt.sockets_follow_links)
        r = port_sockets_open(p, e);
    if (r == 0) {
        p->is_running = true;
        r = start_threads(p);
        if (r < 0)
            (void)err_set(e, r, "cannot start a thread: %s", strerror(-r));
    }
    if (r == 0 && source_addr_start(p->source) < 0)
        log_warning("port %u: changes of routes are not heard of: a peer may be answered from a "
                    "stale address until it is heard again",
            p->sockets.listen_port);
    list_foreach(d, &p->devices, siblings)
        if (r == 0)
            device_link_read(d);
    (void)pthread_mutex_unlock(&p->lock);
    if (r < 0)
        port_stop(p);
    return r;
}

void port_stop(struct port *p)
{
    struct device *d;

    atomic_store(&p->is_stopping, true);
    if (p->is_controlled) {
        loop_wake(&p->loop);
        (void)pthread_join(p->control_thread, NULL);
    }
    p->is_controlled = false;
    source_addr_stop(p->source);
    (void)pthread_mutex_lock(&p->lock);
    list_foreach(d, &p->devices, siblings)
        tx_stop(d);
    (void)pthread_mutex_unlock(&p->lock);
    while (p->n_receiving > 0) {
        struct rx_worker *w = &p->workers[--p->n_receiving];

        wakeup_signal(w->waiter->wake_fd);
        (void)pthread_join(w->thread, NULL);
    }
    p->is_running = false;
    port_sockets_close(p);
}

/* ---- asked by anybody ---- */

void port_sum_drops(struct port *p, uint64_t sum[static DROP_REASON_N])
{
    const struct device *d;

    drops_add(&p->drops, sum);
    for (unsigned i = 0; i < p->opt.n_workers; i++)
        drops_add(&p->workers[i].drops, sum);
    list_foreach(d, &p->devices, siblings)
        tx_drops(d, sum);
}

void port_drops(struct port *p, uint64_t sum[static DROP_REASON_N])
{
    (void)pthread_mutex_lock(&p->lock);
    port_sum_drops(p, sum);
    (void)pthread_mutex_unlock(&p->lock);
}

nsec_t port_bound_timestamps(struct port *p, const struct tai64n_bounds *b)
{
    nsec_t sent;

    (void)pthread_mutex_lock(&p->lock);
    p->stamps = *b;
    sent = tai64n_wall(&p->stamped);
    (void)pthread_mutex_unlock(&p->lock);
    return sent;
}

void port_set_filter(struct port *p, port_filter_fn fn, void *ctx)
{
    (void)pthread_mutex_lock(&p->lock);
    port_gates_set_filter(p, fn, ctx);
    (void)pthread_mutex_unlock(&p->lock);
}
