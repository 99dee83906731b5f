/* test-sched-batch.c - batch policy while that costs nothing, ordinary beside who computes all the
 * time.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/thread.h"

static atomic_bool is_over;

/* Turns are rare, for all that these clocks tell. */
static nsec_t tick(void)
{
    static nsec_t now;

    return now += 5 * NSEC_PER_MSEC;
}

static void *compute(void *arg)
{
    (void)arg;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed))
        ;
    return NULL;
}

/* A timer that goes off every 50 us. */
static int open_ticks(void)
{
    const struct timespec often = {.tv_nsec = 50000};
    const struct itimerspec ticks = {.it_interval = often, .it_value = often};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(timerfd_settime(fd, 0, &ticks, NULL), 0);
    return fd;
}

/* A thread with little to do: it sleeps, wakes up, and has a turn. */
static void one_turn(struct sched_batch *c, int ticks)
{
    uint64_t n;

    assert_int_equal(read(ticks, &n, sizeof(n)), sizeof(n));
    sched_batch_turn(c, true, tick());
}

static void test_follows_what_it_may(void **state)
{
    struct sched_batch c = {0};

    sched_batch_begin(&c);
    assert_true(c.fd >= 0);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    sched_batch_turn(&c, true, tick());
    assert_int_equal(sched_getscheduler(0), SCHED_BATCH);
    sched_batch_turn(&c, false, tick());
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    sched_batch_turn(&c, true, tick());
    sched_batch_end(&c);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

/* Who cannot tell how long it waits never gets the policy. */
static void test_needs_to_know_its_wait(void **state)
{
    struct sched_batch c = {0};

    sched_batch_begin(&c);
    sched_batch_end(&c);
    sched_batch_turn(&c, true, tick());
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

/* Beside a thread that never sleeps, on the same processor. */
static void test_ends_beside_one_that_computes(void **state)
{
    pthread_t computing;
    struct cpulist cpus;
    struct sched_batch c = {0};
    unsigned n_turns = 0;
    int ticks = open_ticks();

    cpulist_allowed(&cpus);
    cpus.n = 1;
    assert_int_equal(cpulist_confine(&cpus, NULL), 0);
    sched_batch_begin(&c);
    sched_batch_turn(&c, true, tick());
    assert_true(c.is_on);
    assert_int_equal(thread_start(&computing, "compute", cpus.cpu[0], compute, NULL), 0);
    for (; c.is_on && n_turns < 20000; n_turns++)
        one_turn(&c, ticks);
    atomic_store(&is_over, true);
    (void)pthread_join(computing, NULL);
    (void)close(ticks);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    sched_batch_end(&c);
}

/* In place of the kernel: runs so far, and microseconds of waiting before each of them. */
static void say(struct sched_batch *c, unsigned n_runs, unsigned wait)
{
    assert_int_equal(ftruncate(c->fd, 0), 0);
    assert_true(dprintf(c->fd, "1 %llu %u\n", n_runs * wait * 1000ULL, n_runs) > 0);
    assert_int_equal(lseek(c->fd, 0, SEEK_SET), 0);
}

/* Turns until it is what @on says. */
static unsigned turns_until(struct sched_batch *c, bool on)
{
    unsigned n = 0;

    for (; c->is_on != on && n < 1000000; n++)
        sched_batch_turn(c, true, tick());
    return n;
}

/* What comes often would pile up behind a thread that waits for its turn. */
static void test_is_for_rare_turns(void **state)
{
    struct sched_batch c = {0};
    nsec_t now = 0;

    sched_batch_begin(&c);
    sched_batch_end(&c);
    c.fd = memfd_create("schedstat", 0);
    say(&c, 100, 0);
    sched_batch_turn(&c, true, now);
    assert_true(c.is_on);
    for (unsigned i = 0; i < 100; i++)
        sched_batch_turn(&c, true, now += 100 * NSEC_PER_USEC);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    /* Not even when there is less at a time for a while. */
    sched_batch_turn(&c, false, now += NSEC_PER_MSEC);
    sched_batch_turn(&c, true, now += NSEC_PER_MSEC);
    assert_false(c.is_on);
    for (unsigned i = 0; i < 100; i++)
        sched_batch_turn(&c, true, now += 2 * NSEC_PER_MSEC);
    assert_int_equal(sched_getscheduler(0), SCHED_BATCH);
    assert_int_equal(atomic_load(&c.n_begun), 2);
    sched_batch_end(&c);
}

static void test_trials_become_rare_while_they_fail(void **state)
{
    struct sched_batch c = {0};
    unsigned rest, longest = 0;

    sched_batch_begin(&c);
    sched_batch_end(&c);
    c.fd = memfd_create("schedstat", 0);
    for (int i = 0; i < 12; i++, longest = rest) {
        say(&c, 100, 0);
        rest = turns_until(&c, true);
        assert_true(rest >= longest);
        say(&c, 200, 4000);
        assert_in_range(turns_until(&c, false), 1, 100);
    }
    assert_in_range(longest, 10000, 100000);

    /* One that succeeds makes the next rest a short one again. */
    say(&c, 100, 0);
    (void)turns_until(&c, true);
    for (unsigned i = 0; i < 1000; i++)
        sched_batch_turn(&c, true, tick());
    assert_true(c.is_on);
    say(&c, 200, 4000);
    (void)turns_until(&c, false);
    say(&c, 100, 0);
    assert_in_range(turns_until(&c, true), 100, 2000);
    sched_batch_end(&c);
}

static void test_no_number_is_no_batch(void **state)
{
    struct sched_batch c = {0};

    sched_batch_begin(&c);
    sched_batch_end(&c);
    c.fd = memfd_create("schedstat", 0);
    sched_batch_turn(&c, true, tick());
    assert_false(c.is_on);
    sched_batch_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_what_it_may),
        cmocka_unit_test(test_needs_to_know_its_wait),
        cmocka_unit_test(test_is_for_rare_turns),
        cmocka_unit_test(test_no_number_is_no_batch),
        cmocka_unit_test(test_trials_become_rare_while_they_fail),
        cmocka_unit_test(test_ends_beside_one_that_computes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
