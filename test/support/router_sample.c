/* router_sample.c - see router_sample.h. */
#include <string.h>

#include "base/secret.h"
#include "noise/cookie.h"
#include "test/support/router_sample.h"

/* ---- messages ---- */

struct x25519_public router_sample_key(unsigned n)
{
    struct x25519_public key = {{(uint8_t)n, (uint8_t)(n >> 8), 0x77}};

    return key;
}

struct endpoint sample_endpoint(unsigned n)
{
    uint8_t b[4] = {192, 0, 2, (uint8_t)(1 + n)};

    return (struct endpoint){.addr = ip_addr_v4(b), .port = (uint16_t)(40000 + n)};
}

struct wg_initiation sample_initiation(const struct x25519_public *to, uint32_t sender)
{
    struct wg_initiation msg = {.type = le32_make(WG_TYPE_INITIATION), .sender = le32_make(sender)};
    struct cookie_maker maker;

    maker = (struct cookie_maker){0};
    cookie_add_macs(&maker, to, &msg, sizeof(msg), 0);
    return msg;
}

struct wg_response sample_response(
    const struct x25519_public *to, uint32_t sender, uint32_t receiver)
{
    struct wg_response msg = {.type = le32_make(WG_TYPE_RESPONSE),
        .sender = le32_make(sender),
        .receiver = le32_make(receiver)};
    struct cookie_maker maker;

    maker = (struct cookie_maker){0};
    cookie_add_macs(&maker, to, &msg, sizeof(msg), 0);
    return msg;
}

struct sample_data sample_data(uint32_t receiver)
{
    return (struct sample_data){
        .header = {.type = le32_make(WG_TYPE_DATA), .receiver = le32_make(receiver)}};
}

struct wg_cookie_reply sample_cookie(uint32_t receiver)
{
    return (struct wg_cookie_reply){
        .type = le32_make(WG_TYPE_COOKIE_REPLY), .receiver = le32_make(receiver)};
}

/* ---- the reference ---- */

static struct reference_verdict passed(void)
{
    return (struct reference_verdict){.action = ROUTER_ACTION_PASS};
}

static struct reference_verdict dropped(enum drop_reason reason)
{
    return (struct reference_verdict){.action = ROUTER_ACTION_DROP, .reason = reason};
}

static struct reference_verdict forwarded(const struct reference *t, unsigned to)
{
    if (endpoint_is_none(&t->nodes[to].remote))
        return dropped(DROP_RELAY_NO_ADDRESS);
    return (struct reference_verdict){.action = ROUTER_ACTION_FORWARD, .to = to};
}

static void drop_leases(struct reference *t, unsigned a, unsigned b, bool any_b)
{
    for (unsigned i = 0; i < REFERENCE_LEASES_MAX; i++) {
        struct reference_lease *l = &t->leases[i];

        if ((l->from == a && (any_b || l->to == b)) || (l->to == a && (any_b || l->from == b)))
            l->is_there = false;
    }
}

void reference_node_add(
    struct reference *t, unsigned node, unsigned network, const struct x25519_public *k)
{
    t->nodes[node] = (struct reference_node){.is_there = true, .network = network, .key = *k};
}

void reference_node_remove(struct reference *t, unsigned node)
{
    drop_leases(t, node, 0, true);
    t->nodes[node].is_there = false;
    for (unsigned i = 0; i < REFERENCE_NODES_MAX; i++)
        t->nodes[i].blocked[node] = false;
}

/* The nodes at @ep, the last heard first. Returns how many. */
static unsigned find_senders(
    const struct reference *t, const struct endpoint *ep, unsigned ret[REFERENCE_NODES_MAX])
{
    unsigned n = 0;

    for (unsigned i = 0; i < REFERENCE_NODES_MAX; i++) {
        unsigned at = n;

        if (!t->nodes[i].is_there || !endpoint_equal(&t->nodes[i].remote, ep))
            continue;
        for (; at > 0 && t->nodes[ret[at - 1]].heard < t->nodes[i].heard; at--)
            ret[at] = ret[at - 1];
        ret[at] = i;
        n++;
    }
    return n;
}

void reference_node_set_address(struct reference *t, unsigned node, const struct endpoint *remote)
{
    unsigned senders[REFERENCE_NODES_MAX];
    unsigned n;

    t->nodes[node].remote = (struct endpoint){.port = 0};
    n = endpoint_is_none(remote) ? 0 : find_senders(t, remote, senders);
    for (unsigned i = ROUTER_SHARED_MAX - 1; i < n; i++)
        t->nodes[senders[i]].remote = (struct endpoint){.port = 0};
    t->nodes[node].remote = *remote;
    t->nodes[node].heard = ++t->heard;
}

void reference_edge_set_blocked(struct reference *t, unsigned a, unsigned b, bool blocked)
{
    t->nodes[a].blocked[b] = t->nodes[b].blocked[a] = blocked;
    if (blocked)
        drop_leases(t, a, b, false);
}

static struct reference_lease *find_lease(
    struct reference *t, unsigned from, uint32_t index, nsec_t now)
{
    for (unsigned i = 0; i < REFERENCE_LEASES_MAX; i++) {
        struct reference_lease *l = &t->leases[i];

        if (l->is_there && l->from == from && l->index == index && now < l->until)
            return l;
    }
    return NULL;
}

static bool add_lease(struct reference *t, struct reference_lease l, nsec_t now)
{
    struct reference_lease *space = NULL;
    unsigned n_owned = 0;
    unsigned n = 0;

    for (unsigned i = 0; i < REFERENCE_LEASES_MAX; i++)
        n_owned += t->leases[i].is_there && t->leases[i].initiator == l.initiator;
    if (n_owned >= t->leases_per_node)
        return false;
    for (unsigned i = 0; i < REFERENCE_LEASES_MAX; i++) {
        struct reference_lease *each = &t->leases[i];

        if (each->from == l.from && each->index == l.index && now >= each->until)
            each->is_there = false;
        if (!each->is_there)
            space = each;
        n += each->is_there;
    }
    if (!space || n >= t->leases_max)
        return false;
    l.is_there = true;
    *space = l;
    return true;
}

void reference_expire(struct reference *t, nsec_t now)
{
    for (unsigned i = 0; i < REFERENCE_LEASES_MAX; i++)
        t->leases[i].is_there &= now < t->leases[i].until;
}

static bool is_for(const struct x25519_public *key, const void *msg, size_t len)
{
    struct cookie_checker checker = {0};

    cookie_checker_set_key(&checker, key);
    return cookie_check_mac1(&checker, msg, len);
}

static struct reference_verdict route_initiation(struct reference *t,
    const struct router_arrival *in, const unsigned *senders, unsigned n_senders,
    const struct wg_initiation *msg)
{
    uint32_t index = le32_get(msg->sender);

    if (n_senders == 0)
        return passed();
    for (unsigned i = 0; i < REFERENCE_NETWORKS_MAX; i++)
        if (t->networks[i].is_there && is_for(&t->networks[i].hub, msg, sizeof(*msg)))
            return passed();
    for (unsigned i = 0; i < n_senders; i++) {
        const struct reference_node *s = &t->nodes[senders[i]];

        for (unsigned to = 0; to < REFERENCE_NODES_MAX; to++) {
            const struct reference_node *peer = &t->nodes[to];
            struct reference_lease *l;

            if (to == senders[i] || !peer->is_there || peer->network != s->network ||
                s->blocked[to] || !is_for(&peer->key, msg, sizeof(*msg)))
                continue;
            l = find_lease(t, to, index, in->now);
            if (l && l->to == senders[i] && !l->is_established)
                return forwarded(t, to);
            if (l || in->is_local(in->ctx, index))
                return dropped(DROP_RELAY_INDEX_CLASH);
            if (!add_lease(t,
                    (struct reference_lease){.from = to,
                        .to = senders[i],
                        .initiator = senders[i],
                        .index = index,
                        .until = in->now + 15 * NSEC_PER_SEC},
                    in->now))
                return dropped(DROP_RELAY_TABLE_FULL);
            return forwarded(t, to);
        }
    }
    return dropped(DROP_RELAY_NO_MATCH);
}

static struct reference_verdict route_response(struct reference *t, const struct router_arrival *in,
    struct reference_lease *l, const struct wg_response *msg)
{
    uint32_t index = le32_get(msg->sender);
    struct reference_lease *back = find_lease(t, l->to, index, in->now);

    if (!is_for(&t->nodes[l->to].key, msg, sizeof(*msg)))
        return dropped(DROP_RELAY_NO_MATCH);
    if (l->is_established)
        return back && back->to == l->from ? forwarded(t, l->to) : dropped(DROP_RELAY_NO_LEASE);
    if (back || in->is_local(in->ctx, index))
        return dropped(DROP_RELAY_INDEX_CLASH);
    if (!add_lease(t,
            (struct reference_lease){.is_established = true,
                .from = l->to,
                .to = l->from,
                .initiator = l->to,
                .index = index,
                .until = in->now + 180 * NSEC_PER_SEC},
            in->now))
        return dropped(DROP_RELAY_TABLE_FULL);
    l->is_established = true;
    l->until = in->now + 180 * NSEC_PER_SEC;
    return forwarded(t, l->to);
}

static struct reference_verdict route_rest(struct reference *t, const struct router_arrival *in,
    const unsigned *senders, unsigned n_senders, const uint8_t *msg, unsigned type)
{
    uint32_t index;

    memcpy(&index, msg + (type == WG_TYPE_RESPONSE ? 8 : 4), sizeof(index));
    for (unsigned i = 0; i < n_senders; i++) {
        struct reference_lease *l = find_lease(t, senders[i], index, in->now);
        struct wg_response response;

        if (!l || (type == WG_TYPE_DATA && !l->is_established) ||
            (type == WG_TYPE_RESPONSE && l->initiator != l->to))
            continue;
        if (type != WG_TYPE_RESPONSE)
            return forwarded(t, l->to);
        memcpy(&response, msg, sizeof(response));
        return route_response(t, in, l, &response);
    }
    if (in->is_local(in->ctx, index))
        return passed();
    return dropped(n_senders > 0 ? DROP_RELAY_NO_LEASE : DROP_RELAY_UNKNOWN_SENDER);
}

struct reference_verdict reference_route(
    struct reference *t, const struct router_arrival *in, const uint8_t *msg, size_t len)
{
    unsigned senders[REFERENCE_NODES_MAX];
    unsigned n = find_senders(t, &in->from, senders);
    unsigned type = wg_type_of(msg, len);
    struct wg_initiation initiation;

    if (type == 0)
        return passed();
    if (type != WG_TYPE_INITIATION)
        return route_rest(t, in, senders, n, msg, type);
    memcpy(&initiation, msg, sizeof(initiation));
    return route_initiation(t, in, senders, n, &initiation);
}
