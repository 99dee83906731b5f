/* test-poll-list.c - deadlines in order, and each peer told of once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "shared/poll_list.h"

#define N 8

static void test_deadlines_come_in_order(void **state)
{
    struct poll_list l = {.n = 0};
    struct poll_link links[N] = {0};

    for (int i = 0; i < N; i++) {
        assert_int_equal(poll_list_add(&l), 0);
        assert_int_equal(heap_set(&l.timers, &links[i].due, 100 - i), 0);
    }
    assert_int_equal(heap_set(&l.timers, &links[0].due, 1), 0);
    assert_int_equal(heap_set(&l.timers, &links[1].due, NSEC_NEVER), 0);
    assert_int_equal(heap_due(&l.timers), 1);
    assert_null(poll_list_pop_due(&l, 0));
    assert_ptr_equal(poll_list_pop_due(&l, 200), &links[0]);
    poll_list_remove(&l, &links[N - 1]);
    for (int i = N - 2; i > 1; i--)
        assert_ptr_equal(poll_list_pop_due(&l, 200), &links[i]);
    assert_null(poll_list_pop_due(&l, 200));
    assert_int_equal(heap_due(&l.timers), NSEC_NEVER);
    heap_deinit(&l.timers);
}

static void test_a_peer_is_told_of_once(void **state)
{
    struct poll_list l = {.n = 0};
    struct poll_link a = {.is_notified = false}, b = {.is_notified = false};
    struct poll_link *link;

    assert_null(poll_list_take_notified(&l));
    assert_true(poll_list_tell(&l, &a));
    assert_true(poll_list_tell(&l, &b));
    assert_false(poll_list_tell(&l, &a));
    link = poll_list_take_notified(&l);
    assert_ptr_equal(link, &b);
    /* It was not taken off yet, so what is told of it now is seen with the rest. */
    assert_false(poll_list_tell(&l, &b));
    link = poll_list_next_notified(link);
    assert_ptr_equal(link, &a);
    assert_true(poll_list_tell(&l, &b));
    assert_null(poll_list_next_notified(link));
    assert_ptr_equal(poll_list_take_notified(&l), &b);
}

/** A thread that tells of a link which is on the stack already. */
struct teller {
    struct poll_list l;
    struct poll_link link;
    int data;             /* written before it tells: not atomic, so that an order is needed */
    bool is_first;        /* what poll_list_tell() said */
    _Atomic bool is_done; /* relaxed, so that it gives no order */
};

static void *tell_again(void *arg)
{
    struct teller *t = arg;

    t->data = 1;
    t->is_first = poll_list_tell(&t->l, &t->link);
    atomic_store_explicit(&t->is_done, true, memory_order_relaxed);
    return NULL;
}

/* What is told of a link that is on the stack is seen by whoever takes it off. A processor of
 * another kind may show otherwise, and ThreadSanitizer does on any. */
static void test_what_is_told_again_is_seen(void **state)
{
    struct teller t = {.data = 0};
    pthread_t thread;

    assert_true(poll_list_tell(&t.l, &t.link));
    assert_int_equal(pthread_create(&thread, NULL, tell_again, &t), 0);
    while (!atomic_load_explicit(&t.is_done, memory_order_relaxed))
        (void)sched_yield();
    assert_null(poll_list_next_notified(poll_list_take_notified(&t.l)));
    assert_int_equal(t.data, 1);
    assert_false(t.is_first);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deadlines_come_in_order),
        cmocka_unit_test(test_a_peer_is_told_of_once),
        cmocka_unit_test(test_what_is_told_again_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
