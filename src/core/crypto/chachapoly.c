/* chachapoly.c - see aead_internal.h. Compiled once with VECTOR_BITS=256 and once with 512. */
#include "crypto/aead_internal.h"

#include <immintrin.h>
#include <string.h>

#include "base/secret.h"

#include "crypto/chacha20_lanes.inc"
#include "crypto/poly1305_lanes.inc"

#if VECTOR_BITS == 512
#define SEAL chachapoly_seal_avx512
#define OPEN chachapoly_open_avx512
#else
#define SEAL chachapoly_seal_avx2
#define OPEN chachapoly_open_avx2
#endif

/** One message at work. */
struct work {
    struct chacha20 chacha;
    struct poly1305 poly;
    size_t filled; /* bytes of the stream that begins with block 0, the longest made */
    _Alignas(64) uint8_t stream[STREAM_MAX];
};

/* Section 2.8: the stream's block 0 is the authenticator's key; text begins with block 1. */
static inline void begin(struct work *w, const struct aead_key *key, const struct aead_nonce *nonce,
    const void *ad, size_t ad_len, size_t len)
{
    static const uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};

    memcpy(&w->chacha.words[0], constants, sizeof(constants));
    memcpy(&w->chacha.words[4], key->b, sizeof(key->b));
    w->chacha.words[12] = 0;
    memcpy(&w->chacha.words[13], nonce->b, sizeof(nonce->b));
    w->filled = chacha20_stream(&w->chacha, 0, CHACHA20_BLOCK + len, w->stream);
    poly1305_init(&w->poly, w->stream);
    poly1305_add_padded(&w->poly, ad, ad_len);
}

/* In pieces of 32 bytes, also where a vector has 64: the CPU cannot load as one what it has stored
 * in two halves, before that has reached the cache. */
static inline void xor_bytes(uint8_t *p, const uint8_t *stream, size_t len)
{
    for (; len >= sizeof(__m256i); len -= sizeof(__m256i)) {
        __m256i a = _mm256_loadu_si256((const __m256i *)p);
        __m256i b = _mm256_load_si256((const __m256i *)stream);

        _mm256_storeu_si256((__m256i *)p, _mm256_xor_si256(a, b));
        p += sizeof(__m256i);
        stream += sizeof(__m256i);
    }
    for (; len >= 8; len -= 8, p += 8, stream += 8) {
        uint64_t a = take_le64(p) ^ take_le64(stream);

        memcpy(p, &a, sizeof(a));
    }
    for (; len > 0; len--)
        *p++ ^= *stream++;
}

/* En- and decryption are the same. */
static inline void crypt(struct work *w, uint8_t *p, size_t len)
{
    size_t n = w->filled - CHACHA20_BLOCK;
    uint32_t counter = (uint32_t)(w->filled / CHACHA20_BLOCK);

    if (n > len)
        n = len;
    xor_bytes(p, w->stream + CHACHA20_BLOCK, n);
    for (p += n, len -= n; len > 0; p += n, len -= n) {
        n = chacha20_stream(&w->chacha, counter, len, w->stream);
        counter += (uint32_t)(n / CHACHA20_BLOCK);
        if (n > len)
            n = len;
        xor_bytes(p, w->stream, n);
    }
}

/* Over the encrypted text, whose @len bytes and the @ad_len before it end the message. */
static inline void make_tag(
    struct work *w, const uint8_t *p, size_t ad_len, size_t len, uint8_t tag[static AEAD_TAG_SIZE])
{
    uint64_t lens[2] = {ad_len, len};

    poly1305_add_padded(&w->poly, p, len);
    poly1305_blocks(&w->poly, (const uint8_t *)lens, 1);
    poly1305_finish(&w->poly, tag);
}

/* Of the stream, as much as was used. */
static inline void wipe(struct work *w)
{
    secret_wipe(w, offsetof(struct work, stream) + w->filled);
}

void SEAL(const struct aead_key *key, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    struct work w;

    begin(&w, key, nonce, ad, ad_len, len);
    crypt(&w, buf, len);
    make_tag(&w, buf, ad_len, len, buf + len);
    wipe(&w);
}

bool OPEN(const struct aead_key *key, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    size_t text_len = len - AEAD_TAG_SIZE;
    uint8_t tag[AEAD_TAG_SIZE];
    struct work w;
    bool ok;

    begin(&w, key, nonce, ad, ad_len, text_len);
    make_tag(&w, buf, ad_len, text_len, tag);
    ok = secret_equal(tag, buf + text_len, sizeof(tag));
    if (ok)
        crypt(&w, buf, text_len);
    wipe(&w);
    return ok;
}
