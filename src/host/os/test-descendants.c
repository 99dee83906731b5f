/* test-descendants.c - what a process has started, and what is in the memory of these. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/child.h"
#include "test/support/emulated.h"

struct wanted {
    const char *name;
    unsigned n;    /* of that name */
    unsigned most; /* no more are wanted */
    int pid;       /* of the last one */
};

static bool count(void *ctx, int pid)
{
    struct wanted *w = ctx;
    char name[16];

    if (strcmp(descendants_name(pid, name), w->name) == 0) {
        w->n++;
        w->pid = pid;
    }
    return w->n < w->most;
}

static unsigned count_all(const char *name, unsigned most)
{
    struct wanted w = {.name = name, .most = most};

    descendants_walk(getpid(), count, &w);
    return w.n;
}

/* A shell that starts others, and says when they are there. Its process group is its own. */
static pid_t start(const char *script)
{
    int fds[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0);
        (void)dup2(fds[1], STDOUT_FILENO);
        (void)execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    (void)close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    (void)close(fds[0]);
    return pid;
}

static void end(pid_t group)
{
    assert_int_equal(kill(-group, SIGKILL), 0);
    while (waitpid(-1, NULL, 0) > 0) {
    }
}

static void test_all_generations(void **state)
{
    pid_t pid;

    if (emulated_lacks("adoption of orphans"))
        skip();
    /* A subshell of its own, whose child says that it is there just before it becomes a sleep. */
    pid = start("sh -c 'sleep 600 & exec tail -f /dev/null' & sleep 600 & echo x; wait");
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    while (count_all("sleep", 9) < 2 || count_all("tail", 9) < 1) {
    }
    assert_int_equal(count_all("sleep", 9), 2);
    assert_int_equal(count_all("sleep", 1), 1);
    assert_int_equal(count_all("nothing", 1), 0);
    end(pid);
    assert_int_equal(count_all("sleep", 9), 0);
}

/* What has left its parent is found at whom it has come to. */
static void test_one_that_went_away(void **state)
{
    pid_t pid;

    if (emulated_lacks("adoption of orphans"))
        skip();
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid = start("(sleep 600 & echo x) & wait; exit 0");
    while (count_all("sleep", 9) < 1) {
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(count_all("sleep", 9), 1);
    end(pid);
}

static void test_memory_map(void **state)
{
    assert_true(descendants_maps(getpid(), "libcmocka"));
    assert_true(descendants_maps(getpid(), "test-os-descend"));
    assert_false(descendants_maps(getpid(), "cmocka"));
    assert_false(descendants_maps(0, "lib"));
}

static void test_a_line_of_stat(void **state)
{
    struct process_stat s = {.state = '?'};

    assert_true(process_stat_parse("7 (a) R (b) S) T 1 2 3 4 5 6 7 8 9 10 1234 567 8 9 10", &s));
    assert_int_equal(s.state, 'T');
    assert_int_equal(s.user_ticks, 1234);
    assert_int_equal(s.kernel_ticks, 567);
    s.state = '?';
    assert_false(process_stat_parse("", &s));
    assert_false(process_stat_parse("7 (a)", &s));
    assert_false(process_stat_parse("7 (a) ", &s));
    assert_false(process_stat_parse("7 (a) R 1 2 3 4 5 6 7 8 9 10", &s));
    assert_false(process_stat_parse("7 (a) R 1 2 3 4 5 6 7 8 9 10 x 3 4", &s));
    assert_false(process_stat_parse("7 (a) R 1 2 3 4 5 6 7 8 9 10 11 12", &s));
    assert_int_equal(s.state, '?');
}

static void test_this_process(void **state)
{
    struct process_stat before;
    struct process_stat now;

    assert_true(descendants_stat(getpid(), &before));
    assert_int_equal(before.state, 'R');
    do {
        assert_true(descendants_stat(getpid(), &now));
    } while (now.user_ticks + now.kernel_ticks == before.user_ticks + before.kernel_ticks);
    assert_false(descendants_stat(0, &now));
}

static void test_sockets(void **state)
{
    int fds[] = {socket(AF_INET, SOCK_DGRAM, 0), socket(AF_UNIX, SOCK_STREAM, 0)};
    uint32_t inodes[64];
    unsigned n = descendants_sockets(getpid(), inodes, 64);

    for (unsigned i = 0; i < 2; i++) {
        struct stat st;
        unsigned same = 0;

        assert_int_equal(fstat(fds[i], &st), 0);
        for (unsigned k = 0; k < n; k++)
            same += inodes[k] == (uint32_t)st.st_ino;
        assert_int_equal(same, 1);
    }
    assert_int_equal(descendants_sockets(getpid(), inodes, 1), 1);
    assert_int_equal(descendants_sockets(0, inodes, 64), 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_of_stat),
        cmocka_unit_test(test_this_process),
        cmocka_unit_test(test_sockets),
        cmocka_unit_test(test_all_generations),
        cmocka_unit_test(test_one_that_went_away),
        cmocka_unit_test(test_memory_map),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
