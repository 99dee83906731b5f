/*
 * xeddsa.c - see xeddsa.h.
 *
 * The multiples of the base point are Ed25519's own, of libcrypto. There a secret scalar comes from
 * a seed: so the nonce is made from a seed, and its point is the public key of that seed. Such a
 * scalar r is 8 m with 2^251 <= m < 2^252; r or its negative, by one more random bit, is uniform
 * modulo the order up to a part in 2^126, and the point's negative has the other sign bit.
 *
 * The Edwards form of the public key has the sign bit zero, so the secret scalar is k or -k. Which
 * one is found out by verifying: that verification would be made against faults anyway. The
 * signature that does not verify never leaves this file.
 */
#include "crypto/xeddsa.h"

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/secret.h"
#include "crypto/ed25519.h"

#define SCALAR_SIZE 32
#define DIGEST_SIZE 64 /* of SHA-512 */
#define SIGN_BIT    0x80

/* The order of the base point, and the prime of the field: RFC 8032 section 5.1. */
static const uint8_t order_bytes[SCALAR_SIZE] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,
    0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10};
static const uint8_t prime_bytes[SCALAR_SIZE] = {0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};

/* hash1 of the specification, section 2.1: 2^256 - 1 - 1 in little endian. */
static const uint8_t nonce_prefix[SCALAR_SIZE] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

struct part {
    const void *p;
    size_t len;
};

/* SHA-512 of the @parts, one behind the other. */
static bool hash(const struct part parts[], size_t n, uint8_t ret[static DIGEST_SIZE])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha512(), NULL) == 1;

    for (size_t i = 0; ok && i < n; i++)
        ok = EVP_DigestUpdate(ctx, parts[i].p, parts[i].len) == 1;
    ok = ok && EVP_DigestFinal_ex(ctx, ret, NULL) == 1;
    EVP_MD_CTX_free(ctx);
    return ok;
}

/* ---- the public key ---- */

/* y = (u - 1) / (u + 1), with the sign bit zero: section 2.3. */
static bool edwards_compute(
    const struct x25519_public *public, uint8_t ret[static SCALAR_SIZE], BN_CTX *bn)
{
    BIGNUM *p = BN_CTX_get(bn);
    BIGNUM *u = BN_CTX_get(bn);
    BIGNUM *below = BN_CTX_get(bn);
    BIGNUM *y = BN_CTX_get(bn);

    return y && BN_lebin2bn(prime_bytes, SCALAR_SIZE, p) &&
           BN_lebin2bn(public->b, SCALAR_SIZE, u) && BN_copy(below, u) && BN_add_word(below, 1) &&
           BN_sub_word(u, 1) && BN_mod_inverse(below, below, p, bn) &&
           BN_mod_mul(y, u, below, p, bn) && BN_bn2lebinpad(y, ret, SCALAR_SIZE) == SCALAR_SIZE;
}

static bool edwards_of(const struct x25519_public *public, uint8_t ret[static SCALAR_SIZE])
{
    BN_CTX *bn = BN_CTX_new();
    bool ok = false;

    if (bn) {
        BN_CTX_start(bn);
        ok = edwards_compute(public, ret, bn);
        BN_CTX_end(bn);
    }
    BN_CTX_free(bn);
    return ok;
}

static bool verify(const struct xeddsa_signature *signature,
    const uint8_t edwards[static SCALAR_SIZE], const void *message, size_t len)
{
    struct ed25519_signature s;
    struct ed25519_public key;

    memcpy(s.b, signature->b, sizeof(s.b));
    memcpy(key.b, edwards, sizeof(key.b));
    return ed25519_verify(&s, &key, message, len);
}

bool xeddsa_verify(const struct xeddsa_signature *signature, const struct x25519_public *public,
    const void *message, size_t len)
{
    uint8_t edwards[SCALAR_SIZE];

    return x25519_public_can_be(public) && edwards_of(public, edwards) &&
           verify(signature, edwards, message, len);
}

/* ---- the secret ---- */

/* What signing needs, in one struct that is wiped. */
struct signing {
    struct x25519_secret k;            /* clamped */
    struct x25519_public public;       /* of k */
    uint8_t edwards[SCALAR_SIZE];      /* of public */
    uint8_t random[XEDDSA_SIZE];       /* Z of the specification */
    uint8_t nonce[DIGEST_SIZE];        /* the seed, and which sign */
    uint8_t r[DIGEST_SIZE];            /* the first half, clamped: the nonce's scalar */
    uint8_t point[SCALAR_SIZE];        /* R */
    uint8_t challenge[DIGEST_SIZE];    /* h, not reduced */
    struct xeddsa_signature candidate; /* with k, or with -k */
};

/* r and R; @s->nonce says of which seed. RFC 8032 section 5.1.5 makes them of it. */
static bool make_point(struct signing *s)
{
    const struct part seed = {s->nonce, SCALAR_SIZE};
    size_t len = SCALAR_SIZE;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, s->nonce, SCALAR_SIZE);
    bool ok = key && EVP_PKEY_get_raw_public_key(key, s->point, &len) == 1 && len == SCALAR_SIZE &&
              hash(&seed, 1, s->r);

    EVP_PKEY_free(key);
    s->r[0] &= 248;
    s->r[31] = (s->r[31] & 127) | 64;
    if (s->nonce[SCALAR_SIZE] & 1)
        s->point[31] ^= SIGN_BIT;
    return ok;
}

/* s = r + h a, with r negative as the nonce says, and a negative if @negative. */
static bool compute_scalar(struct signing *s, bool negative, BN_CTX *bn)
{
    BIGNUM *order = BN_CTX_get(bn);
    BIGNUM *r = BN_CTX_get(bn);
    BIGNUM *h = BN_CTX_get(bn);
    BIGNUM *a = BN_CTX_get(bn);

    if (!a || !BN_lebin2bn(order_bytes, SCALAR_SIZE, order) || !BN_lebin2bn(s->r, SCALAR_SIZE, r) ||
        !BN_lebin2bn(s->challenge, DIGEST_SIZE, h) || !BN_lebin2bn(s->k.b, SCALAR_SIZE, a))
        return false;
    BN_set_flags(r, BN_FLG_CONSTTIME);
    BN_set_flags(a, BN_FLG_CONSTTIME);
    BN_set_negative(r, s->nonce[SCALAR_SIZE] & 1);
    BN_set_negative(a, negative);
    memcpy(s->candidate.b, s->point, SCALAR_SIZE);
    return BN_mod_mul(a, a, h, order, bn) && BN_mod_add(r, r, a, order, bn) &&
           BN_bn2lebinpad(r, s->candidate.b + SCALAR_SIZE, SCALAR_SIZE) == SCALAR_SIZE;
}

static bool make_candidate(struct signing *s, bool negative)
{
    BN_CTX *bn = BN_CTX_secure_new();
    bool ok = false;

    if (bn) {
        BN_CTX_start(bn);
        ok = compute_scalar(s, negative, bn);
        BN_CTX_end(bn);
    }
    BN_CTX_free(bn);
    return ok;
}

static bool sign(struct signing *s, const void *message, size_t len)
{
    const struct part nonce[] = {{nonce_prefix, sizeof(nonce_prefix)}, {s->k.b, sizeof(s->k.b)},
        {message, len}, {s->random, sizeof(s->random)}};
    const struct part challenge[] = {
        {s->point, SCALAR_SIZE}, {s->edwards, SCALAR_SIZE}, {message, len}};

    if (!x25519_derive_public(&s->k, &s->public) || !edwards_of(&s->public, s->edwards) ||
        !hash(nonce, sizeof(nonce) / sizeof(*nonce), s->nonce) || !make_point(s) ||
        !hash(challenge, sizeof(challenge) / sizeof(*challenge), s->challenge))
        return false;
    for (int i = 0; i < 2; i++)
        if (make_candidate(s, i == 1) && verify(&s->candidate, s->edwards, message, len))
            return true;
    return false;
}

bool xeddsa_sign(struct xeddsa_signature *ret, const struct x25519_secret *secret,
    const void *message, size_t len, const struct rng *rng)
{
    struct signing s = {.k = *secret};
    bool ok;

    x25519_secret_clamp(&s.k);
    rng_fill(rng, s.random, sizeof(s.random));
    ok = sign(&s, message, len);
    if (ok)
        *ret = s.candidate;
    secret_wipe(&s, sizeof(s));
    return ok;
}
