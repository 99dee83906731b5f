/* cookie.c - see cookie.h. */
#include "cookie.h"

#include <string.h>

#include "base/secret.h"
#include "crypto/aead.h"

/* Whitepaper 5.4: LABEL-MAC1 and LABEL-COOKIE, 8 bytes each without a zero. */
static const char label_mac1[8] = {"mac1----"};
static const char label_cookie[8] = {"cookie--"};

static_assert(sizeof(((struct wg_macs *)NULL)->mac1) == sizeof(struct blake2s_mac), "5.4.4");
static_assert(WG_COOKIE_NONCE == XCHACHA_NONCE_SIZE, "5.4.7");

static void label_hash(
    const char label[static 8], const struct x25519_public *public, struct blake2s_digest *ret)
{
    blake2s_hash(label, 8, public->b, sizeof(public->b), ret);
}

static void cookie_key_of(const struct x25519_public *public, struct aead_key *ret)
{
    struct blake2s_digest h;

    label_hash(label_cookie, public, &h);
    memcpy(ret->b, h.b, sizeof(ret->b));
}

static struct wg_macs macs_of(const void *msg, size_t len)
{
    struct wg_macs macs;

    memcpy(&macs, (const uint8_t *)msg + len - sizeof(macs), sizeof(macs));
    return macs;
}

/* 5.4.4: mac1 covers everything before it. */
static void mac1_of(
    const struct blake2s_digest *key, const void *msg, size_t len, struct blake2s_mac *ret)
{
    blake2s_mac16(key->b, sizeof(key->b), msg, len - sizeof(struct wg_macs), NULL, 0, ret);
}

/* 5.4.4: mac2 covers everything before it, mac1 included. */
static void mac2_of(const uint8_t cookie[static WG_COOKIE_SIZE], const void *msg, size_t len,
    struct blake2s_mac *ret)
{
    blake2s_mac16(cookie, WG_COOKIE_SIZE, msg, len - sizeof(struct blake2s_mac), NULL, 0, ret);
}

void cookie_checker_set_key(struct cookie_checker *checker, const struct x25519_public *public)
{
    label_hash(label_mac1, public, &checker->mac1_key);
    cookie_key_of(public, &checker->cookie_key);
}

void cookie_checker_share(struct cookie_checker *checker, const struct cookie_checker *from)
{
    checker->secret = from->secret;
    checker->secret_birth = from->secret_birth;
    checker->has_secret = from->has_secret;
}

bool cookie_check_mac1(const struct cookie_checker *checker, const void *msg, size_t len)
{
    struct wg_macs macs = macs_of(msg, len);
    struct blake2s_mac expected;

    mac1_of(&checker->mac1_key, msg, len, &expected);
    return secret_equal(&expected, macs.mac1, sizeof(expected));
}

/* 5.4.7: the cookie is a MAC of the source address and port under the secret of the day. */
static void cookie_for(
    const struct cookie_checker *checker, const struct endpoint *src, struct blake2s_mac *ret)
{
    struct be16 port = be16_make(src->port);

    blake2s_mac16(checker->secret.b, sizeof(checker->secret.b), src->addr.b, sizeof(src->addr.b),
        &port, sizeof(port), ret);
}

bool cookie_checker_is_stale(const struct cookie_checker *checker, nsec_t now)
{
    return !checker->has_secret || now - checker->secret_birth >= WG_COOKIE_SECRET_MAX_AGE;
}

void cookie_checker_refresh(struct cookie_checker *checker, nsec_t now, const struct rng *rng)
{
    rng_fill(rng, checker->secret.b, sizeof(checker->secret.b));
    checker->secret_birth = now;
    checker->has_secret = true;
}

bool cookie_check_mac2(const struct cookie_checker *checker, const void *msg, size_t len,
    const struct endpoint *src, nsec_t now)
{
    struct wg_macs macs = macs_of(msg, len);
    struct blake2s_mac cookie;
    struct blake2s_mac expected;

    if (cookie_checker_is_stale(checker, now))
        return false;
    cookie_for(checker, src, &cookie);
    mac2_of(cookie.b, msg, len, &expected);
    secret_wipe(&cookie, sizeof(cookie));
    return secret_equal(&expected, macs.mac2, sizeof(expected));
}

bool cookie_create_reply(struct cookie_checker *checker, const void *msg, size_t len,
    const struct endpoint *src, nsec_t now, const struct rng *rng, struct wg_cookie_reply *ret)
{
    struct wg_macs macs = macs_of(msg, len);
    struct xchacha_nonce nonce;
    struct blake2s_mac cookie;

    if (cookie_checker_is_stale(checker, now))
        cookie_checker_refresh(checker, now, rng);
    cookie_for(checker, src, &cookie);
    rng_fill(rng, nonce.b, sizeof(nonce.b));
    ret->type = le32_make(WG_TYPE_COOKIE_REPLY);
    /* The sender index lies at the same place in both messages that a cookie may answer. */
    memcpy(&ret->receiver, (const uint8_t *)msg + offsetof(struct wg_initiation, sender),
        sizeof(ret->receiver));
    memcpy(ret->nonce, nonce.b, sizeof(ret->nonce));
    memcpy(ret->encrypted_cookie, cookie.b, sizeof(cookie.b));
    secret_wipe(&cookie, sizeof(cookie));
    return xchacha_seal(&checker->cookie_key, &nonce, macs.mac1, sizeof(macs.mac1),
        ret->encrypted_cookie, WG_COOKIE_SIZE);
}

static_assert(offsetof(struct wg_initiation, sender) == offsetof(struct wg_response, sender),
    "cookie_create_reply() relies on it");

void cookie_add_macs(
    struct cookie_maker *maker, const struct x25519_public *to, void *msg, size_t len, nsec_t now)
{
    uint8_t *macs = (uint8_t *)msg + len - sizeof(struct wg_macs);
    struct blake2s_digest key;
    struct blake2s_mac mac;

    label_hash(label_mac1, to, &key);
    mac1_of(&key, msg, len, &mac);
    memcpy(macs, mac.b, sizeof(mac.b));
    memcpy(maker->last_mac1, mac.b, sizeof(mac.b));
    maker->has_last_mac1 = true;

    /* The responder's secret may be older than the cookie is: stop a little before it. */
    if (maker->has_cookie &&
        now - maker->cookie_birth < WG_COOKIE_SECRET_MAX_AGE - WG_COOKIE_SECRET_LATENCY)
        mac2_of(maker->cookie, msg, len, &mac);
    else
        memset(&mac, 0, sizeof(mac));
    memcpy(macs + offsetof(struct wg_macs, mac2), mac.b, sizeof(mac.b));
}

bool cookie_consume_reply(struct cookie_maker *maker, const struct x25519_public *from,
    const struct wg_cookie_reply *msg, nsec_t now)
{
    uint8_t buf[WG_COOKIE_SIZE + WG_TAG_SIZE];
    struct xchacha_nonce nonce;
    struct aead_key key;
    bool ok;

    if (!maker->has_last_mac1)
        return false;
    memcpy(nonce.b, msg->nonce, sizeof(nonce.b));
    memcpy(buf, msg->encrypted_cookie, sizeof(buf));
    cookie_key_of(from, &key);
    ok = xchacha_open(&key, &nonce, maker->last_mac1, sizeof(maker->last_mac1), buf, sizeof(buf));
    if (ok) {
        memcpy(maker->cookie, buf, sizeof(maker->cookie));
        maker->cookie_birth = now;
        maker->has_cookie = true;
        maker->has_last_mac1 = false;
    }
    secret_wipe(buf, sizeof(buf));
    return ok;
}
