/* tx_stages.c - see tx_stages.h. */
#include "worker/tx_stages.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "access/access_filter.h"
#include "os/clock.h"
#include "packet/icmp.h"
#include "peer/peer.h"
#include "shared/device_state.h"
#include "shared/port_state.h"

/* The largest inner packet: with its padding it is a message of one datagram. */
#define PACKET_MAX ((UDP_RUN_BYTES_MAX - WG_DATA_OVERHEAD) / WG_PADDING * WG_PADDING)

static_assert(TUN_QUEUES_EACH <= QUEUE_SCHED_MAX, "a bit for each queue");

/* ---- what waits ---- */

bool tx_poll_queues(const struct tx_worker *w, uint64_t *ready)
{
    struct epoll_event events[TUN_QUEUES_EACH];
    int n = epoll_wait(w->queues_fd, events, TUN_QUEUES_EACH, 0);

    *ready = 0;
    for (int i = 0; i < n; i++) {
        if (events[i].events & (EPOLLERR | EPOLLHUP))
            return false;
        *ready |= UINT64_C(1) << events[i].data.u32;
    }
    return true;
}

/* ---- the stages ---- */

static void drop(struct tx_worker *w, enum drop_reason reason)
{
    drop_count(&w->drops, reason, 1);
}

static int queue_fd(const struct tx_worker *w, unsigned i)
{
    return w->device->tun.fd[w->first + i];
}

/* ICMP answers of a thread. */
#define ANSWERS_AT_ONCE 100
#define ANSWER_EACH     (NSEC_PER_SEC / 100)

/* icmp_make() for @p, written to the TUN queue @fd, unless too many were in the last second. */
static void send_icmp(struct rate *rate, int fd, const uint8_t *p, size_t len, enum icmp_why why,
    uint16_t mtu, nsec_t now)
{
    uint8_t frame[TUN_HEADER + ICMP_MESSAGE_MAX] = {0};
    size_t n;

    if (!rate_take(rate, now, ANSWER_EACH, ANSWERS_AT_ONCE))
        return;
    n = icmp_make(p, len, why, mtu, frame + TUN_HEADER);
    /* An answer that the kernel does not take is lost like any other ICMP message. */
    if (n > 0 && write(fd, frame, TUN_HEADER + n) < 0)
        return;
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
    /* No datagram carries that much, whatever the interface's MTU says. */
    if (gso_len(&w->plan, 0) > PACKET_MAX) {
        drop(w, DROP_TOO_BIG);
        send_icmp(&w->icmp, queue_fd(w, 0), w->frame + TUN_HEADER, w->ip.len, ICMP_TOO_BIG,
            PACKET_MAX, clock_now());
        w->next = w->plan.n;
        return false;
    }
    w->next = 0;
    return true;
}

bool tx_read_frame(struct tx_worker *w, unsigned queue)
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

/* Stage: cut. */
bool tx_cut_frame(struct tx_worker *w)
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
    /* The datagrams have the packet's DSCP only where that was asked for, because it tells who sees
     * them what is inside. */
    if (atomic_load_explicit(&w->device->shaping.shows_dscp, memory_order_relaxed))
        f->tos |= w->ip.tos & IP_DSCP_MASK;
    while (w->next < w->plan.n) {
        uint32_t len = gso_len(&w->plan, w->next);
        struct packet pkt = {
            .off = b->len, .len = (uint16_t)len, .padded = (uint16_t)wg_padded(len, mtu)};
        uint8_t *inner = b->buf + b->len + sizeof(struct wg_data);

        fits = b->n < BATCH_PACKETS && b->len + packet_capacity(&pkt) <= BATCH_SIZE;
        if (!fits)
            break;
        gso_cut(&w->plan, p, &w->ip, w->next++, inner);
        memset(inner + len, 0, pkt.padded - len);
        b->pkts[b->n++] = pkt;
        b->len += packet_capacity(&pkt);
        f->n++;
    }
    if (f->n > 0)
        b->n_frames++;
    return fits;
}

/* The peer's MTU if the frame is too big for it, else 0. A packet that may be fragmented is never
 * too big: its datagrams are fragmented. */
static uint16_t exceeded_mtu(const struct tx_frame *f)
{
    uint16_t mtu = atomic_load_explicit(&f->peer->mtu, memory_order_relaxed);

    if (mtu == 0 || f->may_fragment)
        return 0;
    /* No sender of IPv6 may be told that less fits (RFC 8200 section 5): the packet is cut here. */
    if (f->is_v6 && mtu < IP_V6_MTU_MIN)
        mtu = IP_V6_MTU_MIN;
    return f->longest > mtu ? mtu : 0;
}

/* What the frame's packets have to be cut to; 0: they fit, or may not be cut. The MTU may be
 * another one than exceeded_mtu() has read, so its sender's part is not taken here. */
static uint16_t cut_mtu(const struct tx_frame *f)
{
    uint16_t mtu = atomic_load_explicit(&f->peer->mtu, memory_order_relaxed);

    return f->is_v6 && mtu != 0 && mtu < IP_V6_MTU_MIN && f->longest > mtu ? mtu : 0;
}

static bool goes_with(const struct tx_frame *next, const struct tx_frame *f)
{
    return next->peer == f->peer && next->tos == f->tos && exceeded_mtu(next) == 0 &&
           cut_mtu(next) == 0;
}

/* Takes the room for a piece of @len bytes, which is there. Return: where it is to be written. */
static uint8_t *add_piece(struct tx_worker *w, uint32_t len)
{
    unsigned mtu = atomic_load_explicit(&w->device->mtu, memory_order_relaxed);
    struct packet pkt = {.len = (uint16_t)len, .padded = (uint16_t)wg_padded(len, mtu)};
    struct tx_pieces *c = &w->pieces;
    uint8_t *inner;

    pkt.off = c->len;
    inner = c->buf + c->len + sizeof(struct wg_data);
    memset(inner + len, 0, (size_t)(pkt.padded - len));
    c->pkts[c->n++] = pkt;
    c->len += packet_capacity(&pkt);
    return inner;
}

/* Cuts one packet; @mtu as cut_mtu() says. False when there is no room for its pieces. */
static bool cut_packet(struct tx_worker *w, const struct packet *pkt, uint16_t mtu)
{
    const uint8_t *p = w->batch.buf + pkt->off + sizeof(struct wg_data);
    unsigned n = v6_cut_count(p, pkt->len, mtu);
    struct tx_pieces *c = &w->pieces;
    uint8_t piece[IP_V6_MTU_MIN];
    uint32_t size = pkt->len + n * (uint32_t)(V6_CUT_HEADERS + WG_DATA_OVERHEAD + WG_PADDING);

    if (c->n + n > CUT_PACKETS || c->len + size > CUT_SIZE)
        return false;
    if (n == 1) {
        memcpy(add_piece(w, pkt->len), p, pkt->len);
        return true;
    }
    c->id++;
    for (unsigned i = 0; i < n; i++) {
        uint32_t len = v6_cut(p, pkt->len, c->id, i, n, piece);

        memcpy(add_piece(w, len), piece, len);
    }
    return true;
}

/* Sends the frame's packets in pieces. */
static void send_cut(struct tx_worker *w, const struct tx_frame *f, uint16_t mtu, nsec_t now)
{
    struct tx_pieces *c = &w->pieces;
    unsigned done = 0;

    while (done < f->n) {
        unsigned first = c->n;

        while (done < f->n && cut_packet(w, &w->batch.pkts[f->first + done], mtu))
            done++;
        if (c->n > first)
            sender_add(&w->sender, f->peer, c->buf, &c->pkts[first], c->n - first, f->tos, now);
        if (done < f->n) { /* The pieces have no room any more: they leave. */
            sender_flush(&w->sender);
            c->n = 0;
            c->len = 0;
        }
    }
}

/* Stage: hand over. Neighbouring frames for one peer go to the sender together. */
static void hand_over(struct tx_worker *w)
{
    struct tx_batch *b = &w->batch;
    nsec_t now = w->now;

    for (unsigned i = 0, next; i < b->n_frames; i = next) {
        const struct tx_frame *f = &b->frames[i];
        const struct packet *pkt = &b->pkts[f->first];
        const uint8_t *inner = b->buf + pkt->off + sizeof(struct wg_data);
        unsigned n = f->n;
        uint16_t mtu;

        next = i + 1;
        /* The inner sender is told that there is no route, as the kernel's WireGuard does, or that
         * it may not. */
        if (!f->peer) {
            drop_count(&w->drops, f->is_refused ? DROP_REFUSED : DROP_NO_ROUTE, n);
            send_icmp(&w->icmp, queue_fd(w, 0), inner, pkt->len,
                f->is_refused ? ICMP_REFUSED : ICMP_NO_ROUTE, 0, now);
            continue;
        }
        /* It is told what would fit, as by a router before a narrow link. */
        mtu = exceeded_mtu(f);
        if (mtu) {
            drop_count(&w->drops, DROP_TOO_BIG, n);
            send_icmp(&w->icmp, queue_fd(w, 0), inner, pkt->len, ICMP_TOO_BIG, mtu, now);
            continue;
        }
        mtu = cut_mtu(f);
        if (mtu) {
            send_cut(w, f, mtu, now);
            continue;
        }
        for (; next < b->n_frames && goes_with(&b->frames[next], f); next++)
            n += b->frames[next].n;
        sender_add(&w->sender, f->peer, b->buf, pkt, n, f->tos, now);
    }
}

/* Stage: rules. Do they let the frame out? Its first packet speaks for all. */
static bool may_go_out(struct tx_worker *w, const struct tx_frame *f)
{
    const struct packet *pkt = &w->batch.pkts[f->first];
    const uint8_t *inner = w->batch.buf + pkt->off + sizeof(struct wg_data);
    struct device *d = w->device;
    struct ip_info ip;

    return !d->access || (ip_parse(inner, pkt->len, &ip) == 0 &&
                             access_filter_pass(d->access, d->port->opt.n_workers + w->i,
                                 ACCESS_OUT, inner, pkt->len, &ip, w->now));
}

void tx_send_batch(struct tx_worker *w)
{
    struct tx_batch *b = &w->batch;

    w->now = clock_now();
    load_count(&w->device->port->load, b->n, w->now);
    /* Stage: route. The peer whose allowed IPs have each frame's destination. */
    for (unsigned i = 0; i < b->n_frames; i++) {
        struct allowedips_owner *owner = allowedips_find(&w->device->allowed, &b->frames[i].dst);

        b->frames[i].is_refused = owner && !may_go_out(w, &b->frames[i]);
        b->frames[i].peer =
            owner && !b->frames[i].is_refused ? container_of(owner, struct peer, allowed) : NULL;
    }
    hand_over(w);
    sender_flush(&w->sender);
    b->n = b->n_frames = b->len = 0;
    w->pieces.n = w->pieces.len = 0;
}
