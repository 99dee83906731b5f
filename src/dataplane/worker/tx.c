/*
 * tx.c - the way out, first half: interface, classify, cut, look up.
 *
 * A worker has some of the TUN queues. All packets of an inner flow wait in
 * one queue (net/tun/tun.h), and a worker handles each in order, so flows stay
 * in order however many workers there are. It reads its queues in turn, and
 * first those that were empty before (sched.h), so a flow with little to send
 * is not behind all that others have ready. The second half is sender.c.
 *
 * Lending. While a port is quiet, a worker's thread lends its queues to an rx
 * worker, which then waits for both directions: an answer leaves by the thread
 * that wrote the question to the interface, and no other has to be woken for
 * it. When there is much to do, the rx worker returns them, and each direction
 * has a thread again. All of the worker belongs to whom its queues belong, so it
 * changes hands with is_lent, and frames leave in the order of reading.
 *
 *   collect   read frames, check them (classify), cut them into packets in the
 *             batch's buffer, each with room around it for header and tag
 *   route     one allowed-IPs look-up a frame, inside the gate
 *   hand over neighbouring frames for one peer go to the sender together
 *
 * tx_main() is the thread, turn() one turn of it. docs/DATAPLANE.md has
 * the walk.
 */
#include "worker/tx.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/secret.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "worker/tx_stages.h"

/* Frames of one queue: @n_bytes of them, or all there are. False when the batch is full. */
static bool collect_from(struct tx_worker *w, unsigned queue, uint32_t n_bytes)
{
    uint32_t end = w->batch.len + n_bytes;

    while (w->batch.len < end) {
        if (!tx_read_frame(w, queue)) {
            sched_queues_on_empty(&w->sched.queues, queue);
            return true;
        }
        if (!tx_cut_frame(w))
            return false;
    }
    return w->batch.len < BATCH_GOAL;
}

/* The frame has packets that are not cut yet. */
static inline bool is_cutting(const struct tx_worker *w)
{
    return w->next < w->plan.n;
}

static bool has_more(const struct tx_worker *w)
{
    return w->sched.queues.ready || is_cutting(w);
}

/* Stage: collect. Fills the batch: from each queue that may have frames its share, in
 * sched.h's order. */
static void collect(struct tx_worker *w)
{
    unsigned n_ready = queue_sched_begin(&w->sched);
    int queue;

    if (is_cutting(w) && !tx_cut_frame(w))
        return;
    while ((queue = queue_sched_next(&w->sched)) >= 0)
        if (!collect_from(w, (unsigned)queue, BATCH_GOAL / n_ready))
            return;
}

/* ---- what waits ---- */

/* Learns which queues have frames. False when the interface is gone. */
static bool poll_queues(struct tx_worker *w)
{
    uint64_t ready;

    if (!tx_poll_queues(w, &ready))
        return false;
    sched_queues_on_ready(&w->sched.queues, ready);
    return true;
}

/* Sleeps until there is a frame or the worker is woken; does not sleep while it has frames to send.
 * False when the interface is gone. */
static bool wait_frames(struct tx_worker *w)
{
    struct pollfd pfds[] = {
        {.fd = w->wake_fd, .events = POLLIN}, {.fd = w->queues_fd, .events = POLLIN}};

    if (has_more(w))
        return poll_queues(w);
    if (poll(pfds, 2, -1) <= 0)
        return true;
    if (pfds[0].revents)
        (void)wakeup_clear(w->wake_fd);
    return !pfds[1].revents || poll_queues(w);
}

/* ---- lending ---- */

static void lend(struct tx_worker *w)
{
    atomic_fetch_add_explicit(&w->device->tx.n_lent, 1, memory_order_relaxed);
    /* Release: all that was done here is seen there, which may be from now on. */
    atomic_store_explicit(&w->is_lent, true, memory_order_release);
    rx_waiter_set_wanted(w->rx, &w->lent, true);
}

/* Sends what waits in queues that were lent, on the rx worker's thread: inside the port's gate,
 * which is closed whenever the device's is. False when the interface is gone. */
static bool serve(struct tx_worker *w)
{
    int queue;

    if (!poll_queues(w))
        return false;
    (void)queue_sched_begin(&w->sched);
    queue = queue_sched_next(&w->sched);
    if (queue < 0)
        return true;
    /* The first frame, which is mostly the only one, leaves before a second one is looked for. Then
     * the others leave; no frame is left half cut. */
    (void)collect_from(w, (unsigned)queue, 1);
    for (unsigned n = 0; w->batch.n > 0; n++) {
        tx_send_batch(w);
        if (n == 0 || is_cutting(w))
            collect(w);
    }
    return true;
}

/* Queues that were lent have frames; or the interface is gone, which their own thread is to find
 * out and to tell of. They go back to it when there is more to do. */
static void on_lent(void *ctx)
{
    struct tx_worker *w = ctx;

    /* They may have been given back since the event. */
    if (!atomic_load_explicit(&w->is_lent, memory_order_acquire))
        return;
    if (load_is_quiet(&w->device->port->load, clock_now()) &&
        (tx_shaped_is_on(w) ? tx_shaped_serve(w) : serve(w)))
        return;
    rx_waiter_set_wanted(w->rx, &w->lent, false);
    atomic_store_explicit(&w->is_lent, false, memory_order_release);
    wakeup_signal(w->wake_fd);
}

/* ---- the thread ---- */

/* One turn of the way out without a rate: every stage is called from here, or from serve(). False
 * when the interface is gone. */
static bool turn(struct tx_worker *w)
{
    if (!wait_frames(w))
        return false;
    collect(w);
    if (w->batch.n > 0) {
        gate_enter(&w->device->gate, w->i);
        tx_send_batch(w);
        gate_leave(&w->device->gate, w->i);
    }
    if (!has_more(w) && load_is_quiet(&w->device->port->load, w->now))
        lend(w);
    return true;
}

static void *tx_main(void *arg)
{
    struct tx_worker *w = arg;
    struct pollfd wake = {.fd = w->wake_fd, .events = POLLIN};
    bool is_gone = false;

    while (!is_gone && !atomic_load(&w->device->tx.is_stopping)) {
        /* Acquire: all that was done with the queues before they were given back is seen. What
         * comes next is then decided anew: a turn without a rate would lend them again at once,
         * though with a rate something may wait for its time. */
        if (atomic_load_explicit(&w->is_lent, memory_order_acquire)) {
            if (poll(&wake, 1, -1) > 0)
                (void)wakeup_clear(w->wake_fd);
            continue;
        }
        /* A frame that is half cut is sent before a turn that keeps a rate. */
        if (tx_shaped_is_on(w) && !is_cutting(w)) {
            enum tx_shaped_result result = tx_shaped_turn(w);

            if (result == TX_SHAPED_IDLE)
                lend(w);
            is_gone = result == TX_SHAPED_GONE;
        } else {
            is_gone = !turn(w);
        }
    }
    if (is_gone) {
        atomic_store(&w->device->tx.has_vanished, true);
        loop_wake(&w->device->port->loop);
    }
    return NULL;
}

static int worker_init(struct tx_worker *w, struct device *d, unsigned i)
{
    *w = (struct tx_worker){.device = d,
        .rx = &d->port->waiters[i % d->port->opt.n_workers],
        .i = i,
        .first = i * d->tun.each,
        .queues_fd = -1,
        .wake_fd = -1};
    list_init(&w->lent.siblings);
    w->wake_fd = wakeup_open();
    w->queues_fd = epoll_create1(EPOLL_CLOEXEC);
    if (w->wake_fd < 0 || w->queues_fd < 0)
        return -errno;
    for (uint32_t q = 0; q < d->tun.each; q++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.u32 = q};

        if (epoll_ctl(w->queues_fd, EPOLL_CTL_ADD, d->tun.fd[w->first + q], &ev) < 0)
            return -errno;
    }
    w->frame = w->own_frame = malloc(TUN_FRAME_MAX);
    w->batch.buf = malloc(BATCH_SIZE);
    w->pieces.buf = malloc(CUT_SIZE);
    w->pieces.id = rng_u32(&d->port->rng);
    if (!w->frame || !w->batch.buf || !w->pieces.buf || tx_shaper_new(&w->shaper) < 0)
        return -ENOMEM;
    return sender_init(&w->sender, d->port, &w->drops, true);
}

int tx_init(struct device *d)
{
    int r = 0;

    d->tx.workers = calloc(tun_readers(&d->tun), sizeof(*d->tx.workers));
    if (!d->tx.workers)
        return -ENOMEM;
    for (unsigned i = 0; r == 0 && i < tun_readers(&d->tun); i++)
        r = worker_init(&d->tx.workers[i], d, i);
    return r;
}

int tx_start(struct device *d)
{
    const struct cpulist *cpus = &d->port->opt.cpus;

    for (unsigned i = 0; i < tun_readers(&d->tun); i++) {
        struct tx_worker *w = &d->tx.workers[i];
        char name[32];
        int r;

        w->lent = (struct rx_event){.fd = w->queues_fd, .fn = on_lent, .ctx = w};
        r = rx_waiter_add(w->rx, &w->lent);
        if (r < 0)
            return r;
        (void)snprintf(name, sizeof(name), "tx%u-%s", i, d->name);
        r = thread_start(&w->thread, name, cpus->n ? cpus->cpu[i % cpus->n] : -1, tx_main, w);
        if (r < 0) {
            rx_waiter_remove(w->rx, &w->lent);
            return r;
        }
        w->is_started = true;
    }
    return 0;
}

void tx_stop(struct device *d)
{
    atomic_store(&d->tx.is_stopping, true);
    for (unsigned i = 0; d->tx.workers && i < tun_readers(&d->tun); i++) {
        struct tx_worker *w = &d->tx.workers[i];

        if (!w->is_started)
            continue;
        wakeup_signal(w->wake_fd);
        (void)pthread_join(w->thread, NULL);
        w->is_started = false;
        rx_waiter_remove(w->rx, &w->lent);
    }
}

void tx_deinit(struct device *d)
{
    for (unsigned i = 0; d->tx.workers && i < tun_readers(&d->tun); i++) {
        struct tx_worker *w = &d->tx.workers[i];

        if (!w->device)
            break; /* one before it could not be made */
        sender_deinit(&w->sender);
        free(w->own_frame);
        w->shaper = tx_shaper_free(w->shaper);
        free(w->batch.buf);
        free(w->pieces.buf);
        closep(&w->queues_fd);
        closep(&w->wake_fd);
    }
    free(d->tx.workers);
    d->tx.workers = NULL;
}

void tx_wake(struct device *d)
{
    for (unsigned i = 0; d->tx.workers && i < tun_readers(&d->tun); i++)
        wakeup_signal(d->tx.workers[i].wake_fd);
}

void tx_drops(const struct device *d, uint64_t sum[static DROP_REASON_N])
{
    for (unsigned i = 0; d->tx.workers && i < tun_readers(&d->tun); i++)
        drops_add(&d->tx.workers[i].drops, sum);
}
