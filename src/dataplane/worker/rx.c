/*
 * rx.c - the way in, first half: socket, split, filter, and on by kind.
 *
 *   receive   runs of datagrams, with UDP_GRO up to 64 KiB each
 *   split     into runs of data with one receiver index; anything else goes on alone (run_split.h)
 *   filter    may take the run (relay, STUN); see port_tx.h
 *   data      rx_data.h has the second half, to the interface
 *   path frames   go to the agent: frame_client.h
 *   handshakes    handshake messages with a good mac1 go to the control thread
 *
 * The functions stand in the order of the calls from the last to the first:
 * receive() is the one to begin with. docs/DATAPLANE.md has the walk.
 */
#include "worker/rx.h"

#include <stdio.h>

#include "crypto/aead.h"
#include "os/clock.h"
#include "packet/run_split.h"
#include "shared/device_state.h"
#include "shared/frame_client.h"
#include "shared/port_state.h"
#include "worker/rx_data.h"

/* Receive calls before anything else that has happened is looked at. */
#define RECEIVES_PER_EVENT 8

static void drop(struct rx_worker *w, enum drop_reason reason, uint64_t n)
{
    drop_count(&w->drops, reason, n);
}

/* ---- one datagram that is no data ---- */

/* Stage: handshakes. One handshake message to the control thread, if there is room. */
static void take_handshake(struct rx_worker *w, const struct udp_run *one, enum run_kind kind)
{
    struct port *p = w->port;
    struct device *d = NULL;
    bool is_proven = false;
    enum drop_reason why;

    if (kind == RUN_HANDSHAKE &&
        !(d = addressee_find(&w->addressee, &p->devices, &one->path.remote.addr, one->buf, one->len,
              w->tx.now, &why))) {
        drop(w, why, 1);
        return;
    }
    if (d && handshake_queue_is_loaded(&p->handshakes, w->tx.now))
        is_proven =
            cookie_check_mac2(&d->checker, one->buf, one->len, &one->path.remote, w->tx.now);
    if (handshake_queue_push(
            &p->handshakes, &w->handshakes, d, is_proven, &one->path, one->buf, one->len))
        w->has_handshakes = true;
    else
        drop(w, DROP_QUEUE_FULL, 1);
}

/* Stage: path frames. To the agent, if one is there. */
static void take_frame(struct rx_worker *w, const struct udp_run *one)
{
    enum drop_reason why;

    if (!frame_client_offer(&w->port->frames, &w->frame_rate, one, w->tx.now, &why))
        drop(w, why, 1);
}

/* ---- receive ---- */

/* Each kind goes its way; data in one part, anything else one by one. */
static void take_part(struct rx_worker *w, const struct run_part *part)
{
    switch (part->kind) {
    case RUN_DATA:
        rx_data_take(w, part);
        break;
    case RUN_HANDSHAKE:
    case RUN_COOKIE_REPLY:
        take_handshake(w, &part->run, part->kind);
        break;
    case RUN_FRAME:
        take_frame(w, &part->run);
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
    port_tx_begin(&w->tx, clock_now());
    for (unsigned i = 0; i < n; i++) {
        n_packets += udp_run_count(&w->inbox.runs[i]);
        take_run(w, &w->inbox.runs[i]);
    }
    frame_writer_flush(&w->writer);
    port_tx_flush(&w->tx);
    refusals_check_sent(w->port, &w->tx.out);
    if (w->has_handshakes)
        loop_wake(&w->port->loop);
    w->has_handshakes = false;
    aead_lane_clear(w->lane);
    load_count(&w->port->load, n_packets, w->tx.now);
    return n_packets > QUIET_PACKETS;
}

/* ---- the thread ---- */

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
    frame_writer_init(&w->writer, i, &w->drops);
    r = port_tx_init(&w->tx, &p->index, &w->waiter->sockets, &w->drops, i, gso);
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
    handshake_slots_deinit(&w->handshakes);
    port_tx_deinit(&w->tx);
}

int rx_start(struct rx_worker *w, int cpu)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "rx%u", w->i);
    return thread_start(&w->thread, name, cpu, rx_main, w);
}
