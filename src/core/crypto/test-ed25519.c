/* test-ed25519.c - signatures with Ed25519, against RFC 8032's own, and keys that nobody can have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/secret.h"
#include "crypto/ed25519.h"
#include "test/vectors/vectors.h"

#define MESSAGE_CAP 64

/* The order of the base point, in little endian: RFC 8032 section 5.1. */
static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
    0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10};

static void check_vector(const struct vectors *v)
{
    struct ed25519_secret secret;
    struct ed25519_public public, derived;
    struct ed25519_signature expected, made;
    uint8_t message[MESSAGE_CAP];
    size_t len = vectors_bytes(v, "message", message, sizeof(message));
    unsigned carry = 0;

    vectors_exact(v, "secret", secret.b, sizeof(secret.b));
    vectors_exact(v, "public", public.b, sizeof(public.b));
    vectors_exact(v, "signature", expected.b, sizeof(expected.b));
    assert_true(ed25519_derive_public(&secret, &derived));
    assert_memory_equal(&derived, &public, sizeof(public));
    assert_true(ed25519_public_can_be(&public));
    assert_true(ed25519_sign(&made, &secret, message, len));
    assert_memory_equal(&made, &expected, sizeof(made));
    assert_true(ed25519_verify(&made, &public, message, len));
    for (size_t bit = 0; bit < 8 * sizeof(made.b); bit++) {
        made.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(ed25519_verify(&made, &public, message, len));
        made.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_false(ed25519_verify(&made, &public, message, len + 1));
    /* The same s with the order added is not taken: a signature has one spelling. */
    for (size_t i = 0; i < sizeof(order); i++) {
        carry += made.b[32 + i] + order[i];
        made.b[32 + i] = (uint8_t)carry;
        carry >>= 8;
    }
    assert_false(ed25519_verify(&made, &public, message, len));
}

static void test_vectors(void **state)
{
    unsigned n = 0;
    struct vectors v;

    (void)state;
    vectors_open(&v, "rfc.txt");
    while (vectors_next(&v)) {
        if (strncmp(v.title, "ed25519 ", strlen("ed25519 ")) != 0)
            continue;
        check_vector(&v);
        n++;
    }
    vectors_close(&v);
    assert_int_equal(n, 3);
}

/* Under a point of small order a signature of which s is 0 and R the neutral point can verify
 * whatever the message is. */
static void test_keys_that_nobody_has(void **state)
{
    static const char *const keys[] = {
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", /* y = 0 */
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIA=", /* and with the sign bit */
        "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", /* 1: the neutral point */
        "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIA=",
        "7P///////////////////////////////////////38=", /* p - 1 */
        "7f///////////////////////////////////////38=", /* p */
        "7v////////////////////////////////////////8=", /* p + 1 */
        "//////////////////////////////////////////8=",
        "xxdqcD1N2E+6PAt2DRBnDyogU/osOczGTsf9d5KsA3o=", /* of order 8 */
        "xxdqcD1N2E+6PAt2DRBnDyogU/osOczGTsf9d5KsA/o=",
        "JuiVj8KyJ7BFw/SJ8u+Y8NXfrAXTxjM5sTgCiG1T/AU=",
        "JuiVj8KyJ7BFw/SJ8u+Y8NXfrAXTxjM5sTgCiG1T/IU=",
    };
    struct ed25519_signature neutral = {{1}};
    struct ed25519_public key;

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        assert_int_equal(ed25519_public_parse(&key, keys[i], NULL), 0);
        if (ed25519_public_can_be(&key))
            fail_msg("row %zu can be a key", i);
        for (uint8_t message = 0; message < 16; message++)
            assert_false(ed25519_verify(&neutral, &key, &message, 1));
    }
}

static void test_text(void **state)
{
    char text[ED25519_BASE64_MAX];
    struct ed25519_secret secret, other;
    struct ed25519_public public, parsed = {{7}};
    struct err e = ERR_NULL;
    uint64_t seed = 5;
    struct rng rng = rng_seeded(&seed);

    (void)state;
    ed25519_secret_make(&secret, &rng);
    ed25519_secret_make(&other, &rng);
    assert_memory_not_equal(&secret, &other, sizeof(secret));
    assert_true(ed25519_derive_public(&secret, &public));
    assert_int_equal(ed25519_public_parse(&parsed, ed25519_public_format(&public, text), NULL), 0);
    assert_int_equal(ed25519_public_compare(&parsed, &public), 0);
    assert_true(ed25519_public_parse(&parsed, "AAAA", &e) < 0);
    assert_non_null(strstr(e.text, "\"AAAA\" is no Ed25519 key"));
    assert_int_equal(ed25519_public_compare(&parsed, &public), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_keys_that_nobody_has),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
