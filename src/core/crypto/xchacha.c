/* xchacha.c - see xchacha.h. */
#include "xchacha.h"

#include <openssl/evp.h>
#include <pthread.h>

#include "base/bytes.h"
#include "base/secret.h"
#include "crypto/aead_internal.h"

static EVP_CIPHER *chacha20;

/* Once, and never released: the look-up by EVP_chacha20() costs more than the block. */
static void fetch_chacha20(void)
{
    chacha20 = EVP_CIPHER_fetch(NULL, "ChaCha20", NULL);
}

/* The first key stream block of ChaCha20 with a 16-byte counter-and-nonce. */
static bool chacha20_block(
    const struct aead_key *key, const uint8_t counter_nonce[static 16], struct le32 ret[static 16])
{
    static const uint8_t zero[64];
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n;
    bool ok;

    (void)pthread_once(&once, fetch_chacha20);
    ok = ctx && chacha20 && EVP_EncryptInit_ex(ctx, chacha20, NULL, key->b, counter_nonce) == 1 &&
         EVP_EncryptUpdate(ctx, ret[0].b, &n, zero, sizeof(zero)) == 1;

    EVP_CIPHER_CTX_free(ctx);
    return ok;
}

bool hchacha20(const struct aead_key *key, const uint8_t nonce[static 16], struct aead_key *ret)
{
    /* Rows 0 and 3 of the input matrix, the ones that HChaCha20 puts out. */
    static const uint8_t sigma[16] = {"expand 32-byte k"};
    struct le32 block[16];
    bool ok = chacha20_block(key, nonce, block);

    /*
     * ChaCha20 adds its input to the permuted matrix, HChaCha20 does not.
     * Only rows 0 and 3 leave HChaCha20, and their inputs are public.
     */
    for (size_t i = 0; ok && i < 4; i++) {
        struct le32 in;

        memcpy(&in, sigma + 4 * i, sizeof(in));
        in = le32_make(le32_get(block[i]) - le32_get(in));
        memcpy(ret->b + 4 * i, &in, sizeof(in));
        memcpy(&in, nonce + 4 * i, sizeof(in));
        in = le32_make(le32_get(block[12 + i]) - le32_get(in));
        memcpy(ret->b + 16 + 4 * i, &in, sizeof(in));
    }
    secret_wipe(block, sizeof(block));
    return ok;
}

static struct aead_nonce inner_nonce(const struct xchacha_nonce *nonce)
{
    struct le64 tail;

    memcpy(&tail, nonce->b + 16, sizeof(tail));
    return aead_nonce_make(le64_get(tail));
}

bool xchacha_seal(const struct aead_key *key, const struct xchacha_nonce *nonce, const void *ad,
    size_t ad_len, uint8_t *buf, size_t len)
{
    struct aead_nonce inner = inner_nonce(nonce);
    struct aead_key subkey;
    bool ok = hchacha20(key, nonce->b, &subkey) && aead_seal_once(&aead__openssl_chacha20poly1305,
                                                       &subkey, &inner, ad, ad_len, buf, len);

    secret_wipe(&subkey, sizeof(subkey));
    return ok;
}

bool xchacha_open(const struct aead_key *key, const struct xchacha_nonce *nonce, const void *ad,
    size_t ad_len, uint8_t *buf, size_t len)
{
    struct aead_nonce inner = inner_nonce(nonce);
    struct aead_key subkey;
    bool ok = hchacha20(key, nonce->b, &subkey) && aead_open_once(&aead__openssl_chacha20poly1305,
                                                       &subkey, &inner, ad, ad_len, buf, len);

    secret_wipe(&subkey, sizeof(subkey));
    return ok;
}
