/*
 * test-poly1305.c - the vector form of Poly1305 against OpenSSL's, carries at their worst.
 *
 * In the AEAD the key comes out of ChaCha20, so its test cannot choose keys
 * that bring every limb to its limit. Compiled once for each width.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "base/secret.h"
#include "crypto/poly1305_lanes.inc"

#define LEN_MAX 2300

static bool has_vectors(void)
{
#if VECTOR_BITS == 512
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("bmi2");
#else
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#endif
}

/* OpenSSL's, over @len bytes filled up to a whole block with zeroes. */
static void reference(EVP_MAC_CTX *ctx, const uint8_t key[static 32], const uint8_t *p, size_t len,
    uint8_t tag[static 16])
{
    static const uint8_t zeroes[POLY_BLOCK];
    size_t n;

    assert_int_equal(EVP_MAC_init(ctx, key, 32, NULL), 1);
    assert_int_equal(EVP_MAC_update(ctx, p, len), 1);
    assert_int_equal(EVP_MAC_update(ctx, zeroes, -len % POLY_BLOCK), 1);
    assert_int_equal(EVP_MAC_final(ctx, tag, &n, 16), 1);
}

static void check(EVP_MAC_CTX *ctx, const uint8_t key[static 32], const uint8_t *p, size_t len)
{
    size_t first = len / 3 / POLY_BLOCK * POLY_BLOCK;
    uint8_t expected[16], tag[16];
    struct poly1305 poly;

    reference(ctx, key, p, len, expected);
    poly1305_init(&poly, key);
    poly1305_add_padded(&poly, p, len);
    poly1305_finish(&poly, tag);
    assert_memory_equal(tag, expected, sizeof(tag));
    /* In two parts, of which the second begins with a sum that is not zero. */
    poly1305_init(&poly, key);
    poly1305_add_padded(&poly, p, first);
    poly1305_add_padded(&poly, p + first, len - first);
    poly1305_finish(&poly, tag);
    assert_memory_equal(tag, expected, sizeof(tag));
}

/* Every length, with keys and messages of one repeated byte, among them the largest r. */
static void test_extremes(void **state)
{
    static const uint8_t bytes[] = {0x00, 0x01, 0x7f, 0x80, 0xfb, 0xff};
    EVP_MAC_CTX *ctx = *state;
    uint8_t key[32], text[LEN_MAX];

    for (size_t i = 0; i < sizeof(bytes) * sizeof(bytes); i++) {
        memset(key, bytes[i / sizeof(bytes)], sizeof(key));
        memset(text, bytes[i % sizeof(bytes)], sizeof(text));
        for (size_t len = 0; len < sizeof(text); len += 1 + len / 200)
            check(ctx, key, text, len);
    }
}

/* Sums that come out as 2^130 - 6 to 2^130 + 4 before the last reduction, and the same sums after
 * many blocks: with r = 1 the sum is that of the blocks. */
static void test_around_the_modulus(void **state)
{
    EVP_MAC_CTX *ctx = *state;
    uint8_t key[32] = {1}, text[LEN_MAX] = {0};

    for (size_t n = 1; n <= LEN_MAX / POLY_BLOCK; n++) {
        /* n blocks add n * 2^128: four of them are 2^130. */
        for (unsigned low = 0; low < 16; low++) {
            memset(text, 0, sizeof(text));
            text[0] = (uint8_t)low;
            check(ctx, key, text, n * POLY_BLOCK);
            memset(text, 0xff, POLY_BLOCK);
            text[0] = (uint8_t)(0xf0 + low);
            check(ctx, key, text, n * POLY_BLOCK);
        }
    }
}

static void test_random(void **state)
{
    EVP_MAC_CTX *ctx = *state;
    uint8_t key[32], text[LEN_MAX];
    uint64_t seed = 7539;
    struct rng rng = rng_seeded(&seed);

    for (unsigned round = 0; round < 4000; round++) {
        size_t off = rng_u32(&rng) % 64;

        rng_fill(&rng, key, sizeof(key));
        rng_fill(&rng, text, sizeof(text));
        check(ctx, key, text + off, rng_u32(&rng) % (sizeof(text) - off));
    }
}

static int set_up(void **state)
{
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "POLY1305", NULL);

    *state = EVP_MAC_CTX_new(mac);
    EVP_MAC_free(mac);
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    EVP_MAC_CTX_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_around_the_modulus),
        cmocka_unit_test(test_random),
    };

    /* What meson counts as a skip. */
    if (!has_vectors())
        return 77;
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
