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

/* The coordinates below 2^255 - 19 of the points whose order divides 8, on the curve and its twist.
 * The last one is 2^255 - 20. */
static const struct x25519_public small_order[] = {
    {{0}},
    {{1}},
    {{0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4,
        0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49,
        0xb8, 0x00}},
    {{0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef,
        0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f,
        0x11, 0x57}},
    {{0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0x7f}},
};

/* Is it below 2^255 - 19, as every coordinate that is computed? */
static bool is_canonical(const struct x25519_public *public)
{
    if (public->b[31] != 0x7f || public->b[0] < 0xed)
        return public->b[31] < 0x80;
    for (size_t i = 1; i < X25519_SIZE - 1; i++)
        if (public->b[i] != 0xff)
            return true;
    return false;
}

bool x25519_public_can_be(const struct x25519_public *public)
{
    for (size_t i = 0; i < sizeof(small_order) / sizeof(*small_order); i++)
        if (x25519_public_equal(public, &small_order[i]))
            return false;
    return is_canonical(public);
}

bool x25519_public_equal(const struct x25519_public *a, const struct x25519_public *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

int x25519_public_compare(const struct x25519_public *a, const struct x25519_public *b)
{
    return memcmp(a->b, b->b, sizeof(a->b));
}

/* ---- the base point ---- */

/* Is the table there, and does it say what the ladder says? Found out once, at the first use. */
static struct {
    pthread_once_t once;
    bool is_good;
} table = {.once = PTHREAD_ONCE_INIT};

static void check_table(void)
{
    struct x25519_secret secret = {{1, 2, 3}};
    struct x25519_public a, b;
    bool is_good = x25519__has_table();

    for (uint8_t i = 0; is_good && i < 4; i++) {
        secret.b[7] = i;
        x25519_secret_clamp(&secret);
        x25519__table(&secret, &a);
        is_good = x25519__ladder(&secret, &b) && x25519_public_equal(&a, &b);
    }
    table.is_good = is_good;
}

bool x25519_derive_public(const struct x25519_secret *secret, struct x25519_public *ret)
{
    (void)pthread_once(&table.once, check_table);
    if (!table.is_good)
        return x25519__ladder(secret, ret);
    x25519__table(secret, ret);
    return true;
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
