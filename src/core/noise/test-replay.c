/* test-replay.c - the replay window: a table of cases, and a slow reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "noise/keypair.h"
#include "wire/wg.h"

#define LIMIT  WG_REJECT_AFTER_MESSAGES
#define WINDOW ((uint64_t)REPLAY_WINDOW)

/* Run in order on one window each; a counter, and whether it is fresh. */
struct step {
    uint64_t counter;
    bool is_fresh;
};

static void run(const struct step *steps, size_t n)
{
    struct replay w;

    memset(&w, 0, sizeof(w));
    for (size_t i = 0; i < n; i++)
        if (replay_check(&w, steps[i].counter) != steps[i].is_fresh)
            fail_msg("step %zu: counter %llu should be %s", i, (unsigned long long)steps[i].counter,
                steps[i].is_fresh ? "fresh" : "refused");
}

#define RUN(...)                                                                                   \
    run((const struct step[]){__VA_ARGS__},                                                        \
        sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step))

static void test_table(void **state)
{
    /* 1: in order, each once. */
    RUN({0, true}, {0, false}, {1, true}, {1, false}, {9, true}, {8, true}, {7, true}, {7, false});
    /* 2: the first one may be any. */
    RUN({5, true}, {5, false}, {0, true}, {0, false});
    /* 3: the far edge of the window. */
    RUN({WINDOW, true}, {0, true}, {0, false});
    RUN({WINDOW + 1, true}, {0, false}, {1, true}, {1, false});
    RUN({3 * WINDOW, true}, {2 * WINDOW, true}, {2 * WINDOW - 1, false});
    /* 4: a jump over the whole ring forgets everything, and keeps the old out. */
    RUN({3, true}, {(uint64_t)REPLAY_BITS * 5 + 3, true}, {3, false},
        {(uint64_t)REPLAY_BITS * 5 + 2, true}, {(uint64_t)REPLAY_BITS * 4 + 3, false});
    /* 5: across a block's border. */
    RUN({63, true}, {64, true}, {63, false}, {64, false}, {65, true}, {62, true}, {62, false});
    /* 6: the message limit, which also keeps `next` from wrapping. */
    RUN({LIMIT - 1, true}, {LIMIT, false}, {LIMIT + 1, false}, {UINT64_MAX, false},
        {LIMIT - 1, false}, {LIMIT - 2, true}, {LIMIT - 1 - WINDOW, true},
        {LIMIT - 2 - WINDOW, false}, {0, false});
    /* 7: backwards through the whole window. */
    struct replay w;

    memset(&w, 0, sizeof(w));
    for (uint64_t c = WINDOW + 1; c-- > 0;)
        assert_true(replay_check(&w, c));
    for (uint64_t c = 0; c <= WINDOW; c++)
        assert_false(replay_check(&w, c));
}

/* The reference remembers every counter of a small range, and the greatest. */
#define RANGE 60000u

static void test_reference(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t s = seed;
        struct rng rng = rng_seeded(&s);
        bool *seen = calloc(RANGE, sizeof(*seen));
        uint64_t greatest = 0;
        bool any = false;
        struct replay w;

        assert_non_null(seen);
        memset(&w, 0, sizeof(w));
        for (unsigned i = 0; i < 100000; i++) {
            /* Near the front mostly, sometimes anywhere, so that both edges are met often. */
            uint64_t c = rng_u32(&rng) % 16 == 0
                             ? rng_u32(&rng) % RANGE
                             : (greatest + rng_u32(&rng) % 200 + RANGE - 150) % RANGE;
            bool expected;

            if (rng_u32(&rng) % 8 == 0)
                c = (greatest + RANGE - WINDOW - 5 + rng_u32(&rng) % 10) % RANGE;
            expected = !seen[c] && (!any || c + WINDOW >= greatest);
            if (replay_check(&w, c) != expected)
                fail_msg("seed %llu, step %u: counter %llu, greatest %llu, expected %d",
                    (unsigned long long)seed, i, (unsigned long long)c,
                    (unsigned long long)greatest, expected);
            if (expected) {
                seen[c] = true;
                greatest = !any || c > greatest ? c : greatest;
                any = true;
            }
        }
        free(seen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_reference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
