/*
 * rx.c - the way in: socket, split, filter, and on by kind; data messages to the interface.
 *
 *   receive   runs of datagrams, with UDP_GRO up to 64 KiB each
 *   split     into runs of data with one receiver index; anything else goes on alone (run_split.h)
 *   filter    may take the run (relay, STUN); see port_tx.h
 *   data      look up   the keypair, by the receiver index
 *             open      all messages of the run, in place
 *             check     the counters, against the replay window, once for the run
 *             deliver   inner header and source
 *             merge     continuing packets of a flow (gro.h)
 *             rules     may it come in? Once for each frame (access_filter.h)
 *             write     one call for each frame, whose pieces lie where they were decrypted
 *             learn     what the peer's state has of authentic packets
 *   path frames   go to the agent: frame_client.h
 *   handshakes    handshake messages with a good mac1 go to the control thread
 *
 * Several workers may have packets of one peer at once (IPv4 and IPv6, or a move); what they share
 * is locked once a run.
 *
 * The functions stand in the order of the calls from the last to the first:
 * receive() is the one to begin with. docs/DATAPLANE.md has the walk.
 */
#include "worker/rx.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "access/access_filter.h"
#include "base/drop.h"
#include "crypto/aead.h"
#include "os/clock.h"
#include "os/log.h"
#include "packet/run_split.h"
#include "peer/peer.h"
#include "shared/device_state.h"
#include "shared/frame_client.h"
#include "shared/index.h"
#include "shared/port_state.h"
#include "wire/ip.h"
#include "wire/wg.h"

static void drop(struct rx_worker *w, enum drop_reason reason, uint64_t n)
{
    drop_count(&w->drops, reason, n);
}

/* ---- to the interface ---- */

static void on_refused_merge(struct device *d, enum offload which)
{
    if (!atomic_exchange(&d->refusals.has[which], true))
        log_warning("%s: the offload %s is off from now on: %s", d->name, offload_names[which],
            refusals_why(d, which));
}

/* Stage: write. */
static void write_frame(struct frame_writer *w, struct device *d, struct gro_frame *f)
{
    ssize_t n;

    do
        n = writev(d->tun.fd[w->worker % tun_readers(&d->tun) * d->tun.each], f->iov, (int)f->n);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return;
    drop_count(w->drops, DROP_TUN_WRITE, f->n);
    if (errno != EINVAL || f->n == 1)
        return;
    /* The kernel refuses what it said it would take: single packets from now on. */
    on_refused_merge(d, f->proto == IP_PROTO_TCP ? OFFLOAD_TSO : OFFLOAD_USO);
}

/* Stage: rules. All packets of a frame are of one connection, so the first one speaks for them.
 * What is refused is left without a piece. */
static void ask_rules(struct frame_writer *w, struct device *d)
{
    for (uint32_t i = 0; i < w->gro.n; i++) {
        struct gro_frame *f = &w->gro.frames[i];
        const uint8_t *p = (const uint8_t *)f->iov[0].iov_base + GRO_HEADROOM;
        size_t len = f->iov[0].iov_len - GRO_HEADROOM;
        struct ip_info ip;

        if (ip_parse(p, len, &ip) == 0 &&
            access_filter_pass(d->access, w->worker, ACCESS_IN, p, len, &ip, w->now))
            continue;
        drop_count(w->drops, DROP_REFUSED, f->n);
        f->n = 0;
    }
}

/* Writes all that was collected: at the end of a receive call. */
static void frame_writer_flush(struct frame_writer *w)
{
    struct device *d = w->device;

    if (!d)
        return;
    if (d->access)
        ask_rules(w, d);
    gro_finish(&w->gro);
    for (uint32_t i = 0; i < w->gro.n; i++)
        if (w->gro.frames[i].n > 0)
            write_frame(w, d, &w->gro.frames[i]);
    w->gro.n = 0;
    w->device = NULL;
}

static bool may_merge(const struct device *d, enum offload which)
{
    return d->offloads.on[which] && !refusals_has(&d->refusals, which);
}

/* ---- data messages ---- */

/* Packets opened before the window is asked, at most. */
#define CHUNK 128

/** Authentic packets of one run. */
struct opened {
    uint8_t *data[CHUNK]; /* inner packets, GRO_HEADROOM writable bytes before each */
    uint32_t len[CHUNK];  /* with padding */
    uint64_t counter[CHUNK];
    bool is_fresh[CHUNK];
    unsigned n;
};

/** What a run amounted to, for its peer. */
struct tally {
    unsigned n_fresh; /* authentic and not seen before */
    unsigned n_data;  /* of them, those with an inner packet */
    uint64_t n_bytes; /* of their messages */
};

/* Stage: open. From *@off on, at most a chunk. */
static void open_some(struct rx_worker *w, const struct keypair *kp, const struct udp_run *run,
    uint32_t *off, struct opened *o)
{
    for (o->n = 0; *off < run->len && o->n < CHUNK; *off += run->seg) {
        uint32_t len = run->len - *off < run->seg ? run->len - *off : run->seg;
        uint8_t *msg = run->buf + *off;

        if (!keypair_open(kp, w->lane, msg, len, &o->counter[o->n])) {
            drop(w, DROP_TAG_INVALID, 1);
            continue;
        }
        o->data[o->n] = msg + sizeof(struct wg_data);
        o->len[o->n++] = len - (uint32_t)WG_DATA_OVERHEAD;
    }
}

/* Stages: deliver, merge. The inner packet must be one, and come from where the peer may speak for;
 * @p is borrowed until the flush, and has GRO_HEADROOM writable bytes before it. */
static void deliver(struct rx_worker *w, struct peer *peer, uint8_t *p, uint32_t len, uint8_t tos)
{
    struct frame_writer *writer = &w->writer;
    struct device *d = peer->device;
    struct ip_info ip;
    int r = ip_parse(p, len, &ip);

    assert(d);
    if (r != 0) {
        drop(w, r == IP_E_NOT_IP ? DROP_NOT_IP : DROP_INNER_LENGTH, 1);
        return;
    }
    if (allowedips_find(&d->allowed, &ip.src) != &peer->allowed) {
        drop(w, DROP_SOURCE_NOT_ALLOWED, 1);
        return;
    }
    if (!device_accept_has(&d->accept, p, &ip)) {
        drop(w, DROP_NOT_SERVED, 1);
        return;
    }
    if ((tos & IP_ECN_MASK) == IP_ECN_CE)
        ip_ecn_decapsulate(p, tos);
    if (writer->device != d || writer->gro.n == GRO_FRAMES_MAX)
        frame_writer_flush(writer);
    if (!writer->device) {
        gro_init(&writer->gro, may_merge(d, OFFLOAD_TSO), may_merge(d, OFFLOAD_USO));
        writer->device = d;
    }
    gro_add(&writer->gro, p, &ip);
}

/* Those that the check has let through, each by itself. */
static void deliver_fresh(struct rx_worker *w, struct peer *peer, const struct opened *o,
    uint8_t tos, struct tally *tally)
{
    for (unsigned i = 0; i < o->n; i++) {
        if (!o->is_fresh[i]) {
            drop(w, DROP_REPLAYED, 1);
            continue;
        }
        tally->n_fresh++;
        tally->n_bytes += o->len[i] + WG_DATA_OVERHEAD;
        if (o->len[i] == 0)
            continue;
        tally->n_data++;
        deliver(w, peer, o->data[i], o->len[i], tos);
    }
}

/*
 * Stage: learn. Where the peer is, whether it has the session, and what its timers must know. A
 * session that renews another has nobody waiting for it, unless packets do; a hub has thousands of
 * them in two minutes.
 */
static void learn(struct rx_worker *w, struct peer *peer, const struct keypair *kp,
    const struct udp_run *run, const struct tally *tally)
{
    nsec_t now = w->tx.now;
    bool tell = false, tell_soon = false, renews = false;
    bool is_confirmed = keypairs_confirm(&peer->keypairs, kp, &renews);

    peer_learn_path(peer, &run->path, is_confirmed);
    /* After the path: who finds that this has grown then finds where it came from. */
    peer_count(&peer->rx_bytes, tally->n_bytes);
    if (is_confirmed) {
        atomic_store(&peer->has_confirmed, true);
        timers_on_session_confirmed(&peer->timers, now);
        tell_soon = renews && atomic_load(&peer->staged.n) == 0;
        tell = !tell_soon;
    }
    if (tally->n_data > 0)
        tell_soon |= timers_on_data_received(&peer->timers, now);
    else
        timers_on_other_received(&peer->timers, now);
    if (keypair_wants_rekey_after_receive(kp, now))
        tell |= timers_on_last_minute(&peer->timers);
    if (tell)
        peer_tell(peer);
    else if (tell_soon)
        peer_tell_soon(peer, now);
}

/* Takes the data messages of @part through all stages: each ends in the frame writer or in a drop.
 */
static void rx_data_take(struct rx_worker *w, const struct run_part *part)
{
    struct keypair *kp = index_find(&w->port->index, part->index);
    const struct udp_run *run = &part->run;
    struct tally tally = {0};
    struct opened o;
    struct peer *peer;

    if (!kp || !keypair_can_receive(kp, w->tx.now)) {
        drop(w, kp ? DROP_SESSION_EXPIRED : DROP_UNKNOWN_INDEX, part->n);
        return;
    }
    peer = kp->owner;
    for (uint32_t off = 0; off < run->len;) {
        open_some(w, kp, run, &off, &o);
        if (o.n == 0)
            continue;
        keypair_check_counters(kp, o.counter, o.n, o.is_fresh);
        deliver_fresh(w, peer, &o, run->tos, &tally);
    }
    if (tally.n_fresh > 0)
        learn(w, peer, kp, run, &tally);
}

/* ---- one datagram that is no data ---- */

/* Stage: handshakes. One handshake message to the control thread, if there is room. */
static void take_handshake(struct rx_worker *w, const struct udp_run *one, enum run_kind kind)
{
    struct port *p = w->port;
    struct handshake_to to = {.device = NULL};
    bool is_proven = false;
    enum drop_reason why;

    if (kind == RUN_HANDSHAKE) {
        to = addressee_find(&w->addressee, &p->devices, &one->path.remote.addr, one->buf, one->len,
            w->tx.now, &why);
        if (!to.device) {
            drop(w, why, 1);
            return;
        }
    }
    /* Cookies are made with one secret, for whichever of a device's keys. */
    if (to.device && handshake_queue_is_loaded(&p->handshakes, w->tx.now))
        is_proven = cookie_check_mac2(
            &to.device->checker, one->buf, one->len, &one->path.remote, w->tx.now);
    if (handshake_queue_push(
            &p->handshakes, &w->handshakes, &to, is_proven, &one->path, one->buf, one->len))
        w->has_handshakes = true;
    else
        drop(w, DROP_QUEUE_FULL, 1);
}

/* ---- receive ---- */

/* Each kind goes its way; data in one part, anything else one by one. */
static void take_part(struct rx_worker *w, const struct run_part *part)
{
    enum drop_reason why;

    switch (part->kind) {
    case RUN_DATA:
        rx_data_take(w, part);
        break;
    case RUN_HANDSHAKE:
    case RUN_COOKIE_REPLY:
        take_handshake(w, &part->run, part->kind);
        break;
    case RUN_FRAME: /* Stage: path frames. To the agent, if one is there. */
        if (!frame_client_offer(&w->port->frames, &w->frame_rate, &part->run, w->tx.now, &why))
            drop(w, why, 1);
        break;
    case RUN_TRUNCATED:
        drop(w, DROP_TRUNCATED, 1);
        break;
    case RUN_UNKNOWN:
        drop(w, DROP_UNKNOWN_TYPE, 1);
        break;
    }
}

/* What came from one place in one call: split, filtered, and handed on by its kind. */
static void take_run(struct rx_worker *w, const struct udp_run *run)
{
    const struct port_filter *filter = &w->port->filter;

    for (uint32_t off = 0; off < run->len;) {
        struct run_part part = run_split(run, off);

        off += part.run.len;
        if (filter->fn && filter->fn(filter->ctx, &w->tx, &part.run))
            continue;
        take_part(w, &part);
    }
}

/* Sends what the filter has added, and counts what the kernel refused. */
static void flush_filter(struct port_tx *tx)
{
    uint64_t failed = tx->out.n_failed;

    udp_outbox_flush(&tx->out, tx->sockets);
    drop_count(tx->drops, DROP_UDP_SEND, tx->out.n_failed - failed);
}

/*
 * One turn of the way in: one receive call with all that follows, inside the gate. False when no
 * more is likely there.
 */
static bool receive(struct rx_worker *w, int fd)
{
    unsigned n = udp_receive(&w->inbox, fd);
    unsigned n_packets = 0;

    if (n == 0)
        return false;
    w->tx.now = w->writer.now = clock_now();
    w->tx.space_used = 0;
    if (w->port->opt.offloads.on[OFFLOAD_UDP_GRO])
        merging_take(&w->port->merging, &w->merging, w->inbox.runs, n, w->tx.now);
    for (unsigned i = 0; i < n; i++) {
        n_packets += udp_run_count(&w->inbox.runs[i]);
        take_run(w, &w->inbox.runs[i]);
    }
    frame_writer_flush(&w->writer);
    flush_filter(&w->tx);
    refusals_check_sent(w->port, &w->tx.out);
    if (w->has_handshakes)
        loop_wake(&w->port->loop);
    w->has_handshakes = false;
    aead_lane_clear(w->lane);
    load_count(&w->port->load, n_packets, w->tx.now);
    return n_packets > QUIET_PACKETS;
}

/* ---- the thread ---- */

/* Receive calls before anything else that has happened is looked at. */
#define RECEIVES_PER_EVENT 8

/* What is ready: an event of somebody else's, or a socket, which is read until it is empty. */
static void on_ready(struct rx_worker *w, uint64_t what)
{
    int fd = rx_waiter_on_ready(w->waiter, what);

    for (unsigned i = 0; fd >= 0 && i < RECEIVES_PER_EVENT; i++)
        if (!receive(w, fd))
            break;
}

static void *rx_main(void *arg)
{
    struct rx_worker *w = arg;

    sched_batch_begin(&w->batch);
    while (!atomic_load(&w->port->is_stopping)) {
        struct rx_ready ready;
        nsec_t now;

        rx_waiter_wait(w->waiter, &ready);
        gate_enter(&w->port->gate, w->i);
        for (int i = 0; i < ready.n; i++)
            on_ready(w, ready.what[i]);
        gate_leave(&w->port->gate, w->i);
        now = clock_now();
        sched_batch_turn(&w->batch, load_is_quiet(&w->port->load, now), now);
    }
    sched_batch_end(&w->batch);
    return NULL;
}

int rx_init(struct rx_worker *w, struct port *p, unsigned i)
{
    bool gso = p->opt.offloads.on[OFFLOAD_UDP_GSO];
    int r;

    *w = (struct rx_worker){.port = p, .waiter = &p->waiters[i], .i = i};
    w->writer.worker = i;
    w->writer.drops = &w->drops;
    w->tx = (struct port_tx){.index = &p->index,
        .sockets = &w->waiter->sockets,
        .drops = &w->drops,
        .worker = i,
        .space = malloc(PORT_TX_SPACE)};
    r = w->tx.space ? udp_outbox_init(&w->tx.out, gso, false) : -ENOMEM;
    if (r == 0)
        r = handshake_slots_init(&w->handshakes, &p->handshakes);
    if (r == 0)
        r = addressee_init(&w->addressee, rng_u64(&p->rng));
    if (r == 0)
        r = udp_inbox_init(&w->inbox);
    return r == 0 ? aead_lane_new(&w->lane) : r;
}

void rx_deinit(struct rx_worker *w)
{
    if (!w->port)
        return; /* one before it could not be made */
    w->lane = aead_lane_free(w->lane);
    udp_inbox_deinit(&w->inbox);
    addressee_deinit(&w->addressee);
    free(w->handshakes.msgs);
    udp_outbox_deinit(&w->tx.out);
    free(w->tx.space);
}

int rx_start(struct rx_worker *w, int cpu)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "rx%u", w->i);
    return thread_start(&w->thread, name, cpu, rx_main, w);
}
