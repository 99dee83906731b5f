/* test-lock-state.c - what entries of a lock come to, and each reason for which one is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/lock/lock_chain.h"
#include "test/support/sample_lock.h"

#define BODY(k, ...) ((struct lock_body){.kind = (k), __VA_ARGS__})
#define BY           "alice bob"

static void refuse_node(struct sample_lock *s, struct node node, const char *words)
{
    sample_lock_refuse(s, BODY(LOCK_NODE, .node = node), BY, words);
}

static struct lock_body tombstone(const char *name, const char *key, uint64_t counter)
{
    struct lock_body body =
        BODY(LOCK_TOMBSTONE, .tombstone = {.key = sample_lock_key(key), .counter = counter});

    (void)snprintf(body.tombstone.name, sizeof(body.tombstone.name), "%s", name);
    return body;
}

static struct lock_body join(const char *token, struct node node)
{
    return BODY(LOCK_JOIN, .join = {.token = sample_lock_signing(token), .node = node});
}

/* ---- nodes ---- */

static struct node node_at(const char *name, const char *v4, const char *v6)
{
    struct node n = sample_lock_node(name, 99);

    assert_int_equal(ip_addr_parse(&n.address4, v4, NULL), 0);
    assert_int_equal(ip_addr_parse(&n.address6, v6, NULL), 0);
    return n;
}

static void test_addresses_and_keys(void **state)
{
    struct sample_lock s;
    struct node n;

    (void)state;
    sample_lock_begin(&s);
    refuse_node(&s, node_at("gpu-3", "10.8.0.4", "fd07::4"),
        "the address 10.8.0.4 of \"gpu-3\" is not in the network's block 10.7.0.0/16");
    refuse_node(&s, node_at("gpu-3", "10.7.0.4", "fd08::4"),
        "the address fd08::4 of \"gpu-3\" is not in the network's block fd07::/64");
    refuse_node(&s, node_at("gpu-3", "10.7.0.2", "fd07::4"),
        "the address 10.7.0.2 of \"gpu-3\" is that of \"gpu-1\"");
    refuse_node(&s, node_at("gpu-3", "10.7.0.4", "fd07::3"),
        "the address fd07::3 of \"gpu-3\" is that of \"gpu-2\"");
    n = sample_lock_node("gpu-3", 4);
    n.key = sample_lock_key("gpu-2");
    refuse_node(&s, n, "of \"gpu-3\" is that of \"gpu-2\"");
    /* A node that changes gives up what it had. */
    sample_lock_put_node(&s, node_at("gpu-1", "10.7.0.77", "fd07::77"));
    sample_lock_put_node(&s, sample_lock_node("gpu-3", 2));
    assert_ptr_equal(
        lock_state_node_of(&s.chain.state, &n.key), lock_state_node(&s.chain.state, "gpu-2"));
    assert_int_equal(s.chain.state.nodes.n, 3);
    sample_lock_deinit(&s);
}

static struct node node_with_routes(const char *name, unsigned host, const char *routes)
{
    struct node n = sample_lock_node(name, host);

    if (routes)
        sample_lock_route(&n, routes);
    return n;
}

static void test_routes(void **state)
{
    struct sample_lock s;

    (void)state;
    sample_lock_begin(&s);
    refuse_node(
        &s, node_with_routes("gpu-3", 4, "10.7.9.0/24"), "overlaps 10.7.0.0/16, from which");
    sample_lock_put_node(&s, node_with_routes("gpu-1", 2, "10.9.1.0/24,10.9.3.0/24,fd09::/64"));
    sample_lock_put_node(&s, node_with_routes("gpu-2", 3, "10.9.2.0/24,10.200.0.0/16"));
    refuse_node(&s, node_with_routes("gpu-3", 4, "10.9.2.0/24"),
        "the route 10.9.2.0/24 of \"gpu-3\" overlaps 10.9.2.0/24 of \"gpu-2\"");
    refuse_node(&s, node_with_routes("gpu-3", 4, "10.200.4.0/24"), "of \"gpu-2\"");
    refuse_node(&s, node_with_routes("gpu-3", 4, "10.9.0.0/16"), "of \"gpu-1\"");
    refuse_node(&s, node_with_routes("gpu-3", 4, "fd07::/32"), "overlaps fd07::/64, from");
    refuse_node(&s, node_with_routes("gpu-3", 4, "fd09:0:0:0:1::/80"), "of \"gpu-1\"");
    /* Its own routes do not hide another node's, which stands between them. */
    refuse_node(&s, node_with_routes("gpu-1", 2, "10.9.0.0/16"),
        "the route 10.9.0.0/16 of \"gpu-1\" overlaps 10.9.2.0/24 of \"gpu-2\"");
    sample_lock_put_node(&s, node_with_routes("gpu-1", 2, "10.9.3.0/24"));
    sample_lock_put_node(&s, node_with_routes("gpu-3", 4, "10.9.0.0/23,192.168.0.0/24"));
    sample_lock_put_node(&s, node_with_routes("gpu-2", 3, NULL));
    sample_lock_put_node(&s, node_with_routes("gpu-1", 2, "10.9.2.0/23,10.200.0.0/24"));
    assert_int_equal(s.chain.state.routes.n, 4);
    sample_lock_deinit(&s);
}

/* In @state the node gpu-1 has these routes. */
static void hold_routes(struct lock_state *state, const struct subnets *routes)
{
    struct lock_entry genesis = {
        .network = "lab", .body = BODY(LOCK_GENESIS, .genesis = sample_lock_genesis())};
    struct lock_entry node = {
        .network = "lab", .body = BODY(LOCK_NODE, .node = sample_lock_node("gpu-1", 2))};

    node.body.node.routes = malloc(sizeof(*routes));
    assert_non_null(node.body.node.routes);
    *node.body.node.routes = *routes;
    assert_int_equal(lock_state_take(state, &genesis), 0);
    assert_int_equal(lock_state_take(state, &node), 0);
}

static void check_route(const struct subnets *held, const char *block)
{
    struct lock_state state = LOCK_STATE_NULL;
    struct lock_entry entry = {
        .network = "lab", .body = BODY(LOCK_NODE, .node = node_with_routes("gpu-2", 3, block))};
    bool overlaps = subnets_find(held, &entry.body.node.routes->items[0]) != NULL;

    hold_routes(&state, held);
    assert_int_equal(lock_state_check(&state, &entry, 5, NULL) < 0, overlaps);
    lock_entry_deinit(&entry);
    lock_state_deinit(&state);
}

/* Against subnets_find(), which looks at each of them. */
static void test_routes_like_a_list(void **state)
{
    static const char *const blocks[] = {"10.32.0.0/16", "10.32.0.0/24", "10.32.255.0/24",
        "10.33.0.0/16", "10.32.0.0/15", "10.32.128.0/17", "10.32.1.1/32", "10.31.0.0/16",
        "fd20::/32", "fd20::/64", "fd20:0:ffff::/64", "fd21::/32", "fd20::1/128"};
    enum { N = sizeof(blocks) / sizeof(*blocks) };

    (void)state;
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < N; k++) {
            struct subnets held = SUBNETS_NULL;

            if (subnets_parse(&held, blocks[i], NULL) != 0 ||
                subnets_parse(&held, blocks[k], NULL) != 0)
                continue;
            for (unsigned l = 0; l < N; l++)
                check_route(&held, blocks[l]);
        }
}

/* The keys of gpu-1 and of @second, which have those names. */
static struct lock_body keys_of(const char *first_key, const char *second, const char *second_key)
{
    struct lock_key *keys = calloc(2, sizeof(*keys));

    assert_non_null(keys);
    (void)snprintf(keys[0].name, sizeof(keys[0].name), "gpu-1");
    (void)snprintf(keys[1].name, sizeof(keys[1].name), "%s", second);
    keys[0].key = sample_lock_key(first_key);
    keys[1].key = sample_lock_key(second_key);
    return BODY(LOCK_KEYS, .keys = {.items = keys, .n = 2});
}

static void test_keys(void **state)
{
    struct sample_lock s;
    struct x25519_public key = sample_lock_key("gpu-1 next");
    const struct lock_node *node;

    (void)state;
    sample_lock_begin(&s);
    sample_lock_refuse(
        &s, keys_of("gpu-1 next", "gpu-3", "gpu-3 next"), BY, "no node \"gpu-3\" is accepted");
    sample_lock_put_node(&s, sample_lock_node("gpu-3", 4));
    sample_lock_refuse(&s, keys_of("gpu-1 next", "gpu-3", "gpu-2"), BY, "is that of \"gpu-2\"");
    sample_lock_refuse(&s, keys_of("gpu-1 next", "gpu-3", "gpu-1 next"), BY,
        "the keys of \"gpu-1\" and \"gpu-3\" are the same");
    node = lock_state_node(&s.chain.state, "gpu-1");
    assert_int_equal(node->signed_at, SAMPLE_LOCK_BEGUN_AT + 10);
    sample_lock_put(&s, keys_of("gpu-1 next", "gpu-3", "gpu-3 next"), BY);
    assert_ptr_equal(lock_state_node_of(&s.chain.state, &key), node);
    assert_int_equal(node->signed_at, s.now - 10);
    key = sample_lock_key("gpu-1");
    assert_null(lock_state_node_of(&s.chain.state, &key));
    sample_lock_deinit(&s);
}

static void test_tombstones(void **state)
{
    struct sample_lock s;
    struct mesh_edge off = sample_lock_edge("gpu-1", "gpu-2");
    struct node n;

    (void)state;
    sample_lock_begin(&s);
    off.path = EDGE_PATH_OFF;
    sample_lock_put(&s, BODY(LOCK_EDGE, .edge = off), BY);
    sample_lock_put(&s, BODY(LOCK_HUBS, .hubs = {.names = {"gpu-2", "gpu-1"}, .n = 2}), BY);
    sample_lock_refuse(&s, tombstone("gpu-9", "gpu-9", 1), BY, "no node \"gpu-9\" is accepted");
    sample_lock_refuse(&s, tombstone("gpu-2", "gpu-2", 2), BY,
        "the tombstone of \"gpu-2\" is number 2, and 1 is the next");
    sample_lock_refuse(&s, tombstone("gpu-2", "gpu-1", 1), BY,
        "the tombstone of \"gpu-2\" has the key of \"gpu-1\"");
    /* The node has another key by now, which nobody had signed. */
    sample_lock_put(&s, tombstone("gpu-2", "gpu-2 next", 1), BY);
    assert_null(lock_state_node(&s.chain.state, "gpu-2"));
    assert_null(lock_state_edge(&s.chain.state, "gpu-2", "gpu-1"));
    assert_int_equal(s.chain.state.hubs.n, 1);
    assert_string_equal(s.chain.state.hubs.names[0], "gpu-1");
    refuse_node(&s, sample_lock_node("gpu-2", 3), "was revoked with a node that is removed");
    n = sample_lock_node("gpu-3", 3);
    n.key = sample_lock_key("gpu-2 next");
    refuse_node(&s, n, "was revoked with a node that is removed");
    sample_lock_refuse(&s, tombstone("gpu-2", "gpu-2", 2), BY, "no node \"gpu-2\" is accepted");
    /* With another key it may come back, and has nothing of what it had. */
    n = sample_lock_node("gpu-2", 3);
    n.key = sample_lock_key("gpu-2 anew");
    sample_lock_put_node(&s, n);
    assert_null(lock_state_edge(&s.chain.state, "gpu-2", "gpu-1"));
    sample_lock_refuse(&s, tombstone("gpu-2", "gpu-2 anew", 1), BY, "and 2 is the next");
    sample_lock_put(&s, tombstone("gpu-2", "gpu-2 anew", 2), BY);
    sample_lock_deinit(&s);
}

/* ---- edges, rules, hubs ---- */

static void test_edges(void **state)
{
    struct sample_lock s;
    struct mesh_edge edge = sample_lock_edge("gpu-1", "gpu-2");
    const struct mesh_edge *held;

    (void)state;
    sample_lock_begin(&s);
    sample_lock_refuse(&s, BODY(LOCK_EDGE, .edge = edge), BY,
        "nothing is fixed of the edge \"gpu-1--gpu-2\", nor was");
    edge.pins[1].key = sample_lock_key("gpu-2");
    sample_lock_put(&s, BODY(LOCK_EDGE, .edge = edge), BY);
    held = lock_state_edge(&s.chain.state, "gpu-2", "gpu-1");
    assert_non_null(held);
    assert_int_equal(held->path, EDGE_PATH_AUTO);
    edge = sample_lock_edge("gpu-1", "gpu-2");
    sample_lock_put(&s, BODY(LOCK_EDGE, .edge = edge), BY);
    assert_null(lock_state_edge(&s.chain.state, "gpu-1", "gpu-2"));
    edge = sample_lock_edge("gpu-1", "gpu-9");
    edge.path = EDGE_PATH_OFF;
    sample_lock_refuse(&s, BODY(LOCK_EDGE, .edge = edge), BY, "no node \"gpu-9\" is accepted");
    sample_lock_refuse(&s, BODY(LOCK_HUBS, .hubs = {.names = {"gpu-1", "gpu-9"}, .n = 2}), BY,
        "no node \"gpu-9\" is accepted");
    sample_lock_deinit(&s);
}

static void test_rules(void **state)
{
    struct sample_lock s;

    (void)state;
    sample_lock_begin(&s);
    sample_lock_refuse(&s, BODY(LOCK_RULE_END, .rule_end = "ssh"), BY, "there is no rule \"ssh\"");
    sample_lock_put(
        &s, BODY(LOCK_RULE, .rule = sample_lock_rule("ssh", "members", "hub", "tcp/22")), BY);
    sample_lock_put(
        &s, BODY(LOCK_RULE, .rule = sample_lock_rule("ssh", "hub", "members", "tcp/22")), BY);
    sample_lock_put(
        &s, BODY(LOCK_RULE, .rule = sample_lock_rule("dns", "members", "hub", "udp/53")), BY);
    assert_int_equal(s.chain.state.rules.n, 2);
    assert_non_null(lock_state_rule(&s.chain.state, "ssh"));
    sample_lock_put(&s, BODY(LOCK_RULE_END, .rule_end = "ssh"), BY);
    assert_null(lock_state_rule(&s.chain.state, "ssh"));
    sample_lock_deinit(&s);
}

/* ---- tokens ---- */

static void put_token(struct sample_lock *s, const char *name, uint32_t uses)
{
    sample_lock_put(s, BODY(LOCK_TOKEN, .token = sample_lock_token(s, name, uses)), BY);
}

static void test_uses(void **state)
{
    struct sample_lock s;
    struct ed25519_public key = sample_lock_signing("token-1");

    (void)state;
    sample_lock_begin(&s);
    sample_lock_refuse(&s, join("token-1", sample_lock_node("gpu-3", 4)), "token-1",
        "\"gpu-3\" comes by a token that nobody has signed");
    put_token(&s, "token-1", 2);
    sample_lock_refuse(&s, join("token-1", sample_lock_node("gpu-3", 4)), "alice bob",
        "it has to be signed by the key of its token, and by no other");
    sample_lock_refuse(&s, join("token-1", sample_lock_node("gpu-3", 4)), "token-1 alice",
        "it has to be signed by the key of its token, and by no other");
    sample_lock_put(&s, join("token-1", sample_lock_node("gpu-3", 4)), "token-1");
    assert_int_equal(lock_state_token(&s.chain.state, &key)->uses, 1);
    sample_lock_refuse(&s, join("token-1", sample_lock_node("gpu-3", 5)), "token-1",
        "a node \"gpu-3\" is there already, and no token can change it");
    sample_lock_put(&s, join("token-1", sample_lock_node("gpu-4", 5)), "token-1");
    sample_lock_refuse(&s, join("token-1", sample_lock_node("gpu-5", 6)), "token-1",
        "\"gpu-5\" comes by a token of which no uses are left");
    /* The same key again would give it its uses back. */
    sample_lock_refuse(&s, BODY(LOCK_TOKEN, .token = sample_lock_token(&s, "token-1", 2)), BY,
        "a token of that key is or was there already");
    sample_lock_deinit(&s);
}

static void test_a_token_that_is_over(void **state)
{
    struct sample_lock s;
    struct lock_token token;

    (void)state;
    sample_lock_begin(&s);
    token = sample_lock_token(&s, "token-1", 2);
    token.until = s.now;
    sample_lock_refuse(
        &s, BODY(LOCK_TOKEN, .token = token), BY, "the token is over when it is made");
    token.until = s.now + 30;
    sample_lock_put(&s, BODY(LOCK_TOKEN, .token = token), BY);
    put_token(&s, "token-2", 2);
    s.now = token.until + 1;
    sample_lock_refuse(&s, join("token-1", sample_lock_node("gpu-3", 4)), "token-1",
        "\"gpu-3\" comes 1 s after its token was over");
    /* A clock that is behind, or says so: as soon as operators have signed something later, it is
     * known that the token is over. */
    s.now -= 5;
    sample_lock_put(&s, join("token-1", sample_lock_node("gpu-3", 4)), "token-1");
    s.now = token.until + 4;
    sample_lock_put_node(&s, sample_lock_node("gpu-4", 5));
    s.now = token.until - 3;
    {
        struct lock_entry entry = LOCK_ENTRY_NULL;
        struct ed25519_secret secret = sample_lock_secret("token-1");
        struct err e = ERR_NULL;

        lock_chain_next(&s.chain, s.now, &entry);
        entry.made_at = s.now;
        entry.body = join("token-1", sample_lock_node("gpu-5", 6));
        assert_int_equal(lock_entry_sign(&entry, &secret, NULL), 0);
        assert_true(lock_chain_apply(&s.chain, &entry, &e) < 0);
        assert_non_null(strstr(e.text, "comes 4 s after its token was over"));
        lock_entry_deinit(&entry);
    }
    sample_lock_put(&s, BODY(LOCK_TOKEN_END, .token_end = sample_lock_signing("token-2")), BY);
    sample_lock_refuse(&s, join("token-2", sample_lock_node("gpu-5", 6)), "token-2",
        "comes by a token of which no uses are left");
    sample_lock_refuse(&s, BODY(LOCK_TOKEN_END, .token_end = sample_lock_signing("token-2")), BY,
        "no token of that key is there, or it is over");
    sample_lock_refuse(&s, BODY(LOCK_TOKEN_END, .token_end = sample_lock_signing("token-3")), BY,
        "no token of that key is there, or it is over");
    sample_lock_deinit(&s);
}

static void refuse_join(struct sample_lock *s, struct node node, const char *words)
{
    sample_lock_refuse(s, join("token-1", node), "token-1", words);
}

static void test_what_a_token_lets_in(void **state)
{
    struct sample_lock s;
    struct lock_token token;
    struct node n;

    (void)state;
    sample_lock_begin(&s);
    token = sample_lock_token(&s, "token-1", 20);
    token.labels = calloc(1, sizeof(*token.labels));
    assert_non_null(token.labels);
    token.labels[0] = (struct label){.key = "role", .value = "gpu"};
    token.n_labels = 1;
    assert_int_equal(subnets_parse(&token.routes, "10.10.0.0/16", NULL), 0);
    sample_lock_put(&s, BODY(LOCK_TOKEN, .token = token), BY);

    n = sample_lock_node("gpu-3", 4);
    n.stock = true;
    refuse_join(&s, n, "\"gpu-3\" is a stock WireGuard, and a token lets none in");
    n = sample_lock_node("gpu-3", 4);
    n.hub = calloc(1, sizeof(*n.hub));
    assert_non_null(n.hub);
    n.hub->n_endpoints = 1;
    n.hub->api_port = 1;
    assert_int_equal(endpoint_parse(&n.hub->endpoints[0], "192.0.2.1:1", NULL), 0);
    refuse_join(&s, n, "\"gpu-3\" is a hub, and a token lets none in");
    n = sample_lock_node("gpu-3", 4);
    n.relay = true;
    refuse_join(&s, n, "\"gpu-3\" may be a relay, and its token does not let it");
    n = sample_lock_node("gpu-3", 4);
    n.ephemeral = true;
    refuse_join(&s, n, "\"gpu-3\" is ephemeral, and its token wants it not to be");
    n = sample_lock_node("gpu-3", 4);
    (void)snprintf(n.island, sizeof(n.island), "east");
    refuse_join(&s, n, "\"gpu-3\" is in the island \"east\", and its token does not let it");
    n = sample_lock_node("gpu-3", 4);
    sample_lock_label(&n, "role", "admin");
    refuse_join(&s, n, "\"gpu-3\" has the label \"role=admin\", and its token does not let it");
    n = sample_lock_node("gpu-3", 4);
    sample_lock_label(&n, "admin", "gpu");
    refuse_join(&s, n, "\"gpu-3\" has the label \"admin=gpu\", and its token does not let it");
    refuse_join(&s, node_with_routes("gpu-3", 4, "10.11.0.0/24"),
        "\"gpu-3\" has the route 10.11.0.0/24, and its token does not let it");
    refuse_join(&s, node_with_routes("gpu-3", 4, "10.0.0.0/8"), "its token does not let it");
    refuse_join(&s, sample_lock_node("gpu-3", 2), "the address 10.7.0.2 of \"gpu-3\" is that of");
    n = node_with_routes("gpu-3", 4, "10.10.3.0/24");
    sample_lock_label(&n, "role", "gpu");
    sample_lock_put(&s, join("token-1", n), "token-1");
    refuse_join(&s, node_with_routes("gpu-4", 5, "10.10.0.0/16"),
        "the route 10.10.0.0/16 of \"gpu-4\" overlaps 10.10.3.0/24 of \"gpu-3\"");
    token = sample_lock_token(&s, "token-2", 1);
    assert_int_equal(subnets_parse(&token.routes, "10.7.1.0/24", NULL), 0);
    sample_lock_refuse(&s, BODY(LOCK_TOKEN, .token = token), BY, "overlaps 10.7.0.0/16");
    sample_lock_deinit(&s);
}

/* A hub keeps the entry of a node that has joined, and shows it again when the node is removed: the
 * token's key has not signed its place. */
static void test_a_join_counts_once(void **state)
{
    struct sample_lock s;
    struct lock_entry kept, again;
    struct lock_body body;
    struct err e = ERR_NULL;
    struct node n;

    (void)state;
    sample_lock_begin(&s);
    put_token(&s, "token-1", 5);
    body = join("token-1", sample_lock_node("gpu-3", 4));
    kept = sample_lock_make(&s, &body, "token-1");
    again = kept;
    sample_lock_take(&s, &kept);
    /* Operators sign the key that it has changed to, and remove it. */
    n = sample_lock_node("gpu-3", 4);
    n.key = sample_lock_key("gpu-3 next");
    sample_lock_put_node(&s, n);
    sample_lock_put(&s, tombstone("gpu-3", "gpu-3 next", 1), BY);
    again.seq = s.chain.n;
    again.prev = lock_chain_head(&s.chain).hash;
    again.body = join("token-1", sample_lock_node("gpu-3", 4));
    assert_int_equal(lock_entry_verify(&again, ed25519_verify, NULL), 0);
    assert_true(lock_chain_apply(&s.chain, &again, &e) < 0);
    assert_non_null(strstr(e.text, "comes with a key that has come by a token before"));
    lock_entry_deinit(&again);
    sample_lock_deinit(&s);
}

/* Those who join at once need not wait for each other: a hub puts them into an order. */
static void test_joins_in_any_order(void **state)
{
    struct sample_lock s;
    struct lock_entry entries[3];

    (void)state;
    sample_lock_begin(&s);
    put_token(&s, "token-1", 3);
    for (unsigned i = 0; i < 3; i++) {
        char name[16];
        struct lock_body body;

        (void)snprintf(name, sizeof(name), "new-%u", i);
        body = join("token-1", sample_lock_node(name, 10 + i));
        entries[i] = sample_lock_make(&s, &body, "token-1");
    }
    for (unsigned i = 3; i-- > 0;) {
        entries[i].seq = s.chain.n;
        entries[i].prev = lock_chain_head(&s.chain).hash;
        sample_lock_take(&s, &entries[i]);
    }
    assert_int_equal(s.chain.state.nodes.n, 5);
    sample_lock_deinit(&s);
}

/* ---- versions and expiry ---- */

static void test_renewal(void **state)
{
    struct sample_lock s;

    (void)state;
    sample_lock_begin(&s);
    sample_lock_refuse(&s,
        BODY(LOCK_RENEW, .renew = {.version = 1, .valid_until = SAMPLE_LOCK_UNTIL + 1}), BY,
        "it has the version 1, and 2 is the next");
    sample_lock_refuse(&s,
        BODY(LOCK_RENEW, .renew = {.version = 2, .valid_until = SAMPLE_LOCK_UNTIL}), BY,
        "it would be good for no longer than it is");
    sample_lock_put(
        &s, BODY(LOCK_RENEW, .renew = {.version = 2, .valid_until = SAMPLE_LOCK_UNTIL + 100}), BY);
    assert_int_equal(s.chain.state.version, 2);
    assert_int_equal(s.chain.state.valid_until, SAMPLE_LOCK_UNTIL + 100);
    sample_lock_deinit(&s);
}

static void test_nothing_comes_in_after_expiry(void **state)
{
    struct sample_lock s;

    (void)state;
    sample_lock_begin(&s);
    put_token(&s, "token-1", 3);
    s.now = SAMPLE_LOCK_UNTIL + 7;
    refuse_node(&s, sample_lock_node("gpu-3", 4),
        "it was made 7 s after the lock had expired, which has to be renewed first");
    sample_lock_refuse(&s, BODY(LOCK_TOKEN, .token = sample_lock_token(&s, "token-2", 3)), BY,
        "has to be renewed first");
    sample_lock_refuse(
        &s, join("token-1", sample_lock_node("gpu-3", 4)), "token-1", "has to be renewed first");
    /* Who is removed has to be gone at once. */
    sample_lock_put(&s, tombstone("gpu-2", "gpu-2", 1), BY);
    sample_lock_put(&s, BODY(LOCK_TOKEN_END, .token_end = sample_lock_signing("token-1")), BY);
    sample_lock_put(
        &s, BODY(LOCK_SIGNERS, .signers = sample_lock_signers(1, "alice", "code-1")), BY);
    sample_lock_refuse(&s,
        BODY(LOCK_RENEW, .renew = {.version = 2, .valid_until = SAMPLE_LOCK_UNTIL + 8}), "alice",
        "or is over already");
    sample_lock_put(
        &s, BODY(LOCK_RENEW, .renew = {.version = 2, .valid_until = s.now + 1000}), "alice");
    sample_lock_put(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-3", 4)), "alice");
    sample_lock_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_and_keys),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_routes_like_a_list),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_tombstones),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_uses),
        cmocka_unit_test(test_a_token_that_is_over),
        cmocka_unit_test(test_what_a_token_lets_in),
        cmocka_unit_test(test_a_join_counts_once),
        cmocka_unit_test(test_joins_in_any_order),
        cmocka_unit_test(test_renewal),
        cmocka_unit_test(test_nothing_comes_in_after_expiry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
