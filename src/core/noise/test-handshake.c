/*
 * test-handshake.c - handshakes with fixed keys against an independent
 * implementation's transcript, and everything that must be refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "noise/cookie.h"
#include "noise/handshake.h"
#include "noise/keypair.h"
#include "test/support/noise_pair.h"
#include "test/vectors/vectors.h"

/* The bytes that a handshake draws, given in advance. */
struct script {
    const uint8_t *next;
};

static void script_fill(void *ctx, void *buf, size_t len)
{
    struct script *s = ctx;

    memcpy(buf, s->next, len);
    s->next += len;
}

static char *text_field(const struct vectors *v, const char *name, char buf[static 128])
{
    buf[vectors_bytes(v, name, buf, 127)] = '\0';
    return buf;
}

static enum aead_cipher cipher_field(const struct vectors *v)
{
    char name[128];
    enum aead_cipher cipher;

    (void)text_field(v, "transport", name);
    cipher = aead_cipher_parse(name, strlen(name));
    assert_int_not_equal(cipher, AEAD_CIPHER_N);
    return cipher;
}

#define ASSERT_FIELD(v, name, p, len)                                                              \
    do {                                                                                           \
        uint8_t expected_[2048];                                                                   \
        vectors_exact(v, name, expected_, len);                                                    \
        assert_memory_equal(p, expected_, len);                                                    \
    } while (0)

static void side_from_vector(struct side *s, const struct vectors *v, const char *own,
    const char *other, const struct noise_profile *profile)
{
    struct x25519_secret secret;
    struct x25519_public public;
    struct noise_psk psk;

    memset(s, 0, sizeof(*s));
    vectors_exact(v, own, secret.b, sizeof(secret.b));
    noise_local_set(&s->local, &secret);
    vectors_exact(v, other, public.b, sizeof(public.b));
    noise_remote_init(&s->remote, profile, &s->local, &public);
    vectors_exact(v, "psk", psk.b, sizeof(psk.b));
    s->remote.psk = psk;
    s->maker = (struct cookie_maker){0};
}

static void vector_initiation(
    const struct vectors *v, struct side *i, struct side *r, struct wg_initiation *msg)
{
    uint8_t ephemeral[32];
    struct script script = {ephemeral};
    struct rng rng = {script_fill, &script};
    struct handshake_incoming in;

    vectors_exact(v, "initiator_ephemeral", ephemeral, sizeof(ephemeral));
    assert_int_equal(
        handshake_create_initiation(&i->hs, &i->local, &i->remote,
            (uint32_t)vectors_u64(v, "initiator_index"), (nsec_t)vectors_u64(v, "wall"), &rng, msg),
        0);
    cookie_add_macs(&i->maker, &i->remote.public, msg, sizeof(*msg), 0);
    ASSERT_FIELD(v, "initiation", msg, sizeof(*msg));
    ASSERT_FIELD(v, "initiation_ck", &i->hs.chaining_key, 32);
    ASSERT_FIELD(v, "initiation_h", &i->hs.hash, 32);
    ASSERT_FIELD(v, "tai64n", &i->remote.sent, 12);

    assert_int_equal(handshake_open_initiation(&r->local, &i->remote.profile, 1, msg, &in), 0);
    ASSERT_FIELD(v, "initiator_public", &in.public, 32);
    ASSERT_FIELD(v, "opened_ck", &in.chaining_key, 32);
    ASSERT_FIELD(v, "opened_h", &in.hash, 32);
    assert_int_equal(handshake_consume_initiation(&r->hs, &r->remote, &in, 0), 0);
    ASSERT_FIELD(v, "initiation_ck", &r->hs.chaining_key, 32);
    ASSERT_FIELD(v, "initiation_h", &r->hs.hash, 32);
    ASSERT_FIELD(v, "tai64n", &r->remote.received, 12);
}

static void vector_response(const struct vectors *v, struct side *i, struct side *r)
{
    uint8_t ephemeral[32];
    struct script script = {ephemeral};
    struct rng rng = {script_fill, &script};
    struct wg_response msg;

    vectors_exact(v, "responder_ephemeral", ephemeral, sizeof(ephemeral));
    assert_int_equal(handshake_create_response(&r->hs, &r->remote,
                         (uint32_t)vectors_u64(v, "responder_index"), &rng, &msg),
        0);
    cookie_add_macs(&r->maker, &r->remote.public, &msg, sizeof(msg), 0);
    ASSERT_FIELD(v, "response", &msg, sizeof(msg));
    ASSERT_FIELD(v, "response_ck", &r->hs.chaining_key, 32);
    ASSERT_FIELD(v, "response_h", &r->hs.hash, 32);
    assert_int_equal(handshake_consume_response(&i->hs, &i->local, &i->remote, &msg), 0);
    ASSERT_FIELD(v, "response_ck", &i->hs.chaining_key, 32);
    ASSERT_FIELD(v, "response_h", &i->hs.hash, 32);
}

/* Every data message of the case, sealed by one side as it was, and opened by the other. */
static void vector_data(const struct vectors *v, struct keypair *i, struct keypair *r)
{
    struct aead_lane *lane;
    char name[32];

    assert_int_equal(aead_lane_new(&lane), 0);
    for (unsigned n = 0; n < 4; n++) {
        uint8_t msg[2048];
        uint8_t text[2048];
        char sender[128];
        bool from_i;
        uint64_t counter;
        uint64_t got;
        size_t len;

        (void)snprintf(name, sizeof(name), "data%u_sender", n);
        from_i = strcmp(text_field(v, name, sender), "initiator") == 0;
        (void)snprintf(name, sizeof(name), "data%u_counter", n);
        counter = vectors_u64(v, name);
        (void)snprintf(name, sizeof(name), "data%u_text", n);
        len = vectors_bytes(v, name, text, sizeof(text));
        memcpy(msg + sizeof(struct wg_data), text, len);
        assert_true(keypair_seal(from_i ? i : r, lane, counter, msg, len));
        (void)snprintf(name, sizeof(name), "data%u", n);
        ASSERT_FIELD(v, name, msg, len + WG_DATA_OVERHEAD);
        assert_true(keypair_open(from_i ? r : i, lane, msg, len + WG_DATA_OVERHEAD, &got));
        assert_int_equal(got, counter);
        assert_memory_equal(msg + sizeof(struct wg_data), text, len);
    }
    aead_lane_free(lane);
}

static void test_vectors(void **state)
{
    struct vectors v;
    unsigned n = 0;
    unsigned n_aes = 0;

    vectors_open(&v, "noise-handshake.txt");
    while (vectors_next(&v)) {
        char construction[128];
        char identifier[128];
        struct noise_profile profile = {
            .construction = text_field(&v, "construction", construction),
            .identifier = text_field(&v, "identifier", identifier),
            .transport = cipher_field(&v),
        };
        const struct aead_algorithm *alg = aead_best(profile.transport, NULL);
        struct wg_initiation initiation;
        struct blake2s_digest ck;
        struct blake2s_digest h;
        struct keypair *ki;
        struct keypair *kr;
        struct side i;
        struct side r;

        noise_profile_start(&profile, &ck, &h);
        ASSERT_FIELD(&v, "start_ck", &ck, 32);
        ASSERT_FIELD(&v, "start_h", &h, 32);
        side_from_vector(&i, &v, "initiator_static", "responder_public", &profile);
        side_from_vector(&r, &v, "responder_static", "initiator_public", &profile);
        vector_initiation(&v, &i, &r, &initiation);
        vector_response(&v, &i, &r);
        assert_int_equal(handshake_derive(&i.hs, alg, NULL, 0, &ki), 0);
        assert_int_equal(handshake_derive(&r.hs, alg, NULL, 0, &kr), 0);
        ASSERT_FIELD(&v, "initiator_seal", &ki->seal_key, 32);
        ASSERT_FIELD(&v, "responder_seal", &ki->open_key, 32);
        ASSERT_FIELD(&v, "responder_seal", &kr->seal_key, 32);
        ASSERT_FIELD(&v, "initiator_seal", &kr->open_key, 32);
        vector_data(&v, ki, kr);
        keypair_unref(ki);
        keypair_unref(kr);
        n++;
        /* What is built in is what the cases were made with. */
        if (profile.transport == AEAD_CIPHER_AES256GCM) {
            assert_string_equal(profile.construction, noise_profile_aes.construction);
            assert_string_equal(profile.identifier, noise_profile_aes.identifier);
            n_aes++;
        }
    }
    assert_int_equal(n, 5);
    assert_int_equal(n_aes, 2);
    vectors_close(&v);
}

static void assert_keeps(const struct handshake *hs, enum handshake_state state,
    uint32_t local_index, uint32_t remote_index, const uint8_t *remote_ephemeral)
{
    static const uint8_t none[X25519_SIZE];

    assert_int_equal(hs->state, state);
    assert_ptr_equal(hs->profile, &noise_profile_wireguard);
    assert_int_equal(hs->local_index, local_index);
    assert_int_equal(hs->remote_index, remote_index);
    assert_memory_equal(
        hs->remote_ephemeral.b, remote_ephemeral ? remote_ephemeral : none, X25519_SIZE);
}

/* Is @public the public key of what the handshake keeps? */
static void assert_ephemeral(const struct handshake *hs, const uint8_t *public)
{
    struct x25519_public own;

    assert_true(x25519_derive_public(&hs->ephemeral, &own));
    assert_memory_equal(own.b, public, sizeof(own.b));
}

/* What each side keeps after each message, and what the messages name. */
static void test_what_is_kept(void **state)
{
    static const struct handshake cleared;
    struct wg_initiation m1;
    struct wg_response m2;
    struct keypair *ki;
    struct keypair *kr;
    struct pair p;

    pair_init(&p, 9);
    p.r.hs.local_index = 0x77;
    assert_int_equal(create_initiation(&p, WALL, &m1), 0);
    assert_int_equal(le32_get(m1.type), WG_TYPE_INITIATION);
    assert_int_equal(le32_get(m1.sender), 0x1111);
    assert_keeps(&p.i.hs, HANDSHAKE_STATE_INITIATION_CREATED, 0x1111, 0, NULL);
    assert_ephemeral(&p.i.hs, m1.ephemeral);
    assert_int_equal(take_initiation(&p, &m1, 7 * NSEC_PER_SEC), 0);
    assert_keeps(&p.r.hs, HANDSHAKE_STATE_INITIATION_CONSUMED, 0, 0x1111, m1.ephemeral);
    assert_true(x25519_secret_is_none(&p.r.hs.ephemeral));
    assert_true(p.r.remote.has_consumed);
    assert_int_equal(p.r.remote.consumed_at, 7 * NSEC_PER_SEC);
    assert_memory_equal(&p.r.remote.received, &p.i.remote.sent, sizeof(struct tai64n));
    assert_memory_equal(&p.r.hs.chaining_key, &p.i.hs.chaining_key, sizeof(p.i.hs.chaining_key));
    assert_memory_equal(&p.r.hs.hash, &p.i.hs.hash, sizeof(p.i.hs.hash));
    /* Neither may derive anything yet, nor the initiator answer itself. */
    assert_int_equal(handshake_derive(&p.i.hs, chacha(), NULL, 0, &ki), HANDSHAKE_E_STATE);
    assert_int_equal(handshake_derive(&p.r.hs, chacha(), NULL, 0, &kr), HANDSHAKE_E_STATE);
    assert_int_equal(create_response(&p, &m2), 0);
    assert_int_equal(le32_get(m2.type), WG_TYPE_RESPONSE);
    assert_int_equal(le32_get(m2.sender), 0x2222);
    assert_int_equal(le32_get(m2.receiver), 0x1111);
    assert_keeps(&p.r.hs, HANDSHAKE_STATE_RESPONSE_CREATED, 0x2222, 0x1111, m1.ephemeral);
    assert_ephemeral(&p.r.hs, m2.ephemeral);
    assert_int_equal(take_response(&p, &m2), 0);
    assert_keeps(&p.i.hs, HANDSHAKE_STATE_RESPONSE_CONSUMED, 0x1111, 0x2222, m2.ephemeral);
    assert_memory_equal(&p.r.hs.chaining_key, &p.i.hs.chaining_key, sizeof(p.i.hs.chaining_key));
    assert_memory_equal(&p.r.hs.hash, &p.i.hs.hash, sizeof(p.i.hs.hash));
    /* An answer is given once. */
    assert_int_equal(create_response(&p, &m2), HANDSHAKE_E_STATE);
    assert_int_equal(handshake_derive(&p.i.hs, chacha(), &p.i, 5, &ki), 0);
    assert_int_equal(handshake_derive(&p.r.hs, chacha(), &p.r, 6, &kr), 0);
    assert_memory_equal(&p.i.hs, &cleared, sizeof(cleared));
    assert_memory_equal(&p.r.hs, &cleared, sizeof(cleared));
    assert_ptr_equal(ki->alg, chacha());
    assert_ptr_equal(kr->alg, chacha());
    assert_ptr_equal(ki->owner, &p.i);
    assert_int_equal(kr->birth, 6);
    keypair_unref(ki);
    keypair_unref(kr);
}

static void test_round_trip(void **state)
{
    struct wg_initiation m1;
    struct wg_response m2;
    struct keypair *ki;
    struct keypair *kr;
    struct pair p;

    pair_init(&p, 1);
    assert_int_equal(create_initiation(&p, WALL, &m1), 0);
    assert_int_equal(take_initiation(&p, &m1, 0), 0);
    assert_int_equal(create_response(&p, &m2), 0);
    assert_int_equal(take_response(&p, &m2), 0);
    /* A response that arrives twice. */
    assert_int_equal(take_response(&p, &m2), HANDSHAKE_E_STATE);
    assert_int_equal(handshake_derive(&p.i.hs, chacha(), &p.i, 5, &ki), 0);
    assert_int_equal(handshake_derive(&p.r.hs, chacha(), &p.r, 6, &kr), 0);
    /* Nothing secret is left, and nothing can be derived twice. */
    assert_true(x25519_secret_is_none(&p.i.hs.ephemeral));
    assert_int_equal(handshake_derive(&p.i.hs, chacha(), NULL, 5, &ki), HANDSHAKE_E_STATE);
    assert_int_equal(take_response(&p, &m2), HANDSHAKE_E_STATE);

    assert_true(ki->is_initiator);
    assert_false(kr->is_initiator);
    assert_int_equal(ki->local_index, 0x1111);
    assert_int_equal(ki->remote_index, 0x2222);
    assert_int_equal(kr->local_index, 0x2222);
    assert_int_equal(kr->remote_index, 0x1111);
    assert_int_equal(ki->birth, 5);
    assert_ptr_equal(kr->owner, &p.r);
    assert_true(talks(ki, kr));
    assert_true(talks(kr, ki));
    /* One's own message is not for oneself. */
    assert_false(talks(ki, ki));
    keypair_unref(ki);
    keypair_unref(kr);
}

/* Each byte of either message but the macs and the type matters. */
static void test_bit_flips(void **state)
{
    struct wg_initiation m1;
    struct wg_response m2;
    struct pair p;

    pair_init(&p, 2);
    assert_int_equal(create_initiation(&p, WALL, &m1), 0);
    for (size_t i = offsetof(struct wg_initiation, ephemeral);
         i < offsetof(struct wg_initiation, macs); i++) {
        struct wg_initiation bad = m1;

        ((uint8_t *)&bad)[i] ^= 0x40;
        assert_int_equal(take_initiation(&p, &bad, 0), HANDSHAKE_E_INVALID);
        assert_int_equal(p.r.hs.state, HANDSHAKE_STATE_NONE);
    }
    assert_int_equal(take_initiation(&p, &m1, 0), 0);
    assert_int_equal(create_response(&p, &m2), 0);
    for (size_t i = offsetof(struct wg_response, ephemeral); i < offsetof(struct wg_response, macs);
         i++) {
        struct wg_response bad = m2;

        ((uint8_t *)&bad)[i] ^= 0x40;
        assert_int_equal(take_response(&p, &bad), HANDSHAKE_E_INVALID);
        assert_int_equal(p.i.hs.state, HANDSHAKE_STATE_INITIATION_CREATED);
    }
    m2.receiver = le32_make(0x1112);
    assert_int_equal(take_response(&p, &m2), HANDSHAKE_E_STATE);
    m2.receiver = le32_make(0x1111);
    assert_int_equal(take_response(&p, &m2), 0);
}

static void test_replay_and_flood(void **state)
{
    struct wg_initiation first;
    struct wg_initiation second;
    struct wg_initiation third;
    struct pair p;

    pair_init(&p, 3);
    assert_int_equal(create_initiation(&p, WALL, &first), 0);
    assert_int_equal(create_initiation(&p, WALL + NSEC_PER_SEC, &second), 0);
    assert_int_equal(create_initiation(&p, WALL + 2 * NSEC_PER_SEC, &third), 0);
    assert_int_equal(take_initiation(&p, &second, NSEC_PER_SEC), 0);
    assert_int_equal(take_initiation(&p, &second, 2 * NSEC_PER_SEC), HANDSHAKE_E_REPLAY);
    assert_int_equal(take_initiation(&p, &first, 2 * NSEC_PER_SEC), HANDSHAKE_E_REPLAY);
    assert_int_equal(p.r.hs.state, HANDSHAKE_STATE_INITIATION_CONSUMED);
    /* Newer, but within a fiftieth of a second of the last. */
    assert_int_equal(
        take_initiation(&p, &third, NSEC_PER_SEC + 19 * NSEC_PER_MSEC), HANDSHAKE_E_FLOOD);
    assert_int_equal(
        take_initiation(&p, &third, NSEC_PER_SEC + 20 * NSEC_PER_MSEC - 1), HANDSHAKE_E_FLOOD);
    assert_int_equal(p.r.remote.consumed_at, NSEC_PER_SEC);
    assert_int_equal(take_initiation(&p, &third, NSEC_PER_SEC + 20 * NSEC_PER_MSEC), 0);
}

/* The clock jumps back a day: timestamps still only grow. */
static void test_clock_jump(void **state)
{
    const nsec_t day = 86400 * NSEC_PER_SEC;
    struct wg_initiation msg;
    struct tai64n last = {{0}};
    struct pair p;

    pair_init(&p, 4);
    for (unsigned i = 0; i < 200; i++) {
        nsec_t wall = i < 2 ? WALL : WALL - day + (nsec_t)i * NSEC_PER_MSEC;

        assert_int_equal(create_initiation(&p, wall, &msg), 0);
        assert_true(tai64n_compare(&p.i.remote.sent, &last) > 0);
        last = p.i.remote.sent;
        assert_int_equal(take_initiation(&p, &msg, (nsec_t)i * NSEC_PER_SEC), 0);
    }
    /* Forward again: the clock is followed, with only its coarse part. */
    assert_int_equal(create_initiation(&p, WALL + day + 123456789, &msg), 0);
    assert_memory_equal(p.i.remote.sent.b + 8, "\x07\0\0", 4); /* 123456789 is 0x075bcd15 */
}

static void test_psk(void **state)
{
    struct noise_psk psk = {{1, 2, 3}};
    struct wg_initiation m1;
    struct wg_response m2;
    struct pair p;

    pair_init(&p, 5);
    p.i.remote.psk = psk;
    assert_int_equal(create_initiation(&p, WALL, &m1), 0);
    assert_int_equal(take_initiation(&p, &m1, 0), 0);
    assert_int_equal(create_response(&p, &m2), 0);
    assert_int_equal(take_response(&p, &m2), HANDSHAKE_E_INVALID);
    p.r.remote.psk = psk;
    assert_int_equal(create_initiation(&p, WALL + NSEC_PER_SEC, &m1), 0);
    assert_int_equal(take_initiation(&p, &m1, NSEC_PER_SEC), 0);
    assert_int_equal(create_response(&p, &m2), 0);
    assert_int_equal(take_response(&p, &m2), 0);
}

/* Opens an initiation with a key that is there, and takes it in where there is none any more. */
static int take_without_key(
    struct pair *p, struct wg_initiation *msg, struct handshake_incoming *in)
{
    struct pair other;

    pair_init(&other, 7);
    assert_int_equal(create_initiation(&other, WALL, msg), 0);
    assert_int_equal(handshake_open_initiation(&other.r.local, noise_profiles, 1, msg, in), 0);
    return handshake_consume_initiation(&p->r.hs, &p->r.remote, in, 0);
}

static void test_no_key(void **state)
{
    static const struct x25519_secret none;
    static const struct x25519_public small_order = {{1}};
    struct handshake_incoming in;
    struct wg_initiation msg;
    struct wg_response response;
    struct keypair *kp;
    struct pair p;

    pair_init(&p, 7);
    assert_int_equal(create_initiation(&p, WALL, &msg), 0);
    /* A peer whose key is a point of small order. */
    noise_remote_init(&p.i.remote, &noise_profile_wireguard, &p.i.local, &small_order);
    assert_int_equal(create_initiation(&p, WALL, &msg), HANDSHAKE_E_NO_KEY);
    /* No private key. */
    noise_local_set(&p.r.local, &none);
    noise_remote_set_local(&p.r.remote, &p.r.local);
    assert_false(p.r.local.has_key);
    assert_int_equal(
        handshake_open_initiation(&p.r.local, noise_profiles, 1, &msg, &in), HANDSHAKE_E_NO_KEY);
    /* One that was opened before the key went is not taken in after. */
    assert_int_equal(take_without_key(&p, &msg, &in), HANDSHAKE_E_NO_KEY);
    /* Out of order. */
    handshake_clear(&p.r.hs);
    assert_int_equal(create_response(&p, &response), HANDSHAKE_E_STATE);
    assert_int_equal(handshake_derive(&p.r.hs, chacha(), NULL, 0, &kp), HANDSHAKE_E_STATE);
}

/* Somebody who knows the responder's key, but not the initiator's secret, is found out. */
static void test_impostor(void **state)
{
    struct noise_remote as_seen_by_impostor;
    struct x25519_secret secret;
    struct noise_local impostor;
    struct wg_initiation msg;
    struct handshake hs = {0};
    struct pair p;

    pair_init(&p, 8);
    memset(&impostor, 0, sizeof(impostor));
    x25519_secret_make(&secret, &p.rng);
    noise_local_set(&impostor, &secret);
    impostor.public = p.i.local.public;
    noise_remote_init(&as_seen_by_impostor, &noise_profile_wireguard, &impostor, &p.r.local.public);
    assert_int_equal(
        handshake_create_initiation(&hs, &impostor, &as_seen_by_impostor, 1, WALL, &p.rng, &msg),
        0);
    assert_int_equal(take_initiation(&p, &msg, 0), HANDSHAKE_E_INVALID);
    assert_int_equal(p.r.hs.state, HANDSHAKE_STATE_NONE);
    handshake_clear(&hs);
}

/* Either end under its own key or the next one: each of the four is a session of the same pair, and
 * what was sent under one is a replay under every other. */
static void test_next_keys(void **state)
{
    struct x25519_secret secret;
    struct noise_local i_next, r_next;
    struct wg_initiation first;
    struct pair p;

    pair_init(&p, 9);
    x25519_secret_make(&secret, &p.rng);
    noise_local_set(&i_next, &secret);
    x25519_secret_make(&secret, &p.rng);
    noise_local_set(&r_next, &secret);
    for (unsigned n = 0; n < 4; n++) {
        const struct noise_local *i_local = n & 1 ? &i_next : &p.i.local;
        const struct noise_local *r_local = n & 2 ? &r_next : &p.r.local;
        struct noise_remote at_i, at_r;
        struct handshake_incoming in;
        struct wg_initiation msg;
        struct wg_response answer;
        struct keypair *ki, *kr;

        noise_remote_under(&at_i, &p.i.remote, i_local, &r_local->public);
        assert_int_equal(
            handshake_create_initiation(&p.i.hs, i_local, &at_i, 10 + n, WALL + n, &p.rng, &msg),
            0);
        noise_remote_remember(&p.i.remote, &at_i);
        if (n == 0)
            first = msg;
        assert_int_equal(handshake_open_initiation(r_local, &p.r.remote.profile, 1, &msg, &in), 0);
        assert_true(x25519_public_equal(&in.public, &i_local->public));
        noise_remote_under(&at_r, &p.r.remote, r_local, &in.public);
        assert_int_equal(
            handshake_consume_initiation(&p.r.hs, &at_r, &in, (nsec_t)n * NSEC_PER_SEC), 0);
        assert_int_equal(handshake_create_response(&p.r.hs, &at_r, 20 + n, &p.rng, &answer), 0);
        noise_remote_remember(&p.r.remote, &at_r);
        assert_int_equal(handshake_consume_response(&p.i.hs, i_local, &p.i.remote, &answer), 0);
        assert_int_equal(handshake_derive(&p.i.hs, chacha(), NULL, 0, &ki), 0);
        assert_int_equal(handshake_derive(&p.r.hs, chacha(), NULL, 0, &kr), 0);
        assert_true(talks(ki, kr) && talks(kr, ki));
        keypair_unref(ki);
        keypair_unref(kr);
    }
    /* The peers are still known under their own keys, and their clocks stand at the last one. */
    assert_true(x25519_public_equal(&p.i.remote.public, &p.r.local.public));
    assert_int_equal(take_initiation(&p, &first, 9 * NSEC_PER_SEC), HANDSHAKE_E_REPLAY);
    noise_remote_set_public(&p.i.remote, &i_next, &r_next.public);
    noise_remote_set_public(&p.r.remote, &r_next, &i_next.public);
    p.i.local = i_next;
    p.r.local = r_next;
    assert_int_equal(create_initiation(&p, WALL + NSEC_PER_SEC, &first), 0);
    assert_int_equal(take_initiation(&p, &first, 10 * NSEC_PER_SEC), 0);
    handshake_clear(&p.i.hs);
    handshake_clear(&p.r.hs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_replay_and_flood),
        cmocka_unit_test(test_clock_jump),
        cmocka_unit_test(test_psk),
        cmocka_unit_test(test_no_key),
        cmocka_unit_test(test_impostor),
        cmocka_unit_test(test_next_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
