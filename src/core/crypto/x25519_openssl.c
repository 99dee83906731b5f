/*
 * x25519_openssl.c - X25519 by OpenSSL's libcrypto, which has it in assembly for CPUs with ADX.
 *
 * The multiplication takes 39 us where this was measured, and EVP_PKEY_derive()
 * with all that it needs 49: most of the rest are look-ups by name and locks.
 * So the functions of OpenSSL's provider, which EVP finds anew each time, are
 * found once. Their numbers and signatures are those of <openssl/core_dispatch.h>.
 */
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <string.h>

#include "base/secret.h"
#include "crypto/x25519_internal.h"

/* What the algorithm is called among others in a provider's list. */
#define NAME "X25519"

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
        if (strncmp(a->algorithm_names, NAME, strlen(NAME)) == 0 &&
            (a->algorithm_names[strlen(NAME)] == ':' || a->algorithm_names[strlen(NAME)] == '\0'))
            return a->implementation;
    return NULL;
}

static bool find(const OSSL_DISPATCH *table, int id, void *ret_fn)
{
    any_fn fn = NULL;

    for (; table && table->function_id && !fn; table++)
        if (table->function_id == id)
            fn = table->function;
    memcpy(ret_fn, &fn, sizeof(fn));
    return fn != NULL;
}

static bool find_all(const OSSL_PROVIDER *from)
{
    const OSSL_DISPATCH *key = find_table(from, OSSL_OP_KEYMGMT);
    const OSSL_DISPATCH *exchange = find_table(from, OSSL_OP_KEYEXCH);

    return find(key, OSSL_FUNC_KEYMGMT_NEW, &provider.key_new) &&
           find(key, OSSL_FUNC_KEYMGMT_IMPORT, &provider.key_import) &&
           find(key, OSSL_FUNC_KEYMGMT_FREE, &provider.key_free) &&
           find(exchange, OSSL_FUNC_KEYEXCH_NEWCTX, &provider.exchange_new) &&
           find(exchange, OSSL_FUNC_KEYEXCH_INIT, &provider.exchange_init) &&
           find(exchange, OSSL_FUNC_KEYEXCH_SET_PEER, &provider.exchange_set_peer) &&
           find(exchange, OSSL_FUNC_KEYEXCH_DERIVE, &provider.exchange_derive) &&
           find(exchange, OSSL_FUNC_KEYEXCH_FREECTX, &provider.exchange_free);
}

/* Of the provider that EVP would take. It and its functions stay for the life of the process. */
static void load(void)
{
    const OSSL_PROVIDER *from;

    provider.exchange = EVP_KEYEXCH_fetch(NULL, NAME, NULL);
    from = provider.exchange ? EVP_KEYEXCH_get0_provider(provider.exchange) : NULL;
    if (!from)
        return;
    provider.context = OSSL_PROVIDER_get0_provider_ctx(from);
    provider.is_found = find_all(from);
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

    (void)pthread_once(&provider.once, load);
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
