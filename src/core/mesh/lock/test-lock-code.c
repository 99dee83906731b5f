/* test-lock-code.c - codes of recovery, against Python's, and as people type them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/secret.h"
#include "mesh/lock/lock_code.h"
#include "test/vectors/vectors.h"

static void check_vector(const struct vectors *v)
{
    struct lock_code code, parsed;
    struct ed25519_secret secret;
    struct ed25519_public public, expected;
    char text[LOCK_CODE_TEXT_MAX], expected_text[LOCK_CODE_TEXT_MAX];

    vectors_exact(v, "code", code.b, sizeof(code.b));
    vectors_exact(v, "public", expected.b, sizeof(expected.b));
    vectors_exact(v, "text", expected_text, sizeof(expected_text) - 1);
    expected_text[sizeof(expected_text) - 1] = '\0';
    assert_string_equal(lock_code_write(&code, text), expected_text);
    assert_int_equal(lock_code_parse(&parsed, text, NULL), 0);
    assert_memory_equal(&parsed, &code, sizeof(code));
    lock_code_secret(&code, &secret);
    assert_true(ed25519_derive_public(&secret, &public));
    assert_memory_equal(&public, &expected, sizeof(public));
}

static void test_vectors(void **state)
{
    unsigned n = 0;
    struct vectors v;

    (void)state;
    vectors_open(&v, "lock.txt");
    while (vectors_next(&v)) {
        if (strncmp(v.title, "code ", strlen("code ")) != 0)
            continue;
        check_vector(&v);
        n++;
    }
    vectors_close(&v);
    assert_int_equal(n, 3);
}

static void test_as_typed(void **state)
{
    static const struct {
        const char *text;
        bool is_code;
    } rows[] = {
        {"0123-4567-89AB-CDEF-GHJK-MNPQ-RSTV-WXYZ", true},
        {"0123456789abcdefghjkmnpqrstvwxyz\n", true},
        {" oi23 4567 89AB CDEF GHJK MNPQ RSTV WXYZ ", true},
        {"0L23-4567-89AB-CDEF-GHJK-MNPQ-RSTV-WXYZ-", true},
        {"0123-4567-89AB-CDEF-GHJK-MNPQ-RSTV-WXY", false},
        {"0123-4567-89AB-CDEF-GHJK-MNPQ-RSTV-WXYZ-0", false},
        {"U123-4567-89AB-CDEF-GHJK-MNPQ-RSTV-WXYZ", false},
        {"_123-4567-89AB-CDEF-GHJK-MNPQ-RSTV-WXYZ", false},
        {"", false},
    };
    struct lock_code first, code = {{0}};

    (void)state;
    assert_int_equal(lock_code_parse(&first, rows[0].text, NULL), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err e = ERR_NULL;
        int r = lock_code_parse(&code, rows[i].text, &e);

        if ((r == 0) != rows[i].is_code)
            fail_msg("row %zu: %d", i, r);
        assert_memory_equal(&code, &first, sizeof(code));
        if (r != 0)
            assert_string_equal(
                e.text, "that is no code of recovery: it has 32 letters and digits, and no U");
    }
}

static void test_made(void **state)
{
    uint64_t seed = 3;
    struct rng rng = rng_seeded(&seed);
    struct lock_code a, b;

    (void)state;
    lock_code_make(&a, &rng);
    lock_code_make(&b, &rng);
    assert_memory_not_equal(&a, &b, sizeof(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_as_typed),
        cmocka_unit_test(test_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
