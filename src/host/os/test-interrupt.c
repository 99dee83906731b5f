/* test-interrupt.c - a person's signal ends a wait, and then the process; what is ignored stays so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/interrupt.h"

#define LONG_MS 60000

static int status_of(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* In a process of its own: it is told, can do something, and ends by the signal. */
static void test_a_signal_ends_the_wait(void **state)
{
    static const int signals[] = {SIGINT, SIGQUIT};

    for (size_t k = 0; k < 2; k++) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
            struct interrupt i;

            interrupt_begin(&i);
            (void)raise(signals[k]);
            if (!interrupt_wait(&i, LONG_MS) || !interrupt_wait(&i, LONG_MS))
                _exit(1);
            interrupt_end(&i);
            _exit(2);
        }
        status = status_of(pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[k]);
    }
}

static void test_another_signal_ends_the_process(void **state)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        struct interrupt i;

        interrupt_begin(&i);
        (void)raise(SIGTERM);
        _exit(1);
    }
    status = status_of(pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void test_what_is_ignored_stays_so(void **state)
{
    struct interrupt i;

    (void)signal(SIGINT, SIG_IGN);
    interrupt_begin(&i);
    (void)raise(SIGINT);
    assert_false(interrupt_wait(&i, 1));
    interrupt_end(&i);
    (void)signal(SIGINT, SIG_DFL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_ends_the_wait),
        cmocka_unit_test(test_another_signal_ends_the_process),
        cmocka_unit_test(test_what_is_ignored_stays_so),
    };

    /* A shell has what it runs in the background ignore them. */
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
