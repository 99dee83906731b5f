/* test-lock-entry.c - entries of a lock: bytes against Python's, and what is no entry. */
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
#include "test/vectors/vectors.h"

#define N_VECTORS 20

static uint8_t read_bytes[LOCK_ENTRY_MAX];

/* ---- the chain of test/vectors/lock.txt, made of structs ---- */

static struct endpoint endpoint_of(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

static void put_hub(struct sample_lock *s)
{
    struct lock_body body = {.kind = LOCK_NODE, .node = sample_lock_node("hub-1", 1)};
    struct node_hub *hub = calloc(1, sizeof(*hub));
    struct ed25519_secret pin = sample_lock_secret("pin");

    assert_non_null(hub);
    hub->endpoints[0] = endpoint_of("192.0.2.1:51820");
    hub->endpoints[1] = endpoint_of("[2001:db8::1]:51820");
    hub->n_endpoints = 2;
    (void)snprintf(hub->names[0], sizeof(hub->names[0]), "hub.example.org:51820");
    hub->n_names = 1;
    hub->api_port = 8443;
    hub->has_tls_pin = true;
    memcpy(hub->tls_pin.b, pin.b, sizeof(hub->tls_pin.b));
    hub->rendezvous_epoch = 7; /* which nobody signs */
    body.node.hub = hub;
    sample_lock_put(s, body, "alice carol");
}

static void put_nodes(struct sample_lock *s)
{
    struct lock_body body = {.kind = LOCK_NODE, .node = sample_lock_node("gpu-1", 2)};

    body.node.relay = true;
    (void)snprintf(body.node.island, sizeof(body.node.island), "east");
    sample_lock_label(&body.node, "role", "gpu");
    sample_lock_label(&body.node, "zone", "a, b=\"c\"");
    sample_lock_route(&body.node, "10.9.0.0/24,fd09::/64");
    sample_lock_put(s, body, "alice bob carol");
    body = (struct lock_body){.kind = LOCK_NODE, .node = sample_lock_node("gpu-2", 3)};
    body.node.stock = true;
    sample_lock_put(s, body, "bob carol");
}

static void put_join(struct sample_lock *s)
{
    static struct label role = {.key = "role", .value = "gpu"};
    struct lock_body body = {.kind = LOCK_TOKEN,
        .token = {.key = sample_lock_signing("token-1"),
            .uses = 2,
            .until = 1791000000,
            .relay = true,
            .ephemeral = true,
            .island = "east",
            .n_labels = 1}};

    body.token.labels = malloc(sizeof(role));
    assert_non_null(body.token.labels);
    *body.token.labels = role;
    assert_int_equal(subnets_parse(&body.token.routes, "10.10.0.0/16", NULL), 0);
    sample_lock_put(s, body, "alice bob");
    body = (struct lock_body){.kind = LOCK_JOIN,
        .join = {.token = sample_lock_signing("token-1"), .node = sample_lock_node("gpu-3", 4)}};
    body.join.node.relay = true;
    body.join.node.ephemeral = true;
    (void)snprintf(body.join.node.island, sizeof(body.join.node.island), "east");
    sample_lock_label(&body.join.node, "role", "gpu");
    sample_lock_route(&body.join.node, "10.10.1.0/24");
    sample_lock_put(s, body, "token-1");
}

static void put_lists(struct sample_lock *s)
{
    struct lock_body body = {.kind = LOCK_KEYS, .keys = {.n = 2}};
    struct lock_key keys[] = {{.name = "gpu-1", .key = sample_lock_key("gpu-1 next")},
        {.name = "gpu-2", .key = sample_lock_key("gpu-2")}};

    body.keys.items = malloc(sizeof(keys));
    assert_non_null(body.keys.items);
    memcpy(body.keys.items, keys, sizeof(keys));
    sample_lock_put(s, body, "alice bob");
    body = (struct lock_body){.kind = LOCK_HUBS, .hubs = {.names = {"hub-1", "gpu-1"}, .n = 2}};
    sample_lock_put(s, body, "alice bob");
    body = (struct lock_body){.kind = LOCK_EDGE, .edge = sample_lock_edge("gpu-1", "gpu-2")};
    body.edge.path = EDGE_PATH_OFF;
    sample_lock_put(s, body, "alice bob");
    body = (struct lock_body){.kind = LOCK_EDGE, .edge = sample_lock_edge("gpu-1", "gpu-3")};
    body.edge.pins[0].endpoint = endpoint_of("198.51.100.7:4500");
    body.edge.pins[1].key = sample_lock_key("gpu-3");
    body.edge.rate = 5; /* which nobody signs */
    sample_lock_put(s, body, "alice bob");
}

static struct object rule_ssh(void)
{
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:{s:[s, s], s:[s, s], s:[s, s]}}", "kind",
        "Rule", "metadata", "name", "ssh", "network", "lab", "spec", "from", "members", "role=gpu",
        "to", "node:gpu-1", "10.9.0.0/24", "allow", "tcp/22", "udp/5000-5999");
    struct object o = OBJECT_NULL;

    assert_int_equal(object_decode(&o, json, OBJECT_STRICT, NULL), 0);
    json_decref(json);
    return o;
}

static void put_rules(struct sample_lock *s)
{
    sample_lock_put(s, (struct lock_body){.kind = LOCK_RULE, .rule = rule_ssh()}, "alice bob");
    sample_lock_put(s,
        (struct lock_body){
            .kind = LOCK_RULE, .rule = sample_lock_rule("all", "hub", "members", "any")},
        "alice bob");
    sample_lock_put(s, (struct lock_body){.kind = LOCK_RULE_END, .rule_end = "all"}, "alice bob");
    sample_lock_put(s,
        (struct lock_body){.kind = LOCK_SETTINGS,
            .settings = {.cipher = CIPHER_CHACHA20POLY1305,
                .demand = LOCK_DEMAND_ML_KEM,
                .trust_for = 3600}},
        "alice bob");
    sample_lock_put(s,
        (struct lock_body){.kind = LOCK_RENEW, .renew = {.version = 2, .valid_until = 1810000000}},
        "alice bob");
}

static void put_ends(struct sample_lock *s)
{
    struct lock_body body = {.kind = LOCK_TOMBSTONE,
        .tombstone = {.name = "gpu-2", .key = sample_lock_key("gpu-2"), .counter = 1}};

    sample_lock_put(s, body, "alice bob");
    body = (struct lock_body){.kind = LOCK_TOKEN_END, .token_end = sample_lock_signing("token-1")};
    sample_lock_put(s, body, "alice bob");
    body = (struct lock_body){.kind = LOCK_RECOVER,
        .recover = {.key = sample_lock_signing("code-1"),
            .signers = sample_lock_signers(1, "dave", "code-3")}};
    sample_lock_put(s, body, "code-1");
    body = (struct lock_body){
        .kind = LOCK_SIGNERS, .signers = sample_lock_signers(1, "dave erin", "code-3")};
    sample_lock_put(s, body, "dave");
    body = (struct lock_body){.kind = LOCK_NODE, .node = sample_lock_node("gpu-1", 2)};
    sample_lock_put(s, body, "erin");
}

/* The file has codes of recovery, too. */
static bool is_entry(const struct vectors *v)
{
    return strncmp(v->title, "entry ", strlen("entry ")) == 0;
}

static void check_vector(const struct sample_lock *s, const struct vectors *v)
{
    uint64_t seq = vectors_u64(v, "seq");
    size_t start = seq > 0 ? s->ends[seq - 1] : 0;
    size_t len = vectors_bytes(v, "bytes", read_bytes, sizeof(read_bytes));
    struct lock_hash hash;

    vectors_exact(v, "hash", hash.b, sizeof(hash.b));
    assert_int_equal(s->ends[seq] - start, len);
    assert_memory_equal(s->bytes + start, read_bytes, len);
    assert_true(lock_hash_equal(&s->chain.hashes[seq], &hash));
}

static void test_vectors(void **state)
{
    struct sample_lock s;
    struct lock_chain read;
    struct vectors v;
    struct err e = ERR_NULL;
    unsigned n = 0;

    (void)state;
    sample_lock_init(&s, NULL);
    sample_lock_put(&s, (struct lock_body){.kind = LOCK_GENESIS, .genesis = sample_lock_genesis()},
        "alice bob");
    put_hub(&s);
    put_nodes(&s);
    put_join(&s);
    put_lists(&s);
    put_rules(&s);
    put_ends(&s);
    vectors_open(&v, "lock.txt");
    while (vectors_next(&v)) {
        if (!is_entry(&v))
            continue;
        check_vector(&s, &v);
        n++;
    }
    vectors_close(&v);
    assert_int_equal(n, N_VECTORS);
    assert_int_equal(s.chain.n, N_VECTORS);
    lock_chain_init(&read, "lab", NULL);
    if (lock_chain_read(&read, s.bytes, s.len, NULL, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(read.n, N_VECTORS);
    lock_chain_deinit(&read);
    sample_lock_deinit(&s);
}

/* ---- what is no entry ---- */

static int decode(const uint8_t *p, size_t len, struct err *e)
{
    struct lock_entry entry = LOCK_ENTRY_NULL;
    struct reader in = reader_make(p, len);
    int r = lock_entry_decode(&entry, &in, e);

    lock_entry_deinit(&entry);
    return r;
}

/* Whatever is cut off is none, and each byte counts: it is another entry then, or none. */
static void test_each_byte_counts(void **state)
{
    struct vectors v;

    (void)state;
    vectors_open(&v, "lock.txt");
    while (vectors_next(&v)) {
        size_t len = is_entry(&v) ? vectors_bytes(&v, "bytes", read_bytes, sizeof(read_bytes)) : 0;

        if (len == 0)
            continue;
        assert_int_equal(decode(read_bytes, len, NULL), 0);
        for (size_t i = 0; i < len; i++) {
            uint8_t again[4096];
            struct lock_entry entry = LOCK_ENTRY_NULL;
            struct reader in = reader_make(read_bytes, len);
            struct writer w = writer_make(again, sizeof(again));

            assert_true(decode(read_bytes, i, NULL) < 0);
            read_bytes[i] ^= 0x15;
            if (lock_entry_decode(&entry, &in, NULL) == 0) {
                lock_entry_encode(&w, &entry);
                assert_false(w.failed);
                assert_int_equal(writer_len(&w), len - reader_left(&in));
                assert_memory_equal(again, read_bytes, writer_len(&w));
            }
            read_bytes[i] ^= 0x15;
            lock_entry_deinit(&entry);
        }
    }
    vectors_close(&v);
}

/* The bytes of an entry with this body, which is not signed. */
static size_t encode(const struct lock_body *body, uint8_t buf[static LOCK_ENTRY_MAX])
{
    struct lock_entry entry = {.network = "lab", .seq = 3, .made_at = 5, .body = *body};
    struct writer w = writer_make(buf, LOCK_ENTRY_MAX);

    lock_entry_encode(&w, &entry);
    assert_false(w.failed);
    return writer_len(&w);
}

/* It is refused with @words, also by who is to sign it. */
static void expect_no_body(const struct lock_body *body, const char *words)
{
    struct lock_entry entry = {.network = "lab", .body = *body};
    struct ed25519_secret secret = sample_lock_secret("alice");
    struct err e = ERR_NULL;

    assert_true(decode(read_bytes, encode(body, read_bytes), &e) < 0);
    if (!strstr(e.text, words))
        fail_msg("\"%s\" instead of \"%s\"", e.text, words);
    assert_true(lock_entry_sign(&entry, &secret, NULL) < 0);
    assert_int_equal(entry.n_signatures, 0);
}

static void expect_no_signers(void (*change)(struct lock_signers *s), const char *words)
{
    struct lock_body body = {.kind = LOCK_SIGNERS,
        .signers = sample_lock_signers(2, "alice bob carol", "code-1 code-2")};

    change(&body.signers);
    expect_no_body(&body, words);
}

static void no_threshold(struct lock_signers *s)
{
    s->threshold = 0;
}

static void more_than_all(struct lock_signers *s)
{
    s->threshold = 4;
}

static void one_twice(struct lock_signers *s)
{
    s->items[1] = s->items[0];
}

static void out_of_order(struct lock_signers *s)
{
    struct lock_signer first = s->items[0];

    s->items[0] = s->items[1];
    s->items[1] = first;
}

static void same_name(struct lock_signers *s)
{
    memcpy(s->items[2].name, s->items[0].name, sizeof(s->items[2].name));
}

static void no_name(struct lock_signers *s)
{
    s->items[2].name[0] = '\0';
}

static void small_order(struct lock_signers *s)
{
    s->items[0].key = (struct ed25519_public){{1}};
}

static void small_code(struct lock_signers *s)
{
    s->recovery[0] = (struct ed25519_public){{0}};
}

static void code_twice(struct lock_signers *s)
{
    s->recovery[1] = s->recovery[0];
}

static void code_of_a_signer(struct lock_signers *s)
{
    s->n_recovery = 1;
    s->recovery[0] = s->items[1].key;
}

static void test_signers_that_are_none(void **state)
{
    (void)state;
    expect_no_signers(no_threshold, "the threshold is 0, and 1 to 16 are allowed");
    expect_no_signers(more_than_all, "4 signatures are demanded of 3 signers");
    expect_no_signers(one_twice, "not in the order of their keys, or one is there twice");
    expect_no_signers(out_of_order, "not in the order of their keys, or one is there twice");
    expect_no_signers(same_name, "two signers are called");
    expect_no_signers(no_name, "signer name");
    expect_no_signers(small_order, "a signer's key, AQAAAA");
    expect_no_signers(small_code, "the key of a code, AAAAAA");
    expect_no_signers(code_twice, "the keys of the codes are not in order");
    expect_no_signers(code_of_a_signer, "the key of a code is the signer \"");
}

static void expect_no_node(void (*change)(struct node *n), const char *words)
{
    struct lock_body body = {.kind = LOCK_NODE, .node = sample_lock_node("gpu-1", 2)};

    change(&body.node);
    expect_no_body(&body, words);
    lock_body_deinit(&body);
}

static void name_with_dashes(struct node *n)
{
    (void)snprintf(n->meta.name, sizeof(n->meta.name), "gpu--1");
}

static void name_of_capitals(struct node *n)
{
    n->meta.name[0] = 'G';
}

static void no_key(struct node *n)
{
    n->key = (struct x25519_public){{0}};
}

static void v4_as_v6(struct node *n)
{
    n->address6 = n->address4;
}

static void island_with_a_dot(struct node *n)
{
    (void)snprintf(n->island, sizeof(n->island), "a.b");
}

static void labels_out_of_order(struct node *n)
{
    sample_lock_label(n, "b", "");
    sample_lock_label(n, "a", "");
}

static void label_twice(struct node *n)
{
    sample_lock_label(n, "a", "");
    sample_lock_label(n, "a", "1");
}

static void label_with_a_bell(struct node *n)
{
    sample_lock_label(n, "a", "\a");
}

static void too_many_labels(struct node *n)
{
    char key[8];

    for (unsigned i = 0; i <= OBJECT_LABELS_MAX; i++) {
        (void)snprintf(key, sizeof(key), "k%02u", i);
        sample_lock_label(n, key, "");
    }
}

static void routes_out_of_order(struct node *n)
{
    struct ip_prefix first;

    sample_lock_route(n, "10.9.0.0/24,10.10.0.0/24");
    first = n->routes->items[0];
    n->routes->items[0] = n->routes->items[1];
    n->routes->items[1] = first;
}

static void route_twice(struct node *n)
{
    sample_lock_route(n, "10.9.0.0/24,10.10.0.0/24");
    n->routes->items[1] = n->routes->items[0];
}

static void routes_that_overlap(struct node *n)
{
    sample_lock_route(n, "10.9.0.0/24,10.10.0.0/24");
    n->routes->items[1] = n->routes->items[0];
    n->routes->items[1].len = 25;
}

static void route_of_everything(struct node *n)
{
    sample_lock_route(n, "10.9.0.0/24");
    n->routes->items[0] = (struct ip_prefix){.len = 0};
}

static void route_with_host_bits(struct node *n)
{
    sample_lock_route(n, "10.9.0.0/24");
    n->routes->items[0].addr.b[15] = 1;
}

static void route_that_is_too_long(struct node *n)
{
    sample_lock_route(n, "10.9.0.0/24");
    n->routes->items[0].len = 33;
}

static struct node_hub *make_hub(struct node *n)
{
    n->hub = calloc(1, sizeof(*n->hub));
    assert_non_null(n->hub);
    n->hub->endpoints[0] = endpoint_of("192.0.2.1:51820");
    n->hub->n_endpoints = 1;
    n->hub->api_port = 8443;
    return n->hub;
}

static void hub_without_endpoints(struct node *n)
{
    make_hub(n)->n_endpoints = 0;
}

static void hub_without_a_port(struct node *n)
{
    make_hub(n)->endpoints[0].port = 0;
}

static void hub_without_an_api(struct node *n)
{
    make_hub(n)->api_port = 0;
}

static void hub_with_a_bad_name(struct node *n)
{
    struct node_hub *hub = make_hub(n);

    hub->n_names = 1;
    (void)snprintf(hub->names[0], sizeof(hub->names[0]), "hub example:1");
}

static void test_nodes_that_are_none(void **state)
{
    (void)state;
    expect_no_node(name_with_dashes, "two '-' in a row");
    expect_no_node(name_of_capitals, "node name");
    expect_no_node(no_key, "a node's key, AAAA");
    expect_no_node(v4_as_v6, "the IPv6 address of \"gpu-1\" is one of IPv4");
    expect_no_node(island_with_a_dot, "island");
    expect_no_node(labels_out_of_order, "the labels are not in the order");
    expect_no_node(label_twice, "the labels are not in the order");
    expect_no_node(label_with_a_bell, "without control characters");
    expect_no_node(too_many_labels, "the number of labels is 33, and 0 to 32 are allowed");
    expect_no_node(routes_out_of_order, "not written in the one way there is");
    expect_no_node(route_twice, "not written in the one way there is");
    expect_no_node(routes_that_overlap, "overlaps route");
    expect_no_node(route_of_everything, "is every address there is");
    expect_no_node(route_with_host_bits, "bits set after its length");
    expect_no_node(route_that_is_too_long, "a route is 33, and 0 to 32 are allowed");
    expect_no_node(hub_without_endpoints, "the number of a hub's endpoints is 0");
    expect_no_node(hub_without_a_port, "has no port");
    expect_no_node(hub_without_an_api, "a hub's API port is 0");
    expect_no_node(hub_with_a_bad_name, "a hub's name: ");
}

static void test_other_bodies_that_are_none(void **state)
{
    struct lock_body body = {.kind = LOCK_GENESIS, .genesis = sample_lock_genesis()};
    struct lock_key keys[2] = {{.name = "b"}, {.name = "a"}};

    (void)state;
    body.genesis.cidr4.len = 7;
    expect_no_body(&body, "lengths /8 to /30 are allowed");
    body.genesis = sample_lock_genesis();
    body.genesis.cidr6 = body.genesis.cidr4;
    expect_no_body(&body, "which is not IPv6");
    body.genesis = sample_lock_genesis();
    body.genesis.valid_until = LOCK_TIME_MAX + 1;
    expect_no_body(&body, "the time until which it is good is 253402300800");
    body.genesis = sample_lock_genesis();
    body.genesis.settings.demand = LOCK_DEMAND_N;
    expect_no_body(&body, "the demand is 3, and 0 to 2 are allowed");

    keys[0].key = keys[1].key = sample_lock_key("a");
    body = (struct lock_body){.kind = LOCK_KEYS, .keys = {.items = keys, .n = 2}};
    expect_no_body(&body, "not in the order of the nodes' names");
    body.keys.n = 0;
    expect_no_body(&body, "the number of keys is 0, and 1 to 256 are allowed");

    body = (struct lock_body){.kind = LOCK_HUBS, .hubs = {.names = {"a", "b", "a"}, .n = 3}};
    expect_no_body(&body, "\"a\" is twice among the hubs");
    body.hubs.n = 0;
    expect_no_body(&body, "the number of hubs is 0");

    body = (struct lock_body){.kind = LOCK_EDGE, .edge = sample_lock_edge("gpu-2", "gpu-1")};
    expect_no_body(&body, "not two in byte order");
    body.edge = sample_lock_edge("gpu-1", "gpu-2");
    body.edge.pins[0].key.b[0] = 1;
    expect_no_body(&body, "a pinned key is none that a private key has");
    body.edge = sample_lock_edge("gpu-1", "gpu-2");
    body.edge.pins[0].endpoint.scope = 4;
    expect_no_body(&body, "an endpoint, ");

    body = (struct lock_body){
        .kind = LOCK_TOKEN, .token = {.key = sample_lock_signing("t"), .until = 1}};
    expect_no_body(&body, "the number of a token's uses is 0");
    body.token.uses = LOCK_TOKEN_USES_MAX + 1;
    expect_no_body(&body, "the number of a token's uses is 1000001");
}

/* A text that means the same, and is another spelling. */
static void test_one_spelling(void **state)
{
    struct lock_body body = {
        .kind = LOCK_RULE, .rule = sample_lock_rule("r", "members", "10.9.0.0/24", "tcp/22")};
    size_t len = encode(&body, read_bytes);
    struct err e = ERR_NULL;
    uint8_t *at = memmem(read_bytes, len, "tcp/22", 6);

    (void)state;
    assert_non_null(at);
    assert_int_equal(decode(read_bytes, len, NULL), 0);
    memcpy(at, "tcp/02", 6);
    assert_true(decode(read_bytes, len, &e) < 0);
    assert_non_null(strstr(e.text, "not written in the one way there is"));
    memcpy(at, "tcp/2x", 6);
    assert_true(decode(read_bytes, len, &e) < 0);
    assert_non_null(strstr(e.text, "\"tcp/2x\" is none of any, icmp"));
    lock_body_deinit(&body);
}

static void test_frames_that_are_none(void **state)
{
    struct lock_entry entry = {.network = "lab",
        .body = {.kind = LOCK_RULE_END, .rule_end = "all"},
        .made_at = LOCK_TIME_MAX + 1};
    struct err e = ERR_NULL;
    struct writer w = writer_make(read_bytes, sizeof(read_bytes));
    size_t at_kind = strlen("weft lock entry 1") + 1 + 3 + 8 + 32 + 8;

    (void)state;
    lock_entry_encode(&w, &entry);
    assert_true(decode(read_bytes, writer_len(&w), &e) < 0);
    assert_non_null(strstr(e.text, "was made after the year 9999"));
    entry.made_at = 5;
    w = writer_make(read_bytes, sizeof(read_bytes));
    lock_entry_encode(&w, &entry);
    assert_int_equal(decode(read_bytes, writer_len(&w), NULL), 0);
    read_bytes[at_kind] = LOCK_KIND_N;
    assert_true(decode(read_bytes, writer_len(&w), &e) < 0);
    assert_non_null(strstr(e.text, "of the kind 16; 1 to 15 are known"));
    read_bytes[at_kind] = LOCK_RULE_END;
    read_bytes[writer_len(&w) - 1] = LOCK_SIGNATURES_MAX + 1;
    assert_true(decode(read_bytes, writer_len(&w), &e) < 0);
    assert_non_null(strstr(e.text, "more than 16 signatures"));
    read_bytes[0] = 'W';
    assert_true(decode(read_bytes, writer_len(&w), &e) < 0);
    assert_non_null(strstr(e.text, "does not begin with \"weft lock entry 1\""));
}

static void test_signatures_in_order(void **state)
{
    struct lock_entry entry = {
        .network = "lab", .body = {.kind = LOCK_RULE_END, .rule_end = "all"}, .made_at = 5};
    struct err e = ERR_NULL;
    struct writer w;
    char name[8];

    (void)state;
    for (unsigned i = 0; i < 2 * LOCK_SIGNATURES_MAX; i++) {
        struct ed25519_secret secret;

        (void)snprintf(name, sizeof(name), "s%u", i % LOCK_SIGNATURES_MAX);
        secret = sample_lock_secret(name);
        assert_int_equal(lock_entry_sign(&entry, &secret, NULL), 0);
    }
    assert_int_equal(entry.n_signatures, LOCK_SIGNATURES_MAX);
    assert_int_equal(lock_entry_verify(&entry, ed25519_verify, NULL), 0);
    {
        struct ed25519_secret secret = sample_lock_secret("one more");

        assert_true(lock_entry_sign(&entry, &secret, &e) < 0);
        assert_non_null(strstr(e.text, "has 16 signatures, and no more are allowed"));
    }
    entry.signatures[3] = entry.signatures[2];
    w = writer_make(read_bytes, sizeof(read_bytes));
    lock_entry_encode(&w, &entry);
    assert_true(decode(read_bytes, writer_len(&w), &e) < 0);
    assert_non_null(strstr(e.text, "are not in the order of their keys"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_each_byte_counts),
        cmocka_unit_test(test_signers_that_are_none),
        cmocka_unit_test(test_nodes_that_are_none),
        cmocka_unit_test(test_other_bodies_that_are_none),
        cmocka_unit_test(test_one_spelling),
        cmocka_unit_test(test_frames_that_are_none),
        cmocka_unit_test(test_signatures_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
