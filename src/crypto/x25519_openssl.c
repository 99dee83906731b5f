/* x25519_openssl.c - X25519 by OpenSSL's libcrypto: the back end that is always there. */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/secret.h"
#include "crypto/x25519_internal.h"

static bool is_available(void)
{
    return true;
}

static EVP_PKEY *load_secret(const struct x25519_secret *secret)
{
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret->b, sizeof(secret->b));
}

static bool derive_public(const struct x25519_secret *secret, struct x25519_public *ret)
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

static bool dh(const struct x25519_secret *secret, const struct x25519_public *public,
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

const struct x25519_backend x25519__openssl = {
    .name = "openssl",
    .is_available = is_available,
    .derive_public = derive_public,
    .dh = dh,
};
