/* test-xeddsa.c - signatures with X25519 keys, against an implementation in Python integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "crypto/xeddsa.h"
#include "test/vectors/vectors.h"

#define MESSAGE_CAP 1024

/* Hands out @bytes once, which is what the vectors have been made with. */
static void fill_given(void *ctx, void *buf, size_t len)
{
    memcpy(buf, ctx, len);
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void check_signature(const struct vectors *v)
{
    struct x25519_secret secret;
    struct x25519_public public;
    struct xeddsa_signature expected, made;
    uint8_t random[XEDDSA_SIZE];
    uint8_t message[MESSAGE_CAP];
    size_t len = vectors_bytes(v, "message", message, sizeof(message));
    struct rng rng = {.fill = fill_given, .ctx = random};

    vectors_exact(v, "secret", secret.b, sizeof(secret.b));
    vectors_exact(v, "public", public.b, sizeof(public.b));
    vectors_exact(v, "random", random, sizeof(random));
    vectors_exact(v, "signature", expected.b, sizeof(expected.b));
    assert_true(xeddsa_sign(&made, &secret, message, len, &rng));
    assert_memory_equal(&made, &expected, sizeof(made));
    assert_true(xeddsa_verify(&made, &public, message, len));
    for (size_t bit = 0; bit < 8 * sizeof(made.b); bit += 13) {
        made.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(xeddsa_verify(&made, &public, message, len));
        made.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void check_refused(const struct vectors *v)
{
    struct x25519_public public;
    struct xeddsa_signature signature;
    uint8_t message[MESSAGE_CAP];
    size_t len = vectors_bytes(v, "message", message, sizeof(message));

    vectors_exact(v, "public", public.b, sizeof(public.b));
    vectors_exact(v, "signature", signature.b, sizeof(signature.b));
    assert_false(xeddsa_verify(&signature, &public, message, len));
}

static void test_vectors(void **state)
{
    unsigned n_signed = 0;
    unsigned n_refused = 0;
    struct vectors v;

    (void)state;
    vectors_open(&v, "keys.txt");
    while (vectors_next(&v)) {
        if (begins_with(v.title, "signature ")) {
            check_signature(&v);
            n_signed++;
        } else if (begins_with(v.title, "refused: ")) {
            check_refused(&v);
            n_refused++;
        }
    }
    vectors_close(&v);
    assert_int_equal(n_signed, 8);
    assert_int_equal(n_refused, 11);
}

/* Both signs of the nonce and of the secret occur, and every signature is good for its key alone.
 */
static void test_many_keys(void **state)
{
    uint64_t seed = 7;
    struct rng rng = rng_seeded(&seed);
    struct x25519_public before = {{9}};

    (void)state;
    for (uint8_t i = 0; i < 64; i++) {
        struct x25519_secret secret;
        struct x25519_public public;
        struct xeddsa_signature a, b;

        x25519_secret_make(&secret, &rng);
        assert_true(x25519_derive_public(&secret, &public));
        assert_true(xeddsa_sign(&a, &secret, &i, 1, &rng));
        assert_true(xeddsa_sign(&b, &secret, &i, 1, &rng));
        assert_memory_not_equal(&a, &b, sizeof(a));
        assert_true(xeddsa_verify(&a, &public, &i, 1));
        assert_true(xeddsa_verify(&b, &public, &i, 1));
        assert_false(xeddsa_verify(&a, &public, &i, 0));
        assert_false(xeddsa_verify(&a, &before, &i, 1));
        before = public;
    }
}

/* A secret need not be clamped: WireGuard's keys are when they are used. */
static void test_clamps(void **state)
{
    uint64_t seed = 8;
    struct rng rng = rng_seeded(&seed);
    struct x25519_secret loose;
    struct x25519_public public;
    struct xeddsa_signature signature;

    (void)state;
    memset(loose.b, 0xff, sizeof(loose.b));
    assert_true(x25519_derive_public(&loose, &public));
    assert_true(xeddsa_sign(&signature, &loose, "abc", 3, &rng));
    assert_true(xeddsa_verify(&signature, &public, "abc", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_clamps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
