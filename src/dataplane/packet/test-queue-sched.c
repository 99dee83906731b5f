/* test-queue-sched.c - unit tests for sched.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "packet/sched.h"

static uint64_t bits(unsigned a, unsigned b)
{
    return UINT64_C(1) << a | UINT64_C(1) << b;
}

/* A batch that has room for one queue's share. */
static int batch_of_one(struct queue_sched *t)
{
    (void)queue_sched_begin(t);
    return queue_sched_next(t);
}

/* A batch with room for all. Returns how many were asked, and in which order. */
static unsigned batch_of_all(struct queue_sched *t, int asked[static QUEUE_SCHED_MAX])
{
    unsigned n = 0;
    int queue;

    (void)queue_sched_begin(t);
    while ((queue = queue_sched_next(t)) >= 0)
        asked[n++] = queue;
    return n;
}

static void test_nothing_is_ready(void **state)
{
    struct queue_sched t = {0};

    assert_int_equal(queue_sched_begin(&t), 0);
    assert_int_equal(queue_sched_next(&t), -1);
}

static void test_full_queues_take_turns(void **state)
{
    struct queue_sched t = {0};
    int asked[QUEUE_SCHED_MAX];

    sched_queues_on_ready(&t.queues, bits(1, 63) | bits(5, 8));
    assert_int_equal(batch_of_all(&t, asked), 4); /* none is fresh any more */
    for (unsigned turn = 0; turn < 3; turn++) {
        static const int order[] = {1, 5, 8, 63};

        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(batch_of_one(&t), order[i]);
            sched_queues_on_ready(&t.queues, bits(1, 63) | bits(5, 8));
        }
    }
}

static void test_each_is_asked_once_a_batch(void **state)
{
    struct queue_sched t = {0};
    int asked[QUEUE_SCHED_MAX];

    sched_queues_on_ready(&t.queues, ~UINT64_C(0));
    for (unsigned turn = 0; turn < 5; turn++) {
        uint64_t seen = 0;

        assert_int_equal(batch_of_all(&t, asked), QUEUE_SCHED_MAX);
        for (unsigned i = 0; i < QUEUE_SCHED_MAX; i++)
            seen |= UINT64_C(1) << asked[i];
        assert_true(seen == ~UINT64_C(0));
        (void)batch_of_one(&t); /* begin somewhere else */
    }
}

static void test_one_that_was_empty_goes_first_once(void **state)
{
    struct queue_sched t = {0};
    int asked[QUEUE_SCHED_MAX];

    sched_queues_on_ready(&t.queues, bits(3, 4));
    (void)batch_of_all(&t, asked);
    sched_queues_on_ready(&t.queues, bits(3, 4) | bits(9, 9));
    assert_int_equal(batch_of_one(&t), 9);
    /* It has more, so it is one of them. */
    sched_queues_on_ready(&t.queues, bits(3, 4) | bits(9, 9));
    assert_int_equal(batch_of_one(&t), 3);
    assert_int_equal(batch_of_one(&t), 4);
    assert_int_equal(batch_of_one(&t), 9);
    /* Read until it was empty, it is as new. */
    sched_queues_on_empty(&t.queues, 9);
    sched_queues_on_ready(&t.queues, bits(9, 9));
    assert_int_equal(batch_of_one(&t), 9);
}

/* A lone packet now and then does not change whose turn it is among the others. */
static void test_the_turn_goes_on(void **state)
{
    struct queue_sched t = {0};
    int asked[QUEUE_SCHED_MAX];

    sched_queues_on_ready(&t.queues, bits(2, 7));
    (void)batch_of_all(&t, asked);
    for (unsigned i = 0; i < 6; i++) {
        sched_queues_on_ready(&t.queues, bits(5, 5));
        (void)queue_sched_begin(&t);
        assert_int_equal(queue_sched_next(&t), 5);
        sched_queues_on_empty(&t.queues, 5);
        assert_int_equal(queue_sched_next(&t), i % 2 ? 7 : 2);
    }
}

/* However often some fill a batch from empty, another has every second one at least. */
static void test_fresh_ones_keep_nobody_out(void **state)
{
    struct queue_sched t = {0};
    int asked[QUEUE_SCHED_MAX];
    unsigned n_old = 0;

    sched_queues_on_ready(&t.queues, bits(40, 40));
    (void)batch_of_all(&t, asked);
    for (unsigned i = 0; i < 600; i++) {
        int queue;

        sched_queues_on_ready(&t.queues, bits(0, 1) | bits(40, 40));
        queue = batch_of_one(&t);
        if (queue == 40)
            n_old++;
        else
            sched_queues_on_empty(&t.queues, (unsigned)queue);
    }
    assert_in_range(n_old, 600 / 6, 600 / 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_ready),
        cmocka_unit_test(test_full_queues_take_turns),
        cmocka_unit_test(test_each_is_asked_once_a_batch),
        cmocka_unit_test(test_one_that_was_empty_goes_first_once),
        cmocka_unit_test(test_the_turn_goes_on),
        cmocka_unit_test(test_fresh_ones_keep_nobody_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
