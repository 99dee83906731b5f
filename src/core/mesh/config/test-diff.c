/*
 * test-diff.c - the changes between two configurations, against a slow reference engine.
 *
 * The reference does what WireGuard does: a block belongs to the peer that was told
 * last, a peer that is added replaces nothing, an endpoint is what was set or
 * what an authenticated packet said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "mesh/config/diff.h"

#define REFERENCE_PEERS  12
#define REFERENCE_BLOCKS 24

struct reference_peer {
    bool exists;
    unsigned touched; /* how often a change named it */
    uint8_t psk;
    struct endpoint endpoint;
    uint16_t keepalive;
    struct noise_choice cipher;
    uint64_t rate;
};

struct reference {
    struct reference_peer peers[REFERENCE_PEERS];
    int owner[REFERENCE_BLOCKS]; /* peer of that block, -1 for none */
    uint16_t listen_port;
    uint32_t fwmark;
    struct traffic_rates rates;
    bool shows_dscp;
};

static struct x25519_public key_of(unsigned peer)
{
    return (struct x25519_public){.b = {(uint8_t)(peer * 37 % 251 + 1), (uint8_t)peer}};
}

static unsigned peer_of(const struct x25519_public *key)
{
    return key->b[1];
}

static struct ip_prefix block_of(unsigned i)
{
    return (struct ip_prefix){.addr = ip_addr_v4((uint8_t[]){10, 0, 0, (uint8_t)i}), .len = 32};
}

static struct endpoint endpoint_of(unsigned port)
{
    return (struct endpoint){.addr = ip_addr_v4((uint8_t[]){192, 0, 2, 1}), .port = (uint16_t)port};
}

/* ---- the reference ------------------------------------------------------------------------------
 */

static void disown(struct reference *t, unsigned peer)
{
    for (unsigned b = 0; b < REFERENCE_BLOCKS; b++)
        if (t->owner[b] == (int)peer)
            t->owner[b] = -1;
}

static void reference_apply_peer(struct reference *t, const struct diff_peer *c)
{
    unsigned n = peer_of(&c->peer.key);
    struct reference_peer *p = &t->peers[n];

    assert_int_equal(p->exists, c->op != DIFF_OP_ADD);
    p->touched++;
    if (c->op == DIFF_OP_REMOVE) {
        *p = (struct reference_peer){.touched = p->touched};
        disown(t, n);
        return;
    }
    p->exists = true;
    if (c->set_psk)
        p->psk = c->peer.psk.b[0];
    if (c->set_endpoint)
        p->endpoint = c->peer.endpoint;
    if (c->set_keepalive)
        p->keepalive = c->peer.keepalive;
    if (c->set_cipher)
        p->cipher = c->peer.cipher;
    if (c->set_rate)
        p->rate = c->peer.rate;
    if (c->set_allowed)
        disown(t, n);
    for (size_t b = 0; c->set_allowed && b < c->peer.n_allowed; b++)
        t->owner[c->peer.allowed[b].addr.b[15]] = (int)n;
}

static void reference_apply(struct reference *t, const struct diff *d)
{
    if (d->set_listen_port)
        t->listen_port = d->listen_port;
    if (d->set_fwmark)
        t->fwmark = d->fwmark;
    if (d->set_shows_dscp)
        t->shows_dscp = d->shows_dscp;
    if (d->set_rate)
        t->rates.all = d->rates.all;
    for (unsigned i = 0; i < TRAFFIC_CLASS_N; i++)
        if (d->set_class_rates[i])
            t->rates.classes[i] = d->rates.classes[i];
    for (size_t i = 0; i < d->n_peers; i++)
        reference_apply_peer(t, &d->peers[i]);
}

static struct wg_config reference_get(const struct reference *t)
{
    struct wg_config c = {.listen_port = t->listen_port,
        .fwmark = t->fwmark,
        .rates = t->rates,
        .shows_dscp = t->shows_dscp};

    for (unsigned i = 0; i < REFERENCE_PEERS; i++) {
        const struct reference_peer *from = &t->peers[i];
        struct wg_peer p = {.key = key_of(i),
            .psk = {{from->psk}},
            .endpoint = from->endpoint,
            .keepalive = from->keepalive,
            .cipher = from->cipher,
            .rate = from->rate};

        if (!from->exists)
            continue;
        for (unsigned b = 0; b < REFERENCE_BLOCKS; b++) {
            struct ip_prefix block = block_of(b);

            if (t->owner[b] == (int)i)
                assert_int_equal(wg_peer_allow(&p, &block), 0);
        }
        assert_int_equal(wg_config_add(&c, &p), 0);
    }
    assert_int_equal(wg_config_sort(&c, NULL), 0);
    return c;
}

/* ---- random configurations ----------------------------------------------------------------- */

static unsigned roll(const struct rng *rng, unsigned n)
{
    return rng_u32(rng) % n;
}

static struct wg_config random_config(const struct rng *rng)
{
    struct wg_config c = {.listen_port = (uint16_t)roll(rng, 3), .fwmark = roll(rng, 2)};
    int owner[REFERENCE_BLOCKS];

    c.rates.all = roll(rng, 2);
    c.shows_dscp = roll(rng, 2) == 1;
    c.rates.classes[roll(rng, TRAFFIC_CLASS_N)] = roll(rng, 3);
    for (unsigned b = 0; b < REFERENCE_BLOCKS; b++)
        owner[b] = (int)roll(rng, REFERENCE_PEERS + 4); /* some belong to nobody */
    for (unsigned i = 0; i < REFERENCE_PEERS; i++) {
        struct wg_peer p = {.key = key_of(i),
            .psk = {{(uint8_t)roll(rng, 2)}},
            .keepalive = (uint16_t)roll(rng, 2),
            .cipher = {(enum aead_cipher)roll(rng, AEAD_CIPHER_N), roll(rng, 2) == 1},
            .rate = roll(rng, 3)};

        if (roll(rng, 3) == 0)
            continue;
        if (roll(rng, 4) > 0)
            p.endpoint = endpoint_of(1 + roll(rng, 3));
        for (unsigned b = 0; b < REFERENCE_BLOCKS; b++) {
            struct ip_prefix block = block_of(b);

            if (owner[b] == (int)i)
                assert_int_equal(wg_peer_allow(&p, &block), 0);
        }
        assert_int_equal(wg_config_add(&c, &p), 0);
    }
    assert_int_equal(wg_config_sort(&c, NULL), 0);
    return c;
}

/* Authenticated packets move some peers. */
static void roam(struct reference *t, const struct rng *rng)
{
    for (unsigned i = 0; i < REFERENCE_PEERS; i++)
        if (t->peers[i].exists && roll(rng, 3) == 0)
            t->peers[i].endpoint = endpoint_of(100 + roll(rng, 50));
}

/* ---- properties ---------------------------------------------------------------------------- */

static void check_peer(const struct wg_peer *before, const struct wg_peer *after,
    const struct wg_peer *want, const struct wg_peer *applied)
{
    assert_memory_equal(&after->psk, &want->psk, sizeof(want->psk));
    assert_int_equal(after->keepalive, want->keepalive);
    assert_true(after->rate == want->rate);
    assert_true(noise_choice_equal(after->cipher, want->cipher));
    assert_true(wg_peer_allows_equal(after, want));
    if (before && !endpoint_is_none(&before->endpoint) && applied &&
        endpoint_equal(&applied->endpoint, &want->endpoint))
        assert_true(endpoint_equal(&after->endpoint, &before->endpoint));
    else if (!endpoint_is_none(&want->endpoint))
        assert_true(endpoint_equal(&after->endpoint, &want->endpoint));
}

static bool is_equal(const struct wg_peer *a, const struct wg_peer *b)
{
    return memcmp(&a->psk, &b->psk, sizeof(a->psk)) == 0 && a->keepalive == b->keepalive &&
           noise_choice_equal(a->cipher, b->cipher) && wg_peer_allows_equal(a, b) &&
           a->rate == b->rate && endpoint_equal(&a->endpoint, &b->endpoint);
}

/* One step of a life: some new wish, diff, apply; everything that diff.h promises. */
static void step(struct reference *t, const struct wg_config *want, const struct wg_config *applied)
{
    struct wg_config before = reference_get(t);
    struct wg_config after;
    struct diff d = DIFF_NULL;

    for (unsigned i = 0; i < REFERENCE_PEERS; i++)
        t->peers[i].touched = 0;
    assert_int_equal(diff_make(&d, &before, want, applied), 0);
    reference_apply(t, &d);
    diff_deinit(&d);
    after = reference_get(t);

    assert_int_equal(after.n_peers, want->n_peers);
    for (size_t i = 0; i < want->n_peers; i++) {
        const struct wg_peer *w = &want->peers[i];
        const struct wg_peer *b = wg_config_find(&before, &w->key);

        check_peer(b, &after.peers[i], w, applied ? wg_config_find(applied, &w->key) : NULL);
        if (b && is_equal(b, w))
            assert_int_equal(t->peers[peer_of(&w->key)].touched, 0);
    }
    if (want->listen_port)
        assert_int_equal(after.listen_port, want->listen_port);
    assert_int_equal(after.fwmark, want->fwmark);
    assert_memory_equal(&after.rates, &want->rates, sizeof(after.rates));
    assert_int_equal(after.shows_dscp, want->shows_dscp);

    /* Once applied there is nothing left to do. */
    assert_int_equal(diff_make(&d, &after, want, want), 0);
    assert_true(diff_is_empty(&d));
    diff_deinit(&d);
    wg_config_deinit(&before);
    wg_config_deinit(&after);
}

static void test_reference(void **state)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint64_t rng_state = seed;
        struct rng rng = rng_seeded(&rng_state);
        struct wg_config applied = WG_CONFIG_NULL;
        struct reference t = {0};

        for (unsigned b = 0; b < REFERENCE_BLOCKS; b++)
            t.owner[b] = -1;
        for (unsigned i = 0; i < 12; i++) {
            struct wg_config want = random_config(&rng);

            step(&t, &want, i == 0 ? NULL : &applied);
            roam(&t, &rng);
            /* The same wish again touches nobody, wherever the peers went. */
            step(&t, &want, &want);
            wg_config_deinit(&applied);
            applied = want;
        }
        wg_config_deinit(&applied);
    }
}

/* ---- named cases --------------------------------------------------------------------------- */

static struct wg_config one_peer(unsigned port)
{
    struct wg_config c = WG_CONFIG_NULL;
    struct wg_peer p = {.key = key_of(1), .endpoint = endpoint_of(port)};
    struct ip_prefix block = block_of(1);

    assert_int_equal(wg_peer_allow(&p, &block), 0);
    assert_int_equal(wg_config_add(&c, &p), 0);
    return c;
}

static void test_learned_endpoint_stays(void **state)
{
    struct wg_config want = one_peer(1);
    struct wg_config have = one_peer(99);
    struct diff d = DIFF_NULL;

    assert_int_equal(diff_make(&d, &have, &want, &want), 0);
    assert_true(diff_is_empty(&d));
    diff_deinit(&d);
    wg_config_deinit(&want);
    wg_config_deinit(&have);
}

static void test_new_endpoint_is_set(void **state)
{
    struct wg_config applied = one_peer(1);
    struct wg_config want = one_peer(2);
    struct wg_config have = one_peer(99);
    struct diff d = DIFF_NULL;

    assert_int_equal(diff_make(&d, &have, &want, &applied), 0);
    assert_int_equal(d.n_peers, 1);
    assert_true(d.peers[0].set_endpoint);
    assert_false(d.peers[0].set_allowed || d.peers[0].set_psk || d.peers[0].set_keepalive);
    diff_deinit(&d);
    wg_config_deinit(&applied);
    wg_config_deinit(&want);
    wg_config_deinit(&have);
}

/* An engine that was restarted has lost what it learned. */
static void test_lost_endpoint_is_set(void **state)
{
    struct wg_config want = one_peer(1);
    struct wg_config have = one_peer(0);
    struct diff d = DIFF_NULL;

    assert_int_equal(diff_make(&d, &have, &want, &want), 0);
    assert_int_equal(d.n_peers, 1);
    assert_true(d.peers[0].set_endpoint);
    diff_deinit(&d);
    wg_config_deinit(&want);
    wg_config_deinit(&have);
}

static void test_missing_key_is_set(void **state)
{
    struct wg_config want = one_peer(1);
    struct wg_config have = one_peer(1);
    struct diff d = DIFF_NULL;

    want.public = key_of(7);
    assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
    assert_true(d.set_key);
    assert_int_equal(d.n_peers, 0);
    assert_false(diff_is_empty(&d));
    have.public = key_of(7);
    assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
    assert_true(diff_is_empty(&d));
    diff_deinit(&d);
    wg_config_deinit(&want);
    wg_config_deinit(&have);
}

static void test_any_port_is_content(void **state)
{
    struct wg_config want = one_peer(1);
    struct wg_config have = one_peer(1);
    struct diff d = DIFF_NULL;

    have.listen_port = 40123;
    assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
    assert_true(diff_is_empty(&d));
    diff_deinit(&d);
    wg_config_deinit(&want);
    wg_config_deinit(&have);
}

/* A rate begins anew when it is set, so those that stay are not named. */
static void test_only_the_rate_that_differs(void **state)
{
    struct wg_config want = one_peer(1);
    struct wg_config have = one_peer(1);
    struct diff d = DIFF_NULL;

    have.rates.all = want.rates.all = 100000000;
    have.rates.classes[TRAFFIC_CLASS_BULK] = 20000000;
    want.rates.classes[TRAFFIC_CLASS_BULK] = 10000000;
    assert_int_equal(diff_make(&d, &have, &want, &want), 0);
    assert_int_equal(d.n_peers, 0);
    assert_int_equal(diff_count_rates(&d), 1);
    assert_true(d.set_class_rates[TRAFFIC_CLASS_BULK]);
    assert_false(diff_is_empty(&d));
    diff_deinit(&d);
    want.rates = have.rates;
    want.peers[0].rate = 5000000;
    assert_int_equal(diff_make(&d, &have, &want, &want), 0);
    assert_int_equal(d.n_peers, 1);
    assert_true(d.peers[0].set_rate);
    assert_false(d.peers[0].set_endpoint || d.peers[0].set_allowed || d.peers[0].set_mtu);
    assert_int_equal(diff_count_rates(&d), 0);
    diff_deinit(&d);
    wg_config_deinit(&want);
    wg_config_deinit(&have);
}

/* A peer that has one thing beside its key and its block, and how a change says that it has. */
static const struct {
    const char *name;
    struct wg_peer peer;
    size_t flag; /* of the change, by its offset */
} fields[] = {
    {"psk", {.psk = {{1}}}, offsetof(struct diff_peer, set_psk)},
    {"endpoint", {.endpoint = {.addr = {.b = {[15] = 1}}, .port = 7}},
        offsetof(struct diff_peer, set_endpoint)},
    {"keepalive", {.keepalive = 1}, offsetof(struct diff_peer, set_keepalive)},
    {"cipher", {.cipher = {AEAD_CIPHER_AES256GCM, false}}, offsetof(struct diff_peer, set_cipher)},
    {"pin", {.pin = PIN_SESSION}, offsetof(struct diff_peer, set_pin)},
    {"relayed", {.is_relayed = true}, offsetof(struct diff_peer, set_relayed)},
    {"mtu", {.mtu = 1}, offsetof(struct diff_peer, set_mtu)},
    {"rate", {.rate = 1}, offsetof(struct diff_peer, set_rate)},
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

static struct wg_config config_of(struct wg_peer p, unsigned block)
{
    struct wg_config c = WG_CONFIG_NULL;
    struct ip_prefix allowed = block_of(block);

    p.key = key_of(1);
    assert_int_equal(wg_peer_allow(&p, &allowed), 0);
    assert_int_equal(wg_config_add(&c, &p), 0);
    return c;
}

/* The change of the one peer has no flag but @field's, or none with N_FIELDS, and @allowed. */
static void assert_flags(const struct diff_peer *change, size_t field, bool allowed)
{
    for (size_t i = 0; i < N_FIELDS; i++)
        if (((const bool *)((const char *)change + fields[i].flag))[0] != (i == field))
            fail_msg("%s, of a peer with %s alone", fields[i].name,
                field < N_FIELDS ? fields[field].name : "nothing");
    assert_int_equal(change->set_allowed, allowed);
}

/* From @have (NULL: no peer) to @want; @n_peers changes, the first of them into @ret. */
static void change(const struct wg_config *have, const struct wg_config *want, size_t n_peers,
    enum diff_op op, struct diff *ret)
{
    struct wg_config none = WG_CONFIG_NULL;

    assert_int_equal(diff_make(ret, have ? have : &none, want, NULL), 0);
    assert_int_equal(ret->n_peers, n_peers);
    assert_int_equal(diff_is_empty(ret), n_peers == 0);
    if (n_peers == 0)
        return;
    assert_int_equal(ret->peers[0].op, op);
    assert_true(x25519_public_equal(&ret->peers[0].peer.key, &want->peers[0].key));
    assert_true(wg_peer_allows_equal(&ret->peers[0].peer, &want->peers[0]));
}

static void test_each_field_is_set_for_itself(void **state)
{
    for (size_t i = 0; i <= N_FIELDS; i++) {
        struct wg_config bare = config_of((struct wg_peer)WG_PEER_NULL, 1);
        struct wg_config moved = config_of((struct wg_peer)WG_PEER_NULL, 2);
        struct wg_config with =
            config_of(i < N_FIELDS ? fields[i].peer : (struct wg_peer)WG_PEER_NULL, 1);
        bool is_endpoint = i < N_FIELDS && strcmp(fields[i].name, "endpoint") == 0;
        struct diff d = DIFF_NULL;

        /* A peer that is added is told what it has, and its blocks always. */
        change(NULL, &with, 1, DIFF_OP_ADD, &d);
        assert_flags(&d.peers[0], i, true);
        diff_deinit(&d);
        /* One that is there is told what it has not yet, and what it must lose. */
        change(&bare, &with, i < N_FIELDS, DIFF_OP_UPDATE, &d);
        if (i < N_FIELDS)
            assert_flags(&d.peers[0], i, false);
        diff_deinit(&d);
        change(&with, &bare, i < N_FIELDS && !is_endpoint, DIFF_OP_UPDATE, &d);
        if (i < N_FIELDS && !is_endpoint)
            assert_flags(&d.peers[0], i, false);
        diff_deinit(&d);
        change(&bare, &moved, 1, DIFF_OP_UPDATE, &d);
        assert_flags(&d.peers[0], N_FIELDS, true);
        diff_deinit(&d);
        wg_config_deinit(&bare);
        wg_config_deinit(&moved);
        wg_config_deinit(&with);
    }
}

/* A port that is wanted, and any port where the one that was had is not to be had any more. */
static void test_a_port_is_given_up_where_it_fails(void **state)
{
    static const struct {
        uint16_t have;
        unsigned failed;
        uint16_t want;
        bool is_set;
    } cases[] = {
        {51820, 0, 51820, false},
        {51820, 0, 51821, true},
        {51820, EADDRINUSE, 51820, false},
        {51820, 0, 0, false},
        {51820, EADDRINUSE, 0, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wg_config have = {
            .listen_port = cases[i].have, .listen_errno = cases[i].failed, .fwmark = 3};
        struct wg_config want = {.listen_port = cases[i].want, .fwmark = 3};
        struct diff d = DIFF_NULL;

        assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
        assert_int_equal(d.set_listen_port, cases[i].is_set);
        assert_int_equal(diff_is_empty(&d), !cases[i].is_set);
        assert_int_equal(d.listen_port, cases[i].want);
        diff_deinit(&d);
    }
}

/* What is of the interface alone, each by itself and with its value. */
static void test_the_interface_itself(void **state)
{
    struct wg_config have = WG_CONFIG_NULL;
    struct wg_config want = {.is_relay = true};
    struct diff d = DIFF_NULL;

    assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
    assert_true(d.set_relay && d.is_relay);
    assert_false(diff_is_empty(&d) || d.set_fwmark || d.set_shows_dscp || d.set_key);
    assert_int_equal(diff_make(&d, &want, &have, NULL), 0);
    assert_true(d.set_relay && !d.is_relay);
    want = (struct wg_config){.fwmark = 9};
    assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
    assert_true(d.set_fwmark && d.fwmark == 9);
    assert_false(diff_is_empty(&d) || d.set_relay || d.set_listen_port);
    want = (struct wg_config){.shows_dscp = true};
    assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
    assert_true(d.set_shows_dscp && d.shows_dscp);
    assert_false(diff_is_empty(&d) || d.set_relay);
}

/* One change more than the first array has room for; each is as it was made. */
static void test_many_changes(void **state)
{
    struct wg_config have = WG_CONFIG_NULL;
    struct wg_config want = WG_CONFIG_NULL;
    struct diff d = DIFF_NULL;

    for (unsigned i = 0; i < 40; i++) {
        struct wg_peer p = {.key = {.b = {(uint8_t)i}}, .keepalive = (uint16_t)(i + 1)};

        assert_int_equal(wg_config_add(i < 20 ? &have : &want, &p), 0);
    }
    assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
    assert_int_equal(d.n_peers, 40);
    /* Removals first. */
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(d.peers[i].op, i < 20 ? DIFF_OP_REMOVE : DIFF_OP_ADD);
        assert_int_equal(d.peers[i].peer.key.b[0], i);
        assert_int_equal(d.peers[i].peer.keepalive, i < 20 ? 0 : i + 1);
    }
    diff_deinit(&d);
    assert_true(diff_is_empty(&d));
    wg_config_deinit(&have);
    wg_config_deinit(&want);
}

static struct wg_peer keyed(uint8_t key, uint8_t next)
{
    return (struct wg_peer){.key = {.b = {key}}, .next_key = {.b = {next}}};
}

/* Peers of @have and @want by their keys and next keys, ended by a key of 0. */
static struct diff keys_diff(const uint8_t have_keys[][2], const uint8_t want_keys[][2])
{
    struct wg_config have = WG_CONFIG_NULL;
    struct wg_config want = WG_CONFIG_NULL;
    struct diff d = DIFF_NULL;

    for (size_t i = 0; have_keys[i][0]; i++) {
        struct wg_peer p = keyed(have_keys[i][0], have_keys[i][1]);

        assert_int_equal(wg_config_add(&have, &p), 0);
    }
    for (size_t i = 0; want_keys[i][0]; i++) {
        struct wg_peer p = keyed(want_keys[i][0], want_keys[i][1]);

        assert_int_equal(wg_config_add(&want, &p), 0);
    }
    assert_int_equal(wg_config_sort(&have, NULL), 0);
    assert_int_equal(wg_config_sort(&want, NULL), 0);
    assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
    wg_config_deinit(&have);
    wg_config_deinit(&want);
    return d;
}

#define KEYS(...) ((const uint8_t[][2]){__VA_ARGS__, {0, 0}})

/* A peer that is wanted under the next key of one is that one, and is not removed. */
static void test_a_peer_goes_on(void **state)
{
    struct diff d = keys_diff(KEYS({5, 0}, {7, 0}), KEYS({5, 2}, {7, 0}));

    assert_int_equal(d.n_peers, 1);
    assert_int_equal(d.peers[0].op, DIFF_OP_UPDATE);
    assert_true(d.peers[0].set_next_key && !d.peers[0].is_replaced && !d.peers[0].set_allowed);
    assert_int_equal(d.peers[0].peer.next_key.b[0], 2);
    diff_deinit(&d);

    d = keys_diff(KEYS({5, 2}, {7, 0}), KEYS({2, 0}, {7, 0}));
    assert_int_equal(d.n_peers, 1);
    assert_int_equal(d.peers[0].op, DIFF_OP_UPDATE);
    assert_true(d.peers[0].is_replaced && !d.peers[0].set_next_key && !d.peers[0].set_allowed);
    assert_int_equal(d.peers[0].replaces.b[0], 5);
    assert_int_equal(d.peers[0].peer.key.b[0], 2);
    diff_deinit(&d);

    /* At once to the key after the next one. */
    d = keys_diff(KEYS({5, 2}), KEYS({2, 3}));
    assert_int_equal(d.n_peers, 1);
    assert_true(d.peers[0].is_replaced && d.peers[0].set_next_key);
    assert_int_equal(d.peers[0].peer.next_key.b[0], 3);
    diff_deinit(&d);
}

/* Any other change of a key is another peer. */
static void test_a_peer_does_not_go_on(void **state)
{
    /* Without a next key; with another one; the old one is wanted, too; the new one is there. */
    static const uint8_t have[][3][2] = {{{5, 0}}, {{5, 3}}, {{5, 2}}, {{2, 0}, {5, 2}}};
    static const uint8_t want[][3][2] = {{{2, 0}}, {{2, 0}}, {{2, 0}, {5, 2}}, {{2, 0}}};
    static const size_t n_removed[] = {1, 1, 0, 1}, n_added[] = {1, 1, 1, 0};

    for (size_t i = 0; i < sizeof(have) / sizeof(*have); i++) {
        struct diff d = keys_diff(have[i], want[i]);
        size_t removed = 0;
        size_t added = 0;

        for (size_t k = 0; k < d.n_peers; k++) {
            removed += d.peers[k].op == DIFF_OP_REMOVE;
            added += d.peers[k].op == DIFF_OP_ADD;
            assert_false(d.peers[k].is_replaced);
        }
        assert_int_equal(removed, n_removed[i]);
        assert_int_equal(added, n_added[i]);
        diff_deinit(&d);
    }
}

/* An interface goes over to its next key, and what has to be said of it. */
static void test_the_interface_goes_on(void **state)
{
    struct wg_config one = {.public = {.b = {1}}};
    struct wg_config two = {.public = {.b = {1}}, .next_public = {.b = {2}}};
    struct wg_config next = {.public = {.b = {2}}};
    struct diff d = DIFF_NULL;

    assert_int_equal(diff_make(&d, &one, &two, NULL), 0);
    assert_true(d.set_next_key && !d.set_key && !d.set_initiate_with_next);
    assert_false(diff_is_empty(&d));
    one.next_public = two.next_public;
    two.initiate_with_next = true;
    assert_int_equal(diff_make(&d, &one, &two, NULL), 0);
    assert_true(!d.set_next_key && !d.set_key && d.set_initiate_with_next && d.initiate_with_next);
    assert_false(diff_is_empty(&d));
    assert_int_equal(diff_make(&d, &two, &next, NULL), 0);
    assert_true(d.set_next_key && d.set_key && d.set_initiate_with_next && !d.initiate_with_next);
    assert_int_equal(diff_make(&d, &two, &two, NULL), 0);
    assert_true(diff_is_empty(&d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_learned_endpoint_stays),
        cmocka_unit_test(test_new_endpoint_is_set),
        cmocka_unit_test(test_lost_endpoint_is_set),
        cmocka_unit_test(test_missing_key_is_set),
        cmocka_unit_test(test_any_port_is_content),
        cmocka_unit_test(test_only_the_rate_that_differs),
        cmocka_unit_test(test_each_field_is_set_for_itself),
        cmocka_unit_test(test_a_port_is_given_up_where_it_fails),
        cmocka_unit_test(test_the_interface_itself),
        cmocka_unit_test(test_many_changes),
        cmocka_unit_test(test_a_peer_goes_on),
        cmocka_unit_test(test_a_peer_does_not_go_on),
        cmocka_unit_test(test_the_interface_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
