/*
 * finder_mtu.c - see finder.h: what each direct path carries, by path/pmtu.h.
 *
 * The machine's probes are path frames, its data is what the engine counts, and
 * its result goes into the path that render puts into routes and engine.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/finder_internal.h"
#include "os/log.h"
#include "path/pmtu.h"
#include "wire/ip.h"
#include "wire/wg.h"

#define UDP_HEADER 8

/* Probes whose answers may still come: more than two rounds. */
#define PROBES 32

/** What is measured of one peer's direct path. */
struct finder_mtu {
    struct pmtu pmtu;
    struct endpoint remote; /* whose path it is; none: there is no direct one */
    uint16_t said;          /* the last that was logged */
    unsigned next;          /* in @probes, to be overwritten */
    struct {
        uint64_t id; /* as paths_probe() gave it */
        struct pmtu_probe probe;
    } probes[PROBES];
};

struct finder_mtu *finder__mtu_free(struct finder_mtu *m)
{
    free(m);
    return NULL;
}

/* Of IP and UDP. */
static uint16_t headers(const struct endpoint *remote)
{
    return UDP_HEADER + (ip_addr_is_v4(&remote->addr) ? IP_V4_HEADER_MIN : IP_V6_HEADER);
}

static uint16_t clamp(unsigned v, uint16_t least, uint16_t most)
{
    return (uint16_t)(v < least ? least : v > most ? most : v);
}

/* From what the network says up to what the machine's own links carry. */
static struct pmtu_bounds bounds_of(const struct finder *f, const struct endpoint *remote)
{
    unsigned assumed = f->network_mtu + WG_DATA_OVERHEAD + headers(remote);
    unsigned link = f->link_mtu + WG_DATA_OVERHEAD + UDP_HEADER + IP_V4_HEADER_MIN;
    struct pmtu_bounds b = {.floor = PMTU_FLOOR};

    b.ceiling = clamp(f->link_mtu == 0 ? assumed : link, PMTU_FLOOR, UINT16_MAX);
    b.assumed = clamp(assumed, PMTU_FLOOR, b.ceiling);
    return b;
}

static void probe(
    struct finder *f, struct finder_peer *peer, const struct pmtu_probe *wanted, nsec_t now)
{
    struct finder_mtu *m = peer->mtu;
    uint16_t payload = (uint16_t)(wanted->size - headers(&m->remote));
    uint64_t id;

    if (!paths_probe(f->paths, &peer->key, payload, &id, now))
        return;
    m->probes[m->next].id = id;
    m->probes[m->next].probe = *wanted;
    m->next = (m->next + 1) % PROBES;
}

static void use(struct finder *f, struct finder_peer *peer, uint16_t size)
{
    struct render_path *route = finder__find_route(f, peer->node);

    if (!route)
        return;
    route->mtu = (uint16_t)(size - headers(&peer->mtu->remote) - WG_DATA_OVERHEAD);
    f->listener.on_routes(f->listener.ctx);
}

static void say(struct finder_peer *peer)
{
    struct finder_mtu *m = peer->mtu;

    if (m->pmtu.state != PMTU_STATE_SETTLED || m->pmtu.size == m->said)
        return;
    m->said = m->pmtu.size;
    log_info("%s: the path carries packets of %u bytes", peer->node, m->said);
}

static void run(struct finder *f, struct finder_peer *peer, nsec_t now)
{
    struct pmtu_action action;

    while (pmtu_next(&peer->mtu->pmtu, now, &action))
        if (action.kind == PMTU_ACTION_PROBE)
            probe(f, peer, &action.probe, now);
        else
            use(f, peer, action.probe.size);
    say(peer);
}

void finder__mtu_use(
    struct finder *f, struct finder_peer *peer, const struct endpoint *remote, nsec_t now)
{
    struct pmtu_bounds bounds;

    if (endpoint_is_none(remote)) {
        if (peer->mtu) {
            pmtu_on_path_lost(&peer->mtu->pmtu);
            peer->mtu->remote = *remote;
        }
        return;
    }
    bounds = bounds_of(f, remote);
    if (!peer->mtu) {
        /* Without memory the network's MTU serves. */
        peer->mtu = calloc(1, sizeof(*peer->mtu));
        if (!peer->mtu)
            return;
        pmtu_init(&peer->mtu->pmtu, &bounds);
    }
    if (endpoint_equal(&peer->mtu->remote, remote))
        return;
    peer->mtu->remote = *remote;
    pmtu_on_path(&peer->mtu->pmtu, &bounds, now);
    run(f, peer, now);
}

void finder__mtu_fits(struct finder *f, const struct path_action *action, nsec_t now)
{
    struct finder_peer *peer = finder__find_by_key(f, &action->peer);
    struct finder_mtu *m = peer ? peer->mtu : NULL;

    for (unsigned i = 0; m && i < PROBES; i++)
        if (m->probes[i].probe.size != 0 && m->probes[i].id == action->probe) {
            pmtu_on_answer(&m->pmtu, &m->probes[i].probe, now);
            run(f, peer, now);
            return;
        }
}

void finder__mtu_data(struct finder *f, struct finder_peer *peer, bool sent, bool heard, nsec_t now)
{
    if (!peer->mtu)
        return;
    pmtu_on_data(&peer->mtu->pmtu, sent, heard, now);
    run(f, peer, now);
}

void finder__mtu_tick(struct finder *f, nsec_t now)
{
    for (size_t i = 0; i < f->n_peers; i++)
        if (f->peers[i].mtu && now >= pmtu_due(&f->peers[i].mtu->pmtu))
            run(f, &f->peers[i], now);
}

nsec_t finder__mtu_due(const struct finder *f)
{
    nsec_t due = NSEC_NEVER;

    for (size_t i = 0; i < f->n_peers; i++)
        if (f->peers[i].mtu)
            due = nsec_min(due, pmtu_due(&f->peers[i].mtu->pmtu));
    return due;
}
