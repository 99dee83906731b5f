/*
 * aead_vector.c - the back ends "avx512" and "avx2": our own ChaCha20-Poly1305.
 *
 * There is nothing to expand or to allocate per key, so a context is the key.
 */
#include <stdlib.h>

#include "base/secret.h"
#include "crypto/aead_internal.h"

/*
 * Bytes of a message that is left to the 256-bit code on any CPU. The upper halves of 512-bit
 * units are switched off when nobody uses them, and while they come back they are slow: a lone
 * small packet would pay for that each time. Among many it costs a fifteenth of the cipher's time.
 */
#define SHORT_MAX 256

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static void *ctx_new(void)
{
    return calloc(1, sizeof(struct aead_key));
}

static bool ctx_set_key(void *ctx, const struct aead_key *key)
{
    memcpy(ctx, key, sizeof(*key));
    return true;
}

static void ctx_clear_key(void *ctx)
{
    secret_wipe(ctx, sizeof(struct aead_key));
}

static void ctx_free(void *ctx)
{
    if (!ctx)
        return;
    ctx_clear_key(ctx);
    free(ctx);
}

static bool seal_avx2(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    chachapoly_seal_avx2(ctx, nonce, ad, ad_len, buf, len);
    return true;
}

static bool open_avx2(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    return chachapoly_open_avx2(ctx, nonce, ad, ad_len, buf, len);
}

static bool seal_avx512(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    if (len <= SHORT_MAX)
        return seal_avx2(ctx, nonce, ad, ad_len, buf, len);
    chachapoly_seal_avx512(ctx, nonce, ad, ad_len, buf, len);
    return true;
}

static bool open_avx512(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    if (len <= SHORT_MAX)
        return open_avx2(ctx, nonce, ad, ad_len, buf, len);
    return chachapoly_open_avx512(ctx, nonce, ad, ad_len, buf, len);
}

const struct aead_algorithm aead__avx512_chacha20poly1305 = {
    .name = "chacha20poly1305",
    .backend = "avx512",
    .cipher = AEAD_CIPHER_CHACHA20POLY1305,
    .is_available = has_avx512,
    .ctx_new = ctx_new,
    .ctx_set_key = ctx_set_key,
    .ctx_clear_key = ctx_clear_key,
    .seal = seal_avx512,
    .open = open_avx512,
    .ctx_free = ctx_free,
};

const struct aead_algorithm aead__avx2_chacha20poly1305 = {
    .name = "chacha20poly1305",
    .backend = "avx2",
    .cipher = AEAD_CIPHER_CHACHA20POLY1305,
    .is_available = has_avx2,
    .ctx_new = ctx_new,
    .ctx_set_key = ctx_set_key,
    .ctx_clear_key = ctx_clear_key,
    .seal = seal_avx2,
    .open = open_avx2,
    .ctx_free = ctx_free,
};
