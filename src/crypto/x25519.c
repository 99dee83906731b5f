/* x25519.c - see x25519.h. */
#include "x25519.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/secret.h"
#include "base/text.h"

void x25519_secret_clamp(struct x25519_secret *secret)
{
    secret->b[0] &= 248;
    secret->b[31] = (secret->b[31] & 127) | 64;
}

void x25519_secret_make(struct x25519_secret *ret, const struct rng *rng)
{
    rng_fill(rng, ret->b, sizeof(ret->b));
    x25519_secret_clamp(ret);
}

bool x25519_secret_is_none(const struct x25519_secret *secret)
{
    return secret_is_zero(secret, sizeof(*secret));
}

bool x25519_public_is_none(const struct x25519_public *public)
{
    return secret_is_zero(public, sizeof(*public));
}

bool x25519_public_equal(const struct x25519_public *a, const struct x25519_public *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

int x25519_public_compare(const struct x25519_public *a, const struct x25519_public *b)
{
    return memcmp(a->b, b->b, sizeof(a->b));
}

static EVP_PKEY *load_secret(const struct x25519_secret *secret)
{
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret->b, sizeof(secret->b));
}

bool x25519_derive_public(const struct x25519_secret *secret, struct x25519_public *ret)
{
    EVP_PKEY *pkey = load_secret(secret);
    size_t len = sizeof(ret->b);
    bool ok = pkey && EVP_PKEY_get_raw_public_key(pkey, ret->b, &len) == 1 && len == sizeof(ret->b);

    /* Wipes the scalar. */
    EVP_PKEY_free(pkey);
    return ok;
}

/*
 * A private key for derivation only. Given the scalar alone, libcrypto computes
 * the public half, which costs as much as the derivation itself and is not used
 * by it; so it gets a stand-in.
 */
static EVP_PKEY *load_secret_for_dh(const struct x25519_secret *secret)
{
    static const struct x25519_public stand_in;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(
            OSSL_PKEY_PARAM_PRIV_KEY, (void *)(uintptr_t)secret->b, sizeof(secret->b)),
        OSSL_PARAM_construct_octet_string(
            OSSL_PKEY_PARAM_PUB_KEY, (void *)(uintptr_t)stand_in.b, sizeof(stand_in.b)),
        OSSL_PARAM_construct_end(),
    };
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "X25519", NULL);
    EVP_PKEY *pkey = NULL;

    if (ctx && EVP_PKEY_fromdata_init(ctx) == 1)
        (void)EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_KEYPAIR, params);
    EVP_PKEY_CTX_free(ctx);
    return pkey;
}

bool x25519_dh(const struct x25519_secret *secret, const struct x25519_public *public,
    struct x25519_shared *ret)
{
    EVP_PKEY *ours = load_secret_for_dh(secret);
    EVP_PKEY *theirs =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public->b, sizeof(public->b));
    EVP_PKEY_CTX *ctx = ours ? EVP_PKEY_CTX_new(ours, NULL) : NULL;
    struct x25519_shared shared;
    size_t len = sizeof(shared.b);
    bool ok;

    /* No validation of the peer's point: RFC 7748 has every string be a point. */
    ok = theirs && ctx && EVP_PKEY_derive_init(ctx) == 1 &&
         EVP_PKEY_derive_set_peer_ex(ctx, theirs, 0) == 1 &&
         EVP_PKEY_derive(ctx, shared.b, &len) == 1 && len == sizeof(shared.b) &&
         !secret_is_zero(&shared, sizeof(shared));
    if (ok)
        *ret = shared;
    secret_wipe(&shared, sizeof(shared));
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(theirs);
    EVP_PKEY_free(ours);
    return ok;
}

int x25519_public_parse(struct x25519_public *ret, const char *base64, struct err *e)
{
    struct x25519_public public;

    if (!base64_decode(base64, public.b, sizeof(public.b)))
        return err_set(
            e, -EINVAL, "\"%.60s\" is not a public key of 44 characters of base64", base64);
    *ret = public;
    return 0;
}

const char *x25519_public_format(
    const struct x25519_public *public, char buf[static X25519_BASE64_MAX])
{
    base64_encode(public->b, sizeof(public->b), buf);
    return buf;
}

bool x25519_public_parse_hex(struct x25519_public *ret, const char *hex)
{
    struct x25519_public public;

    if (!hex_decode(hex, public.b, sizeof(public.b)))
        return false;
    *ret = public;
    return true;
}

const char *x25519_public_format_hex(
    const struct x25519_public *public, char buf[static X25519_HEX_MAX])
{
    hex_encode(public->b, sizeof(public->b), buf);
    return buf;
}

int x25519_secret_parse(struct x25519_secret *ret, const char *base64, struct err *e)
{
    struct x25519_secret secret;
    bool ok = base64_decode(base64, secret.b, sizeof(secret.b));

    if (ok)
        *ret = secret;
    secret_wipe(&secret, sizeof(secret));
    return ok ? 0 : err_set(e, -EINVAL, "a private key is 44 characters of base64");
}

bool x25519_secret_parse_hex(struct x25519_secret *ret, const char *hex)
{
    struct x25519_secret secret;
    bool ok = hex_decode(hex, secret.b, sizeof(secret.b));

    if (ok)
        *ret = secret;
    secret_wipe(&secret, sizeof(secret));
    return ok;
}

void x25519_secret_write(const struct x25519_secret *secret, char buf[static X25519_BASE64_MAX])
{
    base64_encode(secret->b, sizeof(secret->b), buf);
}

void x25519_secret_write_hex(const struct x25519_secret *secret, char buf[static X25519_HEX_MAX])
{
    hex_encode(secret->b, sizeof(secret->b), buf);
}
