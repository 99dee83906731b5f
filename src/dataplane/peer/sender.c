/* sender.c - see sender.h. */
#include "peer/sender.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drop.h"
#include "crypto/aead.h"
#include "peer/peer.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "wire/wg.h"

int sender_init(struct sender *s, struct port *port, struct drops *drops, bool wait)
{
    int r;

    *s = (struct sender){.port = port, .drops = drops};
    r = udp_outbox_init(&s->out, port->opt.offloads.on[OFFLOAD_UDP_GSO], wait);
    if (r == 0)
        r = aead_lane_new(&s->lane);
    if (r == 0 && !(s->space = malloc(SENDER_SIZE)))
        r = -ENOMEM;
    if (r < 0)
        sender_deinit(s);
    return r;
}

void sender_deinit(struct sender *s)
{
    udp_outbox_deinit(&s->out);
    s->lane = aead_lane_free(s->lane);
    free(s->space);
    s->space = NULL;
}

int sender_new(struct sender **ret, struct port *port)
{
    struct sender *s = malloc(sizeof(*s));
    int r = s ? sender_init(s, port, &port->drops, false) : -ENOMEM;

    if (r < 0) {
        free(s);
        return r;
    }
    *ret = s;
    return 0;
}

struct sender *sender_free(struct sender *s)
{
    if (s)
        sender_deinit(s);
    free(s);
    return NULL;
}

void sender_flush(struct sender *s)
{
    uint64_t failed = s->out.n_failed;

    udp_outbox_flush(&s->out, port_state_sockets(s->port));
    if (s->out.n_failed != failed)
        drop_count(s->drops, DROP_UDP_SEND, s->out.n_failed - failed);
    refusals_check_sent(s->port, &s->out);
    aead_lane_clear(s->lane);
    s->space_used = 0;
    while (s->n_used > 0)
        (void)keypair_unref(s->used[--s->n_used]);
}

/* Stage: session. The keypair to send with, kept until the flush; NULL when there is none that may
 * be used. */
static struct keypair *acquire_session(struct sender *s, struct peer *peer, nsec_t now)
{
    struct keypair *kp = keypairs_acquire_current(&peer->keypairs);

    if (!kp)
        return NULL;
    if (!keypair_can_send(kp, now)) {
        (void)keypair_unref(kp);
        return NULL;
    }
    if (s->n_used == SENDER_KEYPAIRS_MAX)
        sender_flush(s);
    s->used[s->n_used++] = kp;
    return kp;
}

/* Stages: nonces, seal. Returns how many packets, from the first on, are ready to go. */
static unsigned seal_all(
    struct sender *s, struct keypair *kp, uint8_t *buf, const struct packet *pkts, unsigned n_pkts)
{
    uint64_t counter;

    if (!keypair_take_counters(kp, n_pkts, &counter)) {
        drop_count(s->drops, DROP_NONCE_EXHAUSTED, n_pkts);
        return 0;
    }
    for (unsigned i = 0; i < n_pkts; i++)
        if (!keypair_seal(kp, s->lane, counter + i, buf + pkts[i].off, pkts[i].padded)) {
            drop_count(s->drops, DROP_NO_BUFFER, n_pkts - i);
            return i;
        }
    return n_pkts;
}

/* Stage: coalesce. Neighbours of one size leave as one run, which a shorter one may end. */
static uint64_t coalesce(struct sender *s, uint8_t *buf, const struct packet *pkts, unsigned n_pkts,
    const struct udp_path *path, uint8_t tos)
{
    uint64_t n_bytes = 0;

    for (unsigned i = 0, next; i < n_pkts; i = next) {
        uint32_t size = packet_capacity(&pkts[i]);
        struct udp_run run = {.buf = buf + pkts[i].off,
            .len = size,
            .seg = (uint16_t)size,
            .tos = tos,
            .path = *path};

        for (next = i + 1; next < n_pkts && packet_capacity(&pkts[next]) <= size; next++) {
            run.len += packet_capacity(&pkts[next]);
            if (packet_capacity(&pkts[next]) < size) {
                next++;
                break;
            }
        }
        udp_outbox_add(&s->out, port_state_sockets(s->port), &run);
        n_bytes += run.len;
    }
    return n_bytes;
}

/* From a session to the outbox: seals and queues @n_pkts for @path; then tells the timers. */
static void send_under(struct sender *s, struct peer *peer, struct keypair *kp, uint8_t *buf,
    const struct packet *pkts, unsigned n_pkts, const struct udp_path *path, uint8_t tos,
    nsec_t now)
{
    bool tell_soon = false;

    n_pkts = seal_all(s, kp, buf, pkts, n_pkts);
    if (n_pkts == 0)
        return;
    peer_count(&peer->tx_bytes, coalesce(s, buf, pkts, n_pkts, path, tos));
    if (n_pkts == 1 && pkts[0].len == 0)
        timers_on_keepalive_sent(&peer->timers, now);
    else
        tell_soon = timers_on_data_sent(&peer->timers, now);
    if (keypair_wants_rekey_after_send(kp, now) && timers_on_rekey_wanted(&peer->timers))
        peer_tell(peer);
    else if (tell_soon)
        peer_tell_soon(peer, now);
}

/* No session: the packets wait with the peer, and a handshake is asked for. */
static void stage_all(struct sender *s, struct peer *peer, const uint8_t *buf,
    const struct packet *pkts, unsigned n_pkts, uint8_t tos)
{
    for (unsigned i = 0; i < n_pkts; i++)
        peer_stage(peer, buf + pkts[i].off + sizeof(struct wg_data), pkts[i].len, tos, s->drops);
    if (timers_on_rekey_wanted(&peer->timers))
        peer_tell(peer);
}

void sender_add(struct sender *s, struct peer *peer, uint8_t *buf, const struct packet *pkts,
    unsigned n_pkts, uint8_t tos, nsec_t now)
{
    struct udp_path path = peer_copy_path(peer, &peer->path);
    struct keypair *kp;

    if (endpoint_is_none(&path.remote)) {
        drop_count(s->drops, DROP_NO_ENDPOINT, n_pkts);
        return;
    }
    /* Packets that waited go first. This also waits for another thread that is sending them. */
    if (atomic_load(&peer->staged.n) > 0)
        sender_add_staged(s, peer, now);
    kp = acquire_session(s, peer, now);
    if (kp) {
        send_under(s, peer, kp, buf, pkts, n_pkts, &path, tos, now);
        return;
    }
    stage_all(s, peer, buf, pkts, n_pkts, tos);
    /* The session may have begun between the two calls, when nothing was staged yet. */
    sender_add_staged(s, peer, now);
}

/* Lays out waiting packets of one TOS in the room, from *@next on; returns how many. */
static unsigned lay_out(struct sender *s, const struct staged_packet **next, unsigned mtu,
    struct packet pkts[static STAGED_MAX])
{
    const struct staged_packet *p = *next;
    uint8_t tos = p->tos;
    uint32_t off = 0;
    unsigned n = 0;

    for (; p && p->tos == tos && n < STAGED_MAX; p = p->next) {
        struct packet pkt = {.off = off, .len = p->len, .padded = (uint16_t)wg_padded(p->len, mtu)};
        uint8_t *inner = s->space + off + sizeof(struct wg_data);

        if (off + packet_capacity(&pkt) > SENDER_SIZE)
            break;
        memcpy(inner, p->data, p->len);
        memset(inner + p->len, 0, (size_t)(pkt.padded - p->len));
        pkts[n++] = pkt;
        off += packet_capacity(&pkt);
    }
    *next = p;
    return n;
}

/* Sends the list @first; the caller holds peer->lock. */
static void send_list(
    struct sender *s, struct peer *peer, const struct staged_packet *first, nsec_t now)
{
    unsigned mtu = atomic_load_explicit(&peer->device->mtu, memory_order_relaxed);
    struct packet pkts[STAGED_MAX];

    while (first) {
        uint8_t tos = first->tos;
        unsigned n = lay_out(s, &first, mtu, pkts);
        struct keypair *kp = acquire_session(s, peer, now);

        /* The room holds the largest packet, so this ends. */
        assert(n > 0);
        if (kp)
            send_under(s, peer, kp, s->space, pkts, n, &peer->path, tos, now);
        else
            drop_count(s->drops, DROP_NO_KEYPAIR, n);
        /* The room is used again. */
        sender_flush(s);
    }
}

void sender_add_staged(struct sender *s, struct peer *peer, nsec_t now)
{
    struct staged_packet *list;

    if (!acquire_session(s, peer, now))
        return;
    /* What is queued may lie in the room, and is older. */
    sender_flush(s);
    /* Held to the end, so that no newer packet of another thread overtakes: it waits for the
     * lock as long as something is staged. */
    (void)pthread_mutex_lock(&peer->lock);
    list = peer->staged.first;
    send_list(s, peer, list, now);
    peer->staged.first = peer->staged.last = NULL;
    atomic_store(&peer->staged.n, 0);
    (void)pthread_mutex_unlock(&peer->lock);
    staged_free(list);
}

bool sender_add_keepalive(struct sender *s, struct peer *peer, nsec_t now)
{
    struct udp_path path = peer_copy_path(peer, &peer->path);
    struct packet empty = {.len = 0};
    struct keypair *kp;

    if (endpoint_is_none(&path.remote))
        return true;
    kp = acquire_session(s, peer, now);
    if (!kp)
        return false;
    /* A keypair is used no more often than there is a flush, so there is room for one more. */
    empty.off = s->space_used;
    s->space_used += packet_capacity(&empty);
    send_under(s, peer, kp, s->space, &empty, 1, &path, 0, now);
    return true;
}

bool sender_keepalive(struct sender *s, struct peer *peer, nsec_t now)
{
    bool has_session = sender_add_keepalive(s, peer, now);

    sender_flush(s);
    return has_session;
}
