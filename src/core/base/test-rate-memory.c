/* test-rate-memory.c - what is usual: medians that are right to an eighth, of the last hour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rate_memory.h"

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

static void test_medians(void **state)
{
    uint64_t rates[301];
    uint64_t seed = 12345;

    for (unsigned k = 0; k < 200; k++) {
        struct rate_memory m = {.total = 0};
        size_t n = 1 + k % 300;
        uint64_t median;

        for (size_t i = 0; i < n; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            rates[i] = 2000 + (seed >> 33) * (1 + k % 100);
            rate_memory_add(&m, rates[i]);
        }
        qsort(rates, n, sizeof(*rates), compare);
        median = rate_memory_median(&m);
        assert_true(median >= rates[(n - 1) / 2] * 7 / 8 && median <= rates[(n - 1) / 2] * 9 / 8);
    }
}

static void test_medians_at_the_ends(void **state)
{
    struct rate_memory m = {.total = 0};

    assert_int_equal(rate_memory_median(&m), 0);
    rate_memory_add(&m, 0);
    assert_true(rate_memory_median(&m) > 0);
    m = (struct rate_memory){.total = 0};
    rate_memory_add(&m, UINT64_MAX);
    assert_true(rate_memory_median(&m) > UINT64_C(1) << 37);
    /* What was long ago is forgotten. */
    for (unsigned i = 0; i < 3000; i++)
        rate_memory_add(&m, 1000000);
    for (unsigned i = 0; i < 3000; i++)
        rate_memory_add(&m, 8000000);
    assert_true(rate_memory_median(&m) > 7000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_medians),
        cmocka_unit_test(test_medians_at_the_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
