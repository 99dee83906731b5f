/* test-forward-rules.c - when the packet filter's rules are put, and when they are removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "agent/reconcile/filter_rules.h"

#define SEC NSEC_PER_SEC

static const struct err fine = ERR_NULL;

static struct subnets subnets(const char *text)
{
    struct subnets s = SUBNETS_NULL;

    if (text)
        assert_int_equal(subnets_parse(&s, text, NULL), 0);
    return s;
}

enum guard { GUARD_KEEP, GUARD_PUT, GUARD_REMOVE };

/* What is wished for these routes; @e: what the attempt gives, if one is wished. */
static enum guard step(
    struct forward_rules *fr, const char *routes, bool is_router, const struct err *e, nsec_t now)
{
    struct subnets s = subnets(routes);

    if (!forward_rules_guard_is_due(fr, &s, is_router, now))
        return GUARD_KEEP;
    forward_rules_on_guard(fr, &s, is_router, e, now);
    return is_router ? GUARD_PUT : GUARD_REMOVE;
}

static void test_clamp(void **state)
{
    struct forward_rules fr = {.clamped_at = 0};

    assert_true(forward_rules_clamp_is_due(&fr, SEC));
    fr.clamped_at = SEC;
    assert_false(forward_rules_clamp_is_due(&fr, 60 * SEC));
    assert_true(forward_rules_clamp_is_due(&fr, 61 * SEC));
    forward_rules_forget(&fr);
    assert_true(forward_rules_clamp_is_due(&fr, 2 * SEC));
}

static void test_guard_of_a_router(void **state)
{
    struct forward_rules fr = {.clamped_at = 0};

    assert_int_equal(step(&fr, "10.9.0.0/24", true, &fine, SEC), GUARD_PUT);
    assert_int_equal(step(&fr, "10.9.0.0/24", true, &fine, 60 * SEC), GUARD_KEEP);
    assert_int_equal(step(&fr, "10.9.0.0/24", true, &fine, 61 * SEC), GUARD_PUT);
    /* Another subnet is not waited with, nor that the hub admits none any more. */
    assert_int_equal(step(&fr, "10.8.0.0/24", true, &fine, 62 * SEC), GUARD_PUT);
    assert_int_equal(step(&fr, NULL, true, &fine, 63 * SEC), GUARD_PUT);
    assert_int_equal(step(&fr, NULL, true, &fine, 64 * SEC), GUARD_KEEP);
}

/* What an earlier run has left is removed, once. */
static void test_guard_of_others_is_removed(void **state)
{
    struct forward_rules fr = {.clamped_at = 0};

    assert_int_equal(step(&fr, NULL, false, &fine, SEC), GUARD_REMOVE);
    assert_int_equal(step(&fr, NULL, false, &fine, 1000 * SEC), GUARD_KEEP);
    assert_int_equal(step(&fr, NULL, true, &fine, 1001 * SEC), GUARD_PUT);
    assert_int_equal(step(&fr, NULL, false, &fine, 1002 * SEC), GUARD_REMOVE);
    assert_int_equal(step(&fr, NULL, false, &fine, 1003 * SEC), GUARD_KEEP);
}

static void test_failed_removal_is_repeated(void **state)
{
    struct forward_rules fr = {.clamped_at = 0};
    struct err busy = ERR_NULL;

    (void)err_set(&busy, -EBUSY, "the packet filter is busy");
    assert_int_equal(step(&fr, NULL, false, &busy, SEC), GUARD_REMOVE);
    assert_string_equal(fr.guard_fault.text, "");
    assert_int_equal(step(&fr, NULL, false, &busy, 60 * SEC), GUARD_KEEP);
    assert_int_equal(step(&fr, NULL, false, &fine, 61 * SEC), GUARD_REMOVE);
    assert_int_equal(step(&fr, NULL, false, &fine, 1000 * SEC), GUARD_KEEP);
}

static void test_fault_is_that_of_the_last_attempt(void **state)
{
    struct forward_rules fr = {.clamped_at = 0};
    struct err busy = ERR_NULL;

    (void)err_set(&busy, -EBUSY, "the packet filter is busy");
    (void)step(&fr, "10.9.0.0/24", true, &busy, SEC);
    assert_string_equal(fr.guard_fault.text, "the packet filter is busy");
    assert_int_equal(step(&fr, "10.9.0.0/24", true, &fine, 2 * SEC), GUARD_KEEP);
    assert_int_equal(step(&fr, "10.9.0.0/24", true, &fine, 61 * SEC), GUARD_PUT);
    assert_string_equal(fr.guard_fault.text, "");
}

/* A data plane that is renewed may have another interface, which has none of the rules. */
static void test_renewed_engine(void **state)
{
    struct forward_rules fr = {.clamped_at = 0};

    (void)step(&fr, "10.9.0.0/24", true, &fine, SEC);
    forward_rules_forget(&fr);
    assert_int_equal(step(&fr, "10.9.0.0/24", true, &fine, 2 * SEC), GUARD_PUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clamp),
        cmocka_unit_test(test_guard_of_a_router),
        cmocka_unit_test(test_guard_of_others_is_removed),
        cmocka_unit_test(test_failed_removal_is_repeated),
        cmocka_unit_test(test_fault_is_that_of_the_last_attempt),
        cmocka_unit_test(test_renewed_engine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
