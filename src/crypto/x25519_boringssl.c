/*
 * x25519_boringssl.c - X25519 by BoringSSL, where the library is installed.
 *
 * A handshake is four multiplications, one of them by the base point, for
 * which BoringSSL has a table. Its calls take plain bytes and allocate nothing.
 */
#include <pthread.h>
#include <stdint.h>

#include "base/secret.h"
#include "crypto/boringssl.h"
#include "crypto/x25519_internal.h"

/* Of <openssl/curve25519.h> of BoringSSL. */
typedef int (*boringssl_dh_fn)(uint8_t *shared, const uint8_t *secret, const uint8_t *public);
typedef void (*boringssl_public_fn)(uint8_t *public, const uint8_t *secret);

static struct {
    pthread_once_t once;
    bool is_loaded;
    boringssl_dh_fn dh;            /* X25519: 0 for an all-zero result */
    boringssl_public_fn to_public; /* X25519_public_from_private */
} boringssl = {.once = PTHREAD_ONCE_INIT};

static void load(void)
{
    boringssl.is_loaded = boringssl_find("X25519", &boringssl.dh) &&
                          boringssl_find("X25519_public_from_private", &boringssl.to_public);
}

static bool is_available(void)
{
    (void)pthread_once(&boringssl.once, load);
    return boringssl.is_loaded;
}

static bool derive_public(const struct x25519_secret *secret, struct x25519_public *ret)
{
    boringssl.to_public(ret->b, secret->b);
    return true;
}

static bool dh(const struct x25519_secret *secret, const struct x25519_public *public,
    struct x25519_shared *ret)
{
    struct x25519_shared shared;
    bool ok = boringssl.dh(shared.b, secret->b, public->b) == 1;

    if (ok)
        *ret = shared;
    secret_wipe(&shared, sizeof(shared));
    return ok;
}

const struct x25519_backend x25519__boringssl = {
    .name = "boringssl",
    .is_available = is_available,
    .derive_public = derive_public,
    .dh = dh,
};
