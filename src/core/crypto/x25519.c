/* x25519.c - see x25519.h. */
#include "crypto/x25519.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
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
} base_table = {.once = PTHREAD_ONCE_INIT};

static void check_table(void)
{
    struct x25519_secret secret = {{1, 2, 3}};
    struct x25519_public a, b;
    bool is_good = x25519__has_table();

    for (uint8_t i = 0; is_good && i < 4; i++) {
        secret.b[7] = i;
        x25519__table(&secret, &a);
        is_good = x25519__ladder(&secret, &b) && x25519_public_equal(&a, &b);
    }
    base_table.is_good = is_good;
}

bool x25519_derive_public(const struct x25519_secret *secret, struct x25519_public *ret)
{
    (void)pthread_once(&base_table.once, check_table);
    if (!base_table.is_good)
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

/* ---- by OpenSSL ---- */

/*
 * X25519 by OpenSSL's libcrypto, which has it in assembly for CPUs with ADX.
 *
 * The multiplication takes 39 us where this was measured, and EVP_PKEY_derive()
 * with all that it needs 49: most of the rest are look-ups by name and locks.
 * So the functions of OpenSSL's provider, which EVP finds anew each time, are
 * found once. Their numbers and signatures are those of <openssl/core_dispatch.h>.
 */

/* What the algorithm is called among others in a provider's list. */
#define PROVIDER_NAME "X25519"

typedef void (*any_fn)(void);

static struct {
    pthread_once_t once;
    EVP_KEYEXCH *exchange; /* owns, for the life of the process: keeps the provider loaded */
    bool is_found;         /* all of these */
    void *context;         /* the provider's */
    OSSL_FUNC_keymgmt_new_fn *key_new;
    OSSL_FUNC_keymgmt_import_fn *key_import;
    OSSL_FUNC_keymgmt_free_fn *key_free;
    OSSL_FUNC_keyexch_newctx_fn *exchange_new;
    OSSL_FUNC_keyexch_init_fn *exchange_init;
    OSSL_FUNC_keyexch_set_peer_fn *exchange_set_peer;
    OSSL_FUNC_keyexch_derive_fn *exchange_derive;
    OSSL_FUNC_keyexch_freectx_fn *exchange_free;
} provider = {.once = PTHREAD_ONCE_INIT};

/* The functions that @from has for an operation on X25519; NULL: none. */
static const OSSL_DISPATCH *find_table(const OSSL_PROVIDER *from, int operation)
{
    int no_cache;
    const OSSL_ALGORITHM *a = OSSL_PROVIDER_query_operation(from, operation, &no_cache);

    for (; a && a->algorithm_names; a++)
        if (strncmp(a->algorithm_names, PROVIDER_NAME, strlen(PROVIDER_NAME)) == 0 &&
            (a->algorithm_names[strlen(PROVIDER_NAME)] == ':' ||
                a->algorithm_names[strlen(PROVIDER_NAME)] == '\0'))
            return a->implementation;
    return NULL;
}

static bool dispatch_find(const OSSL_DISPATCH *table, int id, void *ret_fn)
{
    any_fn fn = NULL;

    for (; table && table->function_id && !fn; table++)
        if (table->function_id == id)
            fn = table->function;
    memcpy(ret_fn, &fn, sizeof(fn));
    return fn != NULL;
}

static bool dispatch_find_all(const OSSL_PROVIDER *from)
{
    const OSSL_DISPATCH *key = find_table(from, OSSL_OP_KEYMGMT);
    const OSSL_DISPATCH *exchange = find_table(from, OSSL_OP_KEYEXCH);

    return dispatch_find(key, OSSL_FUNC_KEYMGMT_NEW, &provider.key_new) &&
           dispatch_find(key, OSSL_FUNC_KEYMGMT_IMPORT, &provider.key_import) &&
           dispatch_find(key, OSSL_FUNC_KEYMGMT_FREE, &provider.key_free) &&
           dispatch_find(exchange, OSSL_FUNC_KEYEXCH_NEWCTX, &provider.exchange_new) &&
           dispatch_find(exchange, OSSL_FUNC_KEYEXCH_INIT, &provider.exchange_init) &&
           dispatch_find(exchange, OSSL_FUNC_KEYEXCH_SET_PEER, &provider.exchange_set_peer) &&
           dispatch_find(exchange, OSSL_FUNC_KEYEXCH_DERIVE, &provider.exchange_derive) &&
           dispatch_find(exchange, OSSL_FUNC_KEYEXCH_FREECTX, &provider.exchange_free);
}

/* Of the provider that EVP would take. It and its functions stay for the life of the process. */
static void ladder_load(void)
{
    const OSSL_PROVIDER *from;

    provider.exchange = EVP_KEYEXCH_fetch(NULL, PROVIDER_NAME, NULL);
    from = provider.exchange ? EVP_KEYEXCH_get0_provider(provider.exchange) : NULL;
    if (!from)
        return;
    provider.context = OSSL_PROVIDER_get0_provider_ctx(from);
    provider.is_found = dispatch_find_all(from);
}

/* Without a public key libcrypto would compute one and never use it: hence a stand-in. */
static void *new_key(const struct x25519_secret *secret, const struct x25519_public *public)
{
    static const struct x25519_public stand_in;
    const void *u = public ? public->b : stand_in.b;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(
            OSSL_PKEY_PARAM_PUB_KEY, (void *)(uintptr_t)u, X25519_SIZE),
        OSSL_PARAM_construct_end(),
        OSSL_PARAM_construct_end(),
    };
    void *key = provider.key_new(provider.context);

    if (secret)
        params[1] = OSSL_PARAM_construct_octet_string(
            OSSL_PKEY_PARAM_PRIV_KEY, (void *)(uintptr_t)secret->b, X25519_SIZE);
    if (key && !provider.key_import(key,
                   secret ? OSSL_KEYMGMT_SELECT_KEYPAIR : OSSL_KEYMGMT_SELECT_PUBLIC_KEY, params)) {
        provider.key_free(key);
        key = NULL;
    }
    return key;
}

bool x25519_dh(const struct x25519_secret *secret, const struct x25519_public *public,
    struct x25519_shared *ret)
{
    struct x25519_shared shared;
    size_t len = sizeof(shared.b);
    void *ours, *theirs, *exchange;
    bool ok;

    (void)pthread_once(&provider.once, ladder_load);
    if (!provider.is_found)
        return false;
    ours = new_key(secret, NULL);
    theirs = new_key(NULL, public);
    exchange = provider.exchange_new(provider.context);
    /* An all-zero result is its failure, and checked once more: this check is ours to make. */
    ok = ours && theirs && exchange && provider.exchange_init(exchange, ours, NULL) == 1 &&
         provider.exchange_set_peer(exchange, theirs) == 1 &&
         provider.exchange_derive(exchange, shared.b, &len, sizeof(shared.b)) == 1 &&
         len == sizeof(shared.b) && !secret_is_zero(&shared, sizeof(shared));
    if (ok)
        *ret = shared;
    secret_wipe(&shared, sizeof(shared));
    if (exchange)
        provider.exchange_free(exchange);
    if (theirs)
        provider.key_free(theirs);
    if (ours)
        provider.key_free(ours);
    return ok;
}

bool x25519__ladder(const struct x25519_secret *secret, struct x25519_public *ret)
{
    static const struct x25519_public base = {{9}}; /* RFC 7748 section 4.1 */
    struct x25519_shared shared;
    bool ok = x25519_dh(secret, &base, &shared);

    if (ok)
        memcpy(ret->b, shared.b, sizeof(ret->b));
    secret_wipe(&shared, sizeof(shared));
    return ok;
}

/* ---- by libsodium ---- */

/*
 * The base point's multiples by libsodium, loaded where it is installed.
 *
 * Libsodium has them in a table, read in constant time, which takes 21 us where
 * OpenSSL's ladder takes 39. For any other point the ladder is faster.
 */

#define SODIUM_LIBRARY  "libsodium.so.23"
#define SODIUM_FUNCTION "crypto_scalarmult_curve25519_base"

static struct {
    pthread_once_t once;
    int (*multiply)(uint8_t *public, const uint8_t *secret); /* NULL: not installed */
} sodium = {.once = PTHREAD_ONCE_INIT};

static void sodium_load(void)
{
    void *library = dlopen(SODIUM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void *p = library ? dlsym(library, SODIUM_FUNCTION) : NULL;

    memcpy(&sodium.multiply, &p, sizeof(p));
}

bool x25519__has_table(void)
{
    (void)pthread_once(&sodium.once, sodium_load);
    return sodium.multiply != NULL;
}

void x25519__table(const struct x25519_secret *secret, struct x25519_public *ret)
{
    (void)sodium.multiply(ret->b, secret->b);
}
