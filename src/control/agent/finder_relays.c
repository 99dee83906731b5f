/*
 * finder_relays.c - see finder.h: the relays that this node reaches, and keeps ready.
 *
 * A relay is a node that the hub admits as one and that says it is; we can use it
 * where we reach it by a direct path of our own and have a session with it, by which
 * it knows our address. Of those the two nearest are kept ready, with keepalives as
 * to a hub, and any that an edge goes through. They and the hub are told to peers,
 * each with its round trip; path/path_relay.c chooses for each pair.
 *
 * Whether a relay lives its own path tells (path/path_liveness.c): while data goes through
 * it, that counts as the path's own. The hub has no path of ours, so it is asked by
 * STUN while data goes through it and there is another relay to go to.
 */
#include <string.h>

#include "agent/finder_internal.h"
#include "agent/observe.h"
#include "os/log.h"

/* Relays that are kept ready beside the hub, though nothing goes through them. */
#define LEGS 2

/* A relay's RTT is told anew when it has changed by a quarter, and at least by so much. */
#define RTT_NEWS (3 * NSEC_PER_MSEC)

/* The hub, while data goes through it: asked so often, dead after so many and so long. */
#define ASK_ACTIVE (300 * NSEC_PER_MSEC)
#define ASK_AGAIN  (200 * NSEC_PER_MSEC)
#define ASK_DEAD   (1000 * NSEC_PER_MSEC)
#define DEAD_ASKED 4
#define DEAD_AFTER (700 * NSEC_PER_MSEC)
#define ACTIVE_FOR (5 * NSEC_PER_SEC)

/* ---- which are kept ready ------------------------------------------------------------------- */

static struct render_path *direct_route(const struct finder *f, const struct finder_peer *peer)
{
    struct render_path *route = finder__find_route(f, peer->node);

    return route && route->via[0] == '\0' ? route : NULL;
}

static nsec_t rtt_to(const struct finder *f, const struct finder_peer *peer, nsec_t now)
{
    struct path_view view;

    return paths_view(f->paths, &peer->key, &view, now) ? nsec_max(view.rtt, 1) : 1;
}

static bool is_in_use(const struct finder *f, const struct finder_peer *relay)
{
    for (size_t i = 0; i < f->n_peers; i++)
        if (x25519_public_equal(&f->peers[i].via, &relay->key))
            return true;
    return false;
}

/* The nearest one that is not kept yet; NULL: none is left. */
static struct finder_peer *nearest(struct finder *f, nsec_t now)
{
    struct finder_peer *best = NULL;
    nsec_t least = 0;

    for (size_t i = 0; i < f->n_peers; i++) {
        struct finder_peer *peer = &f->peers[i];
        nsec_t rtt;

        if (!peer->is_relay || peer->is_leg || !direct_route(f, peer))
            continue;
        rtt = rtt_to(f, peer, now);
        if (!best || rtt < least) {
            best = peer;
            least = rtt;
        }
    }
    return best;
}

/* A relay that is to be used must have heard us: nothing is passed on for a stranger. */
static void want_session(struct finder_peer *peer, nsec_t now)
{
    if (!peer->has_session && peer->handshake_due == NSEC_NEVER) {
        peer->handshake_due = now;
        peer->wanted_at = now;
    }
}

bool finder__choose_legs(struct finder *f, nsec_t now)
{
    struct finder_peer *leg;
    bool changed = false;
    unsigned n = 0;

    for (size_t i = 0; i < f->n_peers; i++) {
        struct finder_peer *peer = &f->peers[i];

        peer->is_leg = peer->is_relay && direct_route(f, peer) && is_in_use(f, peer);
        n += peer->is_leg ? 1 : 0;
    }
    for (; n < LEGS && (leg = nearest(f, now)); n++)
        leg->is_leg = true;
    for (size_t i = 0; i < f->n_peers; i++) {
        struct finder_peer *peer = &f->peers[i];
        struct render_path *route = direct_route(f, peer);

        if (peer->is_leg)
            want_session(peer, now);
        if (route && route->is_leg != peer->is_leg) {
            route->is_leg = peer->is_leg;
            changed = true;
        }
    }
    return changed;
}

/* ---- what is told --------------------------------------------------------------------------- */

static struct path_relay look_at_hub(const struct finder *f)
{
    struct path_relay relay = {.key = f->hub};

    for (unsigned i = 0; i < f->stun.n_views; i++) {
        const struct stun_view *v = &f->stun.views[i];

        if (v->heard_at != 0 && (relay.rtt == 0 || v->rtt < relay.rtt))
            relay.rtt = nsec_max(v->rtt, 1);
    }
    return relay;
}

/* A little up and down is not worth telling everybody. */
static bool is_rtt_news(nsec_t before, nsec_t now)
{
    nsec_t difference = before > now ? before - now : now - before;

    return (before == 0) != (now == 0) || difference > nsec_max(RTT_NEWS, before / 4);
}

static void add_relay(const struct finder *f, struct path_side *side, struct path_relay relay)
{
    for (unsigned i = 0; i < f->self.n_relays; i++)
        if (x25519_public_equal(&f->self.relays[i].key, &relay.key) &&
            !is_rtt_news(f->self.relays[i].rtt, relay.rtt))
            relay.rtt = f->self.relays[i].rtt;
    side->relays[side->n_relays++] = relay;
}

void finder__tell_relays(const struct finder *f, struct path_side *side, nsec_t now)
{
    side->n_relays = 0;
    side->relay_run = f->relays ? f->run : 0;
    if (!x25519_public_is_none(&f->hub) && !f->hub_beat.is_dead)
        add_relay(f, side, look_at_hub(f));
    for (size_t i = 0; i < f->n_peers && side->n_relays < PATH_RELAYS_MAX; i++) {
        const struct finder_peer *peer = &f->peers[i];

        if (peer->is_leg && peer->has_session)
            add_relay(f, side, (struct path_relay){.key = peer->key, .rtt = rtt_to(f, peer, now)});
    }
}

/* ---- where an edge goes --------------------------------------------------------------------- */

const struct finder_peer *finder__relay_at(const struct finder *f, const struct endpoint *at)
{
    for (size_t i = 0; i < f->n_peers; i++) {
        const struct finder_peer *peer = &f->peers[i];
        const struct render_path *route = peer->is_relay ? direct_route(f, peer) : NULL;

        if (route && endpoint_equal(&route->endpoint, at))
            return peer;
    }
    return NULL;
}

bool finder_is_relay_at(const struct finder *f, const char *node, const struct endpoint *at)
{
    const struct render_path *route = finder__find_route(f, node);

    return (!route || route->via[0] != '\0') &&
           (finder__relay_at(f, at) || endpoint_equal(&f->hub_at, at));
}

/* The engine has it elsewhere than it was told: the other end has begun a session there. */
void finder__follow(
    struct finder *f, struct finder_peer *peer, const struct observation *ob, nsec_t now)
{
    const struct finder_peer *relay;

    if (!peer->is_applied || ob->handshake <= peer->wanted_at || direct_route(f, peer))
        return;
    relay = finder__relay_at(f, &ob->endpoint);
    if (relay)
        paths_on_relayed(f->paths, &peer->key, &relay->key, now);
    else if (endpoint_equal(&f->hub_at, &ob->endpoint))
        paths_on_relayed(f->paths, &peer->key, &f->hub, now);
}

void finder__relay_moved(struct finder *f, struct finder_peer *relay, nsec_t now)
{
    const struct render_path *to = direct_route(f, relay);

    for (size_t i = 0; to && i < f->n_peers; i++) {
        struct render_path *route = finder__find_route(f, f->peers[i].node);

        if (route && strcmp(route->via, relay->node) == 0)
            route->endpoint = to->endpoint;
    }
    relay->handshake_due = now;
    relay->wanted_at = now;
}

void finder__relay_forgot(struct finder *f, struct finder_peer *relay, nsec_t now)
{
    log_info("relay %s was started anew: what goes through it shakes hands again", relay->node);
    relay->handshake_due = now;
    relay->wanted_at = now;
    for (size_t i = 0; i < f->n_peers; i++)
        if (x25519_public_equal(&f->peers[i].via, &relay->key))
            finder__want_handshake(f, &f->peers[i], FINDER_RELAY_TURN, now);
}

/* ---- are they alive? ------------------------------------------------------------------------ */

/* What goes through a relay shows its path that it is in use; to it that is data of its own. */
static void count_through(struct finder *f, const struct finder_peer *relay, nsec_t now)
{
    uint64_t rx = relay->rx_bytes;
    uint64_t tx = relay->tx_bytes;

    for (size_t i = 0; i < f->n_peers; i++)
        if (x25519_public_equal(&f->peers[i].via, &relay->key)) {
            rx += f->peers[i].rx_bytes;
            tx += f->peers[i].tx_bytes;
        }
    paths_on_traffic(f->paths, &relay->key, rx, tx, now);
}

void finder__count_relayed(struct finder *f, nsec_t now)
{
    uint64_t sum = 0;
    bool has_other = false;

    for (size_t i = 0; i < f->n_peers; i++) {
        struct finder_peer *peer = &f->peers[i];

        if (peer->is_leg) {
            has_other |= peer->has_session;
            count_through(f, peer, now);
        }
        if (x25519_public_is_none(&peer->via) && !direct_route(f, peer))
            sum += peer->rx_bytes + peer->tx_bytes;
    }
    if (sum != f->hub_beat.bytes)
        f->hub_beat.moved_at = now;
    f->hub_beat.bytes = sum;
    f->hub_beat.has_other = has_other;
}

static bool is_watched(const struct finder *f, nsec_t now)
{
    const struct finder_hub_beat *b = &f->hub_beat;
    bool is_stream = ip_addr_is_v4(&f->hub_at.addr) && f->hub_at.addr.b[12] == 127;

    if (endpoint_is_none(&f->hub_at) || is_stream)
        return false;
    return b->is_dead || (b->has_other && b->moved_at != 0 && now - b->moved_at < ACTIVE_FOR);
}

nsec_t finder__hub_beat_due(const struct finder *f, nsec_t now)
{
    return is_watched(f, now) ? f->hub_beat.next : NSEC_NEVER;
}

static void set_dead(struct finder *f, bool is_dead, nsec_t now)
{
    if (f->hub_beat.is_dead == is_dead)
        return;
    f->hub_beat.is_dead = is_dead;
    log_info(is_dead ? "the hub does not answer by UDP: what it relays goes another way"
                     : "the hub answers by UDP again");
    finder__update_self(f, now);
}

void finder__hub_beat_tick(struct finder *f, nsec_t now)
{
    struct finder_hub_beat *b = &f->hub_beat;

    if (!is_watched(f, now)) {
        b->n_unanswered = 0;
        b->next = now;
        if (b->is_dead)
            set_dead(f, false, now);
        return;
    }
    if (now < b->next)
        return;
    if (b->n_unanswered >= DEAD_ASKED && now - b->first_unanswered >= DEAD_AFTER)
        set_dead(f, true, now);
    if (b->n_unanswered++ == 0)
        b->first_unanswered = now;
    udp_probe_ask(&f->hub_probe, &f->hub_at, now);
    b->next = now + (b->is_dead ? ASK_DEAD : ASK_AGAIN);
}

void finder__on_hub_answer(struct finder *f, const struct endpoint *from, nsec_t now)
{
    if (!endpoint_equal(from, &f->hub_at))
        return;
    f->hub_beat.n_unanswered = 0;
    f->hub_beat.next = now + ASK_ACTIVE;
    set_dead(f, false, now);
    finder__run(f, now);
}

/* ---- for people ----------------------------------------------------------------------------- */

static const char *name_of(const struct finder *f, const struct x25519_public *key)
{
    const struct finder_peer *peer = finder__find_by_key(f, key);

    return peer ? peer->node : f->hub_name;
}

static json_t *encode_rtt(nsec_t t)
{
    return t == 0 ? json_null() : json_real((double)(t / NSEC_PER_USEC) / 1000.0);
}

json_t *finder_encode_relays(const struct finder *f, const char *node)
{
    const struct finder_peer *peer = finder__find_peer(f, node);
    struct path_relay_view views[PATH_RELAYS_MAX];
    json_t *items = json_array();
    size_t n = peer ? paths_relays(f->paths, &peer->key, views, PATH_RELAYS_MAX) : 0;

    for (size_t i = 0; items && i < n; i++)
        if (json_array_append_new(
                items, json_pack("{s:s, s:s, s:o, s:o}", "name", name_of(f, &views[i].key),
                           "verdict", path_verdict_name(views[i].verdict), "rttMs",
                           encode_rtt(views[i].here), "peerRttMs", encode_rtt(views[i].there))) < 0)
            items = (json_decref(items), NULL);
    return items;
}
