/*
 * aead_openssl.c - the back ends that are always there.
 *
 * One EVP_CIPHER_CTX serves both directions: the direction is given with each
 * nonce, and neither cipher derives anything from it.
 */
#include <limits.h>
#include <openssl/evp.h>
#include <pthread.h>

#include "crypto/aead_internal.h"

static bool is_available(void)
{
    return true;
}

static void ctx_free(void *ctx)
{
    /* Cleanses the provider's copy of the key. */
    EVP_CIPHER_CTX_free(ctx);
}

static void *ctx_new(const EVP_CIPHER *cipher)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

    if (ctx && EVP_CipherInit_ex(ctx, cipher, NULL, NULL, NULL, 1) == 1)
        return ctx;
    EVP_CIPHER_CTX_free(ctx);
    return NULL;
}

/*
 * Fetched once: EVP_chacha20_poly1305() is looked up again by each context, which
 * costs more than sealing a handshake or a path frame does. Never released.
 */
static EVP_CIPHER *chacha20poly1305;

static void fetch_chacha20poly1305(void)
{
    chacha20poly1305 = EVP_CIPHER_fetch(NULL, "ChaCha20-Poly1305", NULL);
}

static void *chacha20poly1305_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, fetch_chacha20poly1305);
    return chacha20poly1305 ? ctx_new(chacha20poly1305) : NULL;
}

static void *aes256gcm_new(void)
{
    return ctx_new(EVP_aes_256_gcm());
}

static bool ctx_set_key(void *ctx, const struct aead_key *key)
{
    return EVP_CipherInit_ex(ctx, NULL, NULL, key->b, NULL, -1) == 1;
}

static void ctx_clear_key(void *ctx)
{
    static const struct aead_key zero;

    (void)ctx_set_key(ctx, &zero);
}

/* EVP counts in int; a datagram is far below that, and this is the one check. */
static bool lengths_fit(size_t ad_len, size_t len)
{
    return ad_len <= INT_MAX && len <= INT_MAX;
}

static bool start(
    EVP_CIPHER_CTX *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len, int enc)
{
    int n;

    return EVP_CipherInit_ex(ctx, NULL, NULL, NULL, nonce->b, enc) == 1 &&
           (ad_len == 0 || EVP_CipherUpdate(ctx, NULL, &n, ad, (int)ad_len) == 1);
}

static bool seal(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    int n;

    return lengths_fit(ad_len, len) && start(ctx, nonce, ad, ad_len, 1) &&
           (len == 0 || EVP_CipherUpdate(ctx, buf, &n, buf, (int)len) == 1) &&
           EVP_CipherFinal_ex(ctx, buf + len, &n) == 1 &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG_SIZE, buf + len) == 1;
}

static bool open(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    size_t text = len - AEAD_TAG_SIZE;
    int n;

    return lengths_fit(ad_len, len) && start(ctx, nonce, ad, ad_len, 0) &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, AEAD_TAG_SIZE, buf + text) == 1 &&
           (text == 0 || EVP_CipherUpdate(ctx, buf, &n, buf, (int)text) == 1) &&
           EVP_CipherFinal_ex(ctx, buf + text, &n) == 1;
}

const struct aead_algorithm aead__openssl_chacha20poly1305 = {
    .name = "chacha20poly1305",
    .backend = "openssl",
    .cipher = AEAD_CIPHER_CHACHA20POLY1305,
    .is_available = is_available,
    .ctx_new = chacha20poly1305_new,
    .ctx_set_key = ctx_set_key,
    .ctx_clear_key = ctx_clear_key,
    .seal = seal,
    .open = open,
    .ctx_free = ctx_free,
};

const struct aead_algorithm aead__openssl_aes256gcm = {
    .name = "aes256gcm",
    .backend = "openssl",
    .cipher = AEAD_CIPHER_AES256GCM,
    .is_available = is_available,
    .ctx_new = aes256gcm_new,
    .ctx_set_key = ctx_set_key,
    .ctx_clear_key = ctx_clear_key,
    .seal = seal,
    .open = open,
    .ctx_free = ctx_free,
};
