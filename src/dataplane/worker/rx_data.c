/* rx_data.c - see rx_data.h. The stages stand in the order of the calls from the last to the first:
 * rx_data_take() is the one to begin with. */
#include "worker/rx_data.h"

#include "base/drop.h"
#include "packet/run_split.h"
#include "peer/peer.h"
#include "shared/device_state.h"
#include "shared/index.h"
#include "shared/port_state.h"
#include "wire/ip.h"
#include "wire/wg.h"
#include "worker/rx.h"

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

static void drop(struct rx_worker *w, enum drop_reason reason, uint64_t n)
{
    drop_count(&w->drops, reason, n);
}

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
    if (!device_accept_has(&d->accept, p, &ip)) {
        drop(w, DROP_NOT_SERVED, 1);
        return;
    }
    if ((tos & IP_ECN_MASK) == IP_ECN_CE)
        ip_ecn_decapsulate(p, tos);
    frame_writer_add(&w->writer, d, p, &ip);
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
    peer_count_rx(peer, tally->n_bytes);
    if (is_confirmed) {
        atomic_store(&peer->has_confirmed, true);
        timers_on_session_confirmed(&peer->timers, now);
        tell_soon = renews && atomic_load(&peer->staged.n) == 0;
        tell = !tell_soon;
    }
    if (tally->n_data > 0)
        tell_soon |= timers_on_data_received(&peer->timers, now);
    else
        timers_on_keepalive_received(&peer->timers, now);
    if (keypair_wants_rekey_after_receive(kp, now))
        tell |= timers_on_last_minute(&peer->timers);
    if (tell)
        peer_tell(peer);
    else if (tell_soon)
        peer_tell_soon(peer, now);
}

void rx_data_take(struct rx_worker *w, const struct run_part *part)
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
