/* router_members.c - the router's networks, nodes, addresses and blocked edges; see router.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "relay/router.h"
#include "relay/router_internal.h"

/* For messages to @public. */
static void mac1_key(struct router_mac1_key *ret, const struct x25519_public *public)
{
    static const char label[8] = {'m', 'a', 'c', '1', '-', '-', '-', '-'}; /* whitepaper 5.4 */

    blake2s_hash(label, sizeof(label), public->b, sizeof(public->b), &ret->b);
}

/* @next: NULL: none. */
static void set_addressee(
    struct router_addressee *to, const struct x25519_public *key, const struct x25519_public *next)
{
    mac1_key(&to->key, key);
    to->has_next = next != NULL;
    if (next)
        mac1_key(&to->next, next);
}

struct router_node *router__node_of(struct lease_party *party)
{
    return container_of(party, struct router_node, leases);
}

/* ---- addresses ---- */

static uint64_t remote_hash(const struct router *r, const struct endpoint *ep)
{
    uint8_t key[sizeof(ep->addr) + sizeof(ep->scope) + sizeof(ep->port)];

    /* Field by field: a struct endpoint ends in padding. */
    memcpy(key, &ep->addr, sizeof(ep->addr));
    memcpy(key + sizeof(ep->addr), &ep->scope, sizeof(ep->scope));
    memcpy(key + sizeof(ep->addr) + sizeof(ep->scope), &ep->port, sizeof(ep->port));
    return hash_bytes(r->by_remote.seed, key, sizeof(key));
}

struct router_node *router__sender(
    const struct router *r, const struct endpoint *from, uint64_t before)
{
    uint64_t hash = remote_hash(r, from);
    struct router_node *last = NULL;

    for (struct htab_link *l = htab_first(&r->by_remote, hash); l; l = htab_next(l, hash)) {
        struct router_node *node = container_of(l, struct router_node, by_remote);

        if (endpoint_equal(&node->remote, from) && node->claimed < before &&
            (!last || node->claimed > last->claimed))
            last = node;
    }
    return last;
}

static void leave_address(struct router *r, struct router_node *node)
{
    if (node->has_address)
        htab_remove(&r->by_remote, &node->by_remote);
    node->has_address = false;
}

/* Makes room at @ep for one node more. */
static void evict_surplus(struct router *r, const struct endpoint *ep)
{
    struct router_node *node = router__sender(r, ep, UINT64_MAX);

    for (unsigned n = 1; node; n++) {
        struct router_node *next = router__sender(r, ep, node->claimed);

        if (n >= ROUTER_SHARED_MAX)
            leave_address(r, node);
        node = next;
    }
}

void router_node_set_address(struct router *r, struct router_node *node,
    const struct endpoint *remote, const struct ip_addr *local)
{
    (void)pthread_mutex_lock(&r->changing);
    router__begin_write(r);
    if (!node->has_address || !endpoint_equal(&node->remote, remote)) {
        leave_address(r, node);
        if (!endpoint_is_none(remote)) {
            evict_surplus(r, remote);
            node->remote = *remote;
            /* Without memory the node stays without an address until it is heard again. */
            node->has_address =
                htab_add(&r->by_remote, &node->by_remote, remote_hash(r, remote)) == 0;
        }
    }
    node->claimed = ++r->claims;
    node->local = *local;
    router__end_write(r);
    (void)pthread_mutex_unlock(&r->changing);
}

/* ---- blocked edges ---- */

static uint64_t pair_hash(const struct router *r, uint32_t low, uint32_t high)
{
    return hash_u64(r->blocks.seed, (uint64_t)high << 32 | low);
}

struct router_block *router__find_block(
    const struct router *r, const struct router_node *a, const struct router_node *b)
{
    const struct router_node *low = a->leases.id < b->leases.id ? a : b;
    const struct router_node *high = low == a ? b : a;
    uint64_t hash = pair_hash(r, low->leases.id, high->leases.id);

    for (struct htab_link *l = htab_first(&r->blocks, hash); l; l = htab_next(l, hash)) {
        struct router_block *block = container_of(l, struct router_block, by_pair);

        if (block->nodes[0] == low && block->nodes[1] == high)
            return block;
    }
    return NULL;
}

static int add_block(struct router *r, struct router_node *a, struct router_node *b)
{
    struct router_node *low = a->leases.id < b->leases.id ? a : b;
    struct router_node *high = low == a ? b : a;
    struct router_block *block = calloc(1, sizeof(*block));

    if (!block)
        return -ENOMEM;
    if (htab_add(&r->blocks, &block->by_pair, pair_hash(r, low->leases.id, high->leases.id)) != 0) {
        free(block);
        return -ENOMEM;
    }
    block->nodes[0] = low;
    block->nodes[1] = high;
    for (int i = 0; i < 2; i++) {
        block->ends[i].block = block;
        list_add_tail(&block->nodes[i]->blocks, &block->ends[i].in_node);
    }
    return 0;
}

static void remove_block(struct router *r, struct router_block *block)
{
    htab_remove(&r->blocks, &block->by_pair);
    list_remove(&block->ends[0].in_node);
    list_remove(&block->ends[1].in_node);
    free(block);
}

int router_edge_set_blocked(
    struct router *r, struct router_node *a, struct router_node *b, bool blocked)
{
    struct router_block *block;
    int e = 0;

    (void)pthread_mutex_lock(&r->changing);
    block = router__find_block(r, a, b);
    if (block && !blocked) {
        remove_block(r, block);
    } else if (!block && blocked) {
        e = add_block(r, a, b);
        if (e == 0) {
            router__begin_write(r);
            lease_remove_between(&r->leases, &a->leases, &b->leases);
            router__end_write(r);
        }
    }
    (void)pthread_mutex_unlock(&r->changing);
    return e;
}

/* ---- nodes and networks ---- */

int router_node_add(struct router_node **ret, struct router *r, struct router_network *net,
    const struct x25519_public *key)
{
    struct router_node *node = calloc(1, sizeof(*node));

    if (!node)
        return -ENOMEM;
    node->network = net;
    node->public = *key;
    set_addressee(&node->self, key, NULL);
    list_init(&node->blocks);
    (void)pthread_mutex_lock(&r->changing);
    node->leases.id = r->next_id++;
    list_init(&node->leases.sends);
    list_init(&node->leases.receives);
    list_add_tail(&net->nodes, &node->in_network);
    (void)pthread_mutex_unlock(&r->changing);
    *ret = node;
    return 0;
}

void router_node_set_keys(struct router *r, struct router_node *node,
    const struct x25519_public *key, const struct x25519_public *next)
{
    (void)pthread_mutex_lock(&r->changing);
    node->public = *key;
    set_addressee(&node->self, key, next);
    (void)pthread_mutex_unlock(&r->changing);
}

/* With `changing` and the workers' locks. */
static void remove_node(struct router *r, struct router_node *node)
{
    struct router_block_end *end;

    assert(node);
    lease_remove_all(&r->leases, &node->leases);
    leave_address(r, node);
    list_remove(&node->in_network);
    while ((end = list_first(&node->blocks, struct router_block_end, in_node)))
        remove_block(r, end->block);
    free(node);
}

void router_node_remove(struct router *r, struct router_node *node)
{
    (void)pthread_mutex_lock(&r->changing);
    router__begin_write(r);
    remove_node(r, node);
    router__end_write(r);
    (void)pthread_mutex_unlock(&r->changing);
}

int router_network_add(
    struct router_network **ret, struct router *r, const struct x25519_public *hub)
{
    struct router_network *net = calloc(1, sizeof(*net));

    if (!net)
        return -ENOMEM;
    list_init(&net->nodes);
    set_addressee(&net->hub, hub, NULL);
    (void)pthread_mutex_lock(&r->changing);
    list_add_tail(&r->networks, &net->in_router);
    (void)pthread_mutex_unlock(&r->changing);
    *ret = net;
    return 0;
}

void router_network_set_keys(struct router *r, struct router_network *net,
    const struct x25519_public *hub, const struct x25519_public *next)
{
    (void)pthread_mutex_lock(&r->changing);
    set_addressee(&net->hub, hub, next);
    (void)pthread_mutex_unlock(&r->changing);
}

void router_network_remove(struct router *r, struct router_network *net)
{
    (void)pthread_mutex_lock(&r->changing);
    router__begin_write(r);
    while (!list_is_empty(&net->nodes))
        remove_node(r, list_first(&net->nodes, struct router_node, in_network));
    list_remove(&net->in_router);
    router__end_write(r);
    (void)pthread_mutex_unlock(&r->changing);
    free(net);
}
