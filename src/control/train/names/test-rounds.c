/* test-rounds.c - every pair once, nobody twice in a round, as few rounds as there can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "train/names/members.h"

#define N_MAX 41

static void check(size_t n)
{
    static unsigned met[N_MAX][N_MAX];
    struct rounds_pair pairs[N_MAX / 2 + 1];
    size_t total = 0;

    memset(met, 0, sizeof(met));
    for (size_t round = 0; round < rounds_count(n); round++) {
        unsigned busy[N_MAX] = {0};
        size_t n_pairs = rounds_get(n, round, pairs);

        assert_int_equal(n_pairs, n / 2);
        for (size_t i = 0; i < n_pairs; i++) {
            assert_true(pairs[i].a < pairs[i].b && pairs[i].b < n);
            assert_int_equal(busy[pairs[i].a]++, 0);
            assert_int_equal(busy[pairs[i].b]++, 0);
            assert_int_equal(met[pairs[i].a][pairs[i].b]++, 0);
        }
        total += n_pairs;
    }
    assert_int_equal(total, rounds_pairs(n));
}

static void test_every_size(void **state)
{
    for (size_t n = 0; n < N_MAX; n++)
        check(n);
    assert_int_equal(rounds_count(16), 15);
    assert_int_equal(rounds_count(15), 15);
    assert_int_equal(rounds_count(2), 1);
    assert_int_equal(rounds_count(1), 0);
}

static void test_index(void **state)
{
    for (size_t n = 2; n < N_MAX; n++) {
        size_t expected = 0;

        for (size_t a = 0; a < n; a++)
            for (size_t b = a + 1; b < n; b++)
                assert_int_equal(rounds_index(n, a, b), expected++);
        assert_int_equal(expected, rounds_pairs(n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_size),
        cmocka_unit_test(test_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
