/* ed25519.c - see ed25519.h. */
#include "crypto/ed25519.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"

#define SIGN_BIT 0x80

/* y of the points whose order is 8, 4, 2 or 1, and the prime of the field, 2^255 - 19: RFC 8032
 * section 5.1. */
static const uint8_t small_orders[][ED25519_SIZE] = {
    {0},
    {1},
    {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0x7f},
    {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
        0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03,
        0x7a},
    {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
        0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc,
        0x05},
};
static const uint8_t prime[ED25519_SIZE] = {0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};

void ed25519_secret_make(struct ed25519_secret *ret, const struct rng *rng)
{
    rng_fill(rng, ret->b, sizeof(ret->b));
}

bool ed25519_derive_public(const struct ed25519_secret *secret, struct ed25519_public *ret)
{
    EVP_PKEY *key =
        EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret->b, sizeof(secret->b));
    size_t len = sizeof(ret->b);
    bool ok = key && EVP_PKEY_get_raw_public_key(key, ret->b, &len) == 1 && len == sizeof(ret->b);

    EVP_PKEY_free(key);
    return ok;
}

/* Is the number @a, in little endian, below @b? */
static bool is_below(const uint8_t a[static ED25519_SIZE], const uint8_t b[static ED25519_SIZE])
{
    for (unsigned i = ED25519_SIZE; i-- > 0;)
        if (a[i] != b[i])
            return a[i] < b[i];
    return false;
}

bool ed25519_public_can_be(const struct ed25519_public *public)
{
    struct ed25519_public y = *public;

    y.b[ED25519_SIZE - 1] &= (uint8_t)~SIGN_BIT;
    for (size_t i = 0; i < sizeof(small_orders) / sizeof(*small_orders); i++)
        if (memcmp(y.b, small_orders[i], sizeof(y.b)) == 0)
            return false;
    return is_below(y.b, prime);
}

int ed25519_public_compare(const struct ed25519_public *a, const struct ed25519_public *b)
{
    return memcmp(a->b, b->b, sizeof(a->b));
}

int ed25519_public_parse(struct ed25519_public *ret, const char *base64, struct err *e)
{
    if (!base64_decode(base64, ret->b, sizeof(ret->b)))
        return err_set(e, -EINVAL, "\"%.60s\" is no Ed25519 key: 44 characters of base64", base64);
    return 0;
}

const char *ed25519_public_format(
    const struct ed25519_public *public, char buf[static ED25519_BASE64_MAX])
{
    base64_encode(public->b, sizeof(public->b), buf);
    return buf;
}

bool ed25519_sign(struct ed25519_signature *ret, const struct ed25519_secret *secret,
    const void *message, size_t len)
{
    EVP_PKEY *key =
        EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret->b, sizeof(secret->b));
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    struct ed25519_signature made;
    size_t made_len = sizeof(made.b);
    bool ok = key && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
              EVP_DigestSign(ctx, made.b, &made_len, message, len) == 1 &&
              made_len == sizeof(made.b);

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    if (ok)
        *ret = made;
    return ok;
}

bool ed25519_verify(const struct ed25519_signature *signature, const struct ed25519_public *public,
    const void *message, size_t len)
{
    EVP_PKEY *key;
    EVP_MD_CTX *ctx;
    bool ok;

    if (!ed25519_public_can_be(public))
        return false;
    ctx = EVP_MD_CTX_new();
    /* A signature that is not good is no error of this thread. */
    (void)ERR_set_mark();
    key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public->b, sizeof(public->b));
    ok = ctx && key && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
         EVP_DigestVerify(ctx, signature->b, sizeof(signature->b), message, len) == 1;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    (void)ERR_pop_to_mark();
    return ok;
}
