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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define SEEDS 4000

/* Of a generator after Marsaglia, "Xorshift RNGs": the same on each machine. */
static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void test_stored(void **state)
{
    static uint8_t input[4096];

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t random = seed * 0x9e3779b97f4a7c15u;
        size_t len = 64 + next(&random) % (sizeof(input) - 64);

        /* What fails ends the program: the last seed that is shown. */
        (void)printf("seed %llu\r", (unsigned long long)seed);
        (void)fflush(stdout);
        for (size_t i = 0; i < len; i++)
            input[i] = (uint8_t)(next(&random) >> 32);
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
