/* test-class-sched.c - unit tests for sched.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "packet/sched.h"

/* Queues: the n-th of a class. */
#define CONTROL(n) ((n)*TRAFFIC_CLASS_N + TRAFFIC_CLASS_CONTROL)
#define NORMAL(n)  ((n)*TRAFFIC_CLASS_N + TRAFFIC_CLASS_NORMAL)
#define BULK(n)    ((n)*TRAFFIC_CLASS_N + TRAFFIC_CLASS_BULK)
#define BIT(queue) (UINT64_C(1) << (queue))

/* What each queue has sent after @n_bytes in all: those in @mask always have more, in frames of
 * frame[queue] bytes for peer[queue]. */
struct run {
    struct class_sched sched;
    uint32_t frame[CLASS_SCHED_MAX];
    const void *peer[CLASS_SCHED_MAX];
    uint64_t sent[CLASS_SCHED_MAX];
};

static const int a, b, c; /* peers */

static void run_init(struct run *r)
{
    memset(r, 0, sizeof(*r));
    class_sched_init(&r->sched);
    r->sched.has_classes = true;
    for (unsigned i = 0; i < CLASS_SCHED_MAX; i++) {
        r->frame[i] = 1420;
        r->peer[i] = &a;
    }
}

static void run(struct run *r, uint64_t mask, uint64_t n_bytes)
{
    for (uint64_t n = 0; n < n_bytes;) {
        int queue;

        sched_queues_on_ready(&r->sched.queues, mask);
        queue = class_sched_next(&r->sched, 0, 0);
        assert_true(queue >= 0 && (mask & BIT(queue)));
        class_sched_on_sent(&r->sched, (unsigned)queue, r->frame[queue], r->peer[queue]);
        r->sent[queue] += r->frame[queue];
        n += r->frame[queue];
    }
}

static void assert_ratio(uint64_t x, uint64_t y, double want)
{
    double ratio = (double)x / (double)y;

    if (ratio < want * 0.95 || ratio > want * 1.05)
        fail_msg("%.3f where %.3f was to be", ratio, want);
}

static void test_nothing_is_ready(void **state)
{
    struct class_sched s;

    class_sched_init(&s);
    s.has_classes = true;
    assert_int_equal(class_sched_next(&s, 0, 0), -1);
    sched_queues_on_ready(&s.queues, BIT(5));
    assert_int_equal(class_sched_next(&s, 0, 0), 5);
    sched_queues_on_empty(&s.queues, 5);
    assert_int_equal(class_sched_next(&s, 0, 0), -1);
}

static void test_a_lower_class_gets_its_share(void **state)
{
    struct run r;

    run_init(&r);
    run(&r, BIT(CONTROL(0)) | BIT(BULK(3)), 64 << 20);
    assert_ratio(r.sent[CONTROL(0)], r.sent[BULK(3)], 16);
}

static void test_each_class_goes_before_the_lower(void **state)
{
    struct run r;

    run_init(&r);
    run(&r, BIT(CONTROL(0)) | BIT(NORMAL(1)) | BIT(BULK(3)), 64 << 20);
    assert_true(r.sent[CONTROL(0)] > 10 * r.sent[NORMAL(1)]);
    assert_true(r.sent[BULK(3)] > 0 && r.sent[NORMAL(1)] > 0);
}

/* A flow of superpackets gets no more than one of small packets. */
static void test_turns_are_by_bytes(void **state)
{
    struct run r;

    run_init(&r);
    r.frame[NORMAL(2)] = 65536;
    r.frame[NORMAL(9)] = 100;
    r.peer[NORMAL(9)] = &b;
    run(&r, BIT(NORMAL(2)) | BIT(NORMAL(9)), 64 << 20);
    assert_ratio(r.sent[NORMAL(2)], r.sent[NORMAL(9)], 1);
}

static void test_peers_have_equal_parts(void **state)
{
    struct run r;
    uint64_t mask = BIT(NORMAL(0)) | BIT(NORMAL(15));
    uint64_t many = 0;

    run_init(&r);
    r.peer[NORMAL(0)] = &b;
    r.peer[NORMAL(15)] = &c;
    for (unsigned i = 1; i < 9; i++)
        mask |= BIT(NORMAL(i));
    run(&r, mask, 64 << 20);
    for (unsigned i = 1; i < 9; i++)
        many += r.sent[NORMAL(i)];
    assert_ratio(many, r.sent[NORMAL(0)], 1);
    assert_ratio(r.sent[NORMAL(15)], r.sent[NORMAL(0)], 1);
}

static void test_a_new_flow_goes_first_once(void **state)
{
    struct run r;
    int queue;

    run_init(&r);
    run(&r, BIT(NORMAL(4)) | BIT(NORMAL(5)), 1 << 20);
    sched_queues_on_ready(&r.sched.queues, BIT(NORMAL(12)));
    assert_int_equal(class_sched_next(&r.sched, 0, 0), NORMAL(12));
    /* One that has had its part waits for its turn, although it was empty in between. */
    class_sched_on_sent(&r.sched, NORMAL(12), 65536, &b);
    sched_queues_on_empty(&r.sched.queues, NORMAL(12));
    sched_queues_on_ready(&r.sched.queues, BIT(NORMAL(12)));
    queue = class_sched_next(&r.sched, 0, 0);
    assert_true(queue == NORMAL(4) || queue == NORMAL(5));
}

/* Whoever fills and empties its queue all the time gets no more than those who wait. */
static void test_going_first_gains_nothing(void **state)
{
    struct run r;

    run_init(&r);
    r.peer[NORMAL(7)] = &b;
    for (uint64_t n = 0; n < 16 << 20;) {
        int queue;

        sched_queues_on_ready(&r.sched.queues, BIT(NORMAL(1)) | BIT(NORMAL(7)));
        queue = class_sched_next(&r.sched, 0, 0);
        class_sched_on_sent(&r.sched, (unsigned)queue, 1420, r.peer[queue]);
        r.sent[queue] += 1420;
        n += 1420;
        if (queue == NORMAL(7))
            sched_queues_on_empty(&r.sched.queues, NORMAL(7));
    }
    assert_true(r.sent[NORMAL(7)] < r.sent[NORMAL(1)] * 11 / 10);
}

static void test_one_that_waits_for_its_peer(void **state)
{
    struct class_sched s;

    class_sched_init(&s);
    s.has_classes = true;
    sched_queues_on_ready(&s.queues, BIT(NORMAL(0)) | BIT(NORMAL(1)));
    class_sched_set_aside(&s, NORMAL(0), &a, 100);
    class_sched_set_aside(&s, NORMAL(1), &b, 50);
    assert_int_equal(class_sched_next(&s, 0, 49), -1);
    assert_int_equal(s.until, 50);
    assert_int_equal(class_sched_next(&s, 0, 50), NORMAL(1));
    assert_int_equal(s.until, 100);
    sched_queues_on_empty(&s.queues, NORMAL(1));
    assert_int_equal(class_sched_next(&s, 0, 99), -1);
    assert_int_equal(class_sched_next(&s, 0, 100), NORMAL(0));
    assert_true(s.until == NSEC_NEVER);
}

static void test_a_closed_class_waits(void **state)
{
    struct class_sched s;

    class_sched_init(&s);
    s.has_classes = true;
    sched_queues_on_ready(&s.queues, BIT(NORMAL(0)) | BIT(BULK(1)));
    assert_int_equal(class_sched_next(&s, 1u << TRAFFIC_CLASS_NORMAL, 0), BULK(1));
    assert_int_equal(class_sched_next(&s, 0xf, 0), -1);
    assert_int_equal(class_sched_next(&s, 1u << TRAFFIC_CLASS_BULK, 0), NORMAL(0));
}

static void test_without_classes_all_are_alike(void **state)
{
    struct run r;

    run_init(&r);
    r.sched.has_classes = false;
    r.peer[1] = &b;
    run(&r, BIT(0) | BIT(1), 16 << 20);
    assert_ratio(r.sent[0], r.sent[1], 1);
    assert_int_equal(class_sched_class(&r.sched, 3), TRAFFIC_CLASS_NORMAL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_ready),
        cmocka_unit_test(test_a_lower_class_gets_its_share),
        cmocka_unit_test(test_each_class_goes_before_the_lower),
        cmocka_unit_test(test_turns_are_by_bytes),
        cmocka_unit_test(test_peers_have_equal_parts),
        cmocka_unit_test(test_a_new_flow_goes_first_once),
        cmocka_unit_test(test_going_first_gains_nothing),
        cmocka_unit_test(test_one_that_waits_for_its_peer),
        cmocka_unit_test(test_a_closed_class_waits),
        cmocka_unit_test(test_without_classes_all_are_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
