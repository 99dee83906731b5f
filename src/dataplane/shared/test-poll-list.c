/* test-poll-list.c - deadlines in order, and each peer told of once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shared/poll_list.h"

#define N 8

static void test_deadlines_come_in_order(void **state)
{
    struct poll_list l = {.n = 0};
    struct poll_link links[N] = {0};

    for (int i = 0; i < N; i++) {
        assert_int_equal(poll_list_add(&l), 0);
        poll_list_arm(&l, &links[i], 100 - i);
    }
    poll_list_arm(&l, &links[0], 1);
    poll_list_arm(&l, &links[1], NSEC_NEVER);
    assert_int_equal(poll_list_due(&l), 1);
    assert_null(poll_list_pop_due(&l, 0));
    assert_ptr_equal(poll_list_pop_due(&l, 200), &links[0]);
    poll_list_remove(&l, &links[N - 1]);
    for (int i = N - 2; i > 1; i--)
        assert_ptr_equal(poll_list_pop_due(&l, 200), &links[i]);
    assert_null(poll_list_pop_due(&l, 200));
    assert_int_equal(poll_list_due(&l), NSEC_NEVER);
    poll_list_deinit(&l);
}

static void test_a_peer_is_told_of_once(void **state)
{
    struct poll_list l = {.n = 0};
    struct poll_link a = {.is_told = false}, b = {.is_told = false};
    struct poll_link *link;

    assert_null(poll_list_take_told(&l));
    assert_true(poll_list_tell(&l, &a));
    assert_true(poll_list_tell(&l, &b));
    assert_false(poll_list_tell(&l, &a));
    link = poll_list_take_told(&l);
    assert_ptr_equal(link, &b);
    /* It was not taken off yet, so what is told of it now is seen with the rest. */
    assert_false(poll_list_tell(&l, &b));
    link = poll_list_next_told(link);
    assert_ptr_equal(link, &a);
    assert_true(poll_list_tell(&l, &b));
    assert_null(poll_list_next_told(link));
    assert_ptr_equal(poll_list_take_told(&l), &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deadlines_come_in_order),
        cmocka_unit_test(test_a_peer_is_told_of_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
