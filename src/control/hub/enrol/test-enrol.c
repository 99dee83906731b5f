/* test-enrol.c - who gets in, what they get, and what those are told who do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/enrol/enrol.h"
#include "os/rng_kernel.h"
#include "store/store_open.h"
#include "test/support/sample_enrol.h"
#include "test/support/sample_late.h"

#define WALL 1790000000

/* ---- a hub's model without the hub ---------------------------------------------------------- */

static struct x25519_secret hub_secret;
static struct x25519_public hub_public;

static int give_key(void *ctx, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    *ret = hub_secret;
    return 0;
}

static void on_network(void *ctx, struct model_network *net)
{
}

static void on_node(void *ctx, struct model_node *node)
{
}

static void on_node_removed(void *ctx, struct model_node *node)
{
    model_bury(node);
}

static void on_node_changed(void *ctx, struct model_node *node, const struct node *before)
{
}

static void on_edge(void *ctx, struct model_edge *edge, enum edge_path before)
{
}

static void on_object(
    void *ctx, struct model_network *net, const struct object *before, const struct object *now)
{
}

static bool may_fail; /* the store loses what it is given */

static void on_broken(void *ctx, const char *key, const struct err *e)
{
    if (may_fail)
        return;
    fail_msg("%s: %s", key, err_text(e));
}

static const struct model_listener listener = {
    .network_key = give_key,
    .network_added = on_network,
    .network_changed = on_network,
    .network_removed = on_network,
    .node_added = on_node,
    .node_changed = on_node_changed,
    .node_removed = on_node_removed,
    .edge_changed = on_edge,
    .object_changed = on_object,
    .broken = on_broken,
};

struct fixture {
    struct store *store;
    struct model model;
    struct enrol enrol;
    struct rng rng;
    struct err e;
    uint8_t next_key;
    struct token_secret secret;
    struct model_node *node; /* the last one that got in */
};

/* On its way to the store: the model does not know of it. */
static void put_soon(
    struct fixture *f, enum record_kind kind, const char *network, const char *name, char *value)
{
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = value ? STORE_OP_PUT : STORE_OP_DELETE,
        .key = record_key(key, kind, network, name),
        .value = value,
        .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_commit(f->store, &op, 1, 0, NULL, NULL, &f->e), 0);
    free(value);
}

static void put(
    struct fixture *f, enum record_kind kind, const char *network, const char *name, char *value)
{
    put_soon(f, kind, network, name, value);
    store_wait(f->store);
}

static void add_network(struct fixture *f, const char *name, const char *cidr4)
{
    struct network n = {.mtu = NETWORK_MTU_DEFAULT};

    (void)snprintf(n.meta.name, sizeof(n.meta.name), "%s", name);
    assert_int_equal(ip_prefix_parse(&n.cidr4, cidr4, NULL), 0);
    assert_int_equal(ip_prefix_parse(&n.cidr6, "fd00::/64", NULL), 0);
    put(f, RECORD_NETWORK, name, "", record_network_encode(&n, &hub_public));
    put(f, RECORD_IPAM, name, "", record_ipam_encode(2, 1));
}

static void load(struct fixture *f)
{
    model_init(&f->model, f->store, &listener, 1);
    assert_int_equal(model_load(&f->model, &f->e), 0);
    enrol_init(&f->enrol, &f->model, &f->rng);
}

/* @f has its store. */
static int begin(struct fixture *f, void **state)
{
    f->rng = rng_kernel();
    x25519_secret_make(&hub_secret, &f->rng);
    assert_true(x25519_derive_public(&hub_secret, &hub_public));
    load(f);
    add_network(f, "default", "10.42.0.0/16");
    *state = f;
    return 0;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_int_equal(store_open(&f->store, "memory:", 0, &f->e), 0);
    return begin(f, state);
}

static int setup_late(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->store = sample_late_open(7, 0);
    return begin(f, state);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    enrol_deinit(&f->enrol);
    model_deinit(&f->model);
    store_free(f->store);
    free(f);
    return 0;
}

static void new_token(struct fixture *f, const char *network, uint32_t uses, bool ephemeral)
{
    struct token_request rq = {.ttl_seconds = 3600, .uses = uses, .ephemeral = ephemeral};
    struct model_network *net = model_find_network(&f->model, network);

    assert_int_equal(sample_enrol_token(&f->enrol, net, &rq, WALL, &f->secret, &f->e), 0);
}

static struct x25519_secret secret_of(uint8_t n)
{
    /* Not in the lowest byte, whose lowest bits do not count. */
    struct x25519_secret secret = {{0, n}};

    x25519_secret_clamp(&secret);
    return secret;
}

static struct x25519_public key_of(uint8_t n)
{
    struct x25519_secret secret = secret_of(n);
    struct x25519_public key;

    assert_true(x25519_derive_public(&secret, &key));
    return key;
}

/* The proof that the machine with key @n makes. */
static struct enrol_proof proof_by(uint8_t n)
{
    struct enrol_proof proof = {
        .request = {.method = "POST", .path = "/v1/enrol", .body = "{}", .body_len = 2}};
    struct x25519_secret secret = secret_of(n);
    struct x25519_public public = key_of(n);
    struct member_proof_key key;

    assert_true(member_proof_key_make(&key, &secret, &hub_public, &public));
    assert_true(member_proof_make(&proof.proof, &key, &proof.request));
    return proof;
}

/* Ask for the machine with key @n under @name ("": none). */
static int ask(
    struct fixture *f, uint8_t n, const char *name, const struct enrol_proof *proof, int64_t wall)
{
    struct enrol_request rq = {.secret = f->secret, .key = key_of(n)};

    (void)snprintf(rq.name, sizeof(rq.name), "%s", name);
    f->e = (struct err)ERR_NULL;
    return sample_enrol_node(
        &f->enrol, &rq, proof, &(struct ip_addr){{0}}, NSEC_PER_SEC, wall, &f->node, &f->e);
}

/* Enrol the machine with key @n under @name ("": none). */
static int enter_at(struct fixture *f, uint8_t n, const char *name, int64_t wall)
{
    struct enrol_proof proof = proof_by(n);

    return ask(f, n, name, &proof, wall);
}

static int enter(struct fixture *f, uint8_t n, const char *name)
{
    return enter_at(f, n, name, WALL);
}

static void assert_address(const struct fixture *f, const char *v4, const char *v6)
{
    char text[IP_ADDR_TEXT_MAX];

    assert_string_equal(ip_addr_format(&f->node->pub.spec.address4, text), v4);
    assert_string_equal(ip_addr_format(&f->node->pub.spec.address6, text), v6);
}

/* ---- the tests ------------------------------------------------------------------------------ */

static void test_enters(void **state)
{
    struct fixture *f = *state;

    new_token(f, "default", 1, false);
    assert_int_equal(enter(f, 1, "gpu-1"), 0);
    assert_string_equal(f->node->pub.spec.meta.name, "gpu-1");
    assert_address(f, "10.42.0.2", "fd00::2");
    new_token(f, "default", 1, false);
    assert_int_equal(enter(f, 2, ""), 0);
    assert_memory_equal(f->node->pub.spec.meta.name, "node-", 5);
    assert_address(f, "10.42.0.3", "fd00::3");
    assert_int_equal(store_due(f->store) > 3600 * NSEC_PER_SEC, 1);
}

static void test_asking_again(void **state)
{
    struct fixture *f = *state;
    struct model_node *first;

    new_token(f, "default", 1, false);
    assert_int_equal(enter(f, 1, "gpu-1"), 0);
    first = f->node;
    /* The token is used up, and still the same machine gets the same answer. */
    assert_int_equal(enter(f, 1, "gpu-1"), 0);
    assert_ptr_equal(f->node, first);
    assert_int_equal(enter(f, 1, ""), 0);
    assert_ptr_equal(f->node, first);
    assert_int_equal(enter(f, 1, "other"), ENROL_E_TAKEN);
    assert_string_equal(f->e.text, "this machine is node \"gpu-1\" already, not \"other\"");
    assert_int_equal(enter(f, 2, ""), ENROL_E_DENIED);
    assert_non_null(strstr(f->e.text, "used up"));
    /* Another token does not make it another node. */
    new_token(f, "default", 1, false);
    assert_int_equal(enter(f, 1, ""), ENROL_E_TAKEN);
    assert_non_null(strstr(f->e.text, "\"gpu-1\""));
}

/* Who has the token and a member's public key, which is no secret, is told nothing of that member.
 */
static void test_asking_for_another(void **state)
{
    struct enrol_proof other = proof_by(2);
    struct fixture *f = *state;

    new_token(f, "default", 9, false);
    /* A machine of which only the public key is known here, as a stock WireGuard's is. */
    assert_int_equal(ask(f, 1, "gpu-1", NULL, WALL), 0);
    f->node = NULL;
    assert_int_equal(ask(f, 1, "gpu-1", NULL, WALL), ENROL_E_TAKEN);
    assert_string_equal(f->e.text,
        "a node of network \"default\" has this public key already, and the request does not prove "
        "to come from it");
    assert_int_equal(ask(f, 1, "", &other, WALL), ENROL_E_DENIED);
    assert_non_null(strstr(f->e.text, "does not prove"));
    assert_null(f->node);
    assert_int_equal(enter(f, 1, ""), 0);
    assert_string_equal(f->node->pub.spec.meta.name, "gpu-1");
    /* A wrong proof is worse than none, the first time, too. */
    assert_int_equal(ask(f, 3, "", &other, WALL), ENROL_E_DENIED);
    assert_int_equal(ask(f, 3, "", NULL, WALL), 0);
}

static void test_uses(void **state)
{
    struct fixture *f = *state;

    new_token(f, "default", 3, false);
    for (uint8_t i = 1; i <= 3; i++)
        assert_int_equal(enter(f, i, ""), 0);
    assert_int_equal(enter(f, 2, ""), 0);
    assert_int_equal(enter(f, 4, ""), ENROL_E_DENIED);
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;

    memset(f->secret.b, 7, sizeof(f->secret.b));
    assert_int_equal(enter(f, 1, ""), ENROL_E_DENIED);
    assert_non_null(strstr(f->e.text, "does not know this token"));
    new_token(f, "default", 9, false);
    assert_int_equal(enter_at(f, 1, "", WALL + 3600), ENROL_E_DENIED);
    assert_non_null(strstr(f->e.text, "expired 0 s ago"));
    assert_int_equal(enter_at(f, 1, "", WALL + 3599), 0);
    assert_int_equal(enter_at(f, 1, "", WALL + 3700), ENROL_E_DENIED);
    assert_int_equal(enter(f, 2, "a"), 0);
    assert_int_equal(enter(f, 3, "a"), ENROL_E_TAKEN);
    assert_string_equal(f->e.text,
        "network \"default\" has a node \"a\" already: choose another name, or, if that machine is "
        "gone, \"weft node rm a --network default\" on the hub makes room");
}

/* A name by which programs reach something else, on every member that has it in its hosts file. */
static void test_reserved_names(void **state)
{
    static const char *const reserved[] = {"localhost", "hub", "registry", "ip6-localhost", "127"};
    struct fixture *f = *state;

    new_token(f, "default", 1, false);
    for (unsigned i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
        assert_int_equal(enter(f, 1, reserved[i]), -EINVAL);
        assert_non_null(strstr(f->e.text, reserved[i]));
    }
    /* It has cost no use. */
    assert_int_equal(enter(f, 1, "registry-1"), 0);
}

static void test_labels(void **state)
{
    struct fixture *f = *state;
    struct enrol_request rq = {.key = key_of(1)};
    json_t *good = json_pack("{s:s}", "gpu", "h100");
    json_t *bad = json_pack("{s:s}", "white space", "x");
    struct ip_addr from = {{0}};

    new_token(f, "default", 1, false);
    rq.secret = f->secret;
    rq.labels = bad;
    assert_true(sample_enrol_node(&f->enrol, &rq, NULL, &from, 0, WALL, &f->node, &f->e) < 0);
    assert_non_null(strstr(f->e.text, "white space"));
    /* It has cost no use. */
    rq.labels = good;
    assert_int_equal(sample_enrol_node(&f->enrol, &rq, NULL, &from, 0, WALL, &f->node, &f->e), 0);
    assert_int_equal(f->node->pub.spec.n_labels, 1);
    assert_string_equal(f->node->pub.spec.labels[0].value, "h100");
    json_decref(good);
    json_decref(bad);
}

static void test_network_gone(void **state)
{
    struct fixture *f = *state;

    new_token(f, "default", 9, false);
    put(f, RECORD_NETWORK, "default", "", NULL);
    assert_int_equal(enter(f, 1, ""), ENROL_E_GONE);
    assert_non_null(strstr(f->e.text, "\"default\""));
    /* Another network of that name is another network. */
    x25519_secret_make(&hub_secret, &f->rng);
    assert_true(x25519_derive_public(&hub_secret, &hub_public));
    add_network(f, "default", "10.42.0.0/16");
    assert_int_equal(enter(f, 1, ""), ENROL_E_GONE);
}

static void test_full(void **state)
{
    struct fixture *f = *state;

    add_network(f, "small", "10.9.0.0/29");
    new_token(f, "small", 9, false);
    for (uint8_t i = 1; i <= 5; i++)
        assert_int_equal(enter(f, i, ""), 0);
    assert_address(f, "10.9.0.6", "fd00::6");
    /* Number 1 is the hub's own, which this test has not made; then nothing is left. */
    assert_int_equal(ipam_take(&model_find_network(&f->model, "small")->ipam, IPAM_HUB), 0);
    assert_int_equal(enter(f, 6, ""), ENROL_E_FULL);
    assert_string_equal(f->e.text, "network \"small\" has no address left: its 6 are in use");
}

static void test_kept_over_a_restart(void **state)
{
    struct fixture *f = *state;

    new_token(f, "default", 9, false);
    assert_int_equal(enter(f, 1, "a"), 0);
    assert_int_equal(enter(f, 2, "b"), 0);
    put(f, RECORD_NODE, "default", "b", NULL);
    enrol_deinit(&f->enrol);
    model_deinit(&f->model);
    load(f);
    assert_int_equal(enter(f, 1, ""), 0);
    assert_string_equal(f->node->pub.spec.meta.name, "a");
    assert_address(f, "10.42.0.2", "fd00::2");
    /* The removed node's address is not given out again. */
    assert_int_equal(enter(f, 3, "c"), 0);
    assert_address(f, "10.42.0.4", "fd00::4");
}

/* Another hub on the same store was quicker. */
static void test_race(void **state)
{
    struct fixture *f = *state;

    new_token(f, "default", 1, false);
    put_soon(f, RECORD_IPAM, "default", "", record_ipam_encode(77, 76));
    assert_int_equal(enter(f, 1, ""), 0);
    assert_address(f, "10.42.0.77", "fd00::4d");
}

static void test_relay(void **state)
{
    struct token_request rq = {.ttl_seconds = 3600, .uses = 1, .relay = true};
    struct fixture *f = *state;

    assert_int_equal(sample_enrol_token(&f->enrol, model_find_network(&f->model, "default"), &rq,
                         WALL, &f->secret, &f->e),
        0);
    assert_int_equal(enter(f, 1, "r1"), 0);
    assert_true(f->node->pub.spec.relay);
    new_token(f, "default", 1, false);
    assert_int_equal(enter(f, 2, "plain"), 0);
    assert_false(f->node->pub.spec.relay);
}

static void new_routed_token(struct fixture *f, const char *routes)
{
    struct token_request rq = {.ttl_seconds = 3600, .uses = 10};

    assert_int_equal(subnets_parse(&rq.routes, routes, &f->e), 0);
    assert_int_equal(sample_enrol_token(&f->enrol, model_find_network(&f->model, "default"), &rq,
                         WALL, &f->secret, &f->e),
        0);
}

/* @name asks for @routes; as enter(). */
static int enter_asking(struct fixture *f, uint8_t n, const char *name, const char *routes)
{
    struct enrol_request rq = {.secret = f->secret, .key = key_of(n)};
    struct enrol_proof proof = proof_by(n);

    (void)snprintf(rq.name, sizeof(rq.name), "%s", name);
    assert_int_equal(subnets_parse(&rq.routes, routes, &f->e), 0);
    return sample_enrol_node(
        &f->enrol, &rq, &proof, &(struct ip_addr){{0}}, NSEC_PER_SEC, WALL, &f->node, &f->e);
}

/* A node has what it asks for and its token admits, and nothing of another one's. */
static void test_routes(void **state)
{
    struct fixture *f = *state;
    char text[SUBNETS_TEXT_MAX];

    new_token(f, "default", 1, false);
    assert_int_equal(enter_asking(f, 1, "plain", "10.9.0.0/24"), 0);
    assert_null(f->node->pub.spec.routes);
    new_routed_token(f, "10.9.0.0/16,fd09::/64");
    assert_int_equal(enter_asking(f, 2, "r1", "10.9.1.0/24,10.8.0.0/24,fd09::/64"), 0);
    assert_non_null(f->node->pub.spec.routes);
    assert_string_equal(subnets_format(f->node->pub.spec.routes, text), "10.9.1.0/24, fd09::/64");
    assert_int_equal(enter_asking(f, 3, "r2", "10.9.1.128/25"), ENROL_E_TAKEN);
    assert_string_equal(f->e.text,
        "route 10.9.1.128/25 overlaps 10.9.1.0/24, which is reached through node \"r1\": \"weft "
        "node set r1 --no-route 10.9.1.0/24\" takes it from there");
    assert_null(model_find_node(model_find_network(&f->model, "default"), "r2"));
    assert_int_equal(enter_asking(f, 3, "r2", "10.9.0.0/16"), ENROL_E_TAKEN);
    assert_int_equal(enter_asking(f, 3, "r2", "10.42.7.0/24"), -EINVAL);
    /* It may ask for what it does not get. */
    assert_int_equal(enter_asking(f, 3, "r2", "10.8.0.0/24,10.9.2.0/24"), 0);
    assert_string_equal(subnets_format(f->node->pub.spec.routes, text), "10.9.2.0/24");
}

static void test_ephemeral(void **state)
{
    struct fixture *f = *state;

    new_token(f, "default", 1, true);
    assert_int_equal(enter(f, 1, "guest"), 0);
    assert_true(f->node->pub.spec.ephemeral);
    assert_int_equal(store_due(f->store), (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC);
    assert_int_equal(
        model_expire(&f->model, (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC, &f->e), 0);
    store_wait(f->store);
    assert_null(model_find_node(model_find_network(&f->model, "default"), "guest"));
}

/* Whose lease has ended, and who is changed at the same time, is looked at again. */
static void test_expiry_conflicts(void **state)
{
    nsec_t end = (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC;
    struct fixture *f = *state;
    struct model_network *net = model_find_network(&f->model, "default");
    struct node spec;

    new_token(f, "default", 1, true);
    assert_int_equal(enter(f, 1, "guest"), 0);
    spec = f->node->pub.spec;
    spec.ephemeral = false;
    put_soon(f, RECORD_NODE, "default", "guest", record_node_encode(&spec, &f->node->token));
    assert_int_equal(model_expire(&f->model, end, &f->e), 0);
    assert_true(f->node->is_expired);
    store_wait(f->store);
    assert_ptr_equal(model_find_node(net, "guest"), f->node);
    assert_false(f->node->pub.spec.ephemeral);
    /* It stays, so what is known about it is written again. */
    assert_false(f->node->is_expired);
    assert_int_equal(model_expire(&f->model, 2 * end, &f->e), 0);
    store_wait(f->store);
    assert_ptr_equal(model_find_node(net, "guest"), f->node);
}

/* The store takes nothing more: nobody is on the way out. */
static void test_expiry_not_accepted(void **state)
{
    nsec_t end = (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC;
    struct fixture *f = *state;

    new_token(f, "default", 1, true);
    assert_int_equal(enter(f, 1, "guest"), 0);
    for (unsigned i = 0; i < STORE_PENDING_MAX; i++)
        put_soon(f, RECORD_IPAM, "default", "", record_ipam_encode(9, 8));
    assert_true(model_expire(&f->model, end, &f->e) < 0);
    assert_false(f->node->is_expired);
    store_wait(f->store);
    assert_int_equal(model_expire(&f->model, end, &f->e), 0);
    store_wait(f->store);
    assert_null(model_find_node(model_find_network(&f->model, "default"), "guest"));
}

/* The store loses the commit: the node stays, and is as others until the next try. */
static void test_expiry_lost(void **state)
{
    nsec_t end = (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC;
    struct fixture *f = *state;
    struct model_network *net = model_find_network(&f->model, "default");
    unsigned n_stayed = 0;

    new_token(f, "default", 1, true);
    assert_int_equal(enter(f, 1, "guest"), 0);
    may_fail = true;
    sample_late_set_loss(f->store, 1);
    for (unsigned i = 0; i < 20 && model_find_node(net, "guest"); i++) {
        assert_int_equal(model_expire(&f->model, end, &f->e), 0);
        store_wait(f->store);
        n_stayed += model_find_node(net, "guest") != NULL;
        if (model_find_node(net, "guest"))
            assert_false(f->node->is_expired);
    }
    may_fail = false;
    assert_true(n_stayed > 0);
}

static void test_limit_on_failures(void **state)
{
    struct fixture *f = *state;
    struct enrol_request rq = {.key = key_of(1)};
    struct enrol_proof proof = proof_by(1);
    struct ip_addr from;
    struct ip_addr neighbour;
    struct ip_addr other;
    nsec_t now = NSEC_PER_SEC;

    assert_int_equal(ip_addr_parse(&from, "2001:db8::1", NULL), 0);
    assert_int_equal(ip_addr_parse(&neighbour, "2001:db8::2", NULL), 0);
    assert_int_equal(ip_addr_parse(&other, "2001:db8:1::1", NULL), 0);
    for (int i = 0; i < LIMITER_BURST; i++)
        assert_int_equal(sample_enrol_node(&f->enrol, &rq, NULL, &from, now, WALL, &f->node, &f->e),
            ENROL_E_DENIED);
    new_token(f, "default", 1, false);
    rq.secret = f->secret;
    assert_int_equal(sample_enrol_node(&f->enrol, &rq, NULL, &from, now, WALL, &f->node, &f->e),
        ENROL_E_TOO_OFT);
    assert_int_equal(
        sample_enrol_node(&f->enrol, &rq, NULL, &neighbour, now, WALL, &f->node, &f->e),
        ENROL_E_TOO_OFT);
    now += LIMITER_EACH - 1;
    assert_int_equal(sample_enrol_node(&f->enrol, &rq, NULL, &from, now, WALL, &f->node, &f->e),
        ENROL_E_TOO_OFT);
    assert_int_equal(
        sample_enrol_node(&f->enrol, &rq, NULL, &from, now + 1, WALL, &f->node, &f->e), 0);
    assert_int_equal(
        sample_enrol_node(&f->enrol, &rq, &proof, &other, now, WALL, &f->node, &f->e), 0);
}

static void test_limiter_is_bounded(void **state)
{
    struct limiter l;
    struct ip_addr first = ip_addr_v4((const uint8_t[4]){10, 0, 0, 0});

    limiter_init(&l, 1);
    for (int i = 0; i < LIMITER_BURST; i++)
        limiter_failed(&l, &first, NSEC_PER_SEC);
    assert_false(limiter_allows(&l, &first, NSEC_PER_SEC));
    for (unsigned i = 1; i <= LIMITER_SOURCES_MAX; i++) {
        struct ip_addr a = ip_addr_v4((const uint8_t[4]){10, 0, (uint8_t)(i >> 8), (uint8_t)i});

        limiter_failed(&l, &a, NSEC_PER_SEC);
    }
    assert_int_equal(l.sources.n, LIMITER_SOURCES_MAX);
    assert_true(limiter_allows(&l, &first, NSEC_PER_SEC));
    limiter_deinit(&l);
}

/* ---- many at once, on a store that is late, and loses answers ---------------------------------
 */

#define MANY 200

struct many {
    struct fixture *f;
    unsigned n_answers;
    unsigned n_in;
    unsigned n_denied;
    unsigned n_unsure; /* who may ask again */
};

static void on_one(void *ctx, int r, struct model_node *node, const struct err *e)
{
    struct many *m = ctx;

    m->n_answers++;
    m->n_in += r == 0;
    m->n_denied += r == ENROL_E_DENIED;
    m->n_unsure += r == -EAGAIN || r == -EIO;
    assert_true(r == 0 || r == ENROL_E_DENIED || r == -EAGAIN || r == -EIO);
    if (r == 0)
        assert_ptr_equal(model_find_key(node->net, &node->pub.spec.key), node);
}

/* The machine with key @n asks; it is answered later, unless it is known. */
static void ask_soon(struct many *m, unsigned n, const char *name)
{
    struct fixture *f = m->f;
    struct enrol_request rq = {.secret = f->secret, .key = key_of((uint8_t)n)};
    struct enrol_proof proof = proof_by((uint8_t)n);
    struct audit_by by = {.actor = "stranger"};
    struct model_node *node = NULL;
    int r;

    (void)snprintf(rq.name, sizeof(rq.name), "%s", name);
    r = enrol_node(&f->enrol, &rq, &proof, &by, NSEC_PER_SEC, WALL, on_one, m, &node, &f->e);
    if (r != 0 || node)
        on_one(m, r, node, &f->e);
}

/* Each number once, and the network's cursor is behind all of them. */
static void check_numbers(struct fixture *f)
{
    struct model_network *net = model_find_network(&f->model, "default");

    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct node *spec = &model_node_at(net, i)->pub.spec;

        assert_ptr_equal(model_find_address(net, &spec->address4), model_node_at(net, i));
        assert_true(ipam_number(&net->pub.spec.cidr4, &spec->address4) < net->ipam.next);
    }
}

static void test_many_at_once(void **state)
{
    struct fixture *f = *state;
    struct many m = {.f = f};

    /* Fewer uses than machines, and each machine asks twice before it is answered. */
    new_token(f, "default", MANY - 20, false);
    for (unsigned i = 0; i < MANY; i++) {
        ask_soon(&m, i + 1, "");
        ask_soon(&m, i + 1, "");
    }
    assert_int_equal(m.n_in, 0);
    store_wait(f->store);
    assert_int_equal(m.n_answers, 2 * MANY);
    assert_int_equal(m.n_in, 2 * (MANY - 20));
    assert_int_equal(m.n_denied, 2 * 20);
    assert_int_equal(model_find_network(&f->model, "default")->nodes.n, MANY - 20);
    check_numbers(f);
}

/* What the store loses costs no use and no address twice, and whoever asks again gets in once. */
static void test_lost_answers(void **state)
{
    struct fixture *f = *state;
    struct many m = {.f = f};
    char name[16];

    new_token(f, "default", MANY, false);
    sample_late_set_loss(f->store, 3);
    for (unsigned round = 0; round < 20; round++)
        for (unsigned i = 0; i < MANY; i++) {
            (void)snprintf(name, sizeof(name), "gpu-%u", i);
            ask_soon(&m, i + 1, name);
            /* Others change the same keys. */
            if (i % 50 == 0)
                put_soon(f, RECORD_IPAM, "default", "", record_ipam_encode(2 + i, 1 + i));
        }
    store_wait(f->store);
    assert_true(m.n_unsure > 0);
    sample_late_set_loss(f->store, 0);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof(name), "gpu-%u", i);
        ask_soon(&m, i + 1, name);
    }
    store_wait(f->store);
    assert_int_equal(model_find_network(&f->model, "default")->nodes.n, MANY);
    assert_int_equal(m.n_answers, 21 * MANY);
    assert_int_equal(m.n_denied, 0);
    /* All uses are used, and none too often. */
    assert_int_equal(enter(f, MANY + 1, ""), ENROL_E_DENIED);
}

static void test_too_many_wait(void **state)
{
    struct fixture *f = *state;
    struct many m = {.f = f};

    new_token(f, "default", 3000, false);
    for (unsigned i = 0; i < ENROL_WAITING_MAX + 10; i++)
        ask_soon(&m, 1 + i % 250, "");
    assert_int_equal(m.n_unsure, 10);
    assert_non_null(strstr(f->e.text, "1024 machines wait"));
    store_wait(f->store);
    assert_int_equal(m.n_answers, ENROL_WAITING_MAX + 10);
    assert_int_equal(m.n_in, ENROL_WAITING_MAX);
}

#define CASE(test)                                                                                 \
    {#test " (memory)", test, setup, teardown, NULL},                                              \
    {                                                                                              \
#test " (late)", test, setup_late, teardown, NULL                                          \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(test_enters),
        CASE(test_asking_again),
        CASE(test_asking_for_another),
        CASE(test_uses),
        CASE(test_refusals),
        CASE(test_reserved_names),
        CASE(test_labels),
        CASE(test_network_gone),
        CASE(test_full),
        CASE(test_kept_over_a_restart),
        CASE(test_race),
        CASE(test_relay),
        CASE(test_routes),
        CASE(test_ephemeral),
        CASE(test_expiry_conflicts),
        CASE(test_expiry_not_accepted),
        cmocka_unit_test_setup_teardown(test_expiry_lost, setup_late, teardown),
        CASE(test_limit_on_failures),
        CASE(test_many_at_once),
        CASE(test_too_many_wait),
        cmocka_unit_test_setup_teardown(test_lost_answers, setup_late, teardown),
        cmocka_unit_test(test_limiter_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
