/* peer_table.c - see peer_table.h. */
#include "agent/paths/edge/peer_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"

/* ---- handshakes ------------------------------------------------------------------------------ */

/* A handshake that was not completed is begun again after this time. */
#define RETRY NSEC_PER_SEC

/* A session carries nothing after this time (whitepaper 6.1, REJECT_AFTER_TIME). */
#define SESSION_MAX (180 * NSEC_PER_SEC)

void edge_handshake_want(struct edge_handshake *h, bool is_first, nsec_t turn, nsec_t now)
{
    h->wanted_at = now;
    h->due_at = is_first ? now : now + turn;
}

bool edge_handshake_hasten(struct edge_handshake *h, nsec_t now)
{
    if (h->due_at == NSEC_NEVER)
        return false;
    h->due_at = nsec_min(h->due_at, now);
    return true;
}

void edge_handshake_on_seen(struct edge_handshake *h, nsec_t seen_at)
{
    h->seen_at = seen_at;
    if (edge_handshake_is_answer(h, seen_at))
        h->due_at = NSEC_NEVER;
}

bool edge_handshake_is_answer(const struct edge_handshake *h, nsec_t seen_at)
{
    return seen_at > h->wanted_at;
}

bool edge_handshake_has_session(const struct edge_handshake *h, nsec_t now)
{
    return h->seen_at != 0 && now - h->seen_at < SESSION_MAX;
}

bool edge_handshake_take(struct edge_handshake *h, nsec_t now)
{
    if (now < h->due_at)
        return false;
    h->due_at = now + RETRY;
    return true;
}

/* ---- routes ---------------------------------------------------------------------------------- */

bool edge_route_use_relay(struct edge_route *r, const struct x25519_public *relay, const char *node,
    const struct endpoint *endpoint)
{
    if (edge_route_goes_via(r, relay)) {
        r->endpoint = *endpoint;
        return false;
    }
    *r = (struct edge_route){.kind = EDGE_ROUTE_RELAY, .endpoint = *endpoint, .via = *relay};
    memcpy(r->via_node, node, strlen(node) + 1);
    return true;
}

bool edge_route_use_hub(struct edge_route *r)
{
    if (r->kind == EDGE_ROUTE_HUB)
        return false;
    *r = (struct edge_route)EDGE_ROUTE_NULL;
    return true;
}

bool edge_route_goes_via(const struct edge_route *r, const struct x25519_public *relay)
{
    return r->kind == EDGE_ROUTE_RELAY && x25519_public_equal(&r->via, relay);
}

bool edge_route_render(const struct edge_route *r, const char *node, uint16_t mtu, bool is_standby,
    struct render_path *ret)
{
    bool is_direct = r->kind == EDGE_ROUTE_DIRECT;

    if (r->kind == EDGE_ROUTE_HUB && mtu == 0)
        return false;
    *ret = (struct render_path){
        .endpoint = r->endpoint,
        .keepalive = (uint16_t)(r->keepalive / NSEC_PER_SEC),
        .mtu = mtu,
        .is_standby = is_direct && is_standby,
    };
    memcpy(ret->node, node, strlen(node) + 1);
    memcpy(ret->via, r->via_node, sizeof(ret->via));
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

void peer_table_deinit(struct peer_table *t)
{
    free(t->items);
    free(t->gone);
    *t = (struct peer_table){0};
}

/* ---- lookups -------------------------------------------------------------------------------- */

static int compare_peer(const void *name, const void *peer)
{
    return strcmp(name, ((const struct peer_entry *)peer)->node);
}

struct peer_entry *peer_table_find(const struct peer_table *t, const char *node)
{
    return t->n > 0 ? bsearch(node, t->items, t->n, sizeof(*t->items), compare_peer) : NULL;
}

struct peer_entry *peer_table_find_key(const struct peer_table *t, const struct x25519_public *key)
{
    for (size_t i = 0; i < t->n; i++)
        if (x25519_public_equal(&t->items[i].key, key))
            return &t->items[i];
    return NULL;
}

/* ---- what the snapshot says ----------------------------------------------------------------- */

static enum path_policy policy_of(const struct snapshot *s, const struct node *node)
{
    const struct mesh_edge *edge = snapshot_find_edge(s, s->self, node->meta.name);
    const struct edge_pin *pin = mesh_edge_pin(edge, node->meta.name);

    /* With a pinned endpoint there is no path to find. */
    if (pin && !endpoint_is_none(&pin->endpoint))
        return PATH_POLICY_OFF;
    switch (edge ? edge->path : EDGE_PATH_AUTO) {
    case EDGE_PATH_DIRECT:
        return PATH_POLICY_DIRECT;
    case EDGE_PATH_RELAY:
        return PATH_POLICY_RELAY;
    case EDGE_PATH_OFF:
        return PATH_POLICY_OFF;
    case EDGE_PATH_AUTO:
    case EDGE_PATH_N:
        break;
    }
    /* In the hub topology a relay takes the place of a hub, so it is reached directly itself. */
    if (s->network.topology == TOPOLOGY_HUB && !node->relay && !snapshot_self(s)->relay)
        return PATH_POLICY_RELAY;
    return s->network.topology == TOPOLOGY_MESH ? PATH_POLICY_DIRECT : PATH_POLICY_AUTO;
}

static struct peer_entry make_entry(const struct node *node)
{
    struct peer_entry peer = {.key = node->key,
        .policy = PATH_POLICY_N,
        .handshake = EDGE_HANDSHAKE_NULL,
        .route = EDGE_ROUTE_NULL};

    memcpy(peer.node, node->meta.name, strlen(node->meta.name) + 1);
    return peer;
}

static struct x25519_public other_of(const struct node *node)
{
    return node->keys ? node->keys->other : (struct x25519_public){{0}};
}

/* Is it the node that the entry is of, under this key or another one of its keys? */
static bool is_same(const struct peer_entry *peer, const struct node *node)
{
    struct x25519_public other = other_of(node);

    return x25519_public_equal(&peer->key, &node->key) ||
           x25519_public_equal(&peer->other, &node->key) || x25519_public_equal(&peer->key, &other);
}

static void update_entry(struct peer_entry *peer, const struct node *node, enum path_policy policy)
{
    bool is_relay = node->relay && node->side->relay_run != 0;
    struct x25519_public other = other_of(node);

    peer->changes = (struct peer_changes){
        .is_new = peer->policy == PATH_POLICY_N,
        .is_rekeyed = !x25519_public_equal(&peer->key, &node->key) ||
                      !x25519_public_equal(&peer->other, &other),
        .was = peer->key,
        .is_put = peer->policy != policy || peer->is_relay != is_relay,
        .is_relaying = peer->is_relay != is_relay,
        .is_side = node->side->generation != peer->generation,
        .is_restarted =
            is_relay && peer->relay_run != 0 && peer->relay_run != node->side->relay_run,
    };
    peer->key = node->key;
    peer->other = other;
    peer->policy = policy;
    peer->is_relay = is_relay;
    peer->is_closed = node->notice && node->notice->is_closed;
    peer->relay_run = node->side->relay_run;
    peer->generation = node->side->generation;
}

/* ---- a new table ---------------------------------------------------------------------------- */

int peer_table_take(struct peer_table *t, const struct snapshot *s)
{
    struct peer_table next = {
        .items = calloc(s->nodes.n + 1, sizeof(*next.items)),
        .gone = calloc(t->n + 1, sizeof(*next.gone)),
    };

    if (!next.items || !next.gone) {
        peer_table_deinit(&next);
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        enum path_policy policy = policy_of(s, node);
        const struct peer_entry *before;

        if (node->hub || !node->side || policy == PATH_POLICY_OFF ||
            strcmp(node->meta.name, s->self) == 0)
            continue;
        before = peer_table_find(t, node->meta.name);
        /* An entry with the same name but keys of its own belongs to another node. */
        if (before && !is_same(before, node))
            before = NULL;
        next.items[next.n] = before ? *before : make_entry(node);
        update_entry(&next.items[next.n++], node, policy);
    }
    for (size_t i = 0; i < t->n; i++) {
        const struct peer_entry *after = peer_table_find(&next, t->items[i].node);

        if (!after || !x25519_public_equal(&after->changes.was, &t->items[i].key))
            next.gone[next.n_gone++] = t->items[i];
    }
    peer_table_deinit(t);
    *t = next;
    return 0;
}
