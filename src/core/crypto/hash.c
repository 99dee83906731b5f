/* hash.c - see hash.h. */
#include "crypto/hash.h"

#include <stdbool.h>
#include <string.h>

#include "base/secret.h"

/*
 * BLAKE2s is our own: a handshake hashes some fifty times, mostly less than a block, and
 * libcrypto's contexts cost several times what the hash does.
 */

#define BLOCK 64 /* bytes */

/* RFC 7693 section 2.6: as SHA-256's. */
static const uint32_t iv[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* Section 2.7: which words of the message each round takes. */
static const uint8_t sigma[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

/** A hash at work. Words are little-endian, and so must the CPU be. */
struct blake2s {
    uint32_t h[8];
    uint64_t n_bytes; /* compressed, or in block[] */
    size_t len;       /* bytes in block[] */
    uint8_t block[BLOCK];
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are taken as they lie");

static inline uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/* Section 3.1. */
static inline void mix(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d, uint32_t x, uint32_t y)
{
    *a += *b + x;
    *d = rotate(*d ^ *a, 16);
    *c += *d;
    *b = rotate(*b ^ *c, 12);
    *a += *b + y;
    *d = rotate(*d ^ *a, 8);
    *c += *d;
    *b = rotate(*b ^ *c, 7);
}

/* Section 3.2, of the filled block. */
static void compress(struct blake2s *s, bool is_last)
{
    uint32_t m[16], v[16];

    memcpy(m, s->block, sizeof(m));
    memcpy(v, s->h, sizeof(s->h));
    memcpy(v + 8, iv, sizeof(iv));
    v[12] ^= (uint32_t)s->n_bytes;
    v[13] ^= (uint32_t)(s->n_bytes >> 32);
    v[14] ^= is_last ? UINT32_MAX : 0;
    /* Unrolled, the places are constants, and the words stay in registers. */
#pragma GCC unroll 10
    for (unsigned i = 0; i < 10; i++) {
        const uint8_t *at = sigma[i];

        mix(&v[0], &v[4], &v[8], &v[12], m[at[0]], m[at[1]]);
        mix(&v[1], &v[5], &v[9], &v[13], m[at[2]], m[at[3]]);
        mix(&v[2], &v[6], &v[10], &v[14], m[at[4]], m[at[5]]);
        mix(&v[3], &v[7], &v[11], &v[15], m[at[6]], m[at[7]]);
        mix(&v[0], &v[5], &v[10], &v[15], m[at[8]], m[at[9]]);
        mix(&v[1], &v[6], &v[11], &v[12], m[at[10]], m[at[11]]);
        mix(&v[2], &v[7], &v[8], &v[13], m[at[12]], m[at[13]]);
        mix(&v[3], &v[4], &v[9], &v[14], m[at[14]], m[at[15]]);
    }
    for (unsigned i = 0; i < 8; i++)
        s->h[i] ^= v[i] ^ v[i + 8];
}

static void update(struct blake2s *s, const uint8_t *p, size_t len)
{
    while (len > 0) {
        size_t n = BLOCK - s->len < len ? BLOCK - s->len : len;

        /* A full block waits until it is known not to be the last. */
        if (n == 0) {
            compress(s, false);
            s->len = 0;
            continue;
        }
        memcpy(s->block + s->len, p, n);
        s->len += n;
        s->n_bytes += n;
        p += n;
        len -= n;
    }
}

/* Section 3.3: the whole of it, for an output of @ret_len bytes. */
static void hash(const void *key, size_t key_len, const void *a, size_t a_len, const void *b,
    size_t b_len, uint8_t *ret, size_t ret_len)
{
    struct blake2s s = {.n_bytes = 0};

    memcpy(s.h, iv, sizeof(iv));
    s.h[0] ^= (uint32_t)(0x01010000 | key_len << 8 | ret_len);
    if (key_len > 0) {
        memcpy(s.block, key, key_len);
        s.len = s.n_bytes = BLOCK;
    }
    update(&s, a, a_len);
    update(&s, b, b_len);
    memset(s.block + s.len, 0, BLOCK - s.len);
    compress(&s, true);
    memcpy(ret, s.h, ret_len);
    secret_wipe(&s, sizeof(s));
}

void blake2s_hash(
    const void *a, size_t a_len, const void *b, size_t b_len, struct blake2s_digest *ret)
{
    hash(NULL, 0, a, a_len, b, b_len, ret->b, sizeof(ret->b));
}

void blake2s_mac16(const void *key, size_t key_len, const void *a, size_t a_len, const void *b,
    size_t b_len, struct blake2s_mac *ret)
{
    hash(key, key_len, a, a_len, b, b_len, ret->b, sizeof(ret->b));
}

void blake2s_mac32(const void *key, size_t key_len, const void *a, size_t a_len, const void *b,
    size_t b_len, struct blake2s_digest *ret)
{
    hash(key, key_len, a, a_len, b, b_len, ret->b, sizeof(ret->b));
}

/* ---- HMAC and HKDF ---- */

/* HMAC(@key, @data), @len bytes of it. */
static void hmac_blake2s(
    const struct blake2s_digest *key, const void *data, size_t len, struct blake2s_digest *ret)
{
    struct {
        uint8_t ipad[BLOCK];
        uint8_t opad[BLOCK];
        struct blake2s_digest inner;
    } s;

    for (size_t i = 0; i < BLOCK; i++) {
        uint8_t k = i < sizeof(key->b) ? key->b[i] : 0;

        s.ipad[i] = k ^ 0x36;
        s.opad[i] = k ^ 0x5c;
    }
    blake2s_hash(s.ipad, sizeof(s.ipad), data, len, &s.inner);
    blake2s_hash(s.opad, sizeof(s.opad), &s.inner, sizeof(s.inner), ret);
    secret_wipe(&s, sizeof(s));
}

void hkdf(const struct blake2s_digest *key, const void *input, size_t len,
    struct blake2s_digest *ret1, struct blake2s_digest *ret2, struct blake2s_digest *ret3)
{
    struct blake2s_digest *const outputs[] = {ret1, ret2, ret3};
    struct {
        struct blake2s_digest prk;         /* extracted from the input */
        uint8_t message[BLAKE2S_SIZE + 1]; /* the output before, and this one's number */
    } s;
    size_t before = 0;

    hmac_blake2s(key, input, len, &s.prk);
    for (uint8_t i = 0; i < 3 && outputs[i]; i++) {
        s.message[before] = (uint8_t)(i + 1);
        hmac_blake2s(&s.prk, s.message, before + 1, outputs[i]);
        memcpy(s.message, outputs[i], BLAKE2S_SIZE);
        before = BLAKE2S_SIZE;
    }
    secret_wipe(&s, sizeof(s));
}
