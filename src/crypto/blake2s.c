/* blake2s.c - see blake2s.h. */
#include "blake2s.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdbool.h>

/* Fetched once: a fetch walks libcrypto's tables under its locks. Never freed. */
static struct {
    pthread_once_t once;
    EVP_MD *hash;
    EVP_MAC *mac;
} fetched = {.once = PTHREAD_ONCE_INIT};

static void fetch(void)
{
    fetched.hash = EVP_MD_fetch(NULL, "BLAKE2S-256", NULL);
    fetched.mac = EVP_MAC_fetch(NULL, "BLAKE2SMAC", NULL);
    assert(fetched.hash && fetched.mac);
}

void blake2s_hash(
    const void *a, size_t a_len, const void *b, size_t b_len, struct blake2s_digest *ret)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok;

    (void)pthread_once(&fetched.once, fetch);
    ok = ctx && EVP_DigestInit_ex2(ctx, fetched.hash, NULL) == 1 &&
         EVP_DigestUpdate(ctx, a, a_len) == 1 && EVP_DigestUpdate(ctx, b, b_len) == 1 &&
         EVP_DigestFinal_ex(ctx, ret->b, NULL) == 1;
    EVP_MD_CTX_free(ctx);
    assert(ok);
}

static void mac(const void *key, size_t key_len, const void *a, size_t a_len, const void *b,
    size_t b_len, uint8_t *ret, size_t ret_len)
{
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &ret_len),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC_CTX *ctx;
    size_t n;
    bool ok;

    (void)pthread_once(&fetched.once, fetch);
    ctx = EVP_MAC_CTX_new(fetched.mac);
    ok = ctx && EVP_MAC_init(ctx, key, key_len, params) == 1 &&
         EVP_MAC_update(ctx, a, a_len) == 1 && EVP_MAC_update(ctx, b, b_len) == 1 &&
         EVP_MAC_final(ctx, ret, &n, ret_len) == 1;
    EVP_MAC_CTX_free(ctx);
    assert(ok);
}

void blake2s_mac16(const void *key, size_t key_len, const void *a, size_t a_len, const void *b,
    size_t b_len, struct blake2s_mac *ret)
{
    mac(key, key_len, a, a_len, b, b_len, ret->b, sizeof(ret->b));
}

void blake2s_mac32(const void *key, size_t key_len, const void *a, size_t a_len, const void *b,
    size_t b_len, struct blake2s_digest *ret)
{
    mac(key, key_len, a, a_len, b, b_len, ret->b, sizeof(ret->b));
}
