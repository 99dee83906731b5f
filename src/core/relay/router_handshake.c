/*
 * router_handshake.c - the verdict on initiations and responses, which make leases; see router.h.
 *
 * All of it under `changing`: one handshake message at a time, whichever worker
 * got it. The workers' own locks are taken only to write a lease down.
 */
#include <stddef.h>

#include "base/secret.h"
#include "relay/router.h"
#include "relay/router_internal.h"

/*
 * What a sender's initiations may cost the hub, in time: each forwarded one
 * COST_FORWARD and each public key that was tried COST_TRY; so much may be
 * saved up. That makes 125 initiations a second, 1000 at once, and less where
 * the addressee must be searched for among very many nodes.
 */
#define ROUTER_COST_FORWARD (8 * NSEC_PER_MSEC)
#define ROUTER_COST_TRY     (30 * NSEC_PER_USEC)
#define ROUTER_COST_BURST   (8 * NSEC_PER_SEC)

static bool is_made_with(
    const struct router_mac1_key *key, const void *msg, size_t len, const struct wg_macs *macs)
{
    struct blake2s_mac mac;

    blake2s_mac16(key->b.b, sizeof(key->b.b), msg, len, NULL, 0, &mac);
    return secret_equal(mac.b, macs->mac1, sizeof(mac.b));
}

/* Was @macs->mac1, which ends the first @len bytes of @msg, made for this addressee? */
static bool is_made_for(
    const struct router_addressee *to, const void *msg, size_t len, const struct wg_macs *macs)
{
    return is_made_with(&to->key, msg, len, macs) ||
           (to->has_next && is_made_with(&to->next, msg, len, macs));
}

static bool is_initiation_for(const struct router_addressee *to, const struct wg_initiation *msg)
{
    return is_made_for(to, msg, offsetof(struct wg_initiation, macs), &msg->macs);
}

/* ---- whose initiation is it? ---- */

/** The search for one initiation's addressee among one sender's peers. */
struct search {
    const struct router *router;
    const struct router_node *sender;
    const struct wg_initiation *msg;
    uint64_t id;    /* marks the nodes that were tried */
    unsigned tried; /* how many that were */
};

static bool try_peer(struct search *s, struct router_node *peer)
{
    if (peer == s->sender || peer->tried == s->id)
        return false;
    peer->tried = s->id;
    if (router__find_block(s->router, s->sender, peer))
        return false;
    s->tried++;
    return is_initiation_for(&peer->self, s->msg);
}

/*
 * Those first with whom the sender has spoken last: nearly every initiation
 * renews a session, or repeats an attempt whose pending lease is still there.
 */
static struct router_node *search_recent(struct search *s)
{
    const struct lease_party *own = &s->sender->leases;

    for (struct list *it = own->sends.prev; it != &own->sends; it = it->prev) {
        struct router_node *peer = router__node_of(container_of(it, struct lease, by_sender)->to);

        if (try_peer(s, peer))
            return peer;
    }
    for (struct list *it = own->receives.prev; it != &own->receives; it = it->prev) {
        struct router_node *peer =
            router__node_of(container_of(it, struct lease, by_receiver)->from);

        if (try_peer(s, peer))
            return peer;
    }
    return NULL;
}

/* A walk over all nodes of the network; what it costs is charged to the sender. */
static struct router_node *search_all(struct search *s)
{
    struct router_node *peer;

    list_foreach(peer, &s->sender->network->nodes, in_network) {
        if (try_peer(s, peer))
            return peer;
    }
    return NULL;
}

static struct router_node *find_addressee(
    struct router *r, struct router_node *sender, const struct wg_initiation *msg, nsec_t now)
{
    struct search s = {.router = r, .sender = sender, .msg = msg, .id = ++r->scans};
    struct router_node *peer = search_recent(&s);

    if (!peer)
        peer = search_all(&s);
    rate_pay(
        &sender->initiations, now, s.tried * ROUTER_COST_TRY + (peer ? ROUTER_COST_FORWARD : 0));
    return peer;
}

/* ---- leases ---- */

/* Another lease, or a session of the hub's own, stands in the way of one for (@from, @index). */
static bool is_clash(const struct router *r, const struct router_arrival *in,
    const struct router_node *from, uint32_t index)
{
    return lease_find(&r->leases, &from->leases, index, in->now) || in->is_local(in->ctx, index);
}

static struct lease *write_lease(struct router *r, struct router_node *from, struct router_node *to,
    struct router_node *initiator, uint32_t index, enum lease_state state, nsec_t now)
{
    nsec_t life = state == LEASE_STATE_PENDING ? ROUTER_PENDING_LIFE : ROUTER_LEASE_LIFE;

    if (initiator->leases.n_owned >= r->leases_per_node)
        return NULL;
    return lease_add(
        &r->leases, &from->leases, &to->leases, &initiator->leases, index, state, now + life, now);
}

static struct router_verdict forward_initiation(struct router *r, const struct router_arrival *in,
    struct router_node *from, struct router_node *to, uint32_t index)
{
    struct lease *l = lease_find(&r->leases, &to->leases, index, in->now);
    bool is_repeated = l && l->to == &from->leases && l->state == LEASE_STATE_PENDING;

    if (!is_repeated) {
        if (is_clash(r, in, to, index))
            return router__drop(DROP_RELAY_INDEX_CLASH);
        router__begin_write(r);
        l = write_lease(r, to, from, from, index, LEASE_STATE_PENDING, in->now);
        router__end_write(r);
        if (!l)
            return router__drop(DROP_RELAY_TABLE_FULL);
    }
    /* Also without an address: the lease lets search_recent() find the next attempt's peer. */
    return router__forward(to);
}

static struct router_verdict on_initiation(
    struct router *r, const struct router_arrival *in, const struct wg_initiation *msg)
{
    struct router_node *first = router__sender(r, &in->from, UINT64_MAX);
    struct router_network *net;
    bool was_over_budget = false;

    /* Strangers may only speak to the hub itself, which sees for itself if this is for it. */
    if (!first)
        return router__pass();
    for (struct router_node *it = first; it; it = router__sender(r, &in->from, it->claimed))
        if (is_initiation_for(&it->network->hub, msg))
            return router__pass();
    for (struct router_node *it = first; it; it = router__sender(r, &in->from, it->claimed)) {
        struct router_node *peer = NULL;

        if (rate_is_spent(&it->initiations, in->now, ROUTER_COST_BURST))
            was_over_budget = true;
        else
            peer = find_addressee(r, it, msg, in->now);
        if (peer)
            return forward_initiation(r, in, it, peer, le32_get(msg->sender));
    }
    if (was_over_budget)
        return router__drop(DROP_RELAY_RATE_LIMITED);
    /* Is it for the hub itself, in a network that the sender is not known in? A NAT may have given
     * its address to another node, or it has just joined a second network. Charged like any other
     * search. */
    list_foreach(net, &r->networks, in_router) {
        rate_pay(&first->initiations, in->now, ROUTER_COST_TRY);
        if (is_initiation_for(&net->hub, msg))
            return router__pass();
    }
    return router__drop(DROP_RELAY_NO_MATCH);
}

struct router_verdict router__on_initiation(
    struct router *r, const struct router_arrival *in, const struct wg_initiation *msg)
{
    struct router_verdict verdict;

    (void)pthread_mutex_lock(&r->changing);
    verdict = on_initiation(r, in, msg);
    (void)pthread_mutex_unlock(&r->changing);
    return verdict;
}

/* @there is what @responder holds for the index that the response names as its receiver. */
static struct router_verdict forward_response(struct router *r, const struct router_arrival *in,
    struct lease *there, const struct wg_response *msg)
{
    struct router_node *responder = router__node_of(there->from);
    struct router_node *initiator = router__node_of(there->to);
    uint32_t index = le32_get(msg->sender);
    struct lease *back;

    if (!is_made_for(&initiator->self, msg, offsetof(struct wg_response, macs), &msg->macs))
        return router__drop(DROP_RELAY_NO_MATCH);
    if (there->state == LEASE_STATE_ESTABLISHED) {
        back = lease_find(&r->leases, &initiator->leases, index, in->now);
        /* The network may deliver twice; a second answer with another index is none. */
        return back && back->to == &responder->leases ? router__forward(initiator)
                                                      : router__drop(DROP_RELAY_NO_LEASE);
    }
    if (is_clash(r, in, initiator, index))
        return router__drop(DROP_RELAY_INDEX_CLASH);
    router__begin_write(r);
    back = write_lease(r, initiator, responder, initiator, index, LEASE_STATE_ESTABLISHED, in->now);
    if (back)
        lease_establish(&r->leases, there, in->now + ROUTER_LEASE_LIFE);
    router__end_write(r);
    return back ? router__forward(initiator) : router__drop(DROP_RELAY_TABLE_FULL);
}

static struct router_verdict on_response(
    struct router *r, const struct router_arrival *in, const struct wg_response *msg)
{
    struct router_node *sender = router__sender(r, &in->from, UINT64_MAX);
    bool is_sender_known = sender != NULL;
    uint32_t receiver = le32_get(msg->receiver);

    for (; sender; sender = router__sender(r, &in->from, sender->claimed)) {
        struct lease *l = lease_find(&r->leases, &sender->leases, receiver, in->now);

        /* A lease of the other direction, from a handshake that this node began, is for data. */
        if (l && l->owner == l->to)
            return forward_response(r, in, l, msg);
    }
    return router__unclaimed(in, is_sender_known, receiver);
}

struct router_verdict router__on_response(
    struct router *r, const struct router_arrival *in, const struct wg_response *msg)
{
    struct router_verdict verdict;

    (void)pthread_mutex_lock(&r->changing);
    verdict = on_response(r, in, msg);
    (void)pthread_mutex_unlock(&r->changing);
    return verdict;
}
