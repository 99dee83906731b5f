/*
 * tx.c - the way out, first half: interface, classify, cut, look up.
 *
 * A worker has some of the TUN queues. All packets of an inner flow wait in
 * one queue (net/tun/tun_steer.h), and a worker handles each in order, so flows stay
 * in order however many workers there are. It reads its queues in turn, and
 * first those that were empty before (queue_sched.h), so a flow with little to send
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
 * tx_main() is the thread, send_some() one turn of it. docs/DATAPLANE.md has
 * the walk.
 */
#include "worker/tx.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/drop.h"
#include "os/clock.h"
#include "os/fd_cleanup.h"
#include "os/wakeup.h"
#include "packet/gso.h"
#include "packet/icmp.h"
#include "packet/queue_sched.h"
#include "peer/peer.h"
#include "peer/sender.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "shared/rx_waiter.h"
#include "wire/ip.h"
#include "wire/wg.h"

#define BATCH_PACKETS 128
#define BATCH_ROOM    (96 * 1024)

/* Enough for one send call; waiting for more would only add delay. */
#define BATCH_GOAL 57344

/* The largest inner packet: with its padding it is a message of one datagram. */
#define PACKET_MAX ((UDP_RUN_BYTES_MAX - WG_DATA_OVERHEAD) / WG_PADDING * WG_PADDING)

static_assert(TUN_QUEUES_EACH <= QUEUE_SCHED_MAX, "a bit for each queue");

/** A frame's place in the batch. */
struct tx_frame {
    struct ip_addr dst; /* inner */
    uint16_t first;     /* its packets */
    uint16_t n;
    uint16_t longest;  /* bytes of the longest of them, whichever batch that is in */
    bool may_fragment; /* IPv4 with DF clear: never too big */
    bool is_v6;
    uint8_t tos;       /* for the datagrams */
    struct peer *peer; /* borrows, inside the gate; NULL: no route */
};

/** What is collected before it is sent. */
struct tx_batch {
    uint8_t *buf; /* owns BATCH_ROOM bytes */
    uint32_t len; /* used */
    unsigned n;   /* packets */
    unsigned n_frames;
    struct packet pkts[BATCH_PACKETS];
    struct tx_frame frames[BATCH_PACKETS];
};

/**
 * A sending thread. All that changes, but @drops, belongs to that thread, or to the rx worker while
 * the queues are lent to it.
 */
struct tx_worker {
    struct device *device;    /* pins */
    struct rx_waiter *rx;     /* pins: of the rx worker that its queues are lent to */
    unsigned i;               /* its part of the device's gate */
    unsigned first;           /* of its queues, among the device's */
    struct queue_sched sched; /* of them, counted from the first */
    int queues_fd;            /* owns: epoll of them */
    int wake_fd;              /* owns: see os/wakeup.h */
    struct rx_event lent;     /* of queues_fd, while the queues are lent */
    pthread_t thread;
    bool is_started;
    _Atomic bool is_lent; /* set by the thread, cleared by the rx worker */
    nsec_t now;           /* of the latest batch */
    struct sender sender;
    struct tx_batch batch;
    struct rate icmp; /* of answers to the inner sender */
    struct drops drops;

    /* The frame being cut; it may take several batches. */
    uint8_t *frame; /* owns TUN_FRAME_MAX bytes */
    struct ip_info ip;
    struct gso_plan plan;
    uint32_t next; /* packet to be cut next; == plan.n: frame done */
};

static void drop(struct tx_worker *w, enum drop_reason reason)
{
    drop_count(&w->drops, reason, 1);
}

static int queue_fd(const struct tx_worker *w, unsigned i)
{
    return w->device->tun.fd[w->first + i];
}

/* No datagram carries that much, whatever the interface's MTU says. */
static void refuse_longest(struct tx_worker *w)
{
    drop(w, DROP_TOO_BIG);
    icmp_send_too_big(
        &w->icmp, queue_fd(w, 0), w->frame + TUN_HEADER, w->ip.len, PACKET_MAX, clock_now());
    w->next = w->plan.n;
}

/* Stage: classify. Is this a frame that we can cut? */
static bool classify(struct tx_worker *w, size_t len)
{
    struct virtio_net_hdr note;
    int r;

    if (len <= TUN_HEADER) {
        drop(w, DROP_INNER_LENGTH);
        return false;
    }
    memcpy(&note, w->frame, sizeof(note));
    r = ip_parse(w->frame + TUN_HEADER, len - TUN_HEADER, &w->ip);
    if (r != 0) {
        drop(w, r == IP_E_NOT_IP ? DROP_NOT_IP : DROP_INNER_LENGTH);
        return false;
    }
    if (!gso_plan_make(&w->plan, &note, w->frame + TUN_HEADER, &w->ip)) {
        drop(w, DROP_OFFLOAD_INVALID);
        return false;
    }
    if (gso_len(&w->plan, 0) > PACKET_MAX) {
        refuse_longest(w);
        return false;
    }
    w->next = 0;
    return true;
}

/* The next frame of a queue that can be cut. False when it is empty, or gone (wait_frames()). */
static bool read_frame(struct tx_worker *w, unsigned queue)
{
    for (;;) {
        ssize_t n = read(queue_fd(w, queue), w->frame, TUN_FRAME_MAX);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (classify(w, (size_t)n))
            return true;
    }
}

/* Stage: cut. As many packets of the frame as fit; false when the batch is full. */
static bool cut_frame(struct tx_worker *w)
{
    unsigned mtu = atomic_load_explicit(&w->device->mtu, memory_order_relaxed);
    struct tx_batch *b = &w->batch;
    struct tx_frame *f = &b->frames[b->n_frames];
    const uint8_t *p = w->frame + TUN_HEADER;
    bool fits = true;

    if (b->n == BATCH_PACKETS)
        return false;
    *f = (struct tx_frame){.dst = w->ip.dst,
        .first = (uint16_t)b->n,
        .longest = (uint16_t)gso_len(&w->plan, 0),
        .may_fragment = w->ip.version == 4 && ip_v4_may_fragment(p),
        .is_v6 = w->ip.version == 6,
        .tos = ip_ecn_encapsulate(w->ip.tos)};
    while (w->next < w->plan.n) {
        uint32_t len = gso_len(&w->plan, w->next);
        struct packet pkt = {
            .off = b->len, .len = (uint16_t)len, .padded = (uint16_t)wg_padded(len, mtu)};
        uint8_t *inner = b->buf + b->len + sizeof(struct wg_data);

        fits = b->n < BATCH_PACKETS && b->len + packet_room(&pkt) <= BATCH_ROOM;
        if (!fits)
            break;
        gso_cut(&w->plan, p, &w->ip, w->next++, inner);
        memset(inner + len, 0, pkt.padded - len);
        b->pkts[b->n++] = pkt;
        b->len += packet_room(&pkt);
        f->n++;
    }
    if (f->n > 0)
        b->n_frames++;
    return fits;
}

/* Frames of one queue: @n_bytes of them, or all there are. False when the batch is full. */
static bool collect_from(struct tx_worker *w, unsigned queue, uint32_t n_bytes)
{
    uint32_t end = w->batch.len + n_bytes;

    while (w->batch.len < end) {
        if (!read_frame(w, queue)) {
            queue_sched_on_empty(&w->sched, queue);
            return true;
        }
        if (!cut_frame(w))
            return false;
    }
    return w->batch.len < BATCH_GOAL;
}

static bool is_cutting(const struct tx_worker *w)
{
    return w->next < w->plan.n;
}

static bool has_more(const struct tx_worker *w)
{
    return w->sched.ready || is_cutting(w);
}

/* Stage: collect. Fills the batch: from each queue that may have frames its share, in
 * queue_sched.h's order. */
static void collect(struct tx_worker *w)
{
    unsigned n_ready = queue_sched_begin(&w->sched);
    int queue;

    if (is_cutting(w) && !cut_frame(w))
        return;
    while ((queue = queue_sched_next(&w->sched)) >= 0)
        if (!collect_from(w, (unsigned)queue, BATCH_GOAL / n_ready))
            return;
}

/* Stage: route. The peer whose allowed IPs have each frame's destination. */
static void route(struct tx_worker *w)
{
    struct tx_batch *b = &w->batch;

    for (unsigned i = 0; i < b->n_frames; i++) {
        struct allowedips_owner *owner = allowedips_find(&w->device->allowed, &b->frames[i].dst);

        b->frames[i].peer = owner ? container_of(owner, struct peer, allowed) : NULL;
    }
}

/* Tells the inner sender that there is no route, as the kernel's WireGuard does. */
static void refuse(struct tx_worker *w, const struct tx_frame *f, nsec_t now)
{
    const struct packet *pkt = &w->batch.pkts[f->first];

    drop_count(&w->drops, DROP_NO_ROUTE, f->n);
    icmp_send_unreachable(
        &w->icmp, queue_fd(w, 0), w->batch.buf + pkt->off + sizeof(struct wg_data), pkt->len, now);
}

/* The peer's MTU if the frame is too big for it, else 0. A packet that may be fragmented is never
 * too big: its datagrams are fragmented. */
static uint16_t exceeded_mtu(const struct tx_frame *f)
{
    uint16_t mtu = atomic_load_explicit(&f->peer->mtu, memory_order_relaxed);

    if (mtu == 0 || f->may_fragment)
        return 0;
    /* No sender of IPv6 may be told that less fits (RFC 8200 section 5): then, too, the datagram is
     * fragmented. */
    if (f->is_v6 && mtu < IP_V6_MTU_MIN)
        mtu = IP_V6_MTU_MIN;
    return f->longest > mtu ? mtu : 0;
}

/* Tells the inner sender what would fit, as a router before a narrow link does. */
static void refuse_size(struct tx_worker *w, const struct tx_frame *f, uint16_t mtu, nsec_t now)
{
    const struct packet *pkt = &w->batch.pkts[f->first];

    drop_count(&w->drops, DROP_TOO_BIG, f->n);
    icmp_send_too_big(&w->icmp, queue_fd(w, 0), w->batch.buf + pkt->off + sizeof(struct wg_data),
        pkt->len, mtu, now);
}

static bool goes_with(const struct tx_frame *next, const struct tx_frame *f)
{
    return next->peer == f->peer && next->tos == f->tos && exceeded_mtu(next) == 0;
}

/* Stage: hand over. Neighbouring frames for one peer go to the sender together. */
static void hand_over(struct tx_worker *w)
{
    struct tx_batch *b = &w->batch;
    nsec_t now = w->now;

    for (unsigned i = 0, next; i < b->n_frames; i = next) {
        const struct tx_frame *f = &b->frames[i];
        unsigned n = f->n;
        uint16_t mtu;

        next = i + 1;
        if (!f->peer) {
            refuse(w, f, now);
            continue;
        }
        mtu = exceeded_mtu(f);
        if (mtu) {
            refuse_size(w, f, mtu, now);
            continue;
        }
        for (; next < b->n_frames && goes_with(&b->frames[next], f); next++)
            n += b->frames[next].n;
        sender_add(&w->sender, f->peer, b->buf, &b->pkts[f->first], n, f->tos, now);
    }
}

/* Sends what was collected. Inside the device's gate, or the port's. */
static void send_batch(struct tx_worker *w)
{
    w->now = clock_now();
    load_count(&w->device->port->load, w->batch.n, w->now);
    route(w);
    hand_over(w);
    sender_flush(&w->sender);
    w->batch.n = w->batch.n_frames = w->batch.len = 0;
}

/* ---- what waits ---- */

/* Learns which queues have frames. False when the interface is gone. */
static bool poll_queues(struct tx_worker *w)
{
    struct epoll_event events[TUN_QUEUES_EACH];
    int n = epoll_wait(w->queues_fd, events, TUN_QUEUES_EACH, 0);
    uint64_t ready = 0;

    for (int i = 0; i < n; i++) {
        if (events[i].events & (EPOLLERR | EPOLLHUP))
            return false;
        ready |= UINT64_C(1) << events[i].data.u32;
    }
    queue_sched_on_ready(&w->sched, ready);
    return true;
}

/* Sleeps until there is a frame or the worker is woken; does not sleep while it has frames to send.
 * False when the interface is gone. */
static bool wait_frames(struct tx_worker *w)
{
    bool is_lent = atomic_load_explicit(&w->is_lent, memory_order_acquire);
    struct pollfd pfds[] = {
        {.fd = w->wake_fd, .events = POLLIN}, {.fd = w->queues_fd, .events = POLLIN}};

    if (!is_lent && has_more(w))
        return poll_queues(w);
    if (poll(pfds, is_lent ? 1 : 2, -1) <= 0)
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

/* Gives the queues back to their thread. */
static void give_back(struct tx_worker *w)
{
    rx_waiter_set_wanted(w->rx, &w->lent, false);
    atomic_store_explicit(&w->is_lent, false, memory_order_release);
    wakeup_signal(w->wake_fd);
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
        send_batch(w);
        if (n == 0 || is_cutting(w))
            collect(w);
    }
    return true;
}

/* Queues that were lent have frames; or the interface is gone, which their own thread is to find
 * out and to tell of. */
static void on_lent(void *ctx)
{
    struct tx_worker *w = ctx;

    /* They may have been given back since the event. */
    if (!atomic_load_explicit(&w->is_lent, memory_order_acquire))
        return;
    if (!load_is_quiet(&w->device->port->load, clock_now()) || !serve(w))
        give_back(w);
}

/* ---- the thread ---- */

/* One turn of the way out: every stage is called from here, or from serve(). */
static void send_some(struct tx_worker *w)
{
    collect(w);
    if (w->batch.n == 0)
        return;
    gate_enter(&w->device->gate, w->i);
    send_batch(w);
    gate_leave(&w->device->gate, w->i);
}

static void *tx_main(void *arg)
{
    struct tx_worker *w = arg;

    while (!atomic_load(&w->device->tx.is_stopping)) {
        if (!wait_frames(w)) {
            atomic_store(&w->device->tx.has_vanished, true);
            loop_wake(&w->device->port->loop);
            break;
        }
        if (atomic_load_explicit(&w->is_lent, memory_order_acquire))
            continue;
        send_some(w);
        if (!has_more(w) && load_is_quiet(&w->device->port->load, w->now))
            lend(w);
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

        if (epoll_ctl(w->queues_fd, EPOLL_CTL_ADD, queue_fd(w, q), &ev) < 0)
            return -errno;
    }
    w->frame = malloc(TUN_FRAME_MAX);
    w->batch.buf = malloc(BATCH_ROOM);
    if (!w->frame || !w->batch.buf)
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
        free(w->frame);
        free(w->batch.buf);
        closep(&w->queues_fd);
        closep(&w->wake_fd);
    }
    free(d->tx.workers);
    d->tx.workers = NULL;
}

void tx_drops(const struct device *d, uint64_t sum[static DROP_REASON_N])
{
    for (unsigned i = 0; d->tx.workers && i < tun_readers(&d->tun); i++)
        drops_add(&d->tx.workers[i].drops, sum);
}
