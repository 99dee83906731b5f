/*
 * test-rdzv-stored.c - what is stored loads, and what is damaged is refused alone: random
 * operations on a TCPStore and an etcd tree (fuzz-rdzv-stored.c), by seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define SEEDS 4000

static void test_stored(void **state)
{
    static uint8_t input[4096];

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t random = seed;
        struct rng rng = rng_seeded(&random);
        size_t len = 64 + rng_u32(&rng) % (sizeof(input) - 64);

        /* What fails ends the program: the last seed that is shown. */
        (void)printf("seed %llu\r", (unsigned long long)seed);
        (void)fflush(stdout);
        rng_fill(&rng, input, len);
        assert_int_equal(LLVMFuzzerTestOneInput(input, len), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
