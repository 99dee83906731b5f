/* test-loop.c - who wakes the control thread, and when nobody has to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#include "os/clock.h"
#include "shared/loop.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct loop loop;

static int set_up(void **state)
{
    return loop_init(&loop);
}

static int tear_down(void **state)
{
    loop_deinit(&loop);
    return 0;
}

static bool wait_until(nsec_t until)
{
    bool is_woken;

    (void)pthread_mutex_lock(&lock);
    is_woken = loop_wait(&loop, &lock, until);
    (void)pthread_mutex_unlock(&lock);
    return is_woken;
}

/* How often wake_fd has been written to since it was read. */
static uint64_t n_signals(void)
{
    eventfd_t n = 0;

    return eventfd_read(loop.wake_fd, &n) == 0 ? n : 0;
}

static void test_woken_once_by_many(void **state)
{
    for (int i = 0; i < 5; i++)
        loop_wake(&loop);
    assert_int_equal(n_signals(), 1);
    /* As if that had been the thread. */
    atomic_store(&loop.is_signalled, false);
    assert_false(wait_until(0));
}

static void test_each_wait_can_be_ended(void **state)
{
    for (int i = 0; i < 3; i++) {
        loop_wake(&loop);
        assert_true(wait_until(NSEC_NEVER));
    }
    assert_false(wait_until(0));
}

/* A thread that is awake looks by itself before it sleeps long. */
static void test_soon_while_awake(void **state)
{
    nsec_t now;

    assert_false(wait_until(0));
    now = clock_now();
    loop_wake_soon(&loop, now);
    assert_int_equal(n_signals(), 0);
    assert_false(wait_until(NSEC_NEVER));
    assert_true(clock_now() - now >= LOOP_SOON);
    /* That was all that was wanted. */
    assert_false(atomic_load(&loop.is_wanted));
}

/* One that sleeps is woken only if it would sleep too long. */
static void test_soon_while_asleep(void **state)
{
    nsec_t now = clock_now();

    atomic_store(&loop.sleeps_until, now + LOOP_SOON / 2);
    loop_wake_soon(&loop, now);
    assert_int_equal(n_signals(), 0);
    atomic_store(&loop.sleeps_until, NSEC_NEVER);
    loop_wake_soon(&loop, now);
    assert_int_equal(n_signals(), 1);
}

static int data;             /* for the loop's thread: not atomic, so that an order is needed */
static _Atomic bool is_done; /* relaxed, so that it gives no order */

static void *wake_with_news(void *arg)
{
    data = 1;
    loop_wake(&loop);
    atomic_store_explicit(&is_done, true, memory_order_relaxed);
    return NULL;
}

static void *want_with_news(void *arg)
{
    data = 1;
    loop_wake_soon(&loop, clock_now());
    atomic_store_explicit(&is_done, true, memory_order_relaxed);
    return NULL;
}

/* What a thread has for the loop is seen there, also when it made no system call for it. A
 * processor of another kind may show otherwise, and ThreadSanitizer does on any. */
static void assert_news_are_seen(void *(*teller)(void *), bool is_woken)
{
    pthread_t thread;

    data = 0;
    atomic_store(&is_done, false);
    assert_int_equal(pthread_create(&thread, NULL, teller, NULL), 0);
    while (!atomic_load_explicit(&is_done, memory_order_relaxed))
        (void)sched_yield();
    assert_int_equal(wait_until(0), is_woken);
    assert_int_equal(data, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_news_without_a_signal(void **state)
{
    /* So the other thread does not signal. */
    loop_wake(&loop);
    assert_news_are_seen(wake_with_news, true);
    assert_news_are_seen(want_with_news, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_woken_once_by_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_each_wait_can_be_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_soon_while_awake, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_soon_while_asleep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_news_without_a_signal, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
