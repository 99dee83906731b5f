/* stock_mtu.c - see stock_mtu.h. */
#include "agent/paths/edge/stock_mtu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/paths/edge/peer_seen.h"
#include "mesh/snapshot/snapshot.h"
#include "os/log.h"
#include "wire/wg.h"

/* One that answers no ping is asked so long after the last data to it at most. */
#define SILENT_ASKED_FOR (5 * NSEC_PER_SEC)

void stock_mtus_init(struct stock_mtus *w, const struct rng *rng)
{
    *w = (struct stock_mtus){.rng = *rng};
}

void stock_mtus_deinit(struct stock_mtus *w)
{
    for (size_t i = 0; i < w->n; i++)
        w->items[i].pmtu = pmtu_driver_free(w->items[i].pmtu);
    free(w->items);
    w->items = NULL;
    w->n = 0;
}

/* ---- who they are --------------------------------------------------------------------------- */

static int compare(const void *name, const void *peer)
{
    return strcmp(name, ((const struct stock_mtu *)peer)->node);
}

/* Takes what is known of that node out of the old list. */
static struct stock_mtu take_before(struct stock_mtus *w, const struct node *node)
{
    struct stock_mtu *before =
        w->n > 0 ? bsearch(node->meta.name, w->items, w->n, sizeof(*w->items), compare) : NULL;
    struct stock_mtu peer = {.key = node->key};

    if (before && x25519_public_equal(&before->key, &node->key)) {
        peer = *before;
        before->pmtu = NULL;
    }
    memcpy(peer.node, node->meta.name, strlen(node->meta.name) + 1);
    peer.address = node->address4;
    return peer;
}

int stock_mtus_take(struct stock_mtus *w, const struct snapshot *s)
{
    struct stock_mtus next = {.rng = w->rng, .items = calloc(s->nodes.n + 1, sizeof(*next.items))};

    if (!next.items)
        return -ENOMEM;
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (node->stock && !node->hub && strcmp(node->meta.name, s->self) != 0)
            next.items[next.n++] = take_before(w, node);
    }
    stock_mtus_deinit(w);
    *w = next;
    return 0;
}

/* ---- what the engine shows ------------------------------------------------------------------ */

/* Data was sent to it since the last look. The counters begin anew with the engine. */
static bool was_sent(struct stock_mtu *peer, uint64_t tx_bytes)
{
    uint64_t others;

    if (tx_bytes < peer->own_bytes)
        peer->own_bytes = peer->tx_bytes = 0;
    others = tx_bytes - peer->own_bytes;
    if (others <= peer->tx_bytes)
        return false;
    peer->tx_bytes = others;
    return true;
}

void stock_mtus_look(struct stock_mtu *peer, const struct peer_seen *seen,
    const struct pmtu_driver_limits *limits, nsec_t now)
{
    bool is_sent = seen && was_sent(peer, seen->tx_bytes);
    bool is_heard = seen && seen->rx_bytes != peer->rx_bytes;

    peer->has_session = seen && seen->has_session && !endpoint_is_none(&seen->endpoint);
    if (!peer->has_session)
        return;
    peer->rx_bytes = seen->rx_bytes;
    if (!peer->pmtu)
        peer->pmtu = pmtu_driver_new();
    if (!peer->pmtu)
        return;
    if (!pmtu_driver_on_path(peer->pmtu, &seen->endpoint, limits, now))
        pmtu_driver_set_limits(peer->pmtu, limits, now);
    pmtu_driver_on_data(peer->pmtu, is_sent, is_heard, now);
}

uint16_t stock_mtus_of(const struct stock_mtu *peer)
{
    return peer->pmtu && peer->pmtu->pmtu.is_measured ? peer->pmtu->mtu : 0;
}

/* ---- pings ---------------------------------------------------------------------------------- */

/* Pings keep a session alive, and a phone awake: one that answers none, as one that is off does, is
 * asked again only while data is sent to it. */
static bool is_asked(const struct stock_mtu *peer, nsec_t now)
{
    const struct pmtu *p = peer->pmtu ? &peer->pmtu->pmtu : NULL;

    if (!p || !peer->has_session)
        return false;
    return p->state != PMTU_STATE_SILENT ||
           (p->data_sent_at >= 0 && now - p->data_sent_at < SILENT_ASKED_FOR);
}

static void tell(struct stock_mtu *peer)
{
    bool is_silent = peer->pmtu->pmtu.state == PMTU_STATE_SILENT && !peer->pmtu->pmtu.is_measured;
    uint16_t size = pmtu_driver_settled(peer->pmtu);

    if (size != 0)
        log_info("%s: the path carries packets of %u bytes", peer->node, size);
    else if (is_silent && !peer->is_told)
        log_info("%s: this stock WireGuard answers no pings, so it is not known how long packets "
                 "reach it: it is sent at most %u bytes",
            peer->node, PMTU_INNER_FLOOR);
    peer->is_told |= is_silent;
}

static bool next_of(struct stock_mtus *w, struct stock_mtu *peer, struct stock_ping *ret,
    bool *ret_is_new, nsec_t now)
{
    enum pmtu_driver_wish wish;
    struct pmtu_probe probe;
    uint16_t payload;

    while ((wish = pmtu_driver_next(peer->pmtu, &probe, &payload, now)) != PMTU_DRIVER_NONE) {
        if (wish == PMTU_DRIVER_USE) {
            *ret_is_new = true;
            continue;
        }
        *ret = (struct stock_ping){.to = peer->address,
            .len = (uint16_t)(payload - WG_DATA_OVERHEAD),
            .cookie = rng_u64(&w->rng)};
        peer->own_bytes += wg_padded(ret->len, UINT16_MAX) + WG_DATA_OVERHEAD;
        pmtu_driver_on_sent(peer->pmtu, &probe, ret->cookie);
        return true;
    }
    tell(peer);
    return false;
}

bool stock_mtus_next(struct stock_mtus *w, struct stock_ping *ret, bool *ret_is_new, nsec_t now)
{
    for (size_t i = 0; i < w->n; i++) {
        struct stock_mtu *peer = &w->items[i];

        if (is_asked(peer, now) && next_of(w, peer, ret, ret_is_new, now))
            return true;
    }
    return false;
}

void stock_mtus_on_answer(
    struct stock_mtus *w, const struct ip_addr *from, uint64_t cookie, nsec_t now)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->items[i].pmtu && ip_addr_equal(&w->items[i].address, from))
            (void)pmtu_driver_on_fits(w->items[i].pmtu, cookie, true, now);
}

nsec_t stock_mtus_due(const struct stock_mtus *w, nsec_t now)
{
    nsec_t due = NSEC_NEVER;

    for (size_t i = 0; i < w->n; i++)
        if (is_asked(&w->items[i], now))
            due = nsec_min(due, pmtu_driver_due(w->items[i].pmtu));
    return due;
}
