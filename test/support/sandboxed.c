/* sandboxed.c - see sandboxed.h. */
#include "test/support/sandboxed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "test/support/emulated.h"

/* Exit status of a child that could not even begin. */
#define NO_SANDBOX 99

struct sandboxed sandboxed_run(const struct sandbox *s, int (*act)(void))
{
    struct sandboxed o = {0};
    size_t len = 0;
    int fds[2];
    int status;
    ssize_t n;
    pid_t pid;

    if (emulated_lacks("seccomp"))
        skip();
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        struct err e = ERR_NULL;

        (void)dup2(fds[1], STDERR_FILENO);
        (void)close(fds[0]);
        if (sandbox_enter(s, NULL, &e) != 0) {
            (void)dprintf(STDERR_FILENO, "no sandbox: %s\n", err_text(&e));
            _exit(NO_SANDBOX);
        }
        _exit(act());
    }
    (void)close(fds[1]);
    while ((n = read(fds[0], o.said + len, sizeof(o.said) - 1 - len)) > 0)
        len += (size_t)n;
    (void)close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    o.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    if (o.status == NO_SANDBOX)
        fail_msg("%s", o.said);
    return o;
}

struct sandbox sandboxed_plain(enum sandbox_kind kind)
{
    return (struct sandbox){.kind = kind, .uid = getuid(), .gid = getgid(), .all_files = true};
}
