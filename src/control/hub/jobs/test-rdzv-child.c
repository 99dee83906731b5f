/*
 * test-rdzv-child.c - a rendezvous process at the other end of its socket: what is said to it, what
 * it says, and its end.
 *
 * Started as `test-hub-rdzv-child rendezvous` it is such a process: it says each message back, but
 * for a socket, into which it writes.
 */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "hub/jobs/rdzv_child.h"
#include "os/clock.h"
#include "rendezvous/shared/rdzv_wire.h"
#include "test/support/emulated.h"
#include "test/support/sample_rdzv.h"

#define WAIT (20 * NSEC_PER_SEC)

struct fixture {
    uv_loop_t loop;
    uv_timer_t wake;
    struct rdzv_child *child;
    unsigned n_readable; /* calls of on_child() that say so */
    unsigned n_writable; /* likewise */
    struct err e;
};

static struct fixture f;

static void on_child(void *ctx, bool is_readable, bool is_writable)
{
    f.n_readable += is_readable;
    f.n_writable += is_writable;
}

static void on_wake(uv_timer_t *timer)
{
}

static int enter(void **state)
{
    f = (struct fixture){.child = NULL};
    assert_int_equal(uv_loop_init(&f.loop), 0);
    (void)uv_timer_init(&f.loop, &f.wake);
    (void)uv_timer_start(&f.wake, on_wake, 2, 2);
    return rdzv_child_start(&f.child, &f.loop, "net", on_child, NULL, &f.e);
}

static int leave(void **state)
{
    pid_t pid = rdzv_child_pid(f.child);

    assert_null(rdzv_child_free(f.child));
    assert_null(rdzv_child_free(NULL));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    uv_close((uv_handle_t *)&f.wake, NULL);
    assert_int_equal(uv_run(&f.loop, UV_RUN_DEFAULT), 0);
    return uv_loop_close(&f.loop);
}

/* A message of @len bytes, which begin with its number. */
static void say(uint32_t number, size_t len)
{
    static uint8_t bytes[1024];

    memset(bytes, (int)(number % 251), sizeof(bytes));
    rdzv_child_say(
        f.child, &(struct rdzv_wire){
                     .type = RDZV_WIRE_JOB, .job = number, .run = 1, .data = bytes, .len = len});
}

/* Receive until that message is the first one. */
static struct rdzv_wire hear(void)
{
    nsec_t deadline = clock_now() + WAIT;
    struct rdzv_wire m = {.type = RDZV_WIRE_NONE};
    int r;

    while ((r = rdzv_child_next(f.child, &m)) == RDZV_WIRE_E_SHORT) {
        assert_true(rdzv_child_wait(f.child, deadline));
        assert_int_equal(rdzv_child_receive(f.child), 0);
    }
    assert_int_equal(r, 0);
    return m;
}

static void expect(uint32_t number, size_t len)
{
    struct rdzv_wire m = hear();

    assert_int_equal(m.type, RDZV_WIRE_JOB);
    assert_int_equal(m.job, number);
    assert_int_equal(m.len, len);
    if (len > 0)
        assert_int_equal(m.data[len - 1], number % 251);
    rdzv_child_drop(f.child);
}

/* ---- messages ---------------------------------------------------------------------------------
 */

static void test_a_message(void **state)
{
    struct rdzv_wire m;

    assert_false(rdzv_child_has_unread(f.child));
    assert_int_equal(rdzv_child_receive(f.child), 0);
    assert_int_equal(rdzv_child_next(f.child, &m), RDZV_WIRE_E_SHORT);
    say(7, 20);
    assert_true(rdzv_child_unsent(f.child) > 20);
    rdzv_child_flush(f.child);
    assert_int_equal(rdzv_child_unsent(f.child), 0);
    assert_true(rdzv_child_wait(f.child, clock_now() + WAIT));
    assert_true(rdzv_child_has_unread(f.child));
    m = hear();
    assert_int_equal(m.job, 7);
    assert_true(rdzv_child_has_unread(f.child));
    rdzv_child_drop(f.child);
    assert_false(rdzv_child_has_unread(f.child));
    /* Nothing more is said. */
    assert_false(rdzv_child_wait(f.child, clock_now()));
}

/* More than there is room for at once, in both directions. */
static void test_many_messages(void **state)
{
    uint32_t n_heard = 0;

    for (uint32_t i = 0; i < 4000; i++) {
        say(i, 100 + i % 900);
        rdzv_child_flush(f.child);
        /* Some wait until more are said. */
        for (; i > 100 && n_heard < i - 100; n_heard++)
            expect(n_heard, 100 + n_heard % 900);
    }
    for (; n_heard < 4000; n_heard++)
        expect(n_heard, 100 + n_heard % 900);
    assert_int_equal(rdzv_child_unsent(f.child), 0);
}

/* ---- the loop ---------------------------------------------------------------------------------
 */

static void run_until(const unsigned *n)
{
    nsec_t deadline = clock_now() + WAIT;
    unsigned before = *n;

    while (*n == before) {
        assert_true(clock_now() < deadline);
        (void)uv_run(&f.loop, UV_RUN_ONCE);
    }
}

/* What it is called for is what was asked for last. */
static void test_what_is_polled_for(void **state)
{
    rdzv_child_poll(f.child, false, true);
    run_until(&f.n_writable);
    assert_int_equal(f.n_readable, 0);
    rdzv_child_poll(f.child, true, false);
    say(1, 10);
    rdzv_child_flush(f.child);
    f.n_writable = 0;
    run_until(&f.n_readable);
    assert_int_equal(f.n_writable, 0);
    /* It was not taken: nobody is called while that is not wanted. */
    rdzv_child_poll(f.child, false, false);
    f.n_readable = 0;
    for (unsigned i = 0; i < 5; i++)
        (void)uv_run(&f.loop, UV_RUN_ONCE);
    assert_int_equal(f.n_readable, 0);
    rdzv_child_poll(f.child, true, true);
    run_until(&f.n_readable);
    expect(1, 10);
}

/* A process that stands still takes what the kernel has room for, and no more for now. */
static void test_one_that_does_not_listen(void **state)
{
    nsec_t deadline = clock_now() + WAIT;
    size_t unsent;

    assert_int_equal(kill(rdzv_child_pid(f.child), SIGSTOP), 0);
    do {
        for (unsigned i = 0; i < 1000; i++)
            say(i, 1000);
        unsent = rdzv_child_unsent(f.child);
        rdzv_child_flush(f.child);
        assert_true(clock_now() < deadline);
    } while (rdzv_child_unsent(f.child) == 0);
    assert_true(rdzv_child_unsent(f.child) < unsent);
    assert_false(rdzv_child_say_socket(f.child, 1, STDERR_FILENO));
    /* That is no reason to end it, but this much is. */
    rdzv_child_poll(f.child, true, true);
    assert_int_equal(waitpid(rdzv_child_pid(f.child), NULL, WNOHANG), 0);
    while (rdzv_child_unsent(f.child) <= 16u << 20)
        say(1, 1000);
    rdzv_child_poll(f.child, true, true);
    run_until(&f.n_readable);
    while (rdzv_child_receive(f.child) == 0)
        assert_true(clock_now() < deadline);
}

/* ---- a socket, and the end --------------------------------------------------------------------
 */

static void test_a_socket(void **state)
{
    struct pollfd p = {.events = POLLIN};
    char text[8] = "";
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    say(3, 10);
    assert_true(rdzv_child_say_socket(f.child, 9, fds[1]));
    (void)close(fds[1]);
    p.fd = fds[0];
    assert_int_equal(poll(&p, 1, 20000), 1);
    assert_int_equal(read(fds[0], text, sizeof(text)), 5);
    assert_string_equal(text, "hello");
    /* What was said before came before. */
    expect(3, 10);
    (void)close(fds[0]);
}

static void test_the_end(void **state)
{
    rdzv_child_poll(f.child, true, false);
    rdzv_child_kill(f.child);
    run_until(&f.n_readable);
    assert_int_equal(rdzv_child_receive(f.child), RDZV_CHILD_E_ENDED);
    assert_true(rdzv_child_wait(f.child, clock_now() + WAIT));
    /* Nothing is sent to it, and no signal comes of that. */
    say(1, 10);
    rdzv_child_flush(f.child);
    assert_true(rdzv_child_unsent(f.child) > 0);
}

/* ---- as a process -----------------------------------------------------------------------------
 */

static void say_back(const struct rdzv_wire *m, int fd)
{
    if (fd < 0)
        sample_rdzv_say(m);
    else if (write(fd, "hello", 5) != 5)
        _exit(1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_message, enter, leave),
        cmocka_unit_test_setup_teardown(test_many_messages, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_polled_for, enter, leave),
        cmocka_unit_test_setup_teardown(test_one_that_does_not_listen, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_socket, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_end, enter, leave),
    };

    if (argc > 1 && strcmp(argv[1], "rendezvous") == 0)
        return sample_rdzv_run(say_back);
    if (emulated_lacks("way for a program to start itself"))
        return EMULATED_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
