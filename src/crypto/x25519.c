/* x25519.c - see x25519.h. */
#include "x25519.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/secret.h"
#include "base/text.h"
#include "crypto/x25519_internal.h"

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

/* ---- who multiplies ---- */

/* Fastest first; the last one is always there and is the judge. */
static const struct x25519_backend *const backends[] = {
    &x25519__boringssl,
    &x25519__openssl,
};

#define N_BACKENDS (sizeof(backends) / sizeof(*backends))

const struct x25519_backend *x25519_each(size_t i)
{
    return i < N_BACKENDS ? backends[i] : NULL;
}

/* Does it say what OpenSSL says, for some keys and for a point of small order? */
static bool is_correct(const struct x25519_backend *backend)
{
    struct x25519_secret secret = {{1, 2, 3}};
    struct x25519_public public[2], zero = {{0}};
    struct x25519_shared shared[2];

    for (uint8_t i = 0; i < 4; i++) {
        secret.b[7] = i;
        x25519_secret_clamp(&secret);
        if (!backend->derive_public(&secret, &public[0]) ||
            !x25519__openssl.derive_public(&secret, &public[1]) ||
            !x25519_public_equal(&public[0], &public[1]))
            return false;
        if (!backend->dh(&secret, &public[0], &shared[0]) ||
            !x25519__openssl.dh(&secret, &public[0], &shared[1]) ||
            memcmp(&shared[0], &shared[1], sizeof(shared[0])) != 0)
            return false;
    }
    return !backend->dh(&secret, &zero, &shared[0]);
}

/* Chosen once, at the first use. */
static struct {
    pthread_once_t once;
    const struct x25519_backend *backend;
} chosen = {.once = PTHREAD_ONCE_INIT, .backend = &x25519__openssl};

static void choose(void)
{
    size_t i = 0;

    while (i + 1 < N_BACKENDS && !(backends[i]->is_available() && is_correct(backends[i])))
        i++;
    chosen.backend = backends[i];
}

static const struct x25519_backend *best(void)
{
    (void)pthread_once(&chosen.once, choose);
    return chosen.backend;
}

bool x25519_derive_public(const struct x25519_secret *secret, struct x25519_public *ret)
{
    return best()->derive_public(secret, ret);
}

bool x25519_dh(const struct x25519_secret *secret, const struct x25519_public *public,
    struct x25519_shared *ret)
{
    return best()->dh(secret, public, ret);
}

/* ---- keys as text ---- */

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
