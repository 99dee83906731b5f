/* test-child.c - a command as our child: its status, its signals, and what cannot be run. */
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
#include <cmocka.h>

#include "base/err.h"
#include "os/child.h"
#include "test/support/emulated.h"

static struct child_end run_told(const char *script)
{
    char *words[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    struct err e = ERR_NULL;
    struct child_end end = {.status = -1};
    int r = child_run(words, environ, NULL, &end, &e);

    if (r != 0)
        fail_msg("%s", err_text(&e));
    return end;
}

static int run_shell(const char *script)
{
    return run_told(script).status;
}

static void test_status(void **state)
{
    assert_int_equal(run_shell("exit 0"), 0);
    assert_int_equal(run_shell("exit 7"), 7);
    assert_int_equal(run_shell("kill -9 $$"), 128 + SIGKILL);
}

/* Every process that is left has the writing end of the pipe, and so there is no end of file. */
static void test_no_orphans(void **state)
{
    char script[96];
    int fds[2];
    char byte;

    if (emulated_lacks("adoption of orphans"))
        skip();
    assert_int_equal(pipe(fds), 0);
    (void)snprintf(
        script, sizeof(script), "(sleep 600 & sleep 600) & echo x >&%d; kill -9 $$", fds[1]);
    assert_int_equal(run_shell(script), 128 + SIGKILL);
    (void)close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_int_equal(read(fds[0], &byte, 1), 0);
    (void)close(fds[0]);
}

/* What the command leaves behind comes to us, and is no zombie while the command goes on. */
static void test_reaps(void **state)
{
    if (emulated_lacks("adoption of orphans"))
        skip();
    assert_int_equal(
        run_shell("p=$( (sh -c 'echo $$' &) ); while [ -d \"/proc/$p\" ]; do :; done"), 0);
}

static void test_not_run(void **state)
{
    char *missing[] = {(char *)"weft-no-such-command", NULL};
    char *plain_file[] = {(char *)"/etc/passwd", NULL};
    struct err e = ERR_NULL;
    struct child_end end = {.status = -1};

    assert_int_equal(child_run(missing, environ, NULL, &end, &e), CHILD_E_NOT_FOUND);
    assert_string_equal(err_text(&e), "weft-no-such-command: command not found");
    assert_int_equal(child_become(missing, environ, &e), CHILD_E_NOT_FOUND);
    assert_int_equal(child_run(plain_file, environ, NULL, &end, &e), CHILD_E_NOT_EXECUTABLE);
    assert_int_equal(end.status, -1);
}

/* The child signals its parent, which hands it back; waiting lets the trap run. */
static void test_signals(void **state)
{
    assert_int_equal(run_shell("trap 'exit 5' TERM; kill -TERM $PPID; while :; do :; done"), 5);
    assert_true(
        run_told("trap 'exit 5' TERM; kill -TERM $PPID; while :; do :; done").was_signalled);
    assert_false(run_told("exit 5").was_signalled);
    assert_int_equal(run_shell("trap 'exit 6' USR1; kill -USR1 $PPID; while :; do :; done"), 6);
}

/* The third time it has us told to end, as a person would. */
static struct child_order watch(void *ctx, int pid)
{
    unsigned *n = ctx;

    if (++*n < 3)
        return (struct child_order){.next_ms = 1};
    (void)kill(getpid(), SIGTERM);
    return (struct child_order){.next_ms = 0};
}

/* The second time it wants the end itself. */
static struct child_order stop_it(void *ctx, int pid)
{
    unsigned *n = ctx;

    return (struct child_order){.next_ms = 1, .stops = ++*n == 2};
}

static void test_watch_stops(void **state)
{
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"while :; do :; done", NULL};
    struct child_end end = {.status = -1};
    unsigned n = 0;
    const struct child_watch w = {.fn = stop_it, .ctx = &n, .first_ms = 1};

    assert_int_equal(child_run(words, environ, &w, &end, NULL), 0);
    assert_true(n >= 2);
    assert_true(end.was_stopped);
    assert_false(end.was_signalled);
    assert_int_equal(end.status, 128 + SIGTERM);
}

/* It wants the end once the process ignores SIGTERM, not while its shell has yet to say so. */
static struct child_order stop_when_deaf(void *ctx, int pid)
{
    unsigned long long ignored = 0;
    char text[256];
    FILE *f;

    (void)snprintf(text, sizeof(text), "/proc/%d/status", pid);
    f = fopen(text, "re");
    assert_non_null(f);
    while (fgets(text, sizeof(text), f))
        if (strncmp(text, "SigIgn:", 7) == 0)
            ignored = strtoull(text + 7, NULL, 16);
    (void)fclose(f);
    return (struct child_order){.next_ms = 1, .stops = (ignored >> (SIGTERM - 1)) & 1};
}

/* One that does not hear of it is killed, with what it has started. */
static void test_watch_stops_what_is_deaf(void **state)
{
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"trap '' TERM; sleep 600; exit 7", NULL};
    struct child_end end = {.status = -1};
    const struct child_watch w = {.fn = stop_when_deaf, .first_ms = 1, .stop_ms = 50};

    if (emulated_lacks("adoption of orphans"))
        skip();
    assert_int_equal(child_run(words, environ, &w, &end, NULL), 0);
    assert_true(end.was_stopped);
    assert_int_equal(end.status, 128 + SIGKILL);
}

/* Somebody tells us to end, and then the watch wants the end, too. */
static struct child_order tell_and_stop(void *ctx, int pid)
{
    unsigned *n = ctx;

    (*n)++;
    if (*n == 1)
        assert_int_equal(kill(getpid(), SIGTERM), 0);
    return (struct child_order){.next_ms = *n < 2 ? 10 : 0, .stops = *n == 2};
}

/* One that was told to end, and had to be killed, leaves nothing behind either: see
 * test_no_orphans(). */
static void test_no_orphans_of_what_is_deaf(void **state)
{
    char script[96];
    char *words[] = {(char *)"sh", (char *)"-c", script, NULL};
    struct child_end end = {.status = -1};
    unsigned n = 0;
    const struct child_watch w = {.fn = tell_and_stop, .ctx = &n, .first_ms = 50, .stop_ms = 50};
    int fds[2];
    char byte;

    if (emulated_lacks("adoption of orphans"))
        skip();
    assert_int_equal(pipe(fds), 0);
    (void)snprintf(script, sizeof(script), "trap '' TERM; sleep 600 & echo x >&%d; wait", fds[1]);
    assert_int_equal(child_run(words, environ, &w, &end, NULL), 0);
    assert_true(end.was_signalled);
    assert_true(end.was_stopped);
    assert_int_equal(end.status, 128 + SIGKILL);
    (void)close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_int_equal(read(fds[0], &byte, 1), 0);
    (void)close(fds[0]);
}

/* The command has a process of its own, and then it has none. */
static struct child_order see_children(void *ctx, int pid)
{
    unsigned *seen = ctx;

    if (*seen == 0 && child_has_children(pid))
        *seen = 1;
    if (*seen == 1 && !child_has_children(pid))
        *seen = 2;
    return (struct child_order){.next_ms = 1, .stops = *seen == 2};
}

static void test_has_children(void **state)
{
    char *words[] = {(char *)"sh", (char *)"-c",
        (char *)"sleep 0.05; while :; do read -r x < /dev/null; done", NULL};
    struct child_end end = {.status = -1};
    unsigned seen = 0;
    const struct child_watch w = {.fn = see_children, .ctx = &seen, .first_ms = 1};

    assert_int_equal(child_run(words, environ, &w, &end, NULL), 0);
    assert_int_equal(seen, 2);
    assert_true(end.was_stopped);
    assert_true(child_has_children(-1));
}

static void test_watch(void **state)
{
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"while :; do :; done", NULL};
    struct child_end end = {.status = -1};
    unsigned n = 0;
    const struct child_watch w = {.fn = watch, .ctx = &n, .first_ms = 1};

    assert_int_equal(child_run(words, environ, &w, &end, NULL), 0);
    assert_int_equal(n, 3);
    assert_true(end.was_signalled);
    assert_int_equal(end.status, 128 + SIGTERM);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_no_orphans),
        cmocka_unit_test(test_reaps),
        cmocka_unit_test(test_not_run),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_watch_stops),
        cmocka_unit_test(test_watch_stops_what_is_deaf),
        cmocka_unit_test(test_no_orphans_of_what_is_deaf),
        cmocka_unit_test(test_has_children),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
