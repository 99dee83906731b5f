/*
 * handshake.c - see handshake.h. The comments name the tokens of the pattern:
 *
 *     IKpsk2:  <- s   ...   -> e, es, s, ss, {t}   <- e, ee, se, psk
 *
 * What is computed on the way lies in a `struct transcript` on the stack and is
 * moved into the handshake only when all of a message is right.
 */
#include "handshake.h"

#include <assert.h>
#include <string.h>

#include "base/secret.h"
#include "crypto/hash.h"
#include "noise/keypair.h"

static_assert(sizeof(struct blake2s_digest) == sizeof(struct aead_key), "keys come out of hashes");
static_assert(sizeof(struct x25519_public) == WG_KEY_SIZE, "5.4.2");
static_assert(AEAD_TAG_SIZE == WG_TAG_SIZE, "5.4.2");
static_assert(sizeof(struct tai64n) == WG_TIMESTAMP_SIZE, "5.4.2");

/** The running state of one message; wiped before the function that holds it returns. */
struct transcript {
    struct blake2s_digest ck; /* chaining key */
    struct blake2s_digest h;  /* hash of everything so far */
    struct aead_key key;      /* of the next encryption */
};

/* h = HASH(h || data). */
static void mix_hash(struct transcript *t, const void *data, size_t len)
{
    blake2s_hash(t->h.b, sizeof(t->h.b), data, len, &t->h);
}

/* A public ephemeral goes into both: WireGuard's variation, because of the psk. */
static void mix_ephemeral(struct transcript *t, const struct x25519_public *public)
{
    hkdf(&t->ck, public->b, sizeof(public->b), &t->ck, NULL, NULL);
    mix_hash(t, public->b, sizeof(public->b));
}

/* (ck, key) = KDF2(ck, shared). */
static void mix_shared(struct transcript *t, const struct x25519_shared *shared)
{
    struct blake2s_digest key;

    hkdf(&t->ck, shared->b, sizeof(shared->b), &t->ck, &key, NULL);
    memcpy(t->key.b, key.b, sizeof(key.b));
    secret_wipe(&key, sizeof(key));
}

/* The same with a Diffie-Hellman first; false for a point that is refused. */
static bool mix_dh(
    struct transcript *t, const struct x25519_secret *secret, const struct x25519_public *public)
{
    struct x25519_shared shared;
    bool ok = x25519_dh(secret, public, &shared);

    if (ok)
        mix_shared(t, &shared);
    secret_wipe(&shared, sizeof(shared));
    return ok;
}

/* psk: (ck, tau, key) = KDF3(ck, psk); h = HASH(h || tau). */
static void mix_psk(struct transcript *t, const struct noise_psk *psk)
{
    struct blake2s_digest tau;
    struct blake2s_digest key;

    hkdf(&t->ck, psk->b, sizeof(psk->b), &t->ck, &tau, &key);
    mix_hash(t, tau.b, sizeof(tau.b));
    memcpy(t->key.b, key.b, sizeof(key.b));
    secret_wipe(&tau, sizeof(tau));
    secret_wipe(&key, sizeof(key));
}

/* Every handshake key is used once, so the nonce is always 0. */
static bool seal_and_mix(struct transcript *t, const void *text, size_t len, uint8_t *ret)
{
    struct aead_nonce nonce = aead_nonce_make(0);

    if (len)
        memcpy(ret, text, len);
    if (!aead_seal_once(aead_reference(AEAD_CIPHER_CHACHA20POLY1305), &t->key, &nonce, t->h.b,
            sizeof(t->h.b), ret, len))
        return false;
    mix_hash(t, ret, len + AEAD_TAG_SIZE);
    return true;
}

/* @len: of the encrypted text, tag included; @ret has room for all of it. */
static bool open_and_mix(struct transcript *t, const uint8_t *text, size_t len, uint8_t *ret)
{
    struct aead_nonce nonce = aead_nonce_make(0);

    memcpy(ret, text, len);
    if (!aead_open_once(aead_reference(AEAD_CIPHER_CHACHA20POLY1305), &t->key, &nonce, t->h.b,
            sizeof(t->h.b), ret, len))
        return false;
    mix_hash(t, text, len);
    return true;
}

/* <- s: both sides know the responder's static key beforehand. */
static void start(struct transcript *t, const struct noise_profile *profile,
    const struct x25519_public *responder)
{
    noise_profile_start(profile, &t->ck, &t->h);
    mix_hash(t, responder->b, sizeof(responder->b));
}

void handshake_clear(struct handshake *hs)
{
    secret_wipe(hs, sizeof(*hs));
}

/* -> e: a fresh ephemeral, into the transcript and onto the wire. */
static bool make_ephemeral(struct transcript *t, const struct rng *rng,
    struct x25519_secret *ret_secret, uint8_t ret_wire[static X25519_SIZE])
{
    struct x25519_public public;

    x25519_secret_make(ret_secret, rng);
    if (!x25519_derive_public(ret_secret, &public))
        return false;
    memcpy(ret_wire, public.b, sizeof(public.b));
    mix_ephemeral(t, &public);
    return true;
}

int handshake_create_initiation(struct handshake *hs, const struct noise_local *local,
    struct noise_remote *remote, uint32_t index, nsec_t wall, const struct rng *rng,
    struct wg_initiation *ret)
{
    struct {
        struct transcript t;
        struct x25519_secret ephemeral;
    } s;
    struct tai64n timestamp;
    int r = HANDSHAKE_E_INVALID;

    if (!local->has_key || !remote->has_static_static)
        return HANDSHAKE_E_NO_KEY;
    *ret = (struct wg_initiation){
        .type = le32_make(WG_TYPE_INITIATION),
        .sender = le32_make(index),
    };
    start(&s.t, remote->profile, &remote->public);
    /* e */
    if (!make_ephemeral(&s.t, rng, &s.ephemeral, ret->ephemeral))
        goto out;
    /* es */
    if (!mix_dh(&s.t, &s.ephemeral, &remote->public))
        goto out;
    /* s */
    if (!seal_and_mix(&s.t, local->public.b, sizeof(local->public.b), ret->encrypted_static))
        goto out;
    /* ss */
    mix_shared(&s.t, &remote->static_static);
    /* {t} */
    timestamp = tai64n_next(&remote->sent, wall);
    if (!seal_and_mix(&s.t, timestamp.b, sizeof(timestamp.b), ret->encrypted_timestamp))
        goto out;
    *hs = (struct handshake){
        .state = HANDSHAKE_STATE_INITIATION_CREATED,
        .profile = remote->profile,
        .local_index = index,
        .ephemeral = s.ephemeral,
        .chaining_key = s.t.ck,
        .hash = s.t.h,
    };
    r = 0;
out:
    secret_wipe(&s, sizeof(s));
    return r;
}

/* As handshake_open_initiation(), under one profile. @es: the Diffie-Hellman result of that name.
 */
static bool open_under(const struct noise_local *local, const struct noise_profile *profile,
    const struct x25519_public *ephemeral, const struct x25519_shared *es,
    const struct wg_initiation *msg, struct handshake_incoming *ret)
{
    struct transcript t;
    uint8_t buf[sizeof(msg->encrypted_static)];
    bool ok;

    start(&t, profile, &local->public);
    /* e */
    mix_ephemeral(&t, ephemeral);
    /* es */
    mix_shared(&t, es);
    /* s */
    ok = open_and_mix(&t, msg->encrypted_static, sizeof(msg->encrypted_static), buf);
    if (ok) {
        *ret = (struct handshake_incoming){
            .profile = profile,
            .remote_ephemeral = *ephemeral,
            .remote_index = le32_get(msg->sender),
            .chaining_key = t.ck,
            .hash = t.h,
        };
        memcpy(ret->public.b, buf, sizeof(ret->public.b));
        memcpy(
            ret->encrypted_timestamp, msg->encrypted_timestamp, sizeof(ret->encrypted_timestamp));
    }
    secret_wipe(&t, sizeof(t));
    return ok;
}

int handshake_open_initiation(const struct noise_local *local,
    const struct noise_profile *const *profiles, size_t n, const struct wg_initiation *msg,
    struct handshake_incoming *ret)
{
    struct x25519_public ephemeral;
    struct x25519_shared es;
    bool ok = false;

    if (!local->has_key)
        return HANDSHAKE_E_NO_KEY;
    memcpy(ephemeral.b, msg->ephemeral, sizeof(ephemeral.b));
    if (!x25519_dh(&local->secret, &ephemeral, &es))
        return HANDSHAKE_E_INVALID;
    for (size_t i = 0; !ok && i < n; i++)
        ok = open_under(local, profiles[i], &ephemeral, &es, msg, ret);
    secret_wipe(&es, sizeof(es));
    return ok ? 0 : HANDSHAKE_E_INVALID;
}

int handshake_consume_initiation(struct handshake *hs, struct noise_remote *remote,
    const struct handshake_incoming *in, nsec_t now)
{
    struct transcript t = {.ck = in->chaining_key, .h = in->hash};
    uint8_t buf[sizeof(in->encrypted_timestamp)];
    struct tai64n timestamp;
    int r = HANDSHAKE_E_NO_KEY;

    if (!remote->has_static_static)
        goto out;
    /* ss */
    mix_shared(&t, &remote->static_static);
    /* {t} */
    r = HANDSHAKE_E_INVALID;
    if (!open_and_mix(&t, in->encrypted_timestamp, sizeof(in->encrypted_timestamp), buf))
        goto out;
    memcpy(timestamp.b, buf, sizeof(timestamp.b));
    /* 5.1: only ever newer timestamps; and not more of them than one may legitimately send. */
    r = HANDSHAKE_E_REPLAY;
    if (tai64n_compare(&timestamp, &remote->received) <= 0)
        goto out;
    r = HANDSHAKE_E_FLOOD;
    if (remote->has_consumed &&
        now - remote->consumed_at < NSEC_PER_SEC / WG_INITIATIONS_PER_SECOND)
        goto out;
    remote->received = timestamp;
    remote->consumed_at = now;
    remote->has_consumed = true;
    r = HANDSHAKE_E_PROFILE;
    if (in->profile != remote->profile && !remote->takes_any)
        goto out;
    r = 0;
    *hs = (struct handshake){
        .state = HANDSHAKE_STATE_INITIATION_CONSUMED,
        .profile = in->profile,
        .remote_index = in->remote_index,
        .remote_ephemeral = in->remote_ephemeral,
        .chaining_key = t.ck,
        .hash = t.h,
    };
out:
    secret_wipe(&t, sizeof(t));
    return r;
}

int handshake_create_response(struct handshake *hs, const struct noise_remote *remote,
    uint32_t index, const struct rng *rng, struct wg_response *ret)
{
    struct {
        struct transcript t;
        struct x25519_secret ephemeral;
    } s;
    int r = HANDSHAKE_E_INVALID;

    if (hs->state != HANDSHAKE_STATE_INITIATION_CONSUMED)
        return HANDSHAKE_E_STATE;
    *ret = (struct wg_response){
        .type = le32_make(WG_TYPE_RESPONSE),
        .sender = le32_make(index),
        .receiver = le32_make(hs->remote_index),
    };
    s.t = (struct transcript){.ck = hs->chaining_key, .h = hs->hash};
    /* e */
    if (!make_ephemeral(&s.t, rng, &s.ephemeral, ret->ephemeral))
        goto out;
    /* ee, se */
    if (!mix_dh(&s.t, &s.ephemeral, &hs->remote_ephemeral) ||
        !mix_dh(&s.t, &s.ephemeral, &remote->public))
        goto out;
    /* psk */
    mix_psk(&s.t, &remote->psk);
    /* {} */
    if (!seal_and_mix(&s.t, NULL, 0, ret->encrypted_empty))
        goto out;
    hs->state = HANDSHAKE_STATE_RESPONSE_CREATED;
    hs->local_index = index;
    hs->ephemeral = s.ephemeral;
    hs->chaining_key = s.t.ck;
    hs->hash = s.t.h;
    r = 0;
out:
    secret_wipe(&s, sizeof(s));
    return r;
}

int handshake_consume_response(struct handshake *hs, const struct noise_local *local,
    const struct noise_remote *remote, const struct wg_response *msg)
{
    struct transcript t;
    struct x25519_public ephemeral;
    uint8_t buf[sizeof(msg->encrypted_empty)];
    int r = HANDSHAKE_E_INVALID;

    if (hs->state != HANDSHAKE_STATE_INITIATION_CREATED ||
        le32_get(msg->receiver) != hs->local_index)
        return HANDSHAKE_E_STATE;
    t = (struct transcript){.ck = hs->chaining_key, .h = hs->hash};
    /* e */
    memcpy(ephemeral.b, msg->ephemeral, sizeof(ephemeral.b));
    mix_ephemeral(&t, &ephemeral);
    /* ee, se */
    if (!mix_dh(&t, &hs->ephemeral, &ephemeral) || !mix_dh(&t, &local->secret, &ephemeral))
        goto out;
    /* psk */
    mix_psk(&t, &remote->psk);
    /* {} */
    if (!open_and_mix(&t, msg->encrypted_empty, sizeof(msg->encrypted_empty), buf))
        goto out;
    hs->state = HANDSHAKE_STATE_RESPONSE_CONSUMED;
    hs->remote_index = le32_get(msg->sender);
    hs->remote_ephemeral = ephemeral;
    hs->chaining_key = t.ck;
    hs->hash = t.h;
    r = 0;
out:
    secret_wipe(&t, sizeof(t));
    return r;
}

int handshake_derive(struct handshake *hs, const struct aead_algorithm *alg, void *owner,
    nsec_t now, struct keypair **ret)
{
    struct {
        struct blake2s_digest initiator; /* what the initiator seals with */
        struct blake2s_digest responder; /* what the responder seals with */
    } s;
    bool is_initiator = hs->state == HANDSHAKE_STATE_RESPONSE_CONSUMED;
    struct keypair *kp;
    int r;

    if (!is_initiator && hs->state != HANDSHAKE_STATE_RESPONSE_CREATED)
        return HANDSHAKE_E_STATE;
    assert(alg->cipher == hs->profile->transport);
    r = keypair_new(&kp);
    if (r < 0)
        return r;
    kp->alg = alg;
    kp->owner = owner;
    kp->local_index = hs->local_index;
    kp->remote_index = hs->remote_index;
    kp->birth = now;
    kp->is_initiator = is_initiator;
    /* 5.4.5 */
    hkdf(&hs->chaining_key, NULL, 0, &s.initiator, &s.responder, NULL);
    memcpy(&kp->seal_key, is_initiator ? &s.initiator : &s.responder, sizeof(struct aead_key));
    memcpy(&kp->open_key, is_initiator ? &s.responder : &s.initiator, sizeof(struct aead_key));
    secret_wipe(&s, sizeof(s));
    handshake_clear(hs);
    *ret = kp;
    return 0;
}
