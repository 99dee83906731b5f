/*
 * rx.c - the way in: socket, filter, look up, open, check, merge, interface.
 *
 *   receive   runs of datagrams, with UDP_GRO up to 64 KiB each
 *   split     into runs of data with one receiver index; anything else goes on alone
 *   filter    may take the run (relay, STUN); see port.h
 *   handshakes    handshake messages with a good mac1 go to the control thread
 *   look up   the keypair, by the receiver index
 *   open      all data messages of the run, in place
 *   check     the counters, against the replay window, once for the run
 *   deliver   inner header and source
 *   merge     with the packets of its flow that came before (gro.h)
 *   learn     what the peer's state has of authentic packets
 *   write     superpackets to the interface
 *
 * The functions stand in the order of the calls from the last to the first:
 * receive() is the one to begin with. docs/DATAPLANE.md has the walk.
 *
 * Several workers may have packets of one peer at once (IPv4 and IPv6, or a
 * move); what they share is locked once a run.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/drop.h"
#include "dataplane/frame_socket.h"
#include "dataplane/peer.h"
#include "dataplane/port_internal.h"
#include "dataplane/refusals.h"
#include "os/clock.h"
#include "os/wakeup.h"
#include "wire/ip.h"
#include "wire/wg.h"

/* Packets opened before the window is asked, at most. */
#define CHUNK 128

/* Receive calls before anything else that has happened is looked at. */
#define RECEIVES_PER_EVENT 8

#define EVENTS_PER_TURN 16

/* What epoll tells of: a socket, by its family, or one of these. An event has a number instead of
 * a pointer, because it may be removed between the wait and the gate. */
#define READY_WAKE  UDP_FAMILY_N
#define READY_EVENT (READY_WAKE + 1) /* and its number */

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

static void drop(struct rx_worker *w, enum drop_reason reason, uint64_t n)
{
    drop_count(&w->drops, reason, n);
}

/* ---- write ---- */

/* Stage: write. One call a frame, whose pieces lie where they were decrypted. */
static void write_frame(struct rx_worker *w, struct device *d, struct gro_frame *f)
{
    ssize_t n;

    do
        n = writev(d->tun.fd[w->i % tun_readers(&d->tun) * d->tun.each], f->iov, (int)f->n);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return;
    drop(w, DROP_TUN_WRITE, f->n);
    if (errno != EINVAL || f->n == 1)
        return;
    /* The kernel refuses what it said it would take: single packets from now on. */
    refusals_on_merged(d, f->proto == IP_PROTO_TCP ? OFFLOAD_TSO : OFFLOAD_USO);
}

/* All that was merged; at the end of a receive call, or when there is no more room for it. */
static void write_merged(struct rx_worker *w)
{
    struct device *d = w->gro_device;

    if (!d)
        return;
    gro_finish(&w->gro);
    for (uint32_t i = 0; i < w->gro.n; i++)
        write_frame(w, d, &w->gro.frames[i]);
    gro_clear(&w->gro);
    w->gro_device = NULL;
}

/* Stage: merge. Into the frame that it continues, or one of its own. */
static void merge(struct rx_worker *w, struct device *d, uint8_t *p, const struct ip_info *ip)
{
    assert(d);
    if (w->gro_device != d || gro_is_full(&w->gro))
        write_merged(w);
    if (!w->gro_device) {
        gro_init(&w->gro, d->offloads.on[OFFLOAD_TSO] && !atomic_load(&d->refuses_tso),
            d->offloads.on[OFFLOAD_USO] && !atomic_load(&d->refuses_uso));
        w->gro_device = d;
    }
    gro_add(&w->gro, p, ip);
}

/* ---- data messages ---- */

/* Stage: open. From *@off on, at most a chunk. */
static void open_some(struct rx_worker *w, const struct keypair *kp, const struct udp_run *run,
    uint32_t *off, struct opened *o)
{
    for (o->n = 0; *off < run->len && o->n < CHUNK; *off += run->seg) {
        uint32_t len = run->len - *off < run->seg ? run->len - *off : run->seg;
        uint8_t *msg = run->buf + *off;

        if (wg_type_of(msg, len) != WG_TYPE_DATA) {
            drop(w, DROP_TRUNCATED, 1);
        } else if (!keypair_open(kp, w->lane, msg, len, &o->counter[o->n])) {
            drop(w, DROP_TAG_INVALID, 1);
        } else {
            o->data[o->n] = msg + sizeof(struct wg_data);
            o->len[o->n++] = len - (uint32_t)WG_DATA_OVERHEAD;
        }
    }
}

/* Is it TCP to that port? */
static bool is_to_tcp_port(const uint8_t *p, const struct ip_info *ip, uint16_t want)
{
    struct be16 port;

    if (ip->proto != IP_PROTO_TCP || ip->is_fragment || ip->len < (uint32_t)ip->l4_off + 4)
        return false;
    memcpy(&port, p + ip->l4_off + 2, sizeof(port)); /* RFC 9293 section 3.1 */
    return be16_get(port) == want;
}

/* Does the interface serve the packet's destination? */
static bool is_accepted(
    const struct device_accept *accept, const uint8_t *p, const struct ip_info *ip)
{
    if (ip_addr_is_none(&accept->at[0].to))
        return true;
    for (unsigned i = 0; i < 2; i++)
        if (ip_addr_equal(&accept->at[i].to, &ip->dst))
            return accept->at[i].tcp_port == 0 || is_to_tcp_port(p, ip, accept->at[i].tcp_port);
    return false;
}

/* Stage: deliver. The inner packet must be one, and come from where the peer may speak for. */
static void deliver(struct rx_worker *w, struct peer *peer, uint8_t *p, uint32_t len, uint8_t tos)
{
    struct device *d = peer->device;
    struct ip_info ip;
    int r = ip_parse(p, len, &ip);

    if (r != 0) {
        drop(w, r == IP_E_NOT_IP ? DROP_NOT_IP : DROP_INNER_LENGTH, 1);
        return;
    }
    if (allowedips_find(&d->allowed, &ip.src) != &peer->allowed) {
        drop(w, DROP_SOURCE_NOT_ALLOWED, 1);
        return;
    }
    if (!is_accepted(&d->accept, p, &ip)) {
        drop(w, DROP_NOT_SERVED, 1);
        return;
    }
    if ((tos & IP_ECN_MASK) == IP_ECN_CE)
        ip_ecn_decapsulate(p, tos);
    merge(w, d, p, &ip);
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

/* Stage: learn. Where the peer is, whether it has the session, and what its timers must know. */
static void learn(struct rx_worker *w, struct peer *peer, const struct keypair *kp,
    const struct udp_run *run, const struct tally *tally)
{
    nsec_t now = w->tx.now;
    bool tell = false;
    bool is_confirmed = keypairs_confirm(&peer->keypairs, kp);

    peer_count_rx(peer, tally->n_bytes);
    peer_learn_path(peer, &run->path, is_confirmed);
    if (is_confirmed) {
        atomic_store(&peer->has_confirmed, true);
        tell = timers_on_session_confirmed(&peer->timers, now);
    }
    if (tally->n_data > 0)
        tell |= timers_on_data_received(&peer->timers, now);
    else
        timers_on_keepalive_received(&peer->timers, now);
    if (keypair_wants_rekey_after_receive(kp, now))
        tell |= timers_on_last_minute(&peer->timers);
    if (tell)
        peer_tell(peer);
}

/* Stages: look up, open, check, deliver, learn. A run of data for one receiver index. */
static void take_data(struct rx_worker *w, const struct udp_run *run, uint32_t index)
{
    struct keypair *kp = index_find(&w->port->index, index);
    struct tally tally = {0};
    struct opened o;
    struct peer *peer;

    if (!kp || !keypair_can_receive(kp, w->tx.now)) {
        drop(w, kp ? DROP_SESSION_EXPIRED : DROP_UNKNOWN_INDEX, udp_run_count(run));
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

/* ---- handshake messages ---- */

/* Stage: handshakes. One handshake message to the control thread, if there is room. */
static void queue_handshake(
    struct rx_worker *w, const struct udp_run *run, const uint8_t *msg, uint32_t len, unsigned type)
{
    struct handshake_msg *m = &w->handshakes[w->next_handshake];
    struct port *p = w->port;
    struct device *d = NULL;
    bool is_loaded = w->tx.now < atomic_load(&p->loaded_until);
    bool is_proven = false;
    enum drop_reason why;

    if (type != WG_TYPE_COOKIE_REPLY && !(d = addressee_find(&w->addressee, &p->devices,
                                              &run->path.remote.addr, msg, len, w->tx.now, &why))) {
        drop(w, why, 1);
        return;
    }
    if (is_loaded && d)
        is_proven = cookie_check_mac2(&d->checker, msg, len, &run->path.remote, w->tx.now);
    /* Acquire: control has finished reading the slot. */
    if (atomic_load_explicit(&m->is_busy, memory_order_acquire) ||
        (!is_proven && atomic_load(&p->n_handshakes) >= HANDSHAKES_UNPROVEN_MAX)) {
        drop(w, DROP_QUEUE_FULL, 1);
        return;
    }
    m->is_proven = is_proven;
    m->device = d;
    m->path = run->path;
    m->len = (uint16_t)len;
    memcpy(m->msg, msg, len);
    atomic_store_explicit(&m->is_busy, true, memory_order_relaxed);
    w->next_handshake = (w->next_handshake + 1) % HANDSHAKES_PER_WORKER;
    atomic_fetch_add(&p->n_handshakes, 1);
    if (!mpsc_push(&p->handshakes, m)) {
        atomic_fetch_sub(&p->n_handshakes, 1);
        atomic_store_explicit(&m->is_busy, false, memory_order_relaxed);
        drop(w, DROP_QUEUE_FULL, 1);
        return;
    }
    w->has_handshakes = true;
}

/* Anything else: path frames go to the agent, handshake messages to the control thread. */
static void take_others(struct rx_worker *w, const struct udp_run *run)
{
    for (uint32_t off = 0; off < run->len; off += run->seg) {
        uint32_t len = run->len - off < run->seg ? run->len - off : run->seg;
        unsigned type = wg_type_of(run->buf + off, len);

        if (frame_socket_takes(run->buf + off, len))
            frame_socket_offer(w, run, run->buf + off, len);
        else if (type == 0 || type == WG_TYPE_DATA)
            drop(w, DROP_UNKNOWN_TYPE, 1);
        else
            queue_handshake(w, run, run->buf + off, len, type);
    }
}

/* ---- receive and split ---- */

/* The receiver index of a data message; false for anything else. */
static bool data_index(const uint8_t *msg, uint32_t len, uint32_t *ret)
{
    struct wg_data header;

    if (wg_type_of(msg, len) != WG_TYPE_DATA)
        return false;
    memcpy(&header, msg, sizeof(header));
    *ret = le32_get(header.receiver);
    return true;
}

/* Stage: split. The datagrams from @off on that go on together: see port_filter_fn. */
static struct udp_run split(
    const struct udp_run *run, uint32_t off, bool *ret_data, uint32_t *index)
{
    struct udp_run part = *run;
    uint32_t end = off;

    part.buf = run->buf + off;
    *ret_data = false;
    *index = 0;
    for (bool first = true; end < run->len; end += run->seg, first = false) {
        uint32_t len = run->len - end < run->seg ? run->len - end : run->seg;
        uint32_t this_index = 0;
        bool is_data = data_index(run->buf + end, len, &this_index);

        if (first) {
            *ret_data = is_data;
            *index = this_index;
        } else if (!*ret_data || !is_data || this_index != *index) {
            break;
        }
    }
    part.len = (end < run->len ? end : run->len) - off;
    return part;
}

/* What came from one place in one call: split, filtered, and handed on by its kind. */
static void take_run(struct rx_worker *w, const struct udp_run *run)
{
    const struct port *p = w->port;

    for (uint32_t off = 0; off < run->len;) {
        bool is_data;
        uint32_t index;
        struct udp_run part = split(run, off, &is_data, &index);

        off += part.len;
        if (p->filter && p->filter(p->filter_ctx, &w->tx, &part))
            continue;
        if (is_data)
            take_data(w, &part, index);
        else
            take_others(w, &part);
    }
}

/*
 * One turn of the way in: one receive call with all that follows, inside the gate. False when no
 * more is likely there.
 */
static bool receive(struct rx_worker *w, int fd)
{
    unsigned n = udp_receive(&w->inbox, fd);
    uint64_t failed = w->tx.out.n_failed;
    unsigned n_packets = 0;

    if (n == 0)
        return false;
    w->tx.now = clock_now();
    w->tx.room_used = 0;
    for (unsigned i = 0; i < n; i++) {
        n_packets += udp_run_count(&w->inbox.runs[i]);
        take_run(w, &w->inbox.runs[i]);
    }
    write_merged(w);
    udp_outbox_flush(&w->tx.out, &w->sockets);
    drop(w, DROP_UDP_SEND, w->tx.out.n_failed - failed);
    refusals_check_sent(w->port, &w->tx.out);
    if (w->has_handshakes)
        loop_wake(&w->port->loop);
    w->has_handshakes = false;
    aead_lane_clear(w->lane);
    port__count_load(w->port, n_packets, w->tx.now);
    return n_packets > QUIET_PACKETS;
}

/* ---- what to wait for ---- */

static int watch(struct rx_worker *w, int op, int fd, uint64_t what, uint32_t epoll_events)
{
    struct epoll_event ev = {.events = epoll_events, .data.u64 = what};

    return epoll_ctl(w->epoll_fd, op, fd, &ev) < 0 ? -errno : 0;
}

int rx_watch_sockets(struct rx_worker *w, const struct udp_sockets *s)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < UDP_FAMILY_N; i++)
        if (s->fd[i] >= 0)
            r = watch(w, EPOLL_CTL_ADD, s->fd[i], i, EPOLLIN);
    return r;
}

int rx_add(struct rx_worker *w, struct rx_event *ev)
{
    int r;

    ev->number = w->n_events++;
    r = watch(w, EPOLL_CTL_ADD, ev->fd, READY_EVENT + ev->number, 0);
    if (r < 0)
        return r;
    gate_close(&w->port->gate);
    list_add_tail(&w->events, &ev->siblings);
    gate_open(&w->port->gate);
    return 0;
}

void rx_remove(struct rx_worker *w, struct rx_event *ev)
{
    (void)watch(w, EPOLL_CTL_DEL, ev->fd, 0, 0);
    gate_close(&w->port->gate);
    list_remove(&ev->siblings);
    gate_open(&w->port->gate);
}

void rx_wake_for(struct rx_worker *w, const struct rx_event *ev, bool on)
{
    /* Fails only when it was removed, because the interface is gone. */
    (void)watch(w, EPOLL_CTL_MOD, ev->fd, READY_EVENT + ev->number, on ? EPOLLIN : 0);
}

static void on_event(struct rx_worker *w, uint64_t number)
{
    struct rx_event *ev;

    list_foreach(ev, &w->events, siblings) {
        if (ev->number != number)
            continue;
        ev->fn(ev->ctx);
        return;
    }
}

static void on_ready(struct rx_worker *w, uint64_t what)
{
    if (what >= READY_EVENT) {
        on_event(w, what - READY_EVENT);
        return;
    }
    /* Only that it came matters: we are to stop, or somebody waits for our next turn. */
    if (what == READY_WAKE) {
        (void)wakeup_clear(w->wake_fd);
        return;
    }
    for (unsigned i = 0; i < RECEIVES_PER_EVENT; i++)
        if (w->sockets.fd[what] < 0 || !receive(w, w->sockets.fd[what]))
            break;
}

static void *rx_main(void *arg)
{
    struct rx_worker *w = arg;

    sched_batch_begin(&w->batch);
    while (!atomic_load(&w->port->is_stopping)) {
        struct epoll_event events[EVENTS_PER_TURN];
        int n = epoll_wait(w->epoll_fd, events, EVENTS_PER_TURN, -1);
        nsec_t now;

        atomic_fetch_add(&w->turn, 1);
        gate_enter(&w->port->gate, w->i);
        for (int i = 0; i < n; i++)
            on_ready(w, events[i].data.u64);
        gate_leave(&w->port->gate, w->i);
        now = clock_now();
        sched_batch_turn(&w->batch, port__is_quiet(w->port, now), now);
    }
    sched_batch_end(&w->batch);
    return NULL;
}

int rx_init(struct rx_worker *w, struct port *p, unsigned i)
{
    int r;

    *w = (struct rx_worker){
        .port = p, .i = i, .wake_fd = -1, .epoll_fd = -1, .sockets = UDP_SOCKETS_NULL};
    w->tx = (struct port_tx){.port = p, .drops = &w->drops, .worker = i};
    list_init(&w->events);
    w->wake_fd = wakeup_open();
    if (w->wake_fd < 0)
        return w->wake_fd;
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll_fd < 0)
        return -errno;
    r = watch(w, EPOLL_CTL_ADD, w->wake_fd, READY_WAKE, EPOLLIN);
    if (r < 0)
        return r;
    w->handshakes = calloc(HANDSHAKES_PER_WORKER, sizeof(*w->handshakes));
    w->tx.room = malloc(PORT_TX_ROOM);
    if (!w->handshakes || !w->tx.room)
        return -ENOMEM;
    r = addressee_init(&w->addressee, rng_u64(&p->rng));
    if (r == 0)
        r = udp_inbox_init(&w->inbox);
    if (r == 0)
        r = udp_outbox_init(&w->tx.out, p->opt.offloads.on[OFFLOAD_UDP_GSO], false);
    return r == 0 ? aead_lane_new(&w->lane) : r;
}

int rx_start(struct rx_worker *w, int cpu)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "rx%u", w->i);
    return thread_start(&w->thread, name, cpu, rx_main, w);
}

void rx_deinit(struct rx_worker *w)
{
    if (!w->port)
        return; /* one before it could not be made */
    w->lane = aead_lane_free(w->lane);
    udp_outbox_deinit(&w->tx.out);
    udp_inbox_deinit(&w->inbox);
    addressee_deinit(&w->addressee);
    free(w->tx.room);
    free(w->handshakes);
    if (w->wake_fd >= 0)
        (void)close(w->wake_fd);
    if (w->epoll_fd >= 0)
        (void)close(w->epoll_fd);
}
