/* test-measure.c - the proof of an order to measure, against an independent implementation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "test/vectors/vectors.h"
#include "wire/measure_proof.h"

struct sample {
    struct x25519_secret orderer_secret;
    struct x25519_secret measured_secret;
    struct x25519_public orderer;
    struct x25519_public measured;
    struct measure_proof_key key;
    struct measure_proof proof;
    uint8_t mac[MEASURE_PROOF_MAC];
};

static void read_sample(const struct vectors *v, struct sample *s)
{
    *s = (struct sample){.proof = {.seconds = 0}};
    vectors_exact(v, "orderer_secret", s->orderer_secret.b, X25519_SIZE);
    vectors_exact(v, "measured_secret", s->measured_secret.b, X25519_SIZE);
    vectors_exact(v, "challenge", s->proof.challenge, sizeof(s->proof.challenge));
    vectors_exact(v, "id", s->proof.id, sizeof(s->proof.id));
    vectors_exact(v, "key", s->key.b, sizeof(s->key.b));
    vectors_exact(v, "mac", s->mac, sizeof(s->mac));
    (void)vectors_bytes(v, "purpose", s->proof.purpose, sizeof(s->proof.purpose) - 1);
    s->proof.seconds = (uint32_t)vectors_u64(v, "seconds");
    assert_true(x25519_derive_public(&s->orderer_secret, &s->orderer));
    assert_true(x25519_derive_public(&s->measured_secret, &s->measured));
}

static void check_sample(const struct sample *s)
{
    struct measure_proof_key key;
    uint8_t mac[MEASURE_PROOF_MAC];

    assert_true(
        measure_proof_key_make(&key, &s->orderer_secret, &s->measured, &s->orderer, &s->measured));
    assert_memory_equal(key.b, s->key.b, sizeof(key.b));
    assert_true(
        measure_proof_key_make(&key, &s->measured_secret, &s->orderer, &s->orderer, &s->measured));
    assert_memory_equal(key.b, s->key.b, sizeof(key.b));
    measure_proof_make(mac, &key, &s->proof);
    assert_memory_equal(mac, s->mac, sizeof(mac));
    assert_true(measure_proof_verify(s->mac, &key, &s->proof));
    /* The way back has another key. */
    assert_true(
        measure_proof_key_make(&key, &s->measured_secret, &s->orderer, &s->measured, &s->orderer));
    assert_false(measure_proof_verify(s->mac, &key, &s->proof));
}

static void test_vectors(void **state)
{
    struct sample s;
    struct vectors v;
    unsigned n = 0;

    vectors_open(&v, "measure.txt");
    for (; vectors_next(&v); n++) {
        read_sample(&v, &s);
        check_sample(&s);
    }
    vectors_close(&v);
    assert_int_equal(n, 3);
}

/* Every bit of what is proven counts, and every bit of the MAC. */
static void test_each_bit_counts(void **state)
{
    struct sample s;
    struct vectors v;

    vectors_open(&v, "measure.txt");
    assert_true(vectors_next(&v));
    read_sample(&v, &s);
    vectors_close(&v);
    for (size_t i = 0; i < 8 * sizeof(s.proof); i++) {
        struct measure_proof other = s.proof;

        ((uint8_t *)&other)[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_false(measure_proof_verify(s.mac, &s.key, &other));
    }
    for (size_t i = 0; i < 8 * sizeof(s.mac); i++) {
        uint8_t mac[MEASURE_PROOF_MAC];

        memcpy(mac, s.mac, sizeof(mac));
        mac[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_false(measure_proof_verify(mac, &s.key, &s.proof));
    }
}

static void test_a_key_of_nobody(void **state)
{
    static const struct x25519_secret own = {{8, [31] = 0x40}};
    static const struct x25519_public nobody = {{0}};
    struct measure_proof_key key = {{1}};

    assert_false(measure_proof_key_make(&key, &own, &nobody, &nobody, &nobody));
    assert_int_equal(key.b[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_each_bit_counts),
        cmocka_unit_test(test_a_key_of_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
