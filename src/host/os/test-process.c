/* test-process.c - programs that end well, badly, late, and not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "os/clock.h"
#include "os/process.h"
#include "test/support/emulated.h"

static int run_shell(const char *script, unsigned timeout_ms, struct err *e)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};

    return process_run(argv, timeout_ms, e);
}

static void test_ends(void **state)
{
    static const struct {
        const char *script;
        int r;
        const char *says;
    } cases[] = {
        {"exit 0", 0, ""},
        {"echo talks; exit 0", 0, ""},
        {"exit 3", PROCESS_E_FAILED, "/bin/sh ended with status 3"},
        {"echo first >&2; echo last >&2; exit 1", PROCESS_E_FAILED, "last"},
        {"printf unfinished >&2; exit 1", PROCESS_E_FAILED, "unfinished"},
        {"kill -9 $$", PROCESS_E_FAILED, "/bin/sh was ended by signal 9"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;

        assert_int_equal(run_shell(cases[i].script, 20000, &e), cases[i].r);
        assert_string_equal(e.text, cases[i].says);
    }
}

static void test_absent_program(void **state)
{
    const char *const argv[] = {"/no/such/program", NULL};
    struct err e = ERR_NULL;

    if (emulated_lacks("vfork"))
        skip();
    assert_int_equal(process_run(argv, 1000, &e), -ENOENT);
    assert_string_equal(e.text, "/no/such/program cannot be started: No such file or directory");
}

static void test_timeout(void **state)
{
    struct err e = ERR_NULL;

    assert_int_equal(run_shell("exec sleep 60", 50, &e), -ETIMEDOUT);
    assert_string_equal(e.text, "/bin/sh did not end within 50 ms");
}

/* A daemon keeps the output open; only its parent is waited for. */
static void test_forked_off_child(void **state)
{
    struct err e = ERR_NULL;
    nsec_t start = clock_now();

    assert_int_equal(run_shell("sleep 20 & exit 0", 15000, &e), 0);
    assert_true(clock_now() - start < 15 * NSEC_PER_SEC);
}

static void wait_for_end(pid_t pid)
{
    assert_int_equal(process_wait_end(pid, 20000), 0);
}

static void test_wait_end(void **state)
{
    assert_int_equal(process_wait_end(getpid(), 10), -ETIMEDOUT);
}

/* Descriptor behind which a child waits, and how often a signal comes before it is closed. */
static int hold_fd;
static volatile sig_atomic_t n_alarms_left;

static void on_alarm(int signal)
{
    if (--n_alarms_left == 0)
        (void)close(hold_fd);
}

/* A signal of ours is not the end of the process that is waited for. */
static void test_wait_end_interrupted(void **state)
{
    const struct itimerval each = {.it_interval.tv_usec = 2000, .it_value.tv_usec = 2000};
    const struct itimerval never = {.it_value.tv_usec = 0};
    struct sigaction action = {.sa_handler = on_alarm};
    int pipe_fds[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(pipe_fds), 0);
    pid = fork();
    if (pid == 0) {
        (void)close(pipe_fds[1]);
        _exit(read(pipe_fds[0], &byte, 1) == 0 ? 0 : 1);
    }
    hold_fd = pipe_fds[1];
    n_alarms_left = 5;
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &each, NULL), 0);
    assert_int_equal(process_wait_end(pid, 60000), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_true(n_alarms_left <= 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(pipe_fds[0]);
}

static void test_detach(void **state)
{
    const char *const argv[] = {"/bin/sh", "-c", "echo to the log; echo and errors >&2", NULL};
    char path[] = "/tmp/weft-process-XXXXXX";
    char text[64] = "";
    struct err e = ERR_NULL;
    struct stat st;
    pid_t pid;
    FILE *f;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    (void)close(fd);
    (void)unlink(path);
    assert_int_equal(process_detach(argv, path, &pid, &e), 0);
    wait_for_end(pid);
    assert_true(process_has_ended(pid));
    f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
    (void)fclose(f);
    assert_string_equal(text, "to the log\nand errors\n");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    (void)unlink(path);
}

static void test_self_path(void **state)
{
    char path[PATH_MAX];

    assert_int_equal(access(process_self_path(path), X_OK), 0);
    assert_non_null(strstr(path, "test-os-process"));
}

static void test_loader_path(void **state)
{
    char *loader = realpath(process_loader_path(), NULL);
    char maps[65536];
    size_t len;
    FILE *f = fopen("/proc/self/maps", "re");

    if (emulated_lacks("loader where its maps say"))
        skip();
    assert_non_null(f);
    len = fread(maps, 1, sizeof(maps) - 1, f);
    (void)fclose(f);
    maps[len] = '\0';
    assert_non_null(loader);
    assert_int_equal(access(loader, X_OK), 0);
    assert_non_null(strstr(maps, loader));
    free(loader);
}

/* What it says through its link, to the end. */
static void test_link(void **state)
{
    const char *const argv[] = {
        "/bin/sh", "-c", "tr '\\0' '\\n' < /proc/$$/environ >&3; echo end >&3", NULL};
    struct err e = ERR_NULL;
    char said[4096] = "";
    size_t len = 0;
    int pair[2];
    pid_t pid;
    ssize_t n;

    assert_int_equal(setenv("WEFT_TEST_SECRET", "hidden", 1), 0);
    assert_int_equal(setenv("JOURNAL_STREAM", "1:2", 1), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(process_link(argv, pair[1], &pid, &e), 0);
    (void)close(pair[1]);
    while ((n = read(pair[0], said + len, sizeof(said) - 1 - len)) > 0)
        len += (size_t)n;
    (void)close(pair[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_non_null(strstr(said, "JOURNAL_STREAM=1:2\n"));
    assert_non_null(strstr(said, "end\n"));
    assert_null(strstr(said, "hidden"));
    (void)unsetenv("WEFT_TEST_SECRET");
    (void)unsetenv("JOURNAL_STREAM");
}

/* What process_take_link() says in a child whose descriptor for it is @link. */
static bool takes_link(int link)
{
    const int beside = PROCESS_LINK_FD + 20;
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        bool taken;

        if (dup2(link, PROCESS_LINK_FD) < 0 || dup2(link, beside) < 0)
            _exit(2);
        taken = process_take_link();
        if (fcntl(PROCESS_LINK_FD, F_GETFD) < 0 || (fcntl(beside, F_GETFD) < 0) != taken)
            _exit(3);
        _exit(taken ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 0, 1);
    return WEXITSTATUS(status) == 0;
}

/* Only a socket with somebody behind it is a link; then nothing else stays open. */
static void test_take_link(void **state)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_true(takes_link(pair[1]));
    assert_false(takes_link(null));
    (void)close(pair[0]);
    (void)close(pair[1]);
    (void)close(null);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_absent_program),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_forked_off_child),
        cmocka_unit_test(test_wait_end),
        cmocka_unit_test(test_wait_end_interrupted),
        cmocka_unit_test(test_detach),
        cmocka_unit_test(test_self_path),
        cmocka_unit_test(test_loader_path),
        cmocka_unit_test(test_link),
        cmocka_unit_test(test_take_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
