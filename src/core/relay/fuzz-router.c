/*
 * fuzz-router.c - the input is a script of changes and datagrams; router and reference must agree.
 *
 * A byte that chooses what happens, then its operands. Datagrams come raw, so
 * that the fuzzer also finds lengths and types that no test thought of; and
 * well-formed, so that it gets past mac1.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "relay/router.h"
#include "test/support/router_sample.h"

#define N_NODES 6
#define HUB_KEY 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct world {
    struct router *router;
    struct router_network *net;
    struct router_node *nodes[N_NODES];
    struct reference reference;
    nsec_t now;
};

static bool is_local(void *ctx, uint32_t index)
{
    return index == 0;
}

static void add_node(struct world *w, unsigned i)
{
    struct x25519_public key = router_sample_key(i);

    assert(router_node_add(&w->nodes[i], w->router, w->net, &key) == 0);
    reference_node_add(&w->reference, i, 0, &key);
}

static void replace_node(struct world *w, unsigned i)
{
    router_node_remove(w->router, w->nodes[i]);
    reference_node_remove(&w->reference, i);
    add_node(w, i);
}

static void move_node(struct world *w, unsigned i, unsigned to)
{
    struct endpoint ep = sample_endpoint(to);
    struct ip_addr local = {{0}};

    router_node_set_address(w->router, w->nodes[i], &ep, &local);
    reference_node_set_address(&w->reference, i, &ep);
}

static void block_edge(struct world *w, unsigned a, unsigned b, bool blocked)
{
    if (a == b)
        return;
    assert(router_edge_set_blocked(w->router, w->nodes[a], w->nodes[b], blocked) == 0);
    reference_edge_set_blocked(&w->reference, a, b, blocked);
}

static void route(struct world *w, unsigned at, const void *msg, size_t len)
{
    struct router_arrival in = {.from = sample_endpoint(at), .now = w->now, .is_local = is_local};
    struct router_verdict v = router_route(w->router, &in, msg, len);
    struct reference_verdict t;

    /* Of this the reference knows nothing; nothing has changed by it. */
    if (v.action == ROUTER_ACTION_DROP && v.reason == DROP_RELAY_RATE_LIMITED)
        return;
    t = reference_route(&w->reference, &in, msg, len);
    assert(v.action == t.action);
    assert(v.action != ROUTER_ACTION_DROP || v.reason == t.reason);
    assert(v.action != ROUTER_ACTION_FORWARD ||
           endpoint_equal(&v.to, &w->reference.nodes[t.to].remote));
}

static void handshake(struct world *w, struct reader *r)
{
    unsigned at = reader_u8(r) % 8;
    struct x25519_public key = router_sample_key(reader_u8(r));
    uint32_t sender = reader_u8(r);
    uint8_t receiver = reader_u8(r);
    struct wg_initiation initiation = sample_initiation(&key, sender);
    struct wg_response response = sample_response(&key, sender, receiver);

    if (receiver == 0)
        route(w, at, &initiation, sizeof(initiation));
    else
        route(w, at, &response, sizeof(response));
}

static void raw(struct world *w, struct reader *r)
{
    unsigned at = reader_u8(r) % 8;
    size_t len = reader_u8(r);
    const uint8_t *msg = reader_take(r, len);

    if (msg)
        route(w, at, msg, len);
}

static void step(struct world *w, struct reader *r)
{
    switch (reader_u8(r)) {
    case 0:
        replace_node(w, reader_u8(r) % N_NODES);
        break;
    case 1:
        move_node(w, reader_u8(r) % N_NODES, reader_u8(r) % 8);
        break;
    case 2:
        block_edge(w, reader_u8(r) % N_NODES, reader_u8(r) % N_NODES, reader_u8(r) % 2);
        break;
    case 3:
        w->now += reader_u8(r) * NSEC_PER_SEC;
        break;
    case 4:
        router_expire(w->router, w->now);
        reference_expire(&w->reference, w->now);
        break;
    case 5:
        raw(w, r);
        break;
    default:
        handshake(w, r);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct world w;
    struct router_options opt = {.n_workers = 1, .seed = 1, .leases_max = 20, .leases_per_node = 8};
    struct x25519_public hub = router_sample_key(HUB_KEY);
    struct reader r = reader_make(data, len);

    w = (struct world){.now = NSEC_PER_SEC};
    w.reference.leases_max = opt.leases_max;
    w.reference.leases_per_node = opt.leases_per_node;
    w.reference.networks[0] = (struct reference_network){.is_there = true, .hub = hub};
    assert(router_new(&w.router, &opt) == 0);
    assert(router_network_add(&w.net, w.router, &hub) == 0);
    for (unsigned i = 0; i < N_NODES; i++) {
        add_node(&w, i);
        move_node(&w, i, i);
    }
    while (reader_left(&r) > 0 && !r.failed)
        step(&w, &r);
    w.router = router_free(w.router);
    return 0;
}
