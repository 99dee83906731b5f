/* test-secret.c - comparing, wiping and growing what is secret, and the seeded generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"

static void test_wipe(void **state)
{
    char text[] = "secret";
    static const char wiped[sizeof(text)] = {[4] = 'e', 't', '\0'};

    secret_wipe(text, 4);
    assert_memory_equal(text, wiped, sizeof(text));
}

/* Each byte counts, and none behind the last. */
static void test_each_byte_is_compared(void **state)
{
    uint8_t a[9] = {0};
    uint8_t b[9] = {0};

    a[8] = 1;
    assert_true(secret_equal(a, b, 8));
    assert_true(secret_equal(a, b, 0));
    assert_true(secret_is_zero(a, 8));
    assert_true(secret_is_zero(a, 0));
    for (unsigned i = 0; i < 8; i++) {
        a[i] = (uint8_t)(1 << i);
        assert_false(secret_equal(a, b, 8));
        assert_false(secret_equal(b, a, 8));
        assert_false(secret_is_zero(a, 8));
        b[i] = a[i];
        assert_true(secret_equal(a, b, 8));
        a[i] = b[i] = 0;
    }
}

static void test_grow(void **state)
{
    uint32_t *items = NULL;
    size_t cap = 0;

    for (uint32_t n = 0; n < 100; n++) {
        const uint32_t *before = items;
        bool is_full = n == cap;

        items = secret_grow(items, n, sizeof(*items), &cap);
        assert_non_null(items);
        assert_int_equal(items == before, !is_full);
        assert_int_equal(cap, n < 16 ? 16 : n < 32 ? 32 : n < 64 ? 64 : 128);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(items[i], i + 1);
        items[n] = n + 1;
        for (size_t i = n + 1; is_full && i < cap; i++)
            assert_int_equal(items[i], 0);
    }
    free(items);
}

/* The numbers that the paper's generator gives for the seed 1234567. */
static void test_seeded(void **state)
{
    static const uint64_t numbers[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821)};
    uint64_t seed = 1234567;
    struct rng rng = rng_seeded(&seed);
    uint8_t bytes[20] = {0};
    uint64_t v;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        assert_true(rng_u64(&rng) == numbers[i]);
    seed = 1234567;
    rng_fill(&rng, bytes, 17);
    for (size_t i = 0; i < 2; i++) {
        memcpy(&v, bytes + 8 * i, sizeof(v));
        assert_true(v == numbers[i]);
    }
    assert_int_equal(bytes[16], numbers[2] & 0xff);
    assert_int_equal(bytes[17], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wipe),
        cmocka_unit_test(test_each_byte_is_compared),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_seeded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
