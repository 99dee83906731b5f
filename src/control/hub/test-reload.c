/* test-reload.c - what is stored loads, by random requests and random damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "os/clock.h"
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

static void report(struct sample_hub *s, const char *name, const char *body)
{
    assert_int_equal(sample_hub_ask(s, API_ACCESS_OVERLAY, sample_hub_node(s, name), "PUT",
                         "/v1/status", body, NULL),
        204);
}

static bool has_reported(struct sample_hub *s, const char *name)
{
    return sample_hub_node(s, name)->reported->reported_at != 0;
}

/* An agent that says nothing of itself has been heard; one of whose node a probe alone reports has
 * not: after a start of the hub as before it. */
static void test_report_that_says_nothing(void **state)
{
    struct sample_hub s = {.now = 0};

    sample_hub_make_dir(&s, true);
    sample_hub_open(&s);
    sample_hub_add_node(&s, "a");
    sample_hub_add_node(&s, "b");
    report(&s, "a", "{}");
    report(&s, "b", "{\"owner\":\"probe/b\",\"edges\":{\"a\":{\"tunnel\":\"reached\"}}}");
    for (unsigned i = 0; i < 3; i++) {
        assert_true(has_reported(&s, "a"));
        assert_false(has_reported(&s, "b"));
        sample_hub_close(&s);
        sample_hub_open(&s);
    }
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_that_says_nothing),
        cmocka_unit_test(test_what_is_stored_loads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
