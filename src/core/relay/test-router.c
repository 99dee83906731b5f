/* test-router.c - what passes the relay, and every reason for which something does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "relay/router.h"
#include "test/support/router_sample.h"

/*
 *   network 0: nodes 0, 1, 2     network 1: node 3     the hub's keys: 100, 101
 *   node n has key n and speaks from endpoint n; the hub itself uses index 999
 */
#define N_NODES   4
#define HUB_INDEX 999

struct world {
    struct router *router;
    struct router_network *nets[2];
    struct router_node *nodes[N_NODES];
    nsec_t now;
    uint64_t bytes; /* that each message counts for */
};

static bool is_local(void *ctx, uint32_t index)
{
    return index == HUB_INDEX;
}

static void place(struct world *w, unsigned node, unsigned at)
{
    struct endpoint ep = sample_endpoint(at);
    struct ip_addr local = {{0}};

    router_node_set_address(w->router, w->nodes[node], &ep, &local);
}

static struct world world_with(const struct router_options *opt)
{
    struct world w = {.now = 1000 * NSEC_PER_SEC};

    assert_int_equal(router_new(&w.router, opt), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct x25519_public hub = router_sample_key(100 + i);

        assert_int_equal(router_network_add(&w.nets[i], w.router, &hub), 0);
    }
    for (unsigned i = 0; i < N_NODES; i++) {
        struct x25519_public key = router_sample_key(i);

        assert_int_equal(router_node_add(&w.nodes[i], w.router, w.nets[i == 3 ? 1 : 0], &key), 0);
        place(&w, i, i);
    }
    return w;
}

static struct world world(void)
{
    return world_with(&(struct router_options){.n_workers = 2, .seed = 7});
}

static struct router_verdict route(struct world *w, unsigned at, const void *msg, size_t len)
{
    struct router_arrival in = {.from = sample_endpoint(at),
        .now = w->now,
        .bytes = w->bytes,
        .worker = 1,
        .is_local = is_local};

    return router_route(w->router, &in, msg, len);
}

static struct router_verdict initiate(struct world *w, unsigned at, unsigned to, uint32_t index)
{
    struct x25519_public key = router_sample_key(to);
    struct wg_initiation msg = sample_initiation(&key, index);

    return route(w, at, &msg, sizeof(msg));
}

static struct router_verdict respond(
    struct world *w, unsigned at, unsigned to, uint32_t sender, uint32_t receiver)
{
    struct x25519_public key = router_sample_key(to);
    struct wg_response msg = sample_response(&key, sender, receiver);

    return route(w, at, &msg, sizeof(msg));
}

static struct router_verdict data(struct world *w, unsigned at, uint32_t index)
{
    struct sample_data msg = sample_data(index);

    return route(w, at, &msg, sizeof(msg));
}

static struct router_verdict cookie(struct world *w, unsigned at, uint32_t index)
{
    struct wg_cookie_reply msg = sample_cookie(index);

    return route(w, at, &msg, sizeof(msg));
}

static void assert_forward(struct router_verdict v, unsigned to)
{
    struct endpoint ep = sample_endpoint(to);

    if (v.action == ROUTER_ACTION_DROP)
        print_error("dropped: %s\n", drop_reason_names[v.reason]);
    assert_int_equal(v.action, ROUTER_ACTION_FORWARD);
    assert_true(endpoint_equal(&v.to, &ep));
}

static void assert_drop(struct router_verdict v, enum drop_reason reason)
{
    assert_int_equal(v.action, ROUTER_ACTION_DROP);
    assert_string_equal(drop_reason_names[v.reason], drop_reason_names[reason]);
}

static void assert_pass(struct router_verdict v)
{
    assert_int_equal(v.action, ROUTER_ACTION_PASS);
}

/* Nodes 0 and 1 shake hands: 0 is called 10 and 1 is called 11. */
static void shake(struct world *w)
{
    assert_forward(initiate(w, 0, 1, 10), 1);
    assert_forward(respond(w, 1, 0, 11, 10), 0);
}

static void test_session(void **state)
{
    struct world w = world();

    shake(&w);
    assert_forward(data(&w, 0, 11), 1);
    assert_forward(data(&w, 1, 10), 0);
    /* Only that way round, and only those indices. */
    assert_drop(data(&w, 0, 10), DROP_RELAY_NO_LEASE);
    assert_drop(data(&w, 1, 11), DROP_RELAY_NO_LEASE);
    assert_drop(data(&w, 2, 11), DROP_RELAY_NO_LEASE);
    assert_int_equal(router_n_leases(w.router), 2);
    w.router = router_free(w.router);
}

static void test_no_data_before_the_answer(void **state)
{
    struct world w = world();

    assert_forward(initiate(&w, 0, 1, 10), 1);
    assert_drop(data(&w, 1, 10), DROP_RELAY_NO_LEASE);
    assert_drop(data(&w, 0, 11), DROP_RELAY_NO_LEASE);
    w.router = router_free(w.router);
}

static void test_cookie_replies(void **state)
{
    struct world w = world();

    /* The responder is under load: its cookie answers the initiation. */
    assert_forward(initiate(&w, 0, 1, 10), 1);
    assert_forward(cookie(&w, 1, 10), 0);
    assert_drop(cookie(&w, 2, 10), DROP_RELAY_NO_LEASE);
    /* The initiator is: its cookie answers the response. */
    assert_forward(respond(&w, 1, 0, 11, 10), 0);
    assert_forward(cookie(&w, 0, 11), 1);
    w.router = router_free(w.router);
}

static void test_strangers(void **state)
{
    struct world w = world();

    shake(&w);
    /* With a stolen receiver index, and with the public key of a member. */
    assert_drop(data(&w, 9, 11), DROP_RELAY_UNKNOWN_SENDER);
    assert_drop(cookie(&w, 9, 11), DROP_RELAY_UNKNOWN_SENDER);
    assert_drop(respond(&w, 9, 0, 12, 10), DROP_RELAY_UNKNOWN_SENDER);
    /* An initiation may be a member's that has moved: the hub's devices see for themselves. */
    assert_pass(initiate(&w, 9, 1, 13));
    assert_pass(initiate(&w, 9, 100, 13));
    /* None of it made a lease. */
    assert_int_equal(router_n_leases(w.router), 2);
    w.router = router_free(w.router);
}

static void test_hub_itself(void **state)
{
    struct world w = world();
    uint8_t garbage[200] = {[0] = 4};

    assert_pass(initiate(&w, 0, 100, 20));
    assert_pass(respond(&w, 0, 100, 21, HUB_INDEX));
    assert_pass(cookie(&w, 0, HUB_INDEX));
    assert_pass(data(&w, 0, HUB_INDEX));
    assert_pass(data(&w, 9, HUB_INDEX));
    /* A NAT has given node 0's address to somebody of the other network. */
    assert_pass(initiate(&w, 0, 101, 20));
    /* Not WireGuard, and cut short. */
    garbage[0] = 0x80;
    assert_pass(route(&w, 0, garbage, sizeof(garbage)));
    garbage[0] = 1;
    assert_pass(route(&w, 0, garbage, sizeof(garbage)));
    garbage[0] = 4;
    assert_pass(route(&w, 0, garbage, 31));
    assert_pass(route(&w, 0, garbage, 3));
    assert_int_equal(router_n_leases(w.router), 0);
    w.router = router_free(w.router);
}

static void test_no_match(void **state)
{
    struct world w = world();
    struct x25519_public key = router_sample_key(1);
    struct wg_initiation msg = sample_initiation(&key, 10);

    assert_drop(initiate(&w, 0, 55, 10), DROP_RELAY_NO_MATCH);
    assert_drop(initiate(&w, 0, 0, 10), DROP_RELAY_NO_MATCH); /* to itself */
    assert_drop(initiate(&w, 0, 3, 10), DROP_RELAY_NO_MATCH); /* of another network */
    msg.sender = le32_make(11);
    assert_drop(route(&w, 0, &msg, sizeof(msg)), DROP_RELAY_NO_MATCH); /* changed underway */
    assert_int_equal(router_n_leases(w.router), 0);
    /* A response that was not made for the initiator. */
    assert_forward(initiate(&w, 0, 1, 10), 1);
    assert_drop(respond(&w, 1, 2, 11, 10), DROP_RELAY_NO_MATCH);
    assert_forward(respond(&w, 1, 0, 11, 10), 0);
    w.router = router_free(w.router);
}

static void test_same_key_in_two_networks(void **state)
{
    struct world w = world();
    struct x25519_public key = router_sample_key(1);
    struct router_node *other;

    /* Node 3's network gets a member with node 1's key: each sender reaches its own one. */
    assert_int_equal(router_node_add(&other, w.router, w.nets[1], &key), 0);
    w.nodes[2] = other;
    place(&w, 2, 12);
    assert_forward(initiate(&w, 0, 1, 10), 1);
    assert_forward(initiate(&w, 3, 1, 10), 12);
    w.router = router_free(w.router);
}

static void test_repeats(void **state)
{
    struct world w = world();

    /* The network may deliver anything twice; a lease is made once. */
    assert_forward(initiate(&w, 0, 1, 10), 1);
    assert_forward(initiate(&w, 0, 1, 10), 1);
    assert_int_equal(router_n_leases(w.router), 1);
    assert_forward(respond(&w, 1, 0, 11, 10), 0);
    assert_forward(respond(&w, 1, 0, 11, 10), 0);
    assert_int_equal(router_n_leases(w.router), 2);
    /* A replay of an initiation that was answered, and a second answer. */
    assert_drop(initiate(&w, 0, 1, 10), DROP_RELAY_INDEX_CLASH);
    assert_drop(respond(&w, 1, 0, 12, 10), DROP_RELAY_NO_LEASE);
    /* The initiator answering itself. */
    assert_drop(respond(&w, 0, 1, 13, 11), DROP_RELAY_NO_LEASE);
    w.router = router_free(w.router);
}

static void test_index_clashes(void **state)
{
    struct world w = world();

    shake(&w);
    /* Node 2 happens to use node 0's index towards node 1: node 0 keeps it. */
    assert_drop(initiate(&w, 2, 1, 10), DROP_RELAY_INDEX_CLASH);
    assert_forward(data(&w, 1, 10), 0);
    /* It answers node 0 with the index that node 1 has there already. */
    assert_forward(initiate(&w, 0, 2, 20), 2);
    assert_drop(respond(&w, 2, 0, 11, 20), DROP_RELAY_INDEX_CLASH);
    assert_forward(data(&w, 0, 11), 1);
    /* The next attempt, with another index, is fine: the pending lease is still there. */
    assert_forward(respond(&w, 2, 0, 12, 20), 0);
    assert_forward(data(&w, 0, 12), 2);
    /* The same index towards different nodes is no clash. */
    assert_forward(initiate(&w, 0, 1, 30), 1);
    assert_forward(initiate(&w, 0, 2, 30), 2);
    /* The hub's own sessions have their indices, too. */
    assert_drop(initiate(&w, 0, 1, HUB_INDEX), DROP_RELAY_INDEX_CLASH);
    assert_drop(respond(&w, 1, 0, HUB_INDEX, 30), DROP_RELAY_INDEX_CLASH);
    assert_pass(data(&w, 0, HUB_INDEX));
    w.router = router_free(w.router);
}

static void test_device_asks_for_an_index(void **state)
{
    struct world w = world();

    shake(&w);
    assert_true(router_is_leased(w.router, w.nodes[0], 11, w.now));
    assert_true(router_is_leased(w.router, w.nodes[1], 10, w.now));
    assert_false(router_is_leased(w.router, w.nodes[0], 10, w.now));
    assert_false(router_is_leased(w.router, w.nodes[2], 10, w.now));
    assert_false(router_is_leased(w.router, w.nodes[0], 11, w.now + ROUTER_LEASE_LIFE));
    w.router = router_free(w.router);
}

static void test_lifetimes(void **state)
{
    struct world w = world();

    /* An answer that comes too late. */
    assert_forward(initiate(&w, 0, 1, 10), 1);
    w.now += ROUTER_PENDING_LIFE;
    assert_drop(respond(&w, 1, 0, 11, 10), DROP_RELAY_NO_LEASE);
    /* A session lives 180 s from its own handshake on, whatever passes. */
    shake(&w);
    w.now += ROUTER_LEASE_LIFE - 1;
    assert_forward(data(&w, 0, 11), 1);
    assert_forward(data(&w, 1, 10), 0);
    w.now += 1;
    assert_drop(data(&w, 0, 11), DROP_RELAY_NO_LEASE);
    assert_drop(data(&w, 1, 10), DROP_RELAY_NO_LEASE);
    /* The same indices may come again, before anything was tidied up and after. */
    shake(&w);
    assert_forward(data(&w, 0, 11), 1);
    assert_int_equal(router_n_leases(w.router), 2);
    router_expire(w.router, w.now + ROUTER_LEASE_LIFE - 1);
    assert_int_equal(router_n_leases(w.router), 2);
    router_expire(w.router, w.now + ROUTER_LEASE_LIFE);
    assert_int_equal(router_n_leases(w.router), 0);
    w.router = router_free(w.router);
}

static void assert_pair(
    const struct relay_pair *pair, unsigned a, unsigned b, uint64_t least, uint64_t most)
{
    struct x25519_public keys[2] = {router_sample_key(a), router_sample_key(b)};
    bool in_order = x25519_public_compare(&keys[0], &keys[1]) < 0;

    assert_true(x25519_public_equal(&pair->keys[0], &keys[!in_order]));
    assert_true(x25519_public_equal(&pair->keys[1], &keys[in_order]));
    assert_in_range(pair->rate, least, most);
}

/* Both directions count, over all sessions of the two, and nothing but what goes by a lease. */
static void test_which_pairs_send_most(void **state)
{
    struct relay_pair pairs[RELAY_LINE_PAIRS_MAX];
    struct world w = world();

    assert_int_equal(router_sample_pairs(w.router, w.now, pairs), 0);
    shake(&w);
    assert_forward(initiate(&w, 0, 2, 20), 2);
    assert_forward(respond(&w, 2, 0, 21, 20), 0);
    assert_int_equal(router_sample_pairs(w.router, w.now, pairs), 0);
    for (unsigned i = 0; i < 60; i++) {
        w.now += NSEC_PER_SEC;
        w.bytes = 1000;
        assert_forward(data(&w, 0, 11), 1);
        assert_forward(data(&w, 1, 10), 0);
        w.bytes = 500;
        assert_forward(data(&w, 0, 21), 2);
        assert_drop(data(&w, 2, 11), DROP_RELAY_NO_LEASE);
        if (i < 59)
            assert_int_equal(router_sample_pairs(w.router, w.now, pairs), 2);
        if (i == 30) {
            assert_forward(initiate(&w, 1, 0, 30), 0);
            assert_forward(respond(&w, 0, 1, 31, 30), 1);
        }
    }
    assert_int_equal(router_sample_pairs(w.router, w.now, pairs), 2);
    assert_pair(&pairs[0], 0, 1, 15900, 16100);
    assert_pair(&pairs[1], 0, 2, 3950, 4050);
    /* What was not asked about for long is counted over all of that time. */
    w.now += 100 * NSEC_PER_SEC;
    assert_forward(data(&w, 0, 21), 2);
    assert_int_equal(router_sample_pairs(w.router, w.now, pairs), 2);
    assert_pair(&pairs[0], 0, 1, 1, 1000);
    /* With the last lease the pair is gone. */
    router_expire(w.router, w.now + ROUTER_LEASE_LIFE);
    assert_int_equal(router_n_leases(w.router), 0);
    assert_int_equal(router_sample_pairs(w.router, w.now + 1, pairs), 0);
    w.router = router_free(w.router);
}

static void test_the_heaviest_pairs_are_named(void **state)
{
    struct router_node *nodes[RELAY_LINE_PAIRS_MAX + 4];
    struct relay_pair pairs[RELAY_LINE_PAIRS_MAX];
    struct world w = world();

    /* Node 0 has a session with each of twenty others, and sends each one more than the last. */
    for (unsigned i = 0; i < RELAY_LINE_PAIRS_MAX + 4; i++) {
        struct x25519_public key = router_sample_key(200 + i);
        struct endpoint at = sample_endpoint(50 + i);
        struct ip_addr local = {{0}};

        assert_int_equal(router_node_add(&nodes[i], w.router, w.nets[0], &key), 0);
        router_node_set_address(w.router, nodes[i], &at, &local);
        assert_forward(initiate(&w, 0, 200 + i, 1000 + i), 50 + i);
        assert_forward(respond(&w, 50 + i, 0, 2000 + i, 1000 + i), 0);
    }
    assert_int_equal(router_sample_pairs(w.router, w.now, pairs), 0);
    w.now += NSEC_PER_SEC;
    for (unsigned i = 0; i < RELAY_LINE_PAIRS_MAX + 4; i++) {
        w.bytes = 1000 * (i + 1);
        assert_forward(data(&w, 0, 2000 + i), 50 + i);
    }
    assert_int_equal(router_sample_pairs(w.router, w.now, pairs), RELAY_LINE_PAIRS_MAX);
    for (unsigned i = 0; i < RELAY_LINE_PAIRS_MAX; i++)
        assert_pair(&pairs[i], 0, 200 + RELAY_LINE_PAIRS_MAX + 3 - i, 1, UINT64_MAX);
    w.router = router_free(w.router);
}

static void test_rekey_keeps_the_old_session(void **state)
{
    struct world w = world();

    shake(&w);
    w.now += WG_REKEY_AFTER_TIME;
    assert_forward(initiate(&w, 0, 1, 30), 1);
    assert_forward(respond(&w, 1, 0, 31, 30), 0);
    assert_forward(data(&w, 0, 11), 1);
    assert_forward(data(&w, 0, 31), 1);
    w.now += WG_REJECT_AFTER_TIME - WG_REKEY_AFTER_TIME;
    assert_drop(data(&w, 0, 11), DROP_RELAY_NO_LEASE);
    assert_forward(data(&w, 0, 31), 1);
    w.router = router_free(w.router);
}

static void test_address_changes(void **state)
{
    struct world w = world();
    struct endpoint none = {.port = 0};
    struct ip_addr local = {{0}};

    shake(&w);
    /* Node 1's NAT gives it another address; the hub has not heard from there yet. */
    assert_drop(data(&w, 21, 10), DROP_RELAY_UNKNOWN_SENDER);
    /* Its next authenticated packet: both directions follow, and the old address is nobody's. */
    place(&w, 1, 21);
    assert_forward(data(&w, 21, 10), 0);
    assert_forward(data(&w, 0, 11), 21);
    assert_drop(data(&w, 1, 10), DROP_RELAY_UNKNOWN_SENDER);
    /* A handshake that was under way follows as well. */
    assert_forward(initiate(&w, 0, 1, 30), 21);
    place(&w, 0, 20);
    assert_forward(respond(&w, 21, 0, 31, 30), 20);
    assert_forward(data(&w, 20, 31), 21);
    /* Not known any more: what is for it is dropped, and so is what comes from there. */
    router_node_set_address(w.router, w.nodes[1], &none, &local);
    assert_drop(data(&w, 20, 31), DROP_RELAY_NO_ADDRESS);
    assert_drop(initiate(&w, 20, 1, 40), DROP_RELAY_NO_ADDRESS);
    assert_drop(data(&w, 21, 10), DROP_RELAY_UNKNOWN_SENDER);
    /* Heard again where it was, it is back. */
    place(&w, 1, 21);
    assert_forward(data(&w, 20, 31), 21);
    assert_forward(data(&w, 21, 10), 20);
    w.router = router_free(w.router);
}

static void test_local_address_is_kept(void **state)
{
    struct world w = world();
    struct endpoint ep = sample_endpoint(1);
    struct ip_addr local = sample_endpoint(77).addr;
    struct router_verdict v;

    router_node_set_address(w.router, w.nodes[1], &ep, &local);
    v = initiate(&w, 0, 1, 10);
    assert_forward(v, 1);
    assert_true(ip_addr_equal(&v.local, &local));
    /* Another one of ours that it speaks to, from where it was. */
    local = sample_endpoint(78).addr;
    router_node_set_address(w.router, w.nodes[1], &ep, &local);
    v = initiate(&w, 0, 1, 10);
    assert_forward(v, 1);
    assert_true(ip_addr_equal(&v.local, &local));
    w.router = router_free(w.router);
}

/* A node of each network behind one address, as with one port for both on one machine. */
static void test_shared_address(void **state)
{
    struct world w = world();
    struct x25519_public key = router_sample_key(4);
    struct router_node *other;

    assert_int_equal(router_node_add(&other, w.router, w.nets[1], &key), 0);
    w.nodes[2] = other;
    place(&w, 2, 12);
    shake(&w);
    place(&w, 3, 0); /* speaks from node 0's address from now on */
    assert_forward(data(&w, 0, 11), 1);
    assert_forward(initiate(&w, 0, 1, 30), 1);
    assert_forward(initiate(&w, 0, 4, 30), 12);
    assert_forward(respond(&w, 12, 3, 41, 30), 0);
    assert_forward(data(&w, 0, 41), 12);
    assert_forward(data(&w, 12, 30), 0);
    assert_drop(data(&w, 12, 10), DROP_RELAY_NO_LEASE);
    w.router = router_free(w.router);
}

static void test_too_many_behind_one_address(void **state)
{
    struct world w = world();
    struct router_node *more[ROUTER_SHARED_MAX];

    shake(&w);
    /* Others that claim node 0's address take nothing of it until there are too many. */
    for (unsigned i = 0; i < ROUTER_SHARED_MAX; i++) {
        struct x25519_public key = router_sample_key(60 + i);
        struct endpoint ep = sample_endpoint(0);
        struct ip_addr local = {{0}};

        assert_forward(data(&w, 0, 11), 1);
        assert_int_equal(router_node_add(&more[i], w.router, w.nets[0], &key), 0);
        router_node_set_address(w.router, more[i], &ep, &local);
    }
    assert_drop(data(&w, 0, 11), DROP_RELAY_NO_LEASE);
    /* Heard again, it is back. */
    place(&w, 0, 0);
    assert_forward(data(&w, 0, 11), 1);
    assert_forward(data(&w, 1, 10), 0);
    w.router = router_free(w.router);
}

/* Who was heard last stays, and of the others the one that has been silent for longest goes. */
static void test_who_is_heard_keeps_the_address(void **state)
{
    struct world w = world();
    struct router_node *more[ROUTER_SHARED_MAX];

    shake(&w);
    for (unsigned i = 0; i < ROUTER_SHARED_MAX; i++) {
        struct x25519_public key = router_sample_key(60 + i);
        struct endpoint ep = sample_endpoint(0);
        struct ip_addr local = {{0}};

        assert_int_equal(router_node_add(&more[i], w.router, w.nets[0], &key), 0);
        place(&w, 0, 0);
        router_node_set_address(w.router, more[i], &ep, &local);
        assert_forward(data(&w, 0, 11), 1);
    }
    /* Messages to the one that has gone have no address, those to the others do. */
    assert_drop(initiate(&w, 1, 60, 70), DROP_RELAY_NO_ADDRESS);
    for (unsigned i = 1; i < ROUTER_SHARED_MAX; i++)
        assert_forward(initiate(&w, 1, 60 + i, 70 + i), 0);
    w.router = router_free(w.router);
}

static void test_removal(void **state)
{
    struct world w = world();

    shake(&w);
    assert_forward(initiate(&w, 2, 1, 50), 1);
    router_node_remove(w.router, w.nodes[1]);
    assert_int_equal(router_n_leases(w.router), 0);
    assert_drop(data(&w, 0, 11), DROP_RELAY_NO_LEASE);
    assert_drop(data(&w, 1, 10), DROP_RELAY_UNKNOWN_SENDER);
    assert_drop(initiate(&w, 0, 1, 30), DROP_RELAY_NO_MATCH);
    assert_pass(initiate(&w, 1, 0, 30));
    /* A whole network, with what is under way in it. */
    assert_forward(initiate(&w, 0, 2, 60), 2);
    router_network_remove(w.router, w.nets[0]);
    assert_int_equal(router_n_leases(w.router), 0);
    assert_drop(data(&w, 0, 60), DROP_RELAY_UNKNOWN_SENDER);
    assert_pass(initiate(&w, 3, 101, 61));
    w.router = router_free(w.router);
}

static void test_blocked_edge(void **state)
{
    struct world w = world();

    shake(&w);
    assert_forward(initiate(&w, 0, 2, 20), 2);
    assert_int_equal(router_edge_set_blocked(w.router, w.nodes[1], w.nodes[0], true), 0);
    assert_int_equal(router_edge_set_blocked(w.router, w.nodes[0], w.nodes[1], true), 0);
    assert_drop(data(&w, 0, 11), DROP_RELAY_NO_LEASE);
    assert_drop(data(&w, 1, 10), DROP_RELAY_NO_LEASE);
    assert_drop(initiate(&w, 0, 1, 30), DROP_RELAY_NO_MATCH);
    assert_drop(initiate(&w, 1, 0, 30), DROP_RELAY_NO_MATCH);
    /* Others are not concerned. */
    assert_int_equal(router_n_leases(w.router), 1);
    assert_forward(respond(&w, 2, 0, 21, 20), 0);
    assert_forward(data(&w, 0, 21), 2);
    /* And back. */
    assert_int_equal(router_edge_set_blocked(w.router, w.nodes[0], w.nodes[1], false), 0);
    assert_int_equal(router_edge_set_blocked(w.router, w.nodes[1], w.nodes[0], false), 0);
    shake(&w);
    assert_forward(data(&w, 0, 11), 1);
    w.router = router_free(w.router);
}

/* With a node its blocked edges go, and those of others stay. */
static void test_blocked_edges_of_a_node_that_goes(void **state)
{
    struct world w = world();

    assert_int_equal(router_edge_set_blocked(w.router, w.nodes[0], w.nodes[1], true), 0);
    assert_int_equal(router_edge_set_blocked(w.router, w.nodes[2], w.nodes[1], true), 0);
    assert_int_equal(router_edge_set_blocked(w.router, w.nodes[0], w.nodes[2], true), 0);
    router_node_remove(w.router, w.nodes[0]);
    assert_drop(initiate(&w, 1, 2, 30), DROP_RELAY_NO_MATCH);
    assert_drop(initiate(&w, 2, 1, 30), DROP_RELAY_NO_MATCH);
    assert_int_equal(router_edge_set_blocked(w.router, w.nodes[2], w.nodes[1], false), 0);
    assert_forward(initiate(&w, 1, 2, 30), 2);
    assert_int_equal(router_edge_set_blocked(w.router, w.nodes[1], w.nodes[2], true), 0);
    assert_int_equal(router_n_leases(w.router), 0);
    w.router = router_free(w.router);
}

/* What a node's handshakes hold is given back when it expires, and then it may hold as much. */
static void test_room_of_a_node_is_given_back(void **state)
{
    struct world w =
        world_with(&(struct router_options){.n_workers = 2, .seed = 7, .leases_per_node = 3});

    for (unsigned i = 0; i < 3; i++) {
        shake(&w);
        assert_forward(initiate(&w, 0, 1, 30 + i), 1);
        assert_drop(initiate(&w, 0, 1, 40 + i), DROP_RELAY_TABLE_FULL);
        assert_int_equal(router_n_leases(w.router), 3);
        /* The attempt goes before the session does. */
        router_expire(w.router, w.now + ROUTER_PENDING_LIFE - 1);
        assert_int_equal(router_n_leases(w.router), 3);
        router_expire(w.router, w.now + ROUTER_PENDING_LIFE);
        assert_int_equal(router_n_leases(w.router), 2);
        assert_forward(data(&w, 0, 11), 1);
        w.now += ROUTER_LEASE_LIFE;
        router_expire(w.router, w.now);
        assert_int_equal(router_n_leases(w.router), 0);
    }
    w.router = router_free(w.router);
}

static void test_rate_limit(void **state)
{
    struct world w = world();
    unsigned n_passed = 0;

    /* Much more at once than a node has reason to send. */
    for (uint32_t i = 0; i < 3000; i++)
        n_passed += initiate(&w, 0, 1, 5000 + i).action == ROUTER_ACTION_FORWARD;
    assert_in_range(n_passed, 950, 1050);
    assert_drop(initiate(&w, 0, 1, 4000), DROP_RELAY_RATE_LIMITED);
    /* The hub itself can still be spoken to, and nobody else is held up. */
    assert_pass(initiate(&w, 0, 100, 4000));
    assert_forward(initiate(&w, 2, 1, 4000), 1);
    /* A second later some are let through again. */
    w.now += NSEC_PER_SEC;
    n_passed = 0;
    for (uint32_t i = 0; i < 3000; i++)
        n_passed += initiate(&w, 0, 1, 9000 + i).action == ROUTER_ACTION_FORWARD;
    assert_in_range(n_passed, 110, 130);
    w.router = router_free(w.router);
}

/* Messages that are for nobody cost their sender what the search for the addressee costs. */
static void test_rate_limit_of_searches(void **state)
{
    struct world w = world();
    unsigned n_searched = 0;

    for (uint32_t i = 0; i < 2000; i++) {
        struct x25519_public key = router_sample_key(200 + i);
        struct router_node *node;

        assert_int_equal(router_node_add(&node, w.router, w.nets[0], &key), 0);
    }
    for (uint32_t i = 0; i < 300; i++)
        n_searched += initiate(&w, 0, 199, i).reason == DROP_RELAY_NO_MATCH;
    assert_in_range(n_searched, 130, 136);
    w.router = router_free(w.router);
}

static void test_limits(void **state)
{
    struct world w = world_with(
        &(struct router_options){.n_workers = 2, .seed = 7, .leases_max = 7, .leases_per_node = 4});

    /* A node's handshakes hold so many and no more; others still have theirs. */
    shake(&w);
    assert_forward(initiate(&w, 0, 1, 30), 1);
    assert_forward(initiate(&w, 0, 1, 31), 1);
    assert_drop(initiate(&w, 0, 1, 32), DROP_RELAY_TABLE_FULL);
    assert_drop(respond(&w, 1, 0, 33, 30), DROP_RELAY_TABLE_FULL);
    assert_forward(initiate(&w, 1, 0, 40), 0);
    assert_forward(initiate(&w, 1, 2, 40), 2);
    assert_forward(initiate(&w, 2, 1, 41), 1);
    /* All of them together. */
    assert_drop(initiate(&w, 2, 1, 42), DROP_RELAY_TABLE_FULL);
    /* What has expired makes room. */
    w.now += ROUTER_PENDING_LIFE;
    router_expire(w.router, w.now);
    assert_forward(initiate(&w, 2, 1, 42), 1);
    assert_forward(data(&w, 0, 11), 1);
    w.router = router_free(w.router);
}

/* Messages are for a node, and for the hub, under either of its keys. */
static void test_next_keys(void **state)
{
    struct world w = world();
    struct x25519_public key = router_sample_key(1), next = router_sample_key(50);
    struct x25519_public hub = router_sample_key(100), hub_next = router_sample_key(150);

    assert_drop(initiate(&w, 0, 50, 10), DROP_RELAY_NO_MATCH);
    router_node_set_keys(w.router, w.nodes[1], &key, &next);
    assert_forward(initiate(&w, 0, 50, 10), 1);
    assert_forward(respond(&w, 1, 0, 11, 10), 0);
    assert_forward(initiate(&w, 0, 1, 12), 1);
    /* Answers are made for the key that initiated. */
    assert_forward(initiate(&w, 1, 0, 13), 0);
    assert_forward(respond(&w, 0, 50, 14, 13), 1);
    /* Then the next one is the key: what it had is still its own, and the other one is nobody's. */
    router_node_set_keys(w.router, w.nodes[1], &next, NULL);
    assert_forward(data(&w, 0, 11), 1);
    assert_forward(initiate(&w, 0, 50, 15), 1);
    assert_drop(initiate(&w, 0, 1, 16), DROP_RELAY_NO_MATCH);

    assert_drop(initiate(&w, 0, 150, 20), DROP_RELAY_NO_MATCH);
    router_network_set_keys(w.router, w.nets[0], &hub, &hub_next);
    assert_pass(initiate(&w, 0, 150, 20));
    assert_pass(initiate(&w, 0, 100, 20));
    router_network_set_keys(w.router, w.nets[0], &hub_next, NULL);
    assert_drop(initiate(&w, 0, 100, 20), DROP_RELAY_NO_MATCH);
    w.router = router_free(w.router);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_no_data_before_the_answer),
        cmocka_unit_test(test_cookie_replies),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_hub_itself),
        cmocka_unit_test(test_no_match),
        cmocka_unit_test(test_same_key_in_two_networks),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_next_keys),
        cmocka_unit_test(test_index_clashes),
        cmocka_unit_test(test_device_asks_for_an_index),
        cmocka_unit_test(test_lifetimes),
        cmocka_unit_test(test_which_pairs_send_most),
        cmocka_unit_test(test_the_heaviest_pairs_are_named),
        cmocka_unit_test(test_rekey_keeps_the_old_session),
        cmocka_unit_test(test_address_changes),
        cmocka_unit_test(test_local_address_is_kept),
        cmocka_unit_test(test_shared_address),
        cmocka_unit_test(test_too_many_behind_one_address),
        cmocka_unit_test(test_who_is_heard_keeps_the_address),
        cmocka_unit_test(test_removal),
        cmocka_unit_test(test_blocked_edge),
        cmocka_unit_test(test_blocked_edges_of_a_node_that_goes),
        cmocka_unit_test(test_room_of_a_node_is_given_back),
        cmocka_unit_test(test_rate_limit),
        cmocka_unit_test(test_rate_limit_of_searches),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
