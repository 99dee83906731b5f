/* enrolling.c - see enrolling.h. */
#include "test/support/enrolling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backends/store_open.h"
#include "os/clock.h"
#include "test/support/deaf_listener.h"
#include "test/support/sample_enrol.h"
#include "test/support/sample_late.h"

static struct x25519_secret hub_secret;
static struct x25519_public hub_public;

static int give_key(void *ctx, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    *ret = hub_secret;
    return 0;
}

bool enrolling_may_fail;

static void on_broken(void *ctx, const char *key, const struct err *e)
{
    if (enrolling_may_fail)
        return;
    fail_msg("%s: %s", key, err_text(e));
}

void enrolling_put_soon(
    struct enrolling *f, enum record_kind kind, const char *network, const char *name, char *value)
{
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = value ? STORE_OP_PUT : STORE_OP_DELETE,
        .key = record_key(key, kind, network, name),
        .value = value,
        .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_commit(f->store, &op, 1, 0, NULL, NULL, &f->e), 0);
    free(value);
}

void enrolling_put(
    struct enrolling *f, enum record_kind kind, const char *network, const char *name, char *value)
{
    enrolling_put_soon(f, kind, network, name, value);
    store_wait(f->store);
}

void enrolling_add_network(struct enrolling *f, const char *name, const char *cidr4)
{
    struct network_maker maker = {.key = hub_public, .name = HUB_NAME_DEFAULT};
    struct network n = {.mtu = NETWORK_MTU_DEFAULT};

    (void)snprintf(n.meta.name, sizeof(n.meta.name), "%s", name);
    assert_int_equal(ip_prefix_parse(&n.cidr4, cidr4, NULL), 0);
    assert_int_equal(ip_prefix_parse(&n.cidr6, "fd00::/64", NULL), 0);
    enrolling_put(f, RECORD_NETWORK, name, "", record_network_encode(&n, &maker));
    enrolling_put(f, RECORD_IPAM, name, "", record_ipam_encode(2, 1));
}

void enrolling_load(struct enrolling *f)
{
    struct model_listener listener = deaf_listener();

    listener.network_key = give_key;
    listener.broken = on_broken;
    model_init(&f->model, f->store, &listener, 1);
    assert_int_equal(model_load(&f->model, &f->e), 0);
    enrol_init(&f->enrol, &f->model, &f->rng);
}

void enrolling_new_hub_key(struct enrolling *f)
{
    x25519_secret_make(&hub_secret, &f->rng);
    assert_true(x25519_derive_public(&hub_secret, &hub_public));
}

/* @f has its store. */
static int begin(struct enrolling *f, void **state)
{
    f->rng = rng_kernel();
    enrolling_new_hub_key(f);
    enrolling_load(f);
    enrolling_add_network(f, "default", "10.42.0.0/16");
    *state = f;
    return 0;
}

int enrolling_setup(void **state)
{
    struct enrolling *f = calloc(1, sizeof(*f));

    assert_int_equal(store_open(&f->store, "memory:", 0, &f->e), 0);
    return begin(f, state);
}

int enrolling_setup_late(void **state)
{
    struct enrolling *f = calloc(1, sizeof(*f));

    f->store = sample_late_open(7, 0);
    return begin(f, state);
}

int enrolling_teardown(void **state)
{
    struct enrolling *f = *state;

    enrol_deinit(&f->enrol);
    model_deinit(&f->model);
    store_free(f->store);
    free(f);
    return 0;
}

void enrolling_new_token(struct enrolling *f, const char *network, uint32_t uses, bool ephemeral)
{
    struct token_request rq = {.ttl_seconds = 3600, .uses = uses, .ephemeral = ephemeral};
    struct model_network *net = model_find_network(&f->model, network);

    assert_int_equal(sample_enrol_token(&f->enrol, net, &rq, ENROLLING_WALL, &f->secret, &f->e), 0);
}

static struct x25519_secret secret_of(uint8_t n)
{
    /* Not in the lowest byte, whose lowest bits do not count. */
    struct x25519_secret secret = {{0, n}};

    x25519_secret_clamp(&secret);
    return secret;
}

struct x25519_public enrolling_key(uint8_t n)
{
    struct x25519_secret secret = secret_of(n);
    struct x25519_public key;

    assert_true(x25519_derive_public(&secret, &key));
    return key;
}

struct enrol_proof enrolling_proof(uint8_t n)
{
    struct enrol_proof proof = {
        .request = {.method = "POST", .path = "/v1/enrol", .body = "{}", .body_len = 2}};
    struct x25519_secret secret = secret_of(n);
    struct x25519_public public = enrolling_key(n);
    struct member_proof_key key;

    assert_true(member_proof_key_make(&key, &secret, &hub_public, &public));
    assert_true(member_proof_make(&proof.proof, &key, &proof.request));
    return proof;
}

int enrolling_ask(
    struct enrolling *f, uint8_t n, const char *name, const struct enrol_proof *proof, int64_t wall)
{
    struct enrol_request rq = {.secret = f->secret, .key = enrolling_key(n)};

    (void)snprintf(rq.name, sizeof(rq.name), "%s", name);
    f->e = (struct err)ERR_NULL;
    return sample_enrol_node(
        &f->enrol, &rq, proof, &(struct ip_addr){{0}}, NSEC_PER_SEC, wall, &f->node, &f->e);
}

int enrolling_enter_at(struct enrolling *f, uint8_t n, const char *name, int64_t wall)
{
    struct enrol_proof proof = enrolling_proof(n);

    return enrolling_ask(f, n, name, &proof, wall);
}

int enrolling_enter(struct enrolling *f, uint8_t n, const char *name)
{
    return enrolling_enter_at(f, n, name, ENROLLING_WALL);
}

void enrolling_assert_address(const struct enrolling *f, const char *v4, const char *v6)
{
    char text[IP_ADDR_TEXT_MAX];

    assert_string_equal(ip_addr_format(&f->node->spec.address4, text), v4);
    assert_string_equal(ip_addr_format(&f->node->spec.address6, text), v6);
}
