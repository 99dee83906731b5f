/* test-reload.c - what is stored loads, by random requests and random damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "os/rng_kernel.h"
#include "test/support/sample_hub.h"
#include "test/support/sample_reload.h"

#define ROUNDS  12
#define CHOICES 3000

/* By one seed, the same each time; WEFT_SEED has the first one that is tried. */
static void run_round(uint64_t seed)
{
    uint8_t bytes[CHOICES];
    uint64_t state = seed;
    struct rng rng = rng_seeded(&state);

    sample_hub_seed(seed);
    rng_fill(&rng, bytes, sizeof(bytes));
    sample_reload_run(bytes, sizeof(bytes));
}

static void test_what_is_stored_loads(void **state)
{
    const char *given = getenv("WEFT_SEED");
    struct rng kernel = rng_kernel();
    uint64_t seed = given ? strtoull(given, NULL, 10) : rng_u32(&kernel);

    for (unsigned i = 0; i < ROUNDS; i++)
        run_round(seed + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_stored_loads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
