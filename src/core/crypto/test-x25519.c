/* test-x25519.c - the curve against published vectors and libcrypto, and keys as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <openssl/evp.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "crypto/x25519.h"
#include "test/vectors/vectors.h"

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

/* What can be a public key: a coordinate below 2^255 - 19, little-endian, but for those few. */
static void test_the_greatest_keys(void **state)
{
    static const struct {
        int at; /* this byte of 2^255 - 1 */
        uint8_t is;
        bool can_be;
    } cases[] = {{0, 0xff, false}, {0, 0xed, false}, {0, 0xec, false}, {0, 0xeb, true},
        {1, 0xfe, true}, {30, 0xfe, true}, {15, 0x00, true}, {31, 0x7e, true}, {31, 0xff, false},
        {31, 0x80, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct x25519_public point;

        memset(&point, 0xff, sizeof(point));
        point.b[31] = 0x7f;
        point.b[cases[i].at] = cases[i].is;
        assert_int_equal(x25519_public_can_be(&point), cases[i].can_be);
    }
    for (uint8_t i = 0; i < 4; i++)
        assert_int_equal(x25519_public_can_be(&(struct x25519_public){{i}}), i > 1);
}

/* RFC 7748 section 5: three bits are cleared, one is set, and all others are random. */
static void test_a_new_secret(void **state)
{
    uint64_t seed = 5;
    struct rng rng = rng_seeded(&seed);
    struct x25519_secret all, none = {{0}}, made, drawn;

    memset(&all, 0xff, sizeof(all));
    x25519_secret_clamp(&all);
    x25519_secret_clamp(&none);
    for (unsigned i = 0; i < sizeof(all.b); i++) {
        assert_int_equal(all.b[i], i == 0 ? 0xf8 : i == 31 ? 0x7f : 0xff);
        assert_int_equal(none.b[i], i == 31 ? 0x40 : 0);
    }
    x25519_secret_make(&made, &rng);
    seed = 5;
    rng_fill(&rng, &drawn, sizeof(drawn));
    assert_memory_not_equal(&made, &drawn, sizeof(made));
    x25519_secret_clamp(&drawn);
    assert_memory_equal(&made, &drawn, sizeof(made));
}

static void test_no_key(void **state)
{
    for (unsigned i = 0; i < X25519_SIZE; i++) {
        struct x25519_secret secret = {{0}};
        struct x25519_public public = {{0}}, other = {{0}};

        assert_true(x25519_secret_is_none(&secret));
        assert_true(x25519_public_is_none(&public));
        assert_true(x25519_public_equal(&public, &other));
        assert_int_equal(x25519_public_compare(&public, &other), 0);
        secret.b[i] = public.b[i] = 1;
        assert_false(x25519_secret_is_none(&secret));
        assert_false(x25519_public_is_none(&public));
        assert_false(x25519_public_equal(&public, &other));
        assert_true(x25519_public_compare(&public, &other) > 0);
        assert_true(x25519_public_compare(&other, &public) < 0);
    }
}

static const char key_text[] = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
static const char key_hex[] = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";

/* Both kinds of keys in both forms. */
static void test_key_text(void **state)
{
    struct x25519_public key, again;
    struct x25519_secret secret, same;
    char base64[X25519_BASE64_MAX];
    char hex[X25519_HEX_MAX];

    assert_int_equal(x25519_public_parse(&key, key_text, NULL), 0);
    assert_string_equal(x25519_public_format(&key, base64), key_text);
    assert_string_equal(x25519_public_format_hex(&key, hex), key_hex);
    assert_true(x25519_public_parse_hex(&again, hex));
    assert_true(x25519_public_equal(&key, &again));
    assert_int_equal(x25519_secret_parse(&secret, key_text, NULL), 0);
    assert_memory_equal(secret.b, key.b, sizeof(key.b));
    memset(base64, 0, sizeof(base64));
    memset(hex, 0, sizeof(hex));
    x25519_secret_write(&secret, base64);
    x25519_secret_write_hex(&secret, hex);
    assert_string_equal(base64, key_text);
    assert_string_equal(hex, key_hex);
    assert_true(x25519_secret_parse_hex(&same, hex));
    assert_memory_equal(&same, &secret, sizeof(same));
}

/* Nothing is read, and of a private key nothing is said. */
static void test_what_is_no_key(void **state)
{
    static const char *const bad[] = {"", "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo",
        "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo==",
        "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo=",
        "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo= "};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct x25519_public public = {{1}};
        struct x25519_secret secret = {{1}};
        struct err e = ERR_NULL;
        char words[160];

        (void)snprintf(
            words, sizeof(words), "\"%s\" is not a public key of 44 characters of base64", bad[i]);
        assert_int_equal(x25519_public_parse(&public, bad[i], &e), -EINVAL);
        assert_string_equal(e.text, words);
        assert_int_equal(x25519_secret_parse(&secret, bad[i], &e), -EINVAL);
        assert_string_equal(e.text, "a private key is 44 characters of base64");
        assert_false(x25519_public_parse_hex(&public, bad[i]));
        assert_false(x25519_secret_parse_hex(&secret, bad[i]));
        assert_false(x25519_public_parse_hex(&public, key_hex + 1));
        assert_false(x25519_secret_parse_hex(&secret, key_hex + 1));
        assert_int_equal(public.b[0], 1);
        assert_int_equal(secret.b[0], 1);
        assert_true(x25519_public_equal(&public, &(struct x25519_public){{1}}));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_x25519),
        cmocka_unit_test(test_x25519_random),
        cmocka_unit_test(test_x25519_small_order),
        cmocka_unit_test(test_the_greatest_keys),
        cmocka_unit_test(test_a_new_secret),
        cmocka_unit_test(test_no_key),
        cmocka_unit_test(test_key_text),
        cmocka_unit_test(test_what_is_no_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
