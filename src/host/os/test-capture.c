/* test-capture.c - what programs print, how they end, and what cannot be run. */
#include "os/process.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "os/thread.h"

static int run(const char *script, struct capture_options opt, struct str *out, int *ret_status)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct err e = ERR_NULL;

    opt.argv = argv;
    return capture_run(&opt, out, ret_status, &e);
}

static void test_output(void **state)
{
    struct capture_options opt = {.timeout_ms = 60000, .max = 100};
    struct str out = STR_NULL;
    int status = -1;

    assert_int_equal(run("echo one; echo two >&2; echo three; exit 7", opt, &out, &status), 0);
    assert_int_equal(status, 7);
    assert_string_equal(str_text(&out), "one\nthree\n");
    str_deinit(&out);
    opt.takes_errors = true;
    assert_int_equal(run("echo one; echo two >&2; kill -9 $$", opt, &out, &status), 0);
    assert_int_equal(status, 128 + SIGKILL);
    assert_string_equal(str_text(&out), "one\ntwo\n");
    str_deinit(&out);
}

/* What is too much is read, so that the program can end. */
static void test_bounds(void **state)
{
    struct capture_options opt = {.timeout_ms = 60000, .max = 1000};
    struct str out = STR_NULL;
    int status = -1;

    assert_int_equal(run("head -c 300000 /dev/zero | tr '\\0' x", opt, &out, &status), 0);
    assert_int_equal(status, 0);
    assert_int_equal(strlen(str_text(&out)), 1000);
    str_deinit(&out);
}

static void test_what_does_not_end(void **state)
{
    struct capture_options opt = {.timeout_ms = 1, .max = 10};
    struct str out = STR_NULL;
    int status = 0;

    assert_int_equal(run("exec sleep 1000", opt, &out, &status), -ETIMEDOUT);
    assert_int_equal(status, 128 + SIGKILL);
    str_deinit(&out);
    opt.timeout_ms = 200;
    assert_int_equal(run("exec sleep 1000 >&- 2>&-", opt, &out, &status), -ETIMEDOUT);
    assert_int_equal(status, 128 + SIGKILL);
    str_deinit(&out);
}

static void test_what_cannot_be_run(void **state)
{
    const char *argv[] = {"weft-no-such-command", NULL};
    struct capture_options opt = {.argv = argv, .timeout_ms = 1000, .max = 10};
    struct str out = STR_NULL;
    struct err e = ERR_NULL;
    int status = 0;

    assert_int_equal(capture_run(&opt, &out, &status, &e), CAPTURE_E_NOT_RUN);
    assert_string_equal(err_text(&e), "weft-no-such-command cannot be run: command not found");
    str_deinit(&out);
}

static void *run_in_thread(void *ret_out)
{
    struct capture_options opt = {.timeout_ms = 60000, .max = 100};
    int status = -1;

    if (run("kill $$; echo lives", opt, ret_out, &status) != 0)
        status = -1;
    return (void *)(intptr_t)status;
}

/* Our threads block all signals; the programs that they run can be ended all the same. */
static void test_from_a_thread(void **state)
{
    struct str out = STR_NULL;
    void *status = NULL;
    pthread_t thread;

    assert_int_equal(thread_start(&thread, "test", -1, run_in_thread, &out), 0);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_string_equal(str_text(&out), "");
    assert_int_equal((intptr_t)status, 128 + SIGTERM);
    str_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_what_does_not_end),
        cmocka_unit_test(test_what_cannot_be_run),
        cmocka_unit_test(test_from_a_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
