/* test-transfer.c - the meter's second half, and bytes through a real connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "measure/link_test.h"
#include "os/clock.h"

/* 10 ms at 1 MB/s and 10 ms at 100 MB/s: slow start does not count. */
static void test_second_half(void **state)
{
    struct transfer_meter m = {.n = 0};
    uint64_t total = 0;
    uint64_t rate;

    assert_int_equal(transfer_meter_rate(&m), 0);
    for (nsec_t us = 0; us < 20000; us += 100) {
        total += us < 10000 ? 100 : 10000;
        transfer_meter_add(&m, us * NSEC_PER_USEC, total);
    }
    rate = transfer_meter_rate(&m);
    assert_in_range(rate, 700000000, 810000000);
}

/* However long it takes, the samples suffice. */
static void test_many_samples(void **state)
{
    struct transfer_meter m = {.n = 0};

    for (nsec_t ms = 0; ms < 100000; ms++)
        transfer_meter_add(&m, ms * NSEC_PER_MSEC, (uint64_t)ms * 125);
    assert_in_range(m.n, 100, TRANSFER_SAMPLES);
    assert_in_range(transfer_meter_rate(&m), 990000, 1010000);
}

static void test_bytes_are_bounded(void **state)
{
    struct transfer_stream streams[2];
    struct transfer t = {.streams = streams,
        .n_streams = 2,
        .bytes_max = 1000000,
        .duration = 5 * NSEC_PER_SEC,
        .deadline = clock_now() + 10 * NSEC_PER_SEC};
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    streams[0] = (struct transfer_stream){.fd = ends[0], .sends = true};
    streams[1] = (struct transfer_stream){.fd = ends[1]};
    assert_int_equal(transfer_run(&t), 0);
    assert_int_equal(t.sent, 1000000);
    assert_int_equal(t.received.bytes, 1000000);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Who is sent nothing stops at the deadline. */
static void test_deadline(void **state)
{
    struct transfer_stream stream;
    struct transfer t = {.streams = &stream,
        .n_streams = 1,
        .bytes_max = 1000000,
        .duration = 20 * NSEC_PER_MSEC,
        .deadline = clock_now() + 30 * NSEC_PER_MSEC};
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    stream = (struct transfer_stream){.fd = ends[1]};
    assert_int_equal(transfer_run(&t), 0);
    assert_true(clock_now() >= t.deadline);
    assert_int_equal(t.received.bits_per_s, 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_half),
        cmocka_unit_test(test_many_samples),
        cmocka_unit_test(test_bytes_are_bounded),
        cmocka_unit_test(test_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
