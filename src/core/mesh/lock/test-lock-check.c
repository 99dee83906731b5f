/* test-lock-check.c - what a hub says, against what operators have signed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/secret.h"
#include "mesh/lock/lock_check.h"
#include "mesh/object/rule.h"
#include "test/support/sample_lock.h"

#define BODY(k, ...) ((struct lock_body){.kind = (k), __VA_ARGS__})
#define BY           "alice bob"
#define ROTATION     604800 /* s; of the sample's settings */
#define TRUST        86400

/* A lock with a hub, of which gpu-1 has something of everything. */
struct sample {
    struct sample_lock lock;
    struct lock_facts facts;
    uint64_t seed;
};

static struct node make_gpu(void)
{
    struct node n = sample_lock_node("gpu-1", 2);

    sample_lock_label(&n, "role", "gpu");
    sample_lock_route(&n, "10.9.0.0/24");
    (void)snprintf(n.island, sizeof(n.island), "east");
    return n;
}

static struct node make_hub(void)
{
    struct node n = sample_lock_node("hub-1", 1);

    n.hub = calloc(1, sizeof(*n.hub));
    assert_non_null(n.hub);
    n.hub->n_endpoints = 1;
    n.hub->api_port = 8443;
    n.hub->has_tls_pin = true;
    assert_int_equal(endpoint_parse(&n.hub->endpoints[0], "192.0.2.1:51820", NULL), 0);
    return n;
}

static void begin(struct sample *s)
{
    *s = (struct sample){.seed = 9};
    sample_lock_begin(&s->lock);
    sample_lock_put_node(&s->lock, make_gpu());
    sample_lock_put_node(&s->lock, make_hub());
    s->facts.now = s->lock.now;
}

static void end(struct sample *s)
{
    sample_lock_deinit(&s->lock);
}

/* @words: NULL: it is accepted. */
static void expect(int r, const struct err *e, const char *words)
{
    if (!words) {
        if (r != 0)
            fail_msg("\"%s\"", err_text(e));
        return;
    }
    if (r == 0)
        fail_msg("accepted, instead of \"%s\"", words);
    if (!strstr(e->text, words))
        fail_msg("\"%s\" instead of \"%s\"", e->text, words);
}

static void expect_node(const struct sample *s, const struct node *n, const char *words)
{
    struct object o = {.kind = &node_kind, .node = *n};
    struct err e = ERR_NULL;
    struct err same = ERR_NULL;
    int r = lock_check_node(&s->lock.chain, n, &s->facts, &e);

    expect(r, &e, words);
    assert_int_equal(lock_check_object(&s->lock.chain, &o, &s->facts, &same), r);
    assert_string_equal(same.text, e.text);
}

/* ---- fields ---- */

static void change_key(struct node *n)
{
    n->key = sample_lock_key("mallory");
}

static void change_address4(struct node *n)
{
    n->address4.b[15] = 9;
}

static void change_address6(struct node *n)
{
    n->address6.b[15] = 9;
}

static void add_route(struct node *n)
{
    sample_lock_route(n, "10.99.0.0/24");
}

static void drop_routes(struct node *n)
{
    free(n->routes);
    n->routes = NULL;
}

static void change_label(struct node *n)
{
    (void)snprintf(n->labels[0].value, sizeof(n->labels[0].value), "admin");
}

static void leave_island(struct node *n)
{
    n->island[0] = '\0';
}

static void become_relay(struct node *n)
{
    n->relay = true;
}

static void become_stock(struct node *n)
{
    n->stock = true;
}

static void become_ephemeral(struct node *n)
{
    n->ephemeral = true;
}

static void become_hub(struct node *n)
{
    n->hub = make_hub().hub;
}

static void test_each_field_of_a_node(void **state)
{
    static const struct {
        void (*change)(struct node *n);
        const char *words;
    } rows[] = {
        {change_key, "node \"gpu-1\": its \"key\" is "},
        {change_address4,
            "node \"gpu-1\": its \"IPv4 address\" is 10.7.0.9, and 10.7.0.2 is signed"},
        {change_address6, "its \"IPv6 address\" is fd07::9, and fd07::2 is signed"},
        {add_route, "its \"routes\" is 10.9.0.0/24, 10.99.0.0/24, and 10.9.0.0/24 is signed"},
        {drop_routes, "its \"routes\" is none, and 10.9.0.0/24 is signed"},
        {change_label, "its \"labels\" is role=admin, and role=gpu is signed"},
        {leave_island, "its \"island\" is none, and east is signed"},
        {become_relay, "its \"relay\" is yes, and no is signed"},
        {become_stock, "its \"stock\" is yes, and no is signed"},
        {become_ephemeral, "its \"ephemeral\" is yes, and no is signed"},
        {become_hub, "its \"hub\" is yes, and no is signed"},
    };
    struct sample s;

    (void)state;
    begin(&s);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct node n = make_gpu();

        expect_node(&s, &n, NULL);
        rows[i].change(&n);
        expect_node(&s, &n, rows[i].words);
        node_deinit(&n);
    }
    end(&s);
}

/* What is not signed may be anything. */
static void test_what_is_not_signed(void **state)
{
    struct sample s;
    struct node n = make_gpu();
    struct node hub = make_hub();

    (void)state;
    begin(&s);
    n.drained = strdup("broken");
    n.shows_dscp = true;
    n.status = json_object();
    n.hostname = strdup("machine-7");
    expect_node(&s, &n, NULL);
    hub.hub->rendezvous_epoch = 12;
    expect_node(&s, &hub, NULL);
    node_deinit(&n);
    node_deinit(&hub);
    end(&s);
}

static void test_a_hub(void **state)
{
    struct sample s;
    struct node n = make_hub();

    (void)state;
    begin(&s);
    n.hub->endpoints[0].port = 5;
    expect_node(&s, &n, "its \"hub's endpoints\" is 192.0.2.1:5, and 192.0.2.1:51820 is signed");
    n.hub->endpoints[0].port = 51820;
    n.hub->api_port = 1;
    expect_node(&s, &n, "its \"hub's API port\" is 1, and 8443 is signed");
    n.hub->api_port = 8443;
    n.hub->n_names = 1;
    (void)snprintf(n.hub->names[0], sizeof(n.hub->names[0]), "evil.example.org:1");
    expect_node(&s, &n, "its \"hub's names\" is evil.example.org:1, and none is signed");
    n.hub->n_names = 0;
    n.hub->tls_pin.b[7] = 1;
    expect_node(&s, &n, "its TLS key is not the one that is signed, and its key has signed none");
    n.hub->has_tls_pin = false;
    expect_node(&s, &n, "its TLS key is not the one that is signed, and its key has signed none");
    free(n.hub);
    n.hub = NULL;
    expect_node(&s, &n, "its \"hub\" is no, and yes is signed");
    node_deinit(&n);
    end(&s);
}

static void test_who_is_not_signed(void **state)
{
    struct sample s;
    struct node n = sample_lock_node("gpu-3", 4);

    (void)state;
    begin(&s);
    expect_node(&s, &n, "node \"gpu-3\": nobody has signed it");
    sample_lock_put(&s.lock,
        BODY(LOCK_TOMBSTONE,
            .tombstone = {.name = "gpu-2", .key = sample_lock_key("gpu-2"), .counter = 1}),
        BY);
    n = sample_lock_node("gpu-2", 3);
    expect_node(&s, &n, "node \"gpu-2\": its key is that of a node whose removal is signed");
    end(&s);
}

/* ---- keys that change ---- */

/* The statement @serial of gpu-1 or hub-1: from the key of one name to that of another one. */
static struct key_statement statement(struct sample *s, enum key_kind kind, const char *subject,
    const char *from, const char *to, uint64_t serial)
{
    struct key_statement made = {.kind = kind, .network = "lab", .serial = serial, .made_at = 1};
    struct x25519_secret old_secret = sample_lock_node_secret(from);
    struct x25519_secret new_secret = sample_lock_node_secret(to);
    struct rng rng = rng_seeded(&s->seed);

    (void)snprintf(made.subject, sizeof(made.subject), "%s", subject);
    made.old_key = sample_lock_key(from);
    if (kind == KEY_KIND_TLS)
        memcpy(made.pin.b, new_secret.b, sizeof(made.pin.b));
    else
        made.new_key = sample_lock_key(to);
    assert_int_equal(key_statement_sign(&made, &old_secret, &new_secret, &rng, NULL), 0);
    return made;
}

static void test_a_key_that_follows(void **state)
{
    struct sample s;
    struct node n = make_gpu();
    struct key_statement chain[3];

    (void)state;
    begin(&s);
    chain[0] = statement(&s, KEY_KIND_NODE, "gpu-1", "gpu-1 before", "gpu-1", 4);
    chain[1] = statement(&s, KEY_KIND_NODE, "gpu-1", "gpu-1", "gpu-1 second", 5);
    chain[2] = statement(&s, KEY_KIND_NODE, "gpu-1", "gpu-1 second", "gpu-1 third", 6);
    n.key = sample_lock_key("gpu-1 third");
    s.facts.statements = chain;
    s.facts.n_statements = 3;
    expect_node(&s, &n, NULL);
    s.facts.n_statements = 2;
    expect_node(&s, &n, "statements lead from its signed key to another one than its own");
    s.facts.n_statements = 3;
    /* All else is held to what is signed. */
    change_address4(&n);
    expect_node(&s, &n, "its \"IPv4 address\" is 10.7.0.9, and 10.7.0.2 is signed");
    n.address4.b[15] = 2;
    chain[2].by_new.b[3] ^= 1;
    expect_node(&s, &n, "node \"gpu-1\": its key is not the one that is signed: statement 6");
    chain[2] = statement(&s, KEY_KIND_HUB, "gpu-1", "gpu-1 second", "gpu-1 third", 6);
    expect_node(&s, &n, "its key is not the one that is signed");
    chain[2] = statement(&s, KEY_KIND_NODE, "gpu-2", "gpu-1 second", "gpu-1 third", 6);
    expect_node(&s, &n, "its key is not the one that is signed");
    chain[2] = statement(&s, KEY_KIND_NODE, "gpu-1", "gpu-1 second", "gpu-2", 6);
    n.key = sample_lock_key("gpu-2");
    expect_node(&s, &n, "node \"gpu-1\": its key is another node's, or was");
    node_deinit(&n);
    end(&s);
}

/* When operators sign the new key, the old one and its statements say nothing any more. */
static void test_an_old_key(void **state)
{
    struct sample s;
    struct node n = make_gpu();
    struct node resigned = make_gpu();
    struct key_statement chain[1];

    (void)state;
    begin(&s);
    chain[0] = statement(&s, KEY_KIND_NODE, "gpu-1", "gpu-1", "gpu-1 stolen", 1);
    s.facts.statements = chain;
    s.facts.n_statements = 1;
    resigned.key = sample_lock_key("gpu-1 second");
    sample_lock_put_node(&s.lock, resigned);
    expect_node(&s, &n, "no statement leads from the known key of \"gpu-1\" to another");
    n.key = sample_lock_key("gpu-1 stolen");
    expect_node(&s, &n, "no statement leads from the known key of \"gpu-1\" to another");
    n.key = sample_lock_key("gpu-1 second");
    expect_node(&s, &n, NULL);
    node_deinit(&n);
    end(&s);
}

static void test_a_revoked_key_signs_nothing(void **state)
{
    struct sample s;
    struct node n = make_gpu();
    struct node anew = make_gpu();
    struct key_statement chain[2];

    (void)state;
    begin(&s);
    chain[0] = statement(&s, KEY_KIND_NODE, "gpu-1", "gpu-1 anew", "gpu-1 second", 1);
    chain[1] = statement(&s, KEY_KIND_NODE, "gpu-1", "gpu-1 second", "gpu-1 third", 2);
    /* The node is removed when it has its second key, and comes back with the one before. */
    sample_lock_put(&s.lock,
        BODY(LOCK_TOMBSTONE,
            .tombstone = {.name = "gpu-1", .key = sample_lock_key("gpu-1 second"), .counter = 1}),
        BY);
    anew.key = sample_lock_key("gpu-1 anew");
    sample_lock_put_node(&s.lock, anew);
    s.facts.statements = chain;
    s.facts.n_statements = 2;
    n.key = sample_lock_key("gpu-1 third");
    expect_node(&s, &n, "a key on the way to its own was revoked");
    s.facts.n_statements = 1;
    n.key = sample_lock_key("gpu-1 second");
    expect_node(&s, &n, "its key is another node's, or was");
    node_deinit(&n);
    end(&s);
}

static void test_how_long_keys_follow(void **state)
{
    struct sample s;
    struct node n = make_gpu();
    struct key_statement chain[1];
    uint64_t signed_at;

    (void)state;
    begin(&s);
    signed_at = lock_state_node(&s.lock.chain.state, "gpu-1")->signed_at;
    chain[0] = statement(&s, KEY_KIND_NODE, "gpu-1", "gpu-1", "gpu-1 second", 1);
    s.facts.statements = chain;
    s.facts.n_statements = 1;
    n.key = sample_lock_key("gpu-1 second");
    s.facts.now = signed_at + 2 * ROTATION;
    expect_node(&s, &n, NULL);
    s.facts.now++;
    expect_node(&s, &n,
        "node \"gpu-1\": its key was signed 1209601 s ago, and keys that follow it are good for "
        "1209600 s");
    s.facts.is_known = true;
    s.facts.now = signed_at + 2 * ROTATION + TRUST;
    expect_node(&s, &n, NULL);
    s.facts.now++;
    expect_node(&s, &n, "keys that follow it are good for 1296000 s");
    /* The signed key itself is the operators' word. */
    s.facts.is_known = false;
    n.key = sample_lock_key("gpu-1");
    expect_node(&s, &n, NULL);
    /* A clock that is behind that of who has signed. */
    n.key = sample_lock_key("gpu-1 second");
    s.facts.now = 5;
    expect_node(&s, &n, NULL);
    node_deinit(&n);
    end(&s);
}

static void test_without_rotation(void **state)
{
    struct sample s;
    struct node n = make_gpu();
    struct key_statement chain[1];

    (void)state;
    begin(&s);
    sample_lock_put(&s.lock, BODY(LOCK_SETTINGS, .settings = {.trust_for = 5}), BY);
    chain[0] = statement(&s, KEY_KIND_NODE, "gpu-1", "gpu-1", "gpu-1 second", 1);
    s.facts.statements = chain;
    s.facts.n_statements = 1;
    n.key = sample_lock_key("gpu-1 second");
    s.facts.now = SAMPLE_LOCK_UNTIL;
    expect_node(&s, &n, NULL);
    node_deinit(&n);
    end(&s);
}

static void test_keys_of_a_hub(void **state)
{
    struct sample s;
    struct node n = make_hub();
    struct key_statement chain[1];
    struct key_statement tls;
    struct x25519_secret pin = sample_lock_node_secret("pin");

    (void)state;
    begin(&s);
    chain[0] = statement(&s, KEY_KIND_HUB, "hub-1", "hub-1", "hub-1 second", 1);
    tls = statement(&s, KEY_KIND_TLS, "hub-1", "hub-1 second", "pin", 1);
    s.facts.statements = chain;
    s.facts.n_statements = 1;
    n.key = sample_lock_key("hub-1 second");
    expect_node(&s, &n, NULL);
    memcpy(n.hub->tls_pin.b, pin.b, sizeof(pin.b));
    expect_node(&s, &n, "its key has signed none");
    s.facts.tls = &tls;
    expect_node(&s, &n, NULL);
    n.hub->tls_pin.b[0] ^= 1;
    expect_node(&s, &n, "its TLS key is not signed, and what its key has signed is another one");
    n.hub->tls_pin.b[0] ^= 1;
    tls.by_old.b[9] ^= 1;
    expect_node(&s, &n, "its TLS key is not signed: statement 1");
    tls = statement(&s, KEY_KIND_TLS, "hub-1", "hub-1", "pin", 1);
    expect_node(&s, &n, "what its key has signed is another one");
    tls = statement(&s, KEY_KIND_TLS, "hub-2", "hub-1 second", "pin", 1);
    expect_node(&s, &n, "what its key has signed is another one");
    /* The signed key can sign a TLS key as well, and for as long. */
    tls = statement(&s, KEY_KIND_TLS, "hub-1", "hub-1", "pin", 1);
    n.key = sample_lock_key("hub-1");
    expect_node(&s, &n, NULL);
    s.facts.now += 3 * ROTATION;
    expect_node(&s, &n, "keys that follow it are good for");
    node_deinit(&n);
    end(&s);
}

/* ---- the other kinds ---- */

static void expect_edge(const struct sample *s, const struct mesh_edge *edge, const char *words)
{
    struct object o = {.kind = &mesh_edge_kind, .edge = *edge};
    struct err e = ERR_NULL;

    expect(lock_check_edge(&s->lock.chain, edge, &s->facts, &e), &e, words);
    expect(lock_check_object(&s->lock.chain, &o, &s->facts, &e), &e, words);
}

static void test_edges(void **state)
{
    struct sample s;
    struct mesh_edge edge = sample_lock_edge("gpu-1", "gpu-2");
    struct mesh_edge pinned;

    (void)state;
    begin(&s);
    edge.path = EDGE_PATH_RELAY; /* how packets go nobody signs */
    edge.rate = 1000;
    expect_edge(&s, &edge, NULL);
    edge.path = EDGE_PATH_OFF;
    expect_edge(&s, &edge, "edge \"gpu-1--gpu-2\": its \"off\" is yes, and no is signed");
    pinned = sample_lock_edge("gpu-1", "gpu-2");
    pinned.pins[0].key = sample_lock_key("gpu-1");
    expect_edge(&s, &pinned, "its \"pinned keys\" is gpu-1 with ");
    sample_lock_put(&s.lock, BODY(LOCK_EDGE, .edge = pinned), BY);
    expect_edge(&s, &pinned, NULL);
    expect_edge(&s, &edge, "its \"off\" is yes, and no is signed");
    edge.path = EDGE_PATH_AUTO;
    expect_edge(&s, &edge, "its \"pinned keys\" is gpu-1 with any, gpu-2 with any, and gpu-1 with");
    assert_int_equal(endpoint_parse(&pinned.pins[1].endpoint, "192.0.2.7:7", NULL), 0);
    expect_edge(&s, &pinned,
        "its \"pinned endpoints\" is gpu-1 at any, gpu-2 at 192.0.2.7:7, and gpu-1 at any, gpu-2 "
        "at any is signed");
    end(&s);
}

static void expect_rule(const struct sample *s, struct object rule, const char *words)
{
    struct err e = ERR_NULL;

    expect(lock_check_object(&s->lock.chain, &rule, &s->facts, &e), &e, words);
    object_deinit(&rule);
}

static void test_rules(void **state)
{
    struct sample s;
    struct object of_a_job = sample_lock_rule("ssh", "members", "hub", "tcp/22");
    struct rule *rule = of_a_job.plain.spec;

    (void)state;
    begin(&s);
    expect_rule(&s, sample_lock_rule("ssh", "members", "hub", "tcp/22"),
        "rule \"ssh\" is signed by nobody");
    sample_lock_put(
        &s.lock, BODY(LOCK_RULE, .rule = sample_lock_rule("ssh", "members", "hub", "tcp/22")), BY);
    expect_rule(&s, sample_lock_rule("ssh", "members", "hub", "tcp/22"), NULL);
    expect_rule(&s, sample_lock_rule("ssh", "hub", "hub", "tcp/22"),
        "rule \"ssh\": its \"from\" is hub, and members is signed");
    expect_rule(&s, sample_lock_rule("ssh", "members", "members", "tcp/22"),
        "its \"to\" is members, and hub is signed");
    expect_rule(&s, sample_lock_rule("ssh", "members", "hub", "tcp"),
        "its \"allows\" is tcp, and tcp/22 is signed");
    (void)snprintf(rule->job, sizeof(rule->job), "train");
    rule->run = 1;
    expect_rule(&s, of_a_job, "rule \"ssh\" is of the job \"train\", and signed by nobody");
    end(&s);
}

static void expect_network(const struct sample *s, const struct network *n, const char *words)
{
    struct object o = {.kind = &network_kind, .network = *n};
    struct err e = ERR_NULL;

    expect(lock_check_object(&s->lock.chain, &o, &s->facts, &e), &e, words);
}

static void test_the_network(void **state)
{
    struct sample s;
    struct lock_genesis g = sample_lock_genesis();
    struct network signed_as = NETWORK_NULL;
    struct network n;

    (void)state;
    begin(&s);
    (void)snprintf(signed_as.meta.name, sizeof(signed_as.meta.name), "lab");
    signed_as.cidr4 = g.cidr4;
    signed_as.cidr6 = g.cidr6;
    signed_as.topology = g.settings.topology;
    signed_as.cipher = g.settings.cipher;
    signed_as.isolation = g.settings.isolation;
    signed_as.key_rotation = g.settings.key_rotation;
    signed_as.mtu = 1400;
    expect_network(&s, &signed_as, NULL);
    n = signed_as;
    n.cidr4.len = 15;
    expect_network(&s, &n, "network \"lab\": its block is 10.7.0.0/15, and 10.7.0.0/16 is signed");
    n = signed_as;
    n.cidr6.len = 63;
    expect_network(&s, &n, "its block is fd07::/63, and fd07::/64 is signed");
    n = signed_as;
    n.topology = TOPOLOGY_AUTO;
    expect_network(&s, &n, "its \"topology\" is auto, and hub is signed");
    n = signed_as;
    n.cipher = CIPHER_AUTO;
    expect_network(&s, &n, "its \"cipher\" is auto, and aes256gcm is signed");
    n = signed_as;
    n.isolation = ISOLATION_OPEN;
    expect_network(&s, &n, "its \"isolation\" is open, and strict is signed");
    n = signed_as;
    n.key_rotation = 0;
    expect_network(&s, &n, "its \"key rotation\" is never, and ");
    n = signed_as;
    (void)snprintf(n.meta.name, sizeof(n.meta.name), "lab2");
    expect_network(&s, &n, "network \"lab2\" is not \"lab\", whose lock this is");
    end(&s);
}

/* ---- removals ---- */

static void expect_gone(
    const struct sample *s, const struct object_kind *kind, const char *name, const char *words)
{
    struct err e = ERR_NULL;

    expect(lock_check_gone(&s->lock.chain, kind, name, &e), &e, words);
}

static void test_removals(void **state)
{
    struct sample s;
    struct mesh_edge off = sample_lock_edge("gpu-1", "gpu-2");
    struct node spot = sample_lock_node("spot-1", 9);

    (void)state;
    begin(&s);
    expect_gone(&s, &node_kind, "gpu-2",
        "Node \"gpu-2\" is said to be removed, and nobody has signed that");
    expect_gone(&s, &node_kind, "gpu-9", NULL);
    spot.ephemeral = true;
    sample_lock_put_node(&s.lock, spot);
    expect_gone(&s, &node_kind, "spot-1", NULL);
    expect_gone(&s, &mesh_edge_kind, "gpu-1--gpu-2", NULL);
    off.path = EDGE_PATH_OFF;
    sample_lock_put(&s.lock, BODY(LOCK_EDGE, .edge = off), BY);
    expect_gone(&s, &mesh_edge_kind, "gpu-1--gpu-2", "MeshEdge \"gpu-1--gpu-2\" is said to be");
    expect_gone(&s, &mesh_edge_kind, "gpu-1", NULL);
    expect_gone(&s, &rule_kind, "ssh", NULL);
    sample_lock_put(
        &s.lock, BODY(LOCK_RULE, .rule = sample_lock_rule("ssh", "members", "hub", "tcp/22")), BY);
    expect_gone(&s, &rule_kind, "ssh", "Rule \"ssh\" is said to be removed");
    sample_lock_put(&s.lock, BODY(LOCK_RULE_END, .rule_end = "ssh"), BY);
    expect_gone(&s, &rule_kind, "ssh", NULL);
    sample_lock_put(&s.lock,
        BODY(LOCK_TOMBSTONE,
            .tombstone = {.name = "gpu-2", .key = sample_lock_key("gpu-2"), .counter = 1}),
        BY);
    expect_gone(&s, &node_kind, "gpu-2", NULL);
    end(&s);
}

/* ---- time ---- */

static void test_expiry(void **state)
{
    struct sample s;
    struct node n = make_gpu();
    struct lock_chain none;
    struct err e = ERR_NULL;

    (void)state;
    begin(&s);
    s.facts.now = SAMPLE_LOCK_UNTIL;
    expect_node(&s, &n, NULL);
    s.facts.now++;
    expect_node(&s, &n,
        "the lock of \"lab\" has expired 1 s ago: nothing new is believed until an operator renews "
        "it");
    s.facts.is_known = true;
    expect_node(&s, &n, NULL);
    s.facts.now = SAMPLE_LOCK_UNTIL + TRUST;
    expect_node(&s, &n, NULL);
    s.facts.now++;
    expect_node(&s, &n,
        "the lock of \"lab\" has expired 86401 s ago, and nobody is believed for longer than 86400 "
        "s after that");
    /* A clock that is behind: operators have signed something since then. */
    s.facts = (struct lock_facts){.now = 5};
    expect_node(&s, &n, NULL);
    s.lock.now = SAMPLE_LOCK_UNTIL + 3;
    sample_lock_put(&s.lock,
        BODY(LOCK_TOMBSTONE,
            .tombstone = {.name = "gpu-2", .key = sample_lock_key("gpu-2"), .counter = 1}),
        BY);
    expect_node(&s, &n, "the lock of \"lab\" has expired 3 s ago: nothing new is believed");
    lock_chain_init(&none, "lab", NULL);
    expect(lock_check_node(&none, &n, &s.facts, &e), &e, "the lock of \"lab\" has no entry yet");
    node_deinit(&n);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_field_of_a_node),
        cmocka_unit_test(test_what_is_not_signed),
        cmocka_unit_test(test_a_hub),
        cmocka_unit_test(test_who_is_not_signed),
        cmocka_unit_test(test_a_key_that_follows),
        cmocka_unit_test(test_an_old_key),
        cmocka_unit_test(test_a_revoked_key_signs_nothing),
        cmocka_unit_test(test_how_long_keys_follow),
        cmocka_unit_test(test_without_rotation),
        cmocka_unit_test(test_keys_of_a_hub),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_the_network),
        cmocka_unit_test(test_removals),
        cmocka_unit_test(test_expiry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
