/* test-duplicate.c - which of two processes that run as the same hub ends, and which one stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hub/owner/owners.h"

#define S NSEC_PER_SEC

/* The former run's last beat, and one that was on its way when it was killed. */
static void test_a_restart(void **state)
{
    struct duplicate t = {.own = 5};

    assert_int_equal(duplicate_hear(&t, 9, 0, 1 * S), DUPLICATE_NONE);
    assert_int_equal(duplicate_hear(&t, 5, 0, 2 * S), DUPLICATE_NONE);
    assert_int_equal(duplicate_hear(&t, 9, 2 * S, 2 * S), DUPLICATE_NONE);
    assert_int_equal(duplicate_hear(&t, 5, 2 * S, 4 * S), DUPLICATE_NONE);
    assert_false(duplicate_has_left(&t, 5 * S));
    assert_true(duplicate_has_left(&t, 2 * S + OWNER_TAKE_AFTER));
    assert_false(duplicate_has_left(&t, 3 * S + OWNER_TAKE_AFTER));
}

/* The later one ends with the second beat; the older one is told of it, and stays. Whose first beat
 * is stored first is the older one, however close together they were started. */
static void test_started_twice(void **state)
{
    struct duplicate older = {.own = 5};
    struct duplicate newer = {.own = 9};

    assert_int_equal(duplicate_hear(&older, 5, 0, 1 * S), DUPLICATE_NONE);
    assert_int_equal(duplicate_hear(&newer, 5, 0, 1 * S), DUPLICATE_NONE);
    assert_int_equal(duplicate_hear(&older, 9, 0, 1 * S), DUPLICATE_NEW);
    assert_int_equal(duplicate_hear(&newer, 9, 0, 1 * S), DUPLICATE_NONE);
    for (unsigned i = 2; i < 5; i++) {
        assert_int_equal(
            duplicate_hear(&newer, 5, 1 * S, 3 * S), i == 2 ? DUPLICATE_NONE : DUPLICATE_IS_OLDER);
        assert_int_equal(duplicate_hear(&older, 9, 1 * S, 3 * S), DUPLICATE_NONE);
    }
}

/* A machine was frozen, another one was started meanwhile, and now it goes on. */
static void test_stood_still(void **state)
{
    struct duplicate t = {.own = 9};

    assert_int_equal(duplicate_hear(&t, 9, 10 * S, 10 * S), DUPLICATE_NONE);
    assert_int_equal(duplicate_hear(&t, 5, 10 * S, 10 * S + OWNER_TAKE_AFTER), DUPLICATE_REPLACED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_restart),
        cmocka_unit_test(test_started_twice),
        cmocka_unit_test(test_stood_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
