/* edge_mtu.c - see edge_mtu.h. */
#include "agent/paths/edge/edge_mtu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/paths/edge/peer_table.h"
#include "agent/reconcile/observe.h"
#include "base/secret.h"
#include "mesh/snapshot/snapshot.h"
#include "os/log.h"
#include "wire/ip.h"
#include "wire/wg.h"

#define UDP_HEADER 8

/* Bytes of the IP and UDP headers. */
static uint16_t header_len(const struct endpoint *remote)
{
    return UDP_HEADER + (ip_addr_is_v4(&remote->addr) ? IP_V4_HEADER_MIN : IP_V6_HEADER);
}

static uint16_t clamp_u16(unsigned v, uint16_t least, uint16_t most)
{
    return (uint16_t)(v < least ? least : v > most ? most : v);
}

/* It begins with what every path carries, whatever was used before on another one; the most is what
 * the machine's links carry, or, where that is not known, what gives the network's MTU. */
static struct pmtu_bounds bounds_for(
    const struct pmtu_driver_limits *limits, const struct endpoint *remote)
{
    unsigned usual = limits->network_mtu + WG_DATA_OVERHEAD + header_len(remote);
    unsigned link = limits->link_mtu + WG_DATA_OVERHEAD + UDP_HEADER + IP_V4_HEADER_MIN;
    struct pmtu_bounds b = {.minimum = PMTU_MIN, .assumed = PMTU_MIN};

    b.ceiling = clamp_u16(limits->link_mtu == 0 ? usual : link, PMTU_MIN, UINT16_MAX);
    return b;
}

bool pmtu_driver_on_path(struct pmtu_driver *pd, const struct endpoint *remote,
    const struct pmtu_driver_limits *limits, nsec_t now)
{
    struct pmtu_bounds bounds;

    if (endpoint_equal(&pd->remote, remote))
        return false;
    bounds = bounds_for(limits, remote);
    pd->remote = *remote;
    pmtu_on_path(&pd->pmtu, &bounds, now);
    return true;
}

void pmtu_driver_set_limits(
    struct pmtu_driver *pd, const struct pmtu_driver_limits *limits, nsec_t now)
{
    pmtu_set_ceiling(&pd->pmtu, bounds_for(limits, &pd->remote).ceiling, now);
}

void pmtu_driver_on_path_lost(struct pmtu_driver *pd)
{
    pmtu_on_path_lost(&pd->pmtu);
    pd->remote = (struct endpoint){.port = 0};
    pd->mtu = 0;
}

bool pmtu_driver_on_fits(struct pmtu_driver *pd, uint64_t id, bool is_whole, nsec_t now)
{
    for (unsigned i = 0; i < PMTU_DRIVER_PROBES; i++) {
        struct pmtu_probe probe = pd->probes[i].probe;

        if (probe.size == 0 || pd->probes[i].id != id)
            continue;
        pd->probes[i].probe.size = 0;
        pd->is_both = is_whole;
        pmtu_on_answer(&pd->pmtu, &probe, now);
        return true;
    }
    return false;
}

enum pmtu_action pmtu_driver_next(
    struct pmtu_driver *pd, struct pmtu_probe *ret, uint16_t *ret_payload, nsec_t now)
{
    enum pmtu_action action = pmtu_next(&pd->pmtu, now, ret);

    if (action == PMTU_ACTION_PROBE)
        *ret_payload = (uint16_t)(ret->size - header_len(&pd->remote));
    if (action == PMTU_ACTION_SET)
        pd->mtu = (uint16_t)(ret->size - header_len(&pd->remote) - WG_DATA_OVERHEAD);
    return action;
}

void pmtu_driver_on_sent(struct pmtu_driver *pd, const struct pmtu_probe *probe, uint64_t id)
{
    pd->probes[pd->next_probe] = (struct pmtu_driver_probe){.id = id, .probe = *probe};
    pd->next_probe = (pd->next_probe + 1) % PMTU_DRIVER_PROBES;
}

uint16_t pmtu_driver_settled(struct pmtu_driver *pd)
{
    if (pd->pmtu.state != PMTU_STATE_SETTLED || pd->pmtu.size == pd->said)
        return 0;
    pd->said = pd->pmtu.size;
    return pd->said;
}

/* ---- hubs ------------------------------------------------------------------------------------ */

/* Of a probe that only says what was found; longer than a frame without padding, as all are. */
#define TELL_SIZE (PATH_FRAME_MIN + 8)

void hub_mtus_init(struct hub_mtus *w, const struct x25519_secret *secret,
    const struct x25519_public *own, const struct rng *rng)
{
    *w = (struct hub_mtus){.secret = *secret, .own = *own, .rng = *rng};
    w->run = rng_u64(&w->rng) | 1;
}

static void free_way(struct hub_mtu *way)
{
    secret_wipe(&way->keys, sizeof(way->keys));
    free(way);
}

void hub_mtus_deinit(struct hub_mtus *w)
{
    while (w->n > 0)
        free_way(w->items[--w->n]);
    secret_wipe(&w->secret, sizeof(w->secret));
}

void hub_mtus_keep(struct hub_mtus *w, const struct x25519_public *keys, unsigned n)
{
    for (unsigned i = 0; i < w->n;) {
        bool is_there = false;

        for (unsigned k = 0; k < n; k++)
            is_there |= x25519_public_equal(&w->items[i]->key, &keys[k]);
        if (is_there) {
            i++;
            continue;
        }
        free_way(w->items[i]);
        w->items[i] = w->items[--w->n];
    }
}

void hub_mtus_set_secret(struct hub_mtus *w, const struct x25519_secret *secret)
{
    struct x25519_public own;

    if (!x25519_derive_public(secret, &own) || x25519_public_equal(&own, &w->own))
        return;
    w->secret = *secret;
    w->own = own;
    /* It cannot fail: the hub's key has been used with another secret. */
    for (unsigned i = 0; i < w->n; i++)
        (void)path_keys_derive(&w->items[i]->keys, secret, &own, &w->items[i]->key);
}

static struct hub_mtu *hub_mtu_find(const struct hub_mtus *w, const struct x25519_public *key)
{
    for (unsigned i = 0; i < w->n; i++)
        if (x25519_public_equal(&w->items[i]->key, key))
            return w->items[i];
    return NULL;
}

static struct hub_mtu *hub_mtu_add(struct hub_mtus *w, const struct x25519_public *key)
{
    struct hub_mtu *way = w->n < HUB_MTU_MAX ? calloc(1, sizeof(*way)) : NULL;

    if (!way || !path_keys_derive(&way->keys, &w->secret, &w->own, key)) {
        free(way);
        return NULL;
    }
    way->key = *key;
    w->items[w->n++] = way;
    return way;
}

bool hub_mtus_look(struct hub_mtus *w, const struct x25519_public *key,
    const struct observation *seen, const struct peer_traffic *relayed,
    const struct pmtu_driver_limits *limits, nsec_t now)
{
    struct hub_mtu *way = hub_mtu_find(w, key);
    bool has_session = observation_has_session(seen, now);
    uint16_t before = way ? way->pmtu.mtu : 0;
    uint64_t rx_bytes;
    uint64_t tx_bytes;

    if (!seen || endpoint_is_none(&seen->endpoint)) {
        if (way)
            pmtu_driver_on_path_lost(&way->pmtu);
        return before != 0;
    }
    if (!way && has_session)
        way = hub_mtu_add(w, key);
    if (!way)
        return false;
    if (has_session && !pmtu_driver_on_path(&way->pmtu, &seen->endpoint, limits, now))
        pmtu_driver_set_limits(&way->pmtu, limits, now);
    rx_bytes = seen->facts.rx_bytes + relayed->rx_bytes;
    tx_bytes = seen->facts.tx_bytes + relayed->tx_bytes;
    pmtu_on_data(&way->pmtu.pmtu, tx_bytes != way->tx_bytes, rx_bytes != way->rx_bytes, now);
    way->rx_bytes = rx_bytes;
    way->tx_bytes = tx_bytes;
    return false;
}

uint16_t hub_mtus_of(const struct hub_mtus *w, const struct x25519_public *key)
{
    const struct hub_mtu *way = hub_mtu_find(w, key);

    return way && way->pmtu.pmtu.is_measured ? way->pmtu.mtu : 0;
}

/* ---- frames --------------------------------------------------------------------------------- */

/* A probe of @len bytes that says what was found so far. */
static bool seal_probe(struct hub_mtus *w, const struct hub_mtu *way, uint64_t id, size_t len,
    nsec_t wall, nsec_t now, struct hub_mtu_frame *ret)
{
    struct path_frame f = {.kind = PATH_FRAME_PROBE,
        .flags = PATH_FRAME_WHOLE,
        .size = wall != 0 ? hub_mtus_of(w, &way->key) : 0,
        .transaction = id,
        .session = w->run,
        .clock = (uint64_t)now};
    struct xchacha_nonce nonce;

    if (len > PATH_FRAME_MAX)
        return false;
    w->sequence = (uint64_t)nsec_max(wall, (nsec_t)w->sequence + 1);
    f.sequence = w->sequence;
    rng_fill(&w->rng, nonce.b, sizeof(nonce.b));
    ret->to = way->pmtu.remote;
    ret->len = len;
    return path_frame_seal(&way->keys, &f, &nonce, len, ret->bytes);
}

/* The next frame of one way. */
static bool next_frame_of(struct hub_mtus *w, struct hub_mtu *way, struct hub_mtu_frame *ret,
    bool *ret_is_new, nsec_t wall, nsec_t now)
{
    enum pmtu_action step;
    struct pmtu_probe probe;
    uint16_t payload;

    while ((step = pmtu_driver_next(&way->pmtu, &probe, &payload, now)) != PMTU_ACTION_NONE) {
        uint64_t id = rng_u64(&w->rng);

        if (step == PMTU_ACTION_SET) {
            *ret_is_new = true;
            way->owes = true;
        } else if (seal_probe(w, way, id, payload, wall, now, ret)) {
            pmtu_driver_on_sent(&way->pmtu, &probe, id);
            return true;
        }
    }
    if (!way->owes || wall == 0 || hub_mtus_of(w, &way->key) == 0)
        return false;
    /* Nobody waits for the answer: if it is lost, the next probe says it again. */
    way->owes = false;
    return seal_probe(w, way, 0, TELL_SIZE, wall, now, ret);
}

bool hub_mtus_next(
    struct hub_mtus *w, struct hub_mtu_frame *ret, bool *ret_is_new, nsec_t wall, nsec_t now)
{
    for (unsigned i = 0; i < w->n; i++)
        if (next_frame_of(w, w->items[i], ret, ret_is_new, wall, now))
            return true;
    return false;
}

bool hub_mtus_on_frame(struct hub_mtus *w, uint8_t *frame, size_t len, nsec_t now)
{
    struct path_tag tag;
    struct path_frame f;

    if (!path_frame_read_tag(frame, len, &tag))
        return false;
    for (unsigned i = 0; i < w->n; i++) {
        struct hub_mtu *way = w->items[i];

        if (!secret_equal(way->keys.receive_tag.b, tag.b, sizeof(tag.b)))
            continue;
        /* A shorter answer says nothing of the way back. */
        if (path_frame_open(&way->keys, frame, len, &f) && f.kind == PATH_FRAME_PROBE_ACK &&
            f.echo == w->run && len >= f.size)
            (void)pmtu_driver_on_fits(&way->pmtu, f.transaction, true, now);
        return true;
    }
    return false;
}

nsec_t hub_mtus_due(const struct hub_mtus *w)
{
    nsec_t due = NSEC_NEVER;

    for (unsigned i = 0; i < w->n; i++)
        due = nsec_min(due, pmtu_due(&w->items[i]->pmtu.pmtu));
    return due;
}

/* ---- peers without an agent ------------------------------------------------------------------ */

/* One that answers no ping is asked so long after the last data to it at most. */
#define SILENT_ASKED_FOR (5 * NSEC_PER_SEC)

void stock_mtus_deinit(struct stock_mtus *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->items[i].pmtu);
    free(w->items);
    w->items = NULL;
    w->n = 0;
}

/* ---- who they are --------------------------------------------------------------------------- */

static int compare_stock(const void *name, const void *peer)
{
    return strcmp(name, ((const struct stock_mtu *)peer)->node);
}

/* Takes what is known of that node out of the old list. */
static struct stock_mtu take_known(struct stock_mtus *w, const struct node *node)
{
    struct stock_mtu *before =
        w->n > 0 ? bsearch(node->meta.name, w->items, w->n, sizeof(*w->items), compare_stock)
                 : NULL;
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
            next.items[next.n++] = take_known(w, node);
    }
    stock_mtus_deinit(w);
    *w = next;
    return 0;
}

/* ---- what the engine shows ------------------------------------------------------------------ */

/* Data was sent to it since the last look. The counters begin anew with the engine. */
static bool was_data_sent(struct stock_mtu *peer, uint64_t tx_bytes)
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

void stock_mtus_look(struct stock_mtu *peer, const struct observation *seen,
    const struct pmtu_driver_limits *limits, nsec_t now)
{
    bool is_sent = seen && was_data_sent(peer, seen->facts.tx_bytes);
    bool is_heard = seen && seen->facts.rx_bytes != peer->rx_bytes;

    peer->has_session = observation_has_session(seen, now) && !endpoint_is_none(&seen->endpoint);
    if (!peer->has_session)
        return;
    peer->rx_bytes = seen->facts.rx_bytes;
    if (!peer->pmtu)
        peer->pmtu = calloc(1, sizeof(struct pmtu_driver));
    if (!peer->pmtu)
        return;
    if (!pmtu_driver_on_path(peer->pmtu, &seen->endpoint, limits, now))
        pmtu_driver_set_limits(peer->pmtu, limits, now);
    pmtu_on_data(&peer->pmtu->pmtu, is_sent, is_heard, now);
}

uint16_t stock_mtus_of(const struct stock_mtu *peer)
{
    return peer->pmtu && peer->pmtu->pmtu.is_measured ? peer->pmtu->mtu : 0;
}

/* ---- pings ---------------------------------------------------------------------------------- */

/* Pings keep a session alive, and a phone awake: one that answers none, as one that is off does, is
 * asked again only while data is sent to it. */
static bool is_pinged(const struct stock_mtu *peer, nsec_t now)
{
    const struct pmtu *p = peer->pmtu ? &peer->pmtu->pmtu : NULL;

    if (!p || !peer->has_session)
        return false;
    return p->state != PMTU_STATE_SILENT ||
           (p->data_sent_at >= 0 && now - p->data_sent_at < SILENT_ASKED_FOR);
}

static void log_settled(struct stock_mtu *peer)
{
    bool is_silent = peer->pmtu->pmtu.state == PMTU_STATE_SILENT && !peer->pmtu->pmtu.is_measured;
    uint16_t size = pmtu_driver_settled(peer->pmtu);

    if (size != 0)
        log_info("%s: the path carries packets of %u bytes", peer->node, size);
    else if (is_silent && !peer->is_reported)
        log_info("%s: this stock WireGuard answers no pings, so it is not known how long packets "
                 "reach it: it is sent at most %u bytes",
            peer->node, PMTU_INNER_MIN);
    peer->is_reported |= is_silent;
}

static bool next_ping_of(struct stock_mtus *w, struct stock_mtu *peer, struct stock_ping *ret,
    bool *ret_is_new, nsec_t now)
{
    enum pmtu_action step;
    struct pmtu_probe probe;
    uint16_t payload;

    while ((step = pmtu_driver_next(peer->pmtu, &probe, &payload, now)) != PMTU_ACTION_NONE) {
        if (step == PMTU_ACTION_SET) {
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
    log_settled(peer);
    return false;
}

bool stock_mtus_next(struct stock_mtus *w, struct stock_ping *ret, bool *ret_is_new, nsec_t now)
{
    for (size_t i = 0; i < w->n; i++) {
        struct stock_mtu *peer = &w->items[i];

        if (is_pinged(peer, now) && next_ping_of(w, peer, ret, ret_is_new, now))
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
        if (is_pinged(&w->items[i], now))
            due = nsec_min(due, pmtu_due(&w->items[i].pmtu->pmtu));
    return due;
}
