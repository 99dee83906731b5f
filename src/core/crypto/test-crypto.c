/* test-crypto.c - published vectors, an independent implementation's, and every back end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <openssl/evp.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "crypto/aead.h"
#include "crypto/hash.h"
#include "crypto/x25519.h"
#include "test/vectors/vectors.h"

#define TEXT_MAX 2100

static void test_x25519(void **state)
{
    struct vectors v;
    unsigned n = 0;

    vectors_open(&v, "rfc.txt");
    while (vectors_next(&v)) {
        struct x25519_secret secret;
        struct x25519_public point;
        struct x25519_shared expected;
        struct x25519_shared shared;

        if (!vectors_has(&v, "scalar"))
            continue;
        n++;
        vectors_exact(&v, "scalar", secret.b, sizeof(secret.b));
        vectors_exact(&v, "point", point.b, sizeof(point.b));
        vectors_exact(&v, "shared", expected.b, sizeof(expected.b));
        assert_true(x25519_dh(&secret, &point, &shared));
        assert_memory_equal(&shared, &expected, sizeof(shared));
        if (vectors_has(&v, "public")) {
            vectors_exact(&v, "public", expected.b, sizeof(expected.b));
            assert_true(x25519_derive_public(&secret, &point));
            assert_memory_equal(&point, &expected, sizeof(point));
        }
    }
    assert_int_equal(n, 3);
    vectors_close(&v);
}

/* The same by the way that libcrypto wants to be called. */
static void evp_dh(const struct x25519_secret *secret, const struct x25519_public *public,
    struct x25519_shared *ret)
{
    EVP_PKEY *ours =
        EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret->b, sizeof(secret->b));
    EVP_PKEY *theirs =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public->b, sizeof(public->b));
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(ours, NULL);
    size_t len = sizeof(ret->b);

    assert_int_equal(EVP_PKEY_derive_init(ctx), 1);
    assert_int_equal(EVP_PKEY_derive_set_peer(ctx, theirs), 1);
    assert_int_equal(EVP_PKEY_derive(ctx, ret->b, &len), 1);
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(theirs);
    EVP_PKEY_free(ours);
}

/* Secrets and points of any bits: libcrypto called directly, and the base point's table. */
static void test_x25519_random(void **state)
{
    uint64_t seed = 7748;
    struct rng rng = rng_seeded(&seed);

    for (unsigned round = 0; round < 200; round++) {
        struct x25519_shared shared = {{0}}, expected = {{0}};
        struct x25519_public point, public;
        struct x25519_secret secret;

        rng_fill(&rng, &secret, sizeof(secret));
        rng_fill(&rng, &point, sizeof(point));
        assert_true(x25519_dh(&secret, &point, &shared));
        evp_dh(&secret, &point, &expected);
        assert_memory_equal(&shared, &expected, sizeof(shared));
        assert_true(x25519__ladder(&secret, &point));
        assert_true(x25519_derive_public(&secret, &public));
        assert_memory_equal(&public, &point, sizeof(public));
        if (x25519__has_table()) {
            x25519__table(&secret, &public);
            assert_memory_equal(&public, &point, sizeof(public));
        }
    }
}

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

/* RFC 7748 section 6.1: points of small order give zeroes, whatever the secret. */
static void test_x25519_small_order(void **state)
{
    static const char *const points[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    };
    uint64_t seed = 7;
    struct rng rng = rng_seeded(&seed);

    for (size_t i = 0; i < sizeof(points) / sizeof(*points); i++) {
        struct x25519_secret secret;
        struct x25519_public point;
        struct x25519_shared shared = {{[0] = 0x5a}};

        x25519_secret_make(&secret, &rng);
        assert_true(x25519_public_parse_hex(&point, points[i]));
        assert_false(x25519_dh(&secret, &point, &shared));
        assert_int_equal(shared.b[0], 0x5a);
        assert_false(x25519_public_can_be(&point));
        point.b[31] |= 0x80;
        assert_false(x25519_public_can_be(&point));
        /* A key has one spelling. */
        assert_true(x25519_derive_public(&secret, &point));
        assert_true(x25519_public_can_be(&point));
        point.b[31] |= 0x80;
        assert_false(x25519_public_can_be(&point));
    }
}

static void test_key_text(void **state)
{
    static const char text[] = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    static const char *const bad[] = {"", "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo",
        "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo==",
        "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo=",
        "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo= "};
    struct x25519_public key;
    struct x25519_public again;
    struct x25519_secret secret;
    char base64[X25519_BASE64_MAX];
    char hex[X25519_HEX_MAX];
    struct err e = ERR_NULL;

    assert_int_equal(x25519_public_parse(&key, text, &e), 0);
    assert_string_equal(x25519_public_format(&key, base64), text);
    assert_true(x25519_public_parse_hex(&again, x25519_public_format_hex(&key, hex)));
    assert_true(x25519_public_equal(&key, &again));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_true(x25519_public_parse(&key, bad[i], &e) < 0);
        assert_true(x25519_secret_parse(&secret, bad[i], &e) < 0);
        /* A private key never shows up in an error. */
        assert_null(strstr(e.text, "hSDw"));
    }
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

static void test_aead_best(void **state)
{
    for (unsigned c = 0; c < AEAD_CIPHER_N; c++) {
        const struct aead_algorithm *alg = aead_best((enum aead_cipher)c, NULL);

        assert_non_null(alg);
        assert_int_equal(alg->cipher, c);
        assert_string_equal(alg->name, aead_cipher_names[c]);
        assert_ptr_equal(
            aead_best((enum aead_cipher)c, "openssl"), aead_reference((enum aead_cipher)c));
        assert_null(aead_best((enum aead_cipher)c, "no such"));
        assert_int_equal(aead_cipher_parse(alg->name, strlen(alg->name)), c);
        assert_int_equal(aead_cipher_parse(alg->name, strlen(alg->name) - 1), AEAD_CIPHER_N);
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
    aead_lane_free(lane);
    assert_int_equal(counted.n_freed, 2);
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
        cmocka_unit_test(test_x25519),
        cmocka_unit_test(test_x25519_random),
        cmocka_unit_test(test_x25519_small_order),
        cmocka_unit_test(test_key_text),
        cmocka_unit_test(test_blake2s),
        cmocka_unit_test(test_blake2s_keyed),
        cmocka_unit_test(test_blake2s_splits),
        cmocka_unit_test(test_aead_vectors),
        cmocka_unit_test(test_aead_all_lengths),
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
