/* test-terminal.c - what the terminal is set to, and set back to, in a pseudo-terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"
#include "os/terminal.h"

/* All that the terminal is written until @until is, or its other end is closed. */
static void read_until(int fd, const char *until, char *ret, size_t cap)
{
    size_t n = 0;

    ret[0] = '\0';
    while (n + 1 < cap && !strstr(ret, until)) {
        ssize_t got = read(fd, ret + n, 1);

        if (got <= 0)
            break;
        n += (size_t)got;
        ret[n] = '\0';
    }
    if (!strstr(ret, until))
        fail_msg("no \"%s\" in \"%s\"", until, ret);
}

static bool is_cooked(int fd)
{
    struct termios now;

    assert_int_equal(tcgetattr(fd, &now), 0);
    return (now.c_lflag & (ICANON | ECHO | IEXTEN)) == (ICANON | ECHO | IEXTEN) &&
           (now.c_iflag & IXON) != 0;
}

static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS};

/* In the child, whose terminal it is: draws a line, and takes signals until one ends it. */
static void show_and_end(void)
{
    struct terminal t = TERMINAL_NULL;
    struct err e = ERR_NULL;
    unsigned columns;
    unsigned lines;
    int end = 0;

    /* Some of these cmocka handles, and some nohup ignores. */
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        (void)signal(signals[i], SIG_DFL);
    if (!terminal_is_there() || terminal_open(&t, &e) != 0)
        _exit(1);
    terminal_size(&columns, &lines);
    if (columns != 91 || lines != 17 || !terminal_draw("one\ntwo", true))
        _exit(2);
    for (;;) {
        struct pollfd ready = {.fd = t.signals, .events = POLLIN};

        if (poll(&ready, 1, -1) != 1)
            continue;
        switch (terminal_signal(&t, &end)) {
        case TERMINAL_EVENT_NONE:
            break;
        case TERMINAL_EVENT_REDRAW:
            (void)terminal_draw("again", false);
            break;
        case TERMINAL_EVENT_END:
            terminal_close(&t);
            terminal_close(&t);
            (void)raise(end);
            _exit(3);
        }
    }
}

/* A process that has a terminal open, and the leader of its session, with whose end the kernel
 * would set the terminal back by itself. */
struct shown {
    int fd;       /* the terminal's other end */
    int statuses; /* each time that the process has stopped or ended, as waitpid() says it */
    pid_t leader;
    pid_t pid;
};

static void lead(int statuses)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        show_and_end();
    /* ^C is for all in the foreground. */
    (void)signal(SIGINT, SIG_IGN);
    if (write(statuses, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
        _exit(1);
    do {
        if (waitpid(pid, &status, WUNTRACED) == pid &&
            write(statuses, &status, sizeof(status)) != (ssize_t)sizeof(status))
            _exit(1);
    } while (WIFSTOPPED(status));
    for (;;)
        (void)pause();
}

static struct shown start(void)
{
    struct winsize size = {.ws_col = 91, .ws_row = 17};
    struct shown s;
    char text[512];
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    s.statuses = ends[0];
    s.leader = forkpty(&s.fd, NULL, NULL, &size);
    assert_true(s.leader >= 0);
    if (s.leader == 0)
        lead(ends[1]);
    (void)close(ends[1]);
    assert_int_equal(read(s.statuses, &s.pid, sizeof(s.pid)), sizeof(s.pid));
    read_until(s.fd, "\033[2;1H\033[Ktwo", text, sizeof(text));
    assert_non_null(strstr(text, "\033[?1049h\033[?25l"));
    assert_non_null(strstr(text, "\033[2J\033[1;1H\033[Kone"));
    assert_false(is_cooked(s.fd));
    return s;
}

static void expect_end(struct shown *s, int signal)
{
    char text[512];
    int status;

    read_until(s->fd, "\033[?25h\033[?1049l", text, sizeof(text));
    assert_int_equal(read(s->statuses, &status, sizeof(status)), sizeof(status));
    if (!WIFSIGNALED(status) || WTERMSIG(status) != signal)
        fail_msg("signal %d: %#x", signal, (unsigned)status);
    assert_true(is_cooked(s->fd));
    (void)close(s->fd);
    (void)close(s->statuses);
    (void)kill(s->leader, SIGKILL);
    assert_int_equal(waitpid(s->leader, &status, 0), s->leader);
}

static void test_each_end_restores_it(void **state)
{
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
        struct shown s = start();

        assert_int_equal(kill(s.pid, signals[i]), 0);
        expect_end(&s, signals[i]);
    }
}

static void test_keys_end_it(void **state)
{
    struct shown s = start();

    assert_int_equal(write(s.fd, "x\003", 2), 2);
    expect_end(&s, SIGINT);
}

/* Somebody else has set the terminal meanwhile. */
static void test_it_goes_on_after_a_stop(void **state)
{
    struct shown s = start();
    struct termios cooked;
    char text[512];
    int status;

    assert_int_equal(kill(s.pid, SIGSTOP), 0);
    assert_int_equal(read(s.statuses, &status, sizeof(status)), sizeof(status));
    assert_true(WIFSTOPPED(status));
    assert_int_equal(tcgetattr(s.fd, &cooked), 0);
    cooked.c_lflag |= ICANON | ECHO;
    assert_int_equal(tcsetattr(s.fd, TCSANOW, &cooked), 0);
    assert_int_equal(kill(s.pid, SIGCONT), 0);
    read_until(s.fd, "again", text, sizeof(text));
    assert_non_null(strstr(text, "\033[?1049h"));
    assert_false(is_cooked(s.fd));
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    expect_end(&s, SIGTERM);
}

static void test_another_size(void **state)
{
    struct winsize size = {.ws_col = 40, .ws_row = 10};
    struct shown s = start();
    char text[512];

    assert_int_equal(ioctl(s.fd, TIOCSWINSZ, &size), 0);
    read_until(s.fd, "again", text, sizeof(text));
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    expect_end(&s, SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_end_restores_it),
        cmocka_unit_test(test_keys_end_it),
        cmocka_unit_test(test_it_goes_on_after_a_stop),
        cmocka_unit_test(test_another_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
