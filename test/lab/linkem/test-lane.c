/* test-lane.c - one direction of a link: each parameter by itself, together, and as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lane.h"
#include "params.h"

#define LEN 1000u

static const uint8_t frame_bytes[70000];

static enum lane_fate push(struct lane *lane, nsec_t now, uint32_t number)
{
    uint8_t bytes[LEN] = {0};

    memcpy(bytes, &number, sizeof(number));
    return lane_push(lane, now, bytes, sizeof(bytes));
}

/* The number of the frame that comes out at exactly @at, and not a nanosecond earlier. */
static uint32_t pop_at(struct lane *lane, nsec_t at)
{
    struct lane_frame *frame;
    uint32_t number;

    assert_int_equal(lane_due(lane), at);
    assert_null(lane_pop(lane, at - 1));
    frame = lane_pop(lane, at);
    assert_non_null(frame);
    assert_int_equal(frame->len, LEN);
    memcpy(&number, frame->bytes, sizeof(number));
    free(frame);
    return number;
}

static void test_perfect_wire(void **state)
{
    struct lane lane;

    lane_init(&lane, 1);
    assert_int_equal(lane_due(&lane), NSEC_NEVER);
    assert_null(lane_pop(&lane, 1000));
    assert_int_equal(push(&lane, 1000, 7), LANE_FATE_HELD);
    assert_int_equal(push(&lane, 1000, 8), LANE_FATE_HELD);
    assert_int_equal(pop_at(&lane, 1000), 7);
    assert_int_equal(pop_at(&lane, 1000), 8);
    assert_int_equal(lane_due(&lane), NSEC_NEVER);
    assert_int_equal(lane.n_left, 2);
    lane_deinit(&lane);
}

static void test_delay(void **state)
{
    struct lane lane;

    lane_init(&lane, 1);
    lane.params.delay = 20 * NSEC_PER_MSEC;
    push(&lane, 0, 1);
    push(&lane, 5, 2);
    assert_int_equal(pop_at(&lane, 20 * NSEC_PER_MSEC), 1);
    assert_int_equal(pop_at(&lane, 20 * NSEC_PER_MSEC + 5), 2);
    lane_deinit(&lane);
}

static void test_less_delay_does_not_reorder(void **state)
{
    struct lane lane;

    lane_init(&lane, 1);
    lane.params.delay = 100;
    push(&lane, 0, 1);
    lane.params.delay = 10;
    push(&lane, 1, 2);
    assert_int_equal(pop_at(&lane, 100), 1);
    assert_int_equal(pop_at(&lane, 100), 2);
    lane_deinit(&lane);
}

static void test_jitter_spreads_and_keeps_order(void **state)
{
    struct lane lane;
    nsec_t least = NSEC_NEVER;
    nsec_t most = 0;

    lane_init(&lane, 3);
    lane.params.delay = 10 * NSEC_PER_MSEC;
    lane.params.jitter = 4 * NSEC_PER_MSEC;
    for (uint32_t i = 0; i < 2000; i++) {
        /* Far apart, so that keeping the order does not shift any of them. */
        nsec_t now = i * NSEC_PER_SEC;
        nsec_t took;

        push(&lane, now, i);
        took = lane_due(&lane) - now;
        least = nsec_min(least, took);
        most = nsec_max(most, took);
        assert_int_equal(pop_at(&lane, now + took), i);
    }
    assert_in_range(least, 6 * NSEC_PER_MSEC, 6 * NSEC_PER_MSEC + 20 * NSEC_PER_USEC);
    assert_in_range(most, 14 * NSEC_PER_MSEC - 20 * NSEC_PER_USEC, 14 * NSEC_PER_MSEC);

    for (uint32_t i = 0; i < 2000; i++)
        push(&lane, 5000 * NSEC_PER_SEC + i, i);
    for (uint32_t i = 0; i < 2000; i++)
        assert_int_equal(pop_at(&lane, lane_due(&lane)), i);
    lane_deinit(&lane);
}

static void test_jitter_never_goes_back_in_time(void **state)
{
    struct lane lane;

    lane_init(&lane, 3);
    lane.params.delay = 1;
    lane.params.jitter = NSEC_PER_MSEC;
    for (uint32_t i = 0; i < 100; i++) {
        push(&lane, i * NSEC_PER_SEC, i);
        assert_true(lane_due(&lane) >= i * NSEC_PER_SEC);
        free(lane_pop(&lane, NSEC_NEVER));
    }
    lane_deinit(&lane);
}

static void test_rate_spaces_frames(void **state)
{
    struct lane lane;

    lane_init(&lane, 1);
    lane.params.rate = 8000000; /* 1000 bytes take 1 ms */
    lane.params.delay = 5 * NSEC_PER_MSEC;
    push(&lane, 0, 1);
    push(&lane, 0, 2);
    assert_int_equal(pop_at(&lane, 6 * NSEC_PER_MSEC), 1);
    assert_int_equal(pop_at(&lane, 7 * NSEC_PER_MSEC), 2);
    /* The line was idle in between: nothing is saved up. */
    push(&lane, NSEC_PER_SEC, 3);
    assert_int_equal(pop_at(&lane, NSEC_PER_SEC + 6 * NSEC_PER_MSEC), 3);
    lane_deinit(&lane);
}

static void test_queue_is_bounded(void **state)
{
    struct lane lane;

    lane_init(&lane, 1);
    lane.params.rate = 8000000;
    lane.params.queue = 3 * LEN;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(push(&lane, 0, i), LANE_FATE_HELD);
    assert_int_equal(push(&lane, 0, 4), LANE_FATE_DROP_QUEUE);
    /* After one frame's time there is room for one frame. */
    assert_int_equal(push(&lane, NSEC_PER_MSEC, 5), LANE_FATE_HELD);
    assert_int_equal(push(&lane, NSEC_PER_MSEC, 6), LANE_FATE_DROP_QUEUE);
    assert_int_equal(lane.n_fate[LANE_FATE_DROP_QUEUE], 2);
    lane_deinit(&lane);
}

static void test_loss_follows_from_the_seed(void **state)
{
    struct lane a;
    struct lane b;
    struct lane c;
    unsigned n_differ = 0;

    lane_init(&a, 42);
    lane_init(&b, 42);
    lane_init(&c, 43);
    a.params.loss_ppm = b.params.loss_ppm = c.params.loss_ppm = LANE_PPM / 10;
    b.params.jitter = 50; /* must not change what is lost */
    for (uint32_t i = 0; i < 20000; i++) {
        enum lane_fate fate = push(&a, i, i);

        assert_int_equal(fate, push(&b, i, i));
        n_differ += fate != push(&c, i, i);
    }
    /* 2000 expected, standard deviation 42. */
    assert_in_range(a.n_fate[LANE_FATE_DROP_LOSS], 1790, 2210);
    assert_true(n_differ > 1000);
    lane_deinit(&a);
    lane_deinit(&b);
    lane_deinit(&c);
}

static void test_loss_of_all_and_none(void **state)
{
    struct lane lane;

    lane_init(&lane, 1);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(push(&lane, i, i), LANE_FATE_HELD);
    lane.params.loss_ppm = LANE_PPM;
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(push(&lane, 100, i), LANE_FATE_DROP_LOSS);
    lane_deinit(&lane);
}

static void test_reorder_overtakes(void **state)
{
    struct lane lane;

    lane_init(&lane, 1);
    lane.params.delay = 100;
    push(&lane, 0, 1);
    lane.params.reorder_ppm = LANE_PPM;
    push(&lane, 10, 2);
    lane.params.reorder_ppm = 0;
    push(&lane, 20, 3);
    assert_int_equal(pop_at(&lane, 10), 2);
    assert_int_equal(pop_at(&lane, 100), 1);
    assert_int_equal(pop_at(&lane, 120), 3);
    lane_deinit(&lane);
}

static void test_mtu_counts_payload(void **state)
{
    struct lane lane;

    lane_init(&lane, 1);
    assert_int_equal(lane_push(&lane, 0, frame_bytes, 65535 + 14), LANE_FATE_HELD);
    lane.params.mtu = 1400;
    assert_int_equal(lane_push(&lane, 0, frame_bytes, 1414), LANE_FATE_HELD);
    assert_int_equal(lane_push(&lane, 0, frame_bytes, 1415), LANE_FATE_DROP_MTU);
    lane_deinit(&lane);
}

static void test_cut_loses_what_is_in_flight(void **state)
{
    struct lane lane;

    lane_init(&lane, 1);
    lane.params.delay = 100;
    push(&lane, 0, 1);
    lane_set_cut(&lane, true);
    assert_int_equal(lane_due(&lane), NSEC_NEVER);
    assert_int_equal(push(&lane, 1, 2), LANE_FATE_DROP_CUT);
    lane_set_cut(&lane, false);
    assert_int_equal(push(&lane, 2, 3), LANE_FATE_HELD);
    assert_int_equal(pop_at(&lane, 102), 3);
    lane_deinit(&lane);
}

static void test_memory_is_bounded(void **state)
{
    struct lane lane;
    size_t n_held = 0;

    lane_init(&lane, 1);
    lane.params.delay = NSEC_PER_SEC;
    while (lane_push(&lane, 0, frame_bytes, sizeof(frame_bytes)) == LANE_FATE_HELD)
        n_held++;
    assert_int_equal(n_held, LANE_HELD_MAX / sizeof(frame_bytes));
    assert_int_equal(lane.n_fate[LANE_FATE_DROP_MEMORY], 1);
    free(lane_pop(&lane, NSEC_PER_SEC));
    assert_int_equal(lane_push(&lane, 0, frame_bytes, sizeof(frame_bytes)), LANE_FATE_HELD);
    lane_deinit(&lane);
}

static void test_params_understood(void **state)
{
    static const struct {
        const char *word;
        struct lane_params out;
        struct lane_params in;
    } cases[] = {
        {"delay=50ms", {.delay = 50000000}, {.delay = 50000000}},
        {"delay=1.5s", {.delay = 1500000000}, {.delay = 1500000000}},
        {"out.jitter=500us", {.jitter = 500000}, {0}},
        {"in.rate=100mbit", {0}, {.rate = 100000000}},
        {"loss=0.5%", {.loss_ppm = 5000}, {.loss_ppm = 5000}},
        {"loss=100%", {.loss_ppm = 1000000}, {.loss_ppm = 1000000}},
        {"in.reorder=1%", {0}, {.reorder_ppm = 10000}},
        {"queue=256k", {.queue = 262144}, {.queue = 262144}},
        {"queue=9000", {.queue = 9000}, {.queue = 9000}},
        {"out.mtu=1400", {.mtu = 1400}, {0}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct lane_params out = {0};
        struct lane_params in = {0};
        const char *error;

        if (!params_parse(cases[i].word, &out, &in, &error))
            fail_msg("%s is refused: %s", cases[i].word, error);
        assert_memory_equal(&out, &cases[i].out, sizeof(out));
        assert_memory_equal(&in, &cases[i].in, sizeof(in));
    }
}

static void test_params_refused(void **state)
{
    static const char *const cases[] = {"", "delay", "delay=", "delay=5", "delay=-5ms",
        "delay=5 ms", "delay=61s", "delay=1e3ms", "delay=infs", "delay=1.2.3ms", "delayed=5ms",
        "out.in.delay=5ms", "loss=101%", "loss=5", "rate=10", "rate=2000gbit", "queue=65m",
        "mtu=65536", "mtu=1k", "colour=red"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct lane_params out = {.mtu = 77};
        struct lane_params in = {.mtu = 77};
        const struct lane_params untouched = {.mtu = 77};
        const char *error = NULL;

        if (params_parse(cases[i], &out, &in, &error))
            fail_msg("%s is taken", cases[i]);
        assert_non_null(error);
        assert_memory_equal(&out, &untouched, sizeof(out));
        assert_memory_equal(&in, &untouched, sizeof(in));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_perfect_wire),
        cmocka_unit_test(test_delay),
        cmocka_unit_test(test_less_delay_does_not_reorder),
        cmocka_unit_test(test_jitter_spreads_and_keeps_order),
        cmocka_unit_test(test_jitter_never_goes_back_in_time),
        cmocka_unit_test(test_rate_spaces_frames),
        cmocka_unit_test(test_queue_is_bounded),
        cmocka_unit_test(test_loss_follows_from_the_seed),
        cmocka_unit_test(test_loss_of_all_and_none),
        cmocka_unit_test(test_reorder_overtakes),
        cmocka_unit_test(test_mtu_counts_payload),
        cmocka_unit_test(test_cut_loses_what_is_in_flight),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_params_understood),
        cmocka_unit_test(test_params_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
