/* test-crypto.c - published vectors, an independent implementation's, and every back end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/secret.h"
#include "base/text.h"
#include "crypto/aead.h"
#include "crypto/aead_internal.h"
#include "crypto/hash.h"
#include "test/vectors/vectors.h"

#define TEXT_MAX 2100

/* Our hash against libcrypto's, at every length around its blocks and in every split. */
static void test_blake2s_splits(void **state)
{
    uint8_t text[200];
    uint64_t seed = 7693;
    struct rng rng = rng_seeded(&seed);
    EVP_MD *md = EVP_MD_fetch(NULL, "BLAKE2S-256", NULL);

    rng_fill(&rng, text, sizeof(text));
    for (size_t len = 0; len <= sizeof(text); len++) {
        struct blake2s_digest expected, digest;

        assert_int_equal(EVP_Digest(text, len, expected.b, NULL, md, NULL), 1);
        for (size_t first = 0; first <= len; first++) {
            blake2s_hash(text, first, text + first, len - first, &digest);
            assert_memory_equal(&digest, &expected, sizeof(digest));
        }
    }
    EVP_MD_free(md);
}

static void test_blake2s(void **state)
{
    struct blake2s_digest expected;
    struct blake2s_digest whole;
    struct blake2s_digest parts;
    struct vectors v;
    uint8_t text[8];
    size_t len = 0;

    vectors_open(&v, "rfc.txt");
    while (vectors_next(&v)) {
        if (!vectors_has(&v, "hash"))
            continue;
        len = vectors_bytes(&v, "text", text, sizeof(text));
        vectors_exact(&v, "hash", expected.b, sizeof(expected.b));
    }
    vectors_close(&v);
    assert_int_equal(len, 3);
    blake2s_hash(text, len, NULL, 0, &whole);
    blake2s_hash(text, 1, text + 1, len - 1, &parts);
    assert_memory_equal(&whole, &expected, sizeof(whole));
    assert_memory_equal(&parts, &expected, sizeof(parts));
}

/* Keyed: the first and last entries of the BLAKE2 authors' blake2s-kat. mac1 covers 16 bytes. */
static void test_blake2s_keyed(void **state)
{
    static const uint8_t first[] = {0x48, 0xa8, 0x99, 0x7d, 0xa4, 0x07, 0x87, 0x6b, 0x3d, 0x79,
        0xc0, 0xd9, 0x23, 0x25, 0xad, 0x3b, 0x89, 0xcb, 0xb7, 0x54, 0xd8, 0x6a, 0xb7, 0x1a, 0xee,
        0x04, 0x7a, 0xd3, 0x45, 0xfd, 0x2c, 0x49};
    static const uint8_t last[] = {0x3f, 0xb7, 0x35, 0x06, 0x1a, 0xbc, 0x51, 0x9d, 0xfe, 0x97, 0x9e,
        0x54, 0xc1, 0xee, 0x5b, 0xfa, 0xd0, 0xa9, 0xd8, 0x58, 0xb3, 0x31, 0x5b, 0xad, 0x34, 0xbd,
        0xe9, 0x99, 0xef, 0xd7, 0x24, 0xdd};
    uint8_t bytes[255];
    struct blake2s_digest mac;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    blake2s_mac32(bytes, 32, NULL, 0, NULL, 0, &mac);
    assert_memory_equal(mac.b, first, sizeof(first));
    blake2s_mac32(bytes, 32, bytes, 100, bytes + 100, sizeof(bytes) - 100, &mac);
    assert_memory_equal(mac.b, last, sizeof(last));
}

/* Keyed hashes of both sizes against libcrypto's, for keys and texts of many lengths. */
static void test_macs(void **state)
{
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "BLAKE2SMAC", NULL);
    EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);
    uint8_t text[150];
    uint64_t seed = 7693;
    struct rng rng = rng_seeded(&seed);

    rng_fill(&rng, text, sizeof(text));
    for (size_t key_len = 1; key_len <= 32; key_len++)
        for (size_t len = 0; len <= sizeof(text); len += 1 + len / 20)
            for (size_t size = 16; size <= 32; size += 16) {
                OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
                    OSSL_PARAM_construct_end()};
                struct blake2s_digest expected = {{0}}, whole = {{0}};
                struct blake2s_mac half;
                size_t n;

                assert_int_equal(EVP_MAC_init(ctx, text, key_len, params), 1);
                assert_int_equal(EVP_MAC_update(ctx, text, len), 1);
                assert_int_equal(EVP_MAC_final(ctx, expected.b, &n, size), 1);
                blake2s_mac16(text, key_len, text, len / 3, text + len / 3, len - len / 3, &half);
                blake2s_mac32(text, key_len, text, len / 3, text + len / 3, len - len / 3, &whole);
                assert_memory_equal(expected.b, size == 16 ? half.b : whole.b, size);
            }
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
}

/* Seals and opens one vector, then changes one bit at each end. */
static void check_aead(const struct aead_algorithm *alg, const struct aead_key *key,
    const struct aead_nonce *nonce, const uint8_t *ad, size_t ad_len, const uint8_t *text,
    size_t len, const uint8_t *sealed)
{
    uint8_t buf[TEXT_MAX + AEAD_TAG_SIZE];

    memcpy(buf, text, len);
    assert_true(aead_seal_once(alg, key, nonce, ad, ad_len, buf, len));
    assert_memory_equal(buf, sealed, len + AEAD_TAG_SIZE);
    assert_true(aead_open_once(alg, key, nonce, ad, ad_len, buf, len + AEAD_TAG_SIZE));
    assert_memory_equal(buf, text, len);
    memcpy(buf, sealed, len + AEAD_TAG_SIZE);
    buf[0] ^= 1;
    assert_false(aead_open_once(alg, key, nonce, ad, ad_len, buf, len + AEAD_TAG_SIZE));
    memcpy(buf, sealed, len + AEAD_TAG_SIZE);
    buf[len + AEAD_TAG_SIZE - 1] ^= 0x80;
    assert_false(aead_open_once(alg, key, nonce, ad, ad_len, buf, len + AEAD_TAG_SIZE));
}

/* Every case of @file that names @alg's cipher, or all when @prefix is NULL. */
static void check_file(const struct aead_algorithm *alg, const char *file, const char *prefix)
{
    struct vectors v;
    unsigned n = 0;

    vectors_open(&v, file);
    while (vectors_next(&v)) {
        struct aead_key key;
        struct aead_nonce nonce;
        uint8_t ad[64];
        uint8_t text[TEXT_MAX];
        uint8_t sealed[TEXT_MAX + AEAD_TAG_SIZE];
        size_t ad_len;
        size_t len;

        if (!vectors_has(&v, "sealed") || (prefix && strncmp(v.title, prefix, strlen(prefix)) != 0))
            continue;
        n++;
        vectors_exact(&v, "key", key.b, sizeof(key.b));
        if (vectors_has(&v, "counter"))
            nonce = aead_nonce_make(vectors_u64(&v, "counter"));
        else
            vectors_exact(&v, "nonce", nonce.b, sizeof(nonce.b));
        ad_len = vectors_bytes(&v, "ad", ad, sizeof(ad));
        len = vectors_bytes(&v, "text", text, sizeof(text));
        vectors_exact(&v, "sealed", sealed, len + AEAD_TAG_SIZE);
        check_aead(alg, &key, &nonce, ad, ad_len, text, len, sealed);
    }
    assert_true(n > 0);
    vectors_close(&v);
}

/* Of the independent implementation. */
static const char *const reference_files[AEAD_CIPHER_N] = {
    [AEAD_CIPHER_CHACHA20POLY1305] = "aead.txt",
    [AEAD_CIPHER_AES256GCM] = "aead-aes256gcm.txt",
};

static void test_aead_vectors(void **state)
{
    const struct aead_algorithm *alg;

    for (size_t i = 0; (alg = aead_each(i)); i++) {
        if (!alg->is_available()) {
            print_message(
                "%s of %s: the library is not there, not tested\n", alg->name, alg->backend);
            continue;
        }
        check_file(alg, "rfc.txt", alg->name);
        check_file(alg, reference_files[alg->cipher], NULL);
    }
}

/* One hash over all that @alg makes of the lengths 0 to 2100, each opened again. */
static void hash_all_lengths(const struct aead_algorithm *alg, const struct aead_key *key,
    const uint8_t text[static TEXT_MAX], struct blake2s_digest *ret)
{
    uint8_t *all = malloc((size_t)(TEXT_MAX + AEAD_TAG_SIZE) * (TEXT_MAX + 1));
    struct aead_lane *lane;
    size_t off = 0;

    assert_non_null(all);
    assert_int_equal(aead_lane_new(&lane), 0);
    for (size_t len = 0; len <= TEXT_MAX; len++) {
        struct aead_nonce nonce = aead_nonce_make(len);
        uint8_t buf[TEXT_MAX + AEAD_TAG_SIZE];

        memcpy(buf, text, len);
        assert_true(aead_seal(lane, alg, key, &nonce, key, len % 9, buf, len));
        memcpy(all + off, buf, len + AEAD_TAG_SIZE);
        off += len + AEAD_TAG_SIZE;
        assert_true(aead_open(lane, alg, key, &nonce, key, len % 9, buf, len + AEAD_TAG_SIZE));
        assert_memory_equal(buf, text, len);
    }
    blake2s_hash(all, off, NULL, 0, ret);
    aead_lane_free(lane);
    free(all);
}

static void test_aead_all_lengths(void **state)
{
    const struct aead_algorithm *alg;

    for (size_t i = 0; (alg = aead_each(i)); i++) {
        struct blake2s_digest expected;
        struct blake2s_digest got;
        struct aead_key key;
        uint8_t text[TEXT_MAX];
        struct vectors v;

        if (!alg->is_available())
            continue;
        vectors_open(&v, reference_files[alg->cipher]);
        do
            assert_true(vectors_next(&v));
        while (!vectors_has(&v, "all"));
        vectors_exact(&v, "key", key.b, sizeof(key.b));
        vectors_exact(&v, "text", text, sizeof(text));
        vectors_exact(&v, "all", expected.b, sizeof(expected.b));
        vectors_close(&v);
        hash_all_lengths(alg, &key, text, &got);
        assert_memory_equal(&got, &expected, sizeof(got));
    }
}

/* Fastest first, of each cipher; OpenSSL's, which is always there, last. */
static void test_the_table_of_back_ends(void **state)
{
    static const char *const rows[] = {
#if defined(__x86_64__)
        "chacha20poly1305 of avx512",
#endif
        "chacha20poly1305 of boringssl",
#if defined(__x86_64__)
        "chacha20poly1305 of avx2",
#endif
        "chacha20poly1305 of openssl",
        "aes256gcm of ipsec-mb",
        "aes256gcm of boringssl",
        "aes256gcm of openssl"
    };
    const size_t n = sizeof(rows) / sizeof(*rows);

    for (size_t i = 0; i < n; i++) {
        const struct aead_algorithm *alg = aead_each(i);
        char row[64];

        assert_non_null(alg);
        (void)snprintf(row, sizeof(row), "%s of %s", alg->name, alg->backend);
        assert_string_equal(row, rows[i]);
        assert_string_equal(aead_cipher_names[alg->cipher], alg->name);
        /* There is nothing to release. */
        alg->ctx_free(NULL);
    }
    assert_null(aead_each(n));
    assert_null(aead_each(n + 1));
}

/* Which lengths, texts and contexts a back end made of OpenSSL's gets wrong. */
static struct {
    bool has_no_memory;
    size_t wrong_len;  /* seals a text of that length wrongly, but opens it; SIZE_MAX: none */
    size_t closed_len; /* does not open a text of that length */
    size_t open_len;   /* opens whatever is of that length */
} faulty;

static void *faulty_new(void)
{
    return faulty.has_no_memory ? NULL : aead_reference(AEAD_CIPHER_CHACHA20POLY1305)->ctx_new();
}

static bool faulty_seal(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    bool ok = aead_reference(AEAD_CIPHER_CHACHA20POLY1305)->seal(ctx, nonce, ad, ad_len, buf, len);

    buf[len + AEAD_TAG_SIZE - 1] ^= len == faulty.wrong_len;
    return ok;
}

static bool faulty_open(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    size_t text_len = len - AEAD_TAG_SIZE;

    buf[len - 1] ^= text_len == faulty.wrong_len;
    if (text_len == faulty.closed_len)
        return false;
    return aead_reference(AEAD_CIPHER_CHACHA20POLY1305)->open(ctx, nonce, ad, ad_len, buf, len) ||
           text_len == faulty.open_len;
}

/* What one that is wrong at one length does at it is enough for it not to be used. */
static void test_a_back_end_that_computes_wrongly(void **state)
{
    /* Of the known answer, and of the lengths around the strides of vector code. */
    static const size_t lens[] = {16, 0, 1, 65, 257, 1420, 2048};
    struct aead_algorithm alg = *aead_reference(AEAD_CIPHER_CHACHA20POLY1305);

    assert_true(aead__is_correct(&alg));
    alg.ctx_new = faulty_new;
    alg.seal = faulty_seal;
    alg.open = faulty_open;
    faulty.wrong_len = faulty.closed_len = faulty.open_len = SIZE_MAX;
    assert_true(aead__is_correct(&alg));
    for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
        faulty.wrong_len = lens[i];
        assert_false(aead__is_correct(&alg));
        faulty.wrong_len = SIZE_MAX;
        /* The known answer is not opened again. */
        faulty.closed_len = lens[i];
        assert_int_equal(aead__is_correct(&alg), lens[i] == 16);
        faulty.closed_len = SIZE_MAX;
        faulty.open_len = lens[i];
        assert_int_equal(aead__is_correct(&alg), lens[i] == 16);
        faulty.open_len = SIZE_MAX;
    }
    faulty.has_no_memory = true;
    assert_false(aead__is_correct(&alg));
    faulty.has_no_memory = false;
    alg.cipher = AEAD_CIPHER_AES256GCM;
    assert_false(aead__is_correct(&alg));
}

/* A context that was cleared has no key: what it seals is what one of zeroes does. */
static void test_a_cleared_context(void **state)
{
    static const char *const backends[] = {"openssl", "avx2", "avx512"};
    static const struct aead_key zero, key = {{1, 2, 3}};
    struct aead_nonce nonce = aead_nonce_make(0);
    const struct aead_algorithm *alg;

    for (size_t i = 0; (alg = aead_each(i)); i++) {
        uint8_t expected[AEAD_TAG_SIZE], tag[AEAD_TAG_SIZE];
        bool is_known = false;
        void *ctx;

        for (size_t k = 0; k < sizeof(backends) / sizeof(*backends); k++)
            is_known |= strcmp(alg->backend, backends[k]) == 0;
        if (!is_known || !alg->is_available())
            continue;
        assert_true(aead_seal_once(alg, &zero, &nonce, NULL, 0, expected, 0));
        ctx = alg->ctx_new();
        assert_non_null(ctx);
        assert_true(alg->ctx_set_key(ctx, &key));
        assert_true(alg->seal(ctx, &nonce, NULL, 0, tag, 0));
        assert_memory_not_equal(tag, expected, sizeof(tag));
        alg->ctx_clear_key(ctx);
        assert_true(alg->seal(ctx, &nonce, NULL, 0, tag, 0));
        assert_memory_equal(tag, expected, sizeof(tag));
        alg->ctx_free(ctx);
    }
}

/* libcrypto counts in int: what is more is refused, and not read. */
static void test_lengths_beyond_an_int(void **state)
{
    static const struct aead_key key;
    struct aead_nonce nonce = aead_nonce_make(0);
    const size_t more = (size_t)INT_MAX + 1;
    uint8_t buf[64] = {0};

    for (unsigned c = 0; c < AEAD_CIPHER_N; c++) {
        const struct aead_algorithm *alg = aead_reference((enum aead_cipher)c);

        assert_false(aead_seal_once(alg, &key, &nonce, buf, more, buf, 0));
        assert_false(aead_seal_once(alg, &key, &nonce, buf, 0, buf, more));
        assert_false(aead_open_once(alg, &key, &nonce, buf, more, buf, AEAD_TAG_SIZE));
        assert_false(aead_open_once(alg, &key, &nonce, buf, 0, buf, more));
    }
}

static void test_aead_best(void **state)
{
    for (unsigned c = 0; c < AEAD_CIPHER_N; c++) {
        const struct aead_algorithm *alg = aead_best((enum aead_cipher)c, NULL);

        assert_non_null(alg);
        assert_int_equal(alg->cipher, c);
        assert_string_equal(alg->name, aead_cipher_names[c]);
        assert_true(alg->is_available());
        assert_ptr_equal(
            aead_best((enum aead_cipher)c, "openssl"), aead_reference((enum aead_cipher)c));
        assert_null(aead_best((enum aead_cipher)c, "no such"));
        assert_int_equal(aead_cipher_parse(alg->name, strlen(alg->name)), c);
        assert_int_equal(aead_cipher_parse(alg->name, strlen(alg->name) - 1), AEAD_CIPHER_N);
        assert_int_equal(aead_cipher_parse(alg->name, strlen(alg->name) + 1), AEAD_CIPHER_N);
    }
}

static nsec_t fake_now;
static nsec_t fake_step;

static nsec_t fake_clock(void)
{
    fake_now += fake_step;
    return fake_now;
}

/* Each look at the clock is a step: 16 packets of 1420 bytes, sealed and opened, a step. */
static void test_aead_speed(void **state)
{
    const struct aead_algorithm *alg = aead_best(AEAD_CIPHER_AES256GCM, NULL);

    fake_step = NSEC_PER_MSEC;
    assert_int_equal(aead_speed(alg, 3 * NSEC_PER_MSEC, fake_clock), 45);
    fake_step = 10 * NSEC_PER_USEC;
    assert_int_equal(aead_speed(alg, NSEC_PER_MSEC, fake_clock), 4544);
    /* A clock that stands still does not hold us up, and no time is no figure. */
    fake_step = 0;
    assert_int_equal(aead_speed(alg, NSEC_PER_MSEC, fake_clock), 0);
    assert_int_equal(aead_speed(alg, 0, fake_clock), 0);
}

/* More keys than a lane has room for, of both ciphers, again and again. */
static void test_aead_lane(void **state)
{
    struct aead_key keys[100];
    uint8_t expected[100][32 + AEAD_TAG_SIZE];
    const struct aead_algorithm *best[AEAD_CIPHER_N];
    struct aead_nonce nonce = aead_nonce_make(3);
    struct aead_lane *lane;
    uint64_t seed = 11;
    struct rng rng = rng_seeded(&seed);

    for (unsigned c = 0; c < AEAD_CIPHER_N; c++)
        best[c] = aead_best((enum aead_cipher)c, NULL);
    rng_fill(&rng, keys, sizeof(keys));
    assert_int_equal(aead_lane_new(&lane), 0);
    for (size_t i = 0; i < 100; i++) {
        memset(expected[i], (int)i, sizeof(expected[i]));
        assert_true(aead_seal_once(
            aead_reference(i % AEAD_CIPHER_N), &keys[i], &nonce, NULL, 0, expected[i], 32));
    }
    for (unsigned round = 0; round < 2000; round++) {
        size_t i = rng_u32(&rng) % 100;
        uint8_t buf[32 + AEAD_TAG_SIZE];

        memset(buf, (int)i, sizeof(buf));
        assert_true(aead_seal(lane, best[i % AEAD_CIPHER_N], &keys[i], &nonce, NULL, 0, buf, 32));
        assert_memory_equal(buf, expected[i], sizeof(buf));
        if (round % 37 == 0)
            aead_lane_clear(lane);
    }
    assert_null(aead_lane_free(lane));
    assert_null(aead_lane_free(NULL));
}

/* A cleared lane takes a key's new value, though it lies at the same address. */
static void test_aead_lane_clear(void **state)
{
    const struct aead_algorithm *alg;

    for (size_t i = 0; (alg = aead_each(i)); i++) {
        struct aead_key key = {{1}};
        struct aead_nonce nonce = aead_nonce_make(0);
        uint8_t expected[AEAD_TAG_SIZE];
        uint8_t tag[AEAD_TAG_SIZE];
        struct aead_lane *lane;

        if (!alg->is_available())
            continue;
        assert_int_equal(aead_lane_new(&lane), 0);
        assert_true(aead_seal(lane, alg, &key, &nonce, NULL, 0, tag, 0));
        aead_lane_clear(lane);
        key.b[0] = 2;
        assert_true(aead_seal(lane, alg, &key, &nonce, NULL, 0, tag, 0));
        assert_true(aead_seal_once(alg, &key, &nonce, NULL, 0, expected, 0));
        assert_memory_equal(tag, expected, sizeof(tag));
        aead_lane_free(lane);
    }
}

/* An algorithm that counts what is asked of it, and computes nothing. */
static struct {
    unsigned n_new;
    unsigned n_keys;
    unsigned n_cleared;
    unsigned n_freed;
    bool fails; /* there is no memory for a context */
} counted;

static void *counted_new(void)
{
    static char context;

    if (counted.fails)
        return NULL;
    counted.n_new++;
    return &context;
}

static bool counted_set_key(void *ctx, const struct aead_key *key)
{
    counted.n_keys++;
    return key->b[0] != 0xff;
}

static void counted_clear_key(void *ctx)
{
    counted.n_cleared++;
}

static bool counted_seal(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    return ctx != NULL;
}

static void counted_free(void *ctx)
{
    counted.n_freed += ctx != NULL;
}

static const struct aead_algorithm counting = {.ctx_new = counted_new,
    .ctx_set_key = counted_set_key,
    .ctx_clear_key = counted_clear_key,
    .seal = counted_seal,
    .open = counted_seal,
    .ctx_free = counted_free};

/* Each key that a lane has expanded is overwritten when it is cleared, and each context is released
 * once, also after there was no memory for another one. */
static void test_aead_lane_lets_go(void **state)
{
    struct aead_algorithm other = counting;
    struct aead_nonce nonce = aead_nonce_make(0);
    struct aead_key key = {{1}};
    uint8_t buf[AEAD_TAG_SIZE] = {0};
    struct aead_lane *lane;

    memset(&counted, 0, sizeof(counted));
    assert_int_equal(aead_lane_new(&lane), 0);
    assert_true(aead_seal(lane, &counting, &key, &nonce, NULL, 0, buf, 0));
    assert_true(aead_open(lane, &counting, &key, &nonce, NULL, 0, buf, AEAD_TAG_SIZE));
    assert_int_equal(counted.n_new, 1);
    assert_int_equal(counted.n_keys, 1);
    aead_lane_clear(lane);
    aead_lane_clear(lane);
    assert_int_equal(counted.n_cleared, 1);
    /* The context stays for the next key; the algorithm of another one needs its own. */
    assert_true(aead_seal(lane, &counting, &key, &nonce, NULL, 0, buf, 0));
    assert_int_equal(counted.n_new, 1);
    assert_int_equal(counted.n_keys, 2);
    counted.fails = true;
    assert_false(aead_seal(lane, &other, &key, &nonce, NULL, 0, buf, 0));
    assert_int_equal(counted.n_freed, 1);
    counted.fails = false;
    assert_true(aead_seal(lane, &other, &key, &nonce, NULL, 0, buf, 0));
    assert_int_equal(counted.n_new, 2);
    /* A key that cannot be expanded is held by nobody. */
    aead_lane_clear(lane);
    key.b[0] = 0xff;
    assert_false(aead_seal(lane, &other, &key, &nonce, NULL, 0, buf, 0));
    counted.n_cleared = 0;
    aead_lane_clear(lane);
    assert_int_equal(counted.n_cleared, 0);
    /* Nor is the one that it had a place of. */
    key.b[0] = 1;
    assert_true(aead_seal(lane, &other, &key, &nonce, NULL, 0, buf, 0));
    key.b[0] = 0xff;
    for (unsigned i = 0; i < 2; i++)
        assert_false(aead_seal(lane, &counting, &key, &nonce, NULL, 0, buf, 0));
    aead_lane_clear(lane);
    assert_int_equal(counted.n_cleared, 0);
    assert_int_equal(counted.n_freed, 2);
    aead_lane_free(lane);
    assert_int_equal(counted.n_freed, 3);
}

static void test_aead_short(void **state)
{
    static const struct aead_key key;
    struct aead_nonce nonce = aead_nonce_make(0);
    const struct aead_algorithm *alg = aead_best(AEAD_CIPHER_CHACHA20POLY1305, NULL);
    struct aead_lane *lane;
    uint8_t buf[AEAD_TAG_SIZE] = {0};

    assert_int_equal(aead_lane_new(&lane), 0);
    for (size_t len = 0; len < AEAD_TAG_SIZE; len++) {
        assert_false(aead_open(lane, alg, &key, &nonce, NULL, 0, buf, len));
        assert_false(aead_open_once(alg, &key, &nonce, NULL, 0, buf, len));
    }
    aead_lane_free(lane);
}

static void test_xchacha(void **state)
{
    struct vectors v;
    unsigned n = 0;

    vectors_open(&v, "rfc.txt");
    while (vectors_next(&v)) {
        struct aead_key key;
        struct aead_key subkey;
        struct aead_key expected;
        struct xchacha_nonce nonce;
        uint8_t ad[16];
        uint8_t text[256];
        uint8_t sealed[256 + AEAD_TAG_SIZE];
        uint8_t buf[256 + AEAD_TAG_SIZE];
        size_t ad_len;
        size_t len;

        if (vectors_has(&v, "subkey")) {
            vectors_exact(&v, "key", key.b, sizeof(key.b));
            vectors_exact(&v, "nonce", nonce.b, 16);
            vectors_exact(&v, "subkey", expected.b, sizeof(expected.b));
            assert_true(hchacha20(&key, nonce.b, &subkey));
            assert_memory_equal(&subkey, &expected, sizeof(subkey));
            n++;
        }
        if (strncmp(v.title, "xchacha20poly1305", 17) != 0)
            continue;
        n++;
        vectors_exact(&v, "key", key.b, sizeof(key.b));
        vectors_exact(&v, "nonce", nonce.b, sizeof(nonce.b));
        ad_len = vectors_bytes(&v, "ad", ad, sizeof(ad));
        len = vectors_bytes(&v, "text", text, sizeof(text));
        vectors_exact(&v, "sealed", sealed, len + AEAD_TAG_SIZE);
        memcpy(buf, text, len);
        assert_true(xchacha_seal(&key, &nonce, ad, ad_len, buf, len));
        assert_memory_equal(buf, sealed, len + AEAD_TAG_SIZE);
        assert_true(xchacha_open(&key, &nonce, ad, ad_len, buf, len + AEAD_TAG_SIZE));
        assert_memory_equal(buf, text, len);
        sealed[3] ^= 4;
        assert_false(xchacha_open(&key, &nonce, ad, ad_len, sealed, len + AEAD_TAG_SIZE));
    }
    assert_int_equal(n, 2);
    vectors_close(&v);
}

/* HKDF of RFC 5869 on HMAC-BLAKE2s, as Python's hmac and hashlib have it. */
static void test_hkdf(void **state)
{
    static const struct {
        size_t len; /* of the input: 0, 1, 2 and so on */
        const char *outputs[3];
    } cases[] = {
        {0, {"7a38c34bf2b8738d7374ca77c44ecb309a11d2b2528304fa86052c365e722624",
                "1a17621f346abdc520746a9fb64d8eb03231d674fc15687537b0780fd9c060fd",
                "4eaf02809ac4b930ef63479de62275f1c55656e61f78a3cc653c18a2223d6c5f"}},
        {200, {"840b571d3e9d34f76ef19bbb25b552774124ce653961ff3d79d4b206ad853ff4",
                  "4b22976365f5cb1ffe7a5962d2373cae0e29b7fb8b99977e05d5c420678a5bb8",
                  "fa90dc4ce826978029a9c9d60369026121df255340fe54fc38a2b1ec7d5b6f55"}},
    };
    struct blake2s_digest key;
    uint8_t input[200];

    for (unsigned i = 0; i < sizeof(input); i++)
        input[i] = (uint8_t)i;
    memcpy(key.b, input, sizeof(key.b));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (unsigned n = 1; n <= 3; n++) {
            struct blake2s_digest out[3] = {{{0}}};
            struct blake2s_digest expected;

            hkdf(
                &key, input, cases[i].len, &out[0], n > 1 ? &out[1] : NULL, n > 2 ? &out[2] : NULL);
            for (unsigned k = 0; k < 3; k++) {
                memset(&expected, 0, sizeof(expected));
                if (k < n)
                    assert_true(hex_decode(cases[i].outputs[k], expected.b, sizeof(expected.b)));
                assert_memory_equal(out[k].b, expected.b, sizeof(expected.b));
            }
        }
    /* The first output may take the place of the key. */
    hkdf(&key, input, 0, &key, NULL, NULL);
    assert_int_equal(key.b[0], 0x7a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blake2s),
        cmocka_unit_test(test_blake2s_keyed),
        cmocka_unit_test(test_macs),
        cmocka_unit_test(test_blake2s_splits),
        cmocka_unit_test(test_aead_vectors),
        cmocka_unit_test(test_aead_all_lengths),
        cmocka_unit_test(test_the_table_of_back_ends),
        cmocka_unit_test(test_a_back_end_that_computes_wrongly),
        cmocka_unit_test(test_a_cleared_context),
        cmocka_unit_test(test_lengths_beyond_an_int),
        cmocka_unit_test(test_aead_best),
        cmocka_unit_test(test_aead_speed),
        cmocka_unit_test(test_aead_lane),
        cmocka_unit_test(test_aead_lane_clear),
        cmocka_unit_test(test_aead_lane_lets_go),
        cmocka_unit_test(test_aead_short),
        cmocka_unit_test(test_xchacha),
        cmocka_unit_test(test_hkdf),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
