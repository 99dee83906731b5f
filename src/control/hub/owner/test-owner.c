/* test-owner.c - a hub's decision to serve the jobs of a network, case by case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hub/owner/owners.h"

#define S NSEC_PER_SEC

static const struct {
    const char *what;
    struct owner_facts facts;
    enum owner_decision wanted;
} cases[] = {
    {"the maker begins", {.is_maker = true, .heard_at = 100 * S, .stored_at = 99 * S}, OWNER_TAKE},
    {"the others wait for it", {.heard_at = 95 * S, .stored_at = 99 * S}, OWNER_WAIT},
    {"and not for ever", {.heard_at = 94 * S, .stored_at = 99 * S}, OWNER_TAKE},
    {"nobody begins who cannot write", {.is_maker = true, .heard_at = 10 * S}, OWNER_WAIT},
    {"the owner serves", {.has_record = true, .is_own = true, .stored_at = 97 * S}, OWNER_SERVE},
    {"until it cannot write", {.has_record = true, .is_own = true, .stored_at = 96 * S},
        OWNER_WAIT},
    {"an owner that is heard stays",
        {.has_record = true, .is_maker = true, .heard_at = 95 * S, .stored_at = 99 * S},
        OWNER_WAIT},
    {"a silent one is replaced", {.has_record = true, .heard_at = 94 * S, .stored_at = 99 * S},
        OWNER_TAKE},
    {"not by who cannot write", {.has_record = true, .heard_at = 1 * S, .stored_at = 90 * S},
        OWNER_WAIT},
    {"what was given up is taken at once",
        {.has_record = true, .is_nobodys = true, .heard_at = 100 * S, .stored_at = 99 * S},
        OWNER_TAKE},
};

static void test_cases(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct owner_facts facts = cases[i].facts;

        facts.now = 100 * S;
        if (owner_decide(&facts) != cases[i].wanted)
            fail_msg("case %zu: %s", i, cases[i].what);
    }
}

/* An owner that cannot write any more has stopped before another one takes over, whatever the
 * moments are: the other one heard of the beat after the owner had begun it. The owner looks each
 * second. */
static void test_never_two(void **state)
{
    for (nsec_t lag = 0; lag <= 3 * S; lag += S / 8) {
        nsec_t begun = 50 * S;
        nsec_t heard = begun + lag;
        nsec_t last = 0;
        nsec_t taken = 0;

        for (nsec_t now = begun; now < 70 * S && !taken; now += S / 8) {
            struct owner_facts old = {
                .has_record = true, .is_own = true, .stored_at = begun, .now = now};
            struct owner_facts other = {
                .has_record = true, .heard_at = heard, .stored_at = now, .now = now};

            if (owner_decide(&old) == OWNER_SERVE)
                last = now;
            if (owner_decide(&other) == OWNER_TAKE)
                taken = now;
        }
        assert_true(taken > last + S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_never_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
